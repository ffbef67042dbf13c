//! The name of an application in the history, and the requests in its tags.

use std::collections::BTreeMap;

use slackline_executor::spec::job_cost::JobName;
use slackline_model::TimeSpec;

use crate::rest::resource_manager::App;

/// The property of a job with its tags.
const TAGS: &str = "mapreduce.job.tags";

/// `slackline.flow=NAME`: the flow of the application.
const FLOW_TAG: &str = "slackline.flow";
/// `slackline.deadline=+SECONDS`: the deadline, from the submission.
const DEADLINE_TAG: &str = "slackline.deadline";
/// `slackline.weight=NUMBER`: the weight.
const WEIGHT_TAG: &str = "slackline.weight";

/// Properties of a job that name its workflow.
pub(super) const WORKFLOW: &[&str] =
    &["mapreduce.workflow.name", "mapreduce.workflow.id", "mapreduce.workflow.node.name"];

/// In characters.
const LONGEST: usize = 200;

/// The requests in the tags of an application.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AppTags {
    /// The flow, if a tag names it.
    pub(super) flow: Option<String>,
    /// In seconds from the submission.
    pub(super) deadline: Option<f64>,
    pub(super) weight: f64,
    /// Invalid tags, for the user.
    pub(super) problems: Vec<String>,
}

impl AppTags {
    pub(super) fn of(app: &App) -> Self {
        let mut problems = Vec::new();
        let mut read = |tag: &str, expected: &str, read: fn(&str) -> Option<f64>| {
            let text = app.tag(tag)?;
            let value = read(text);
            if value.is_none() {
                problems.push(format!("found the tag {tag}={text}, expected {expected}; the tag is ignored"));
            }
            value
        };
        let deadline = read(DEADLINE_TAG, "+SECONDS from the submission, such as +600 or +1.5h", |text| {
            match TimeSpec::parse_option(text.strip_prefix('+')?) {
                Ok(TimeSpec::Seconds(seconds)) if (0.0..=1e9).contains(&seconds) => Some(seconds),
                _ => None,
            }
        });
        let weight = read(WEIGHT_TAG, "a number from 0 to 1e6", |text| {
            text.parse().ok().filter(|weight| (0.0..=1e6).contains(weight))
        });
        let flow = app.tag(FLOW_TAG).and_then(flow_from_tag);
        Self { flow, deadline, weight: weight.unwrap_or(1.0), problems }
    }
}

/// The name of an application in the history: from its tag, else from the workflow of its job, else from its
/// own name. Numbers and dates are left out, so that the job of today has the name of yesterday's.
pub(super) fn job_name(own: &str, flow: Option<&str>, workflow: &BTreeMap<String, String>) -> JobName {
    let own = without_numbers(own);
    let property =
        |key: &str| workflow.get(key).map(|text| without_numbers(text)).filter(|text| !text.is_empty());
    let own = if own.is_empty() { "job".to_owned() } else { own };
    let [by_name, by_id, node] = [WORKFLOW[0], WORKFLOW[1], WORKFLOW[2]].map(property);
    match (flow, by_name.or(by_id)) {
        (Some(flow), _) => JobName { flow: flow.to_owned(), job: node.unwrap_or(own) },
        (None, Some(flow)) => JobName { flow, job: node.unwrap_or(own) },
        (None, None) => JobName { flow: own.clone(), job: own },
    }
}

/// The flow that a tag names.
fn flow_from_tag(text: &str) -> Option<String> {
    Some(printable(text)).filter(|name| !name.is_empty())
}

/// Properties of a finished job that give its name in the history.
pub(super) fn name_properties() -> Vec<&'static str> {
    WORKFLOW.iter().copied().chain([TAGS]).collect()
}

