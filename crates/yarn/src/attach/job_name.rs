//! What an application of somebody else is called, and what its tags want.

use std::collections::BTreeMap;

use slackline_local::JobName;
use slackline_model::When;

use crate::rest::resource_manager::App;

/// The property of a job that has its tags.
const TAGS: &str = "mapreduce.job.tags";

/// `slackline.flow=NAME`: what application it is one of.
const FLOW_TAG: &str = "slackline.flow";
/// `slackline.deadline=+SECONDS`: when it should be done, from its submission.
const DEADLINE_TAG: &str = "slackline.deadline";
/// `slackline.weight=NUMBER`: how much it counts.
const WEIGHT_TAG: &str = "slackline.weight";

/// Properties of a job that say of which workflow it is.
pub(super) const WORKFLOW: &[&str] =
    &["mapreduce.workflow.name", "mapreduce.workflow.id", "mapreduce.workflow.node.name"];

/// The longest name, in characters.
const LONGEST: usize = 200;

/// What the tags of an application want.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AppTags {
    /// The flow, if they say it.
    pub(super) flow: Option<String>,
    /// Seconds from its submission.
    pub(super) deadline: Option<f64>,
    pub(super) weight: f64,
    /// What is wrong with them, in words for a person.
    pub(super) problems: Vec<String>,
}

impl AppTags {
    pub(super) fn of(app: &App) -> Self {
        let mut problems = Vec::new();
        let mut read = |tag: &str, expected: &str, read: fn(&str) -> Option<f64>| {
            let text = app.tag(tag)?;
            let value = read(text);
            if value.is_none() {
                problems.push(format!("found the tag {tag}={text}, expected {expected}; it is left out"));
            }
            value
        };
        let deadline = read(DEADLINE_TAG, "+SECONDS from the submission, such as +600 or +1.5h", |text| {
            match When::parse_option(text.strip_prefix('+')?) {
                Ok(When::Seconds(seconds)) if (0.0..=1e9).contains(&seconds) => Some(seconds),
                _ => None,
            }
        });
        let weight = read(WEIGHT_TAG, "a number from 0 to 1e6", |text| {
            text.parse().ok().filter(|weight| (0.0..=1e6).contains(weight))
        });
        let flow = app.tag(FLOW_TAG).and_then(flow);
        Self { flow, deadline, weight: weight.unwrap_or(1.0), problems }
    }
}

/// How an application is found again among others: by its tag, else by what its job says of the workflow it is a part of,
/// else by its name; without the numbers and dates that tell it from yesterday's.
pub(super) fn name(own: &str, flow: Option<&str>, workflow: &BTreeMap<String, String>) -> JobName {
    let own = recurring(own);
    let said = |key: &str| workflow.get(key).map(|text| recurring(text)).filter(|text| !text.is_empty());
    let own = if own.is_empty() { "job".to_owned() } else { own };
    let [by_name, by_id, node] = [WORKFLOW[0], WORKFLOW[1], WORKFLOW[2]].map(said);
    match (flow, by_name.or(by_id)) {
        (Some(flow), _) => JobName { flow: flow.to_owned(), job: node.unwrap_or(own) },
        (None, Some(flow)) => JobName { flow, job: node.unwrap_or(own) },
        (None, None) => JobName { flow: own.clone(), job: own },
    }
}

/// The flow that a tag names.
fn flow(text: &str) -> Option<String> {
    Some(printable(text)).filter(|name| !name.is_empty())
}

/// Properties of a job that has ended that say how it is found again.
pub(super) fn properties() -> Vec<&'static str> {
    WORKFLOW.iter().copied().chain([TAGS]).collect()
}

/// How a job that has ended is found again, by these of its properties. YARN makes tags lower case.
pub(super) fn name_by(own: &str, properties: &BTreeMap<String, String>) -> JobName {
    let tags = properties.get(TAGS).map(|tags| tags.to_lowercase()).unwrap_or_default();
    let tag = tags.split(',').find_map(|tag| tag.trim().strip_prefix(FLOW_TAG)?.strip_prefix('='));
    name(own, tag.and_then(flow).as_deref(), properties)
}

/// A name without what differs from one recurrence to the next: every number, with what separates it from the next
/// number, becomes `*`. `load 2026-03-01 06:00` is `load *`.
pub(super) fn recurring(name: &str) -> String {
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

/// A text as a name may be: what does not print is left out, and what is too long.
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
            assert_eq!(recurring(found), expected);
        }
    }

    #[test]
    fn tags_come_first_then_the_workflow_then_the_name() {
        let workflow = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let by = |flow: Option<&str>, pairs: &[(&str, &str)]| {
            let JobName { flow, job } = name("sort 7", flow, &workflow(pairs));
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
        let JobName { flow, job } = name_by("sort 7", &workflow(&tagged));
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