/// The name of a finished job in the history, from its properties. YARN makes tags lower case.
pub(super) fn job_name_from(own: &str, properties: &BTreeMap<String, String>) -> JobName {
    let tags = properties.get(TAGS).map(|tags| tags.to_lowercase()).unwrap_or_default();
    let tag = tags.split(',').find_map(|tag| tag.trim().strip_prefix(FLOW_TAG)?.strip_prefix('='));
    job_name(own, tag.and_then(flow_from_tag).as_deref(), properties)
}

/// A name without the parts that differ between recurrences: every number, with the separators between
/// numbers, becomes `*`. `load 2026-03-01 06:00` becomes `load *`.
pub(super) fn without_numbers(name: &str) -> String {
    let mut out = String::new();
    let mut rest = printable(name);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        out.push('*');
        let separates = |c: char| matches!(c, '-' | '_' | ':' | '.' | '/' | ' ' | 'T' | 't');
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let mut end = at + digits(&rest[at..]);
        while let Some(c) = rest[end..].chars().next().filter(|&c| separates(c)) {
            let more = digits(&rest[end + c.len_utf8()..]);
            if more == 0 {
                break;
            }
            end += c.len_utf8() + more;
        }
        rest = rest[end..].to_owned();
    }
    out + &rest
}

/// A text without characters that do not print, cut to the longest name.
fn printable(text: &str) -> String {
    let plain: String =
        text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ' || c.is_alphanumeric()).collect();
    plain.trim().chars().take(LONGEST).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str, tags: &str) -> App {
        let document =
            serde_json::json!({ "id": "application_1_0007", "name": name, "applicationTags": tags });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn numbers_and_dates_are_not_of_the_name() {
        let names = [
            ("word count", "word count"),
            ("load 2026-03-01 06:00", "load *"),
            ("daily_20260301_part-3.jar", "daily_*_part-*.jar"),
            ("streamjob8213412341234.jar", "streamjob*.jar"),
            (" \u{7}ETL\u{200b} 12 ", "ETL *"),
            ("12", "*"),
        ];
        for (found, expected) in names {
            assert_eq!(without_numbers(found), expected);
        }
    }

    #[test]
    fn tags_come_first_then_the_workflow_then_the_name() {
        let workflow = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let by = |flow: Option<&str>, pairs: &[(&str, &str)]| {
            let JobName { flow, job } = job_name("sort 7", flow, &workflow(pairs));
            (flow, job)
        };
        let pair = |flow: &str, job: &str| (flow.to_owned(), job.to_owned());
        let all = [("mapreduce.workflow.name", "night 3"), ("mapreduce.workflow.node.name", "sum")];
        assert_eq!(by(None, &[]), pair("sort *", "sort *"));
        assert_eq!(by(None, &all), pair("night *", "sum"));
        assert_eq!(by(None, &[("mapreduce.workflow.id", "w-1")]), pair("w-*", "sort *"));
        assert_eq!(by(Some("etl"), &all), pair("etl", "sum"));
        let tagged =
            [("mapreduce.job.tags", "a=b, Slackline.Flow=Nightly"), ("mapreduce.workflow.name", "w")];
        let JobName { flow, job } = job_name_from("sort 7", &workflow(&tagged));
        assert_eq!((flow, job), pair("nightly", "sort *"));
    }

    #[test]
    fn tags_say_what_is_wanted() {
        let wanted =
            AppTags::of(&app("a", "slackline.deadline=+90s,slackline.weight=2.5,slackline.flow=etl"));
        assert_eq!((wanted.deadline, wanted.weight, wanted.flow.as_deref()), (Some(90.0), 2.5, Some("etl")));
        let wrong = AppTags::of(&app("a", "slackline.deadline=60,slackline.weight=-1"));
        assert_eq!((wrong.deadline, wrong.weight), (None, 1.0));
        assert!(
            wrong.problems[0].contains("slackline.deadline=60, expected +SECONDS"),
            "{:?}",
            wrong.problems
        );
        assert!(wrong.problems[1].contains("slackline.weight=-1, expected a number"), "{:?}", wrong.problems);
    }
}
