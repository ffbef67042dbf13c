//! `queue`: the submissions of a service with their progress; and one submission as `status NUMBER` shows it.

use std::fmt::Write;

use clap::Args;
use jiff::Timestamp;
use slackline::report::number::counted;
use slackline::report::table::fitted;
use slackline::report::{Column, Table, View};
use slackline_serve::api::{Flow, Job, Machine, Service, State, Submission, Submissions};
use slackline_serve::http::client::{Client, query};

use super::submit::predicted;
use crate::args::defaults::Defaults;
use crate::args::listed::NamedValue;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags, value};
use crate::terminal::{out, service};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline queue
  slackline queue --all --user anna
  slackline queue --in failed,rejected --format csv

One row for each flow, and one for each submission that has not started. A predicted completion is unknown while a job of the flow never ran and its file has no duration for it. `slackline status NUMBER` shows a submission in detail.")]
pub(crate) struct Queue {
    /// Include ended submissions, as long as the service keeps them
    #[arg(long)]
    all: bool,
    /// Only submissions in these states: queued, opening, running, finished, failed, cancelled, rejected
    #[arg(long = "in", value_name = "STATE", value_delimiter = ',', value_parser = NamedValue::of("state", State::ALL.map(|state| (state.name(), state))), hide_possible_values = true)]
    states: Vec<State>,
    /// Only submissions of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only submissions of this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// At most N submissions, the latest
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value::whole::<usize>(1, 1_000_000))]
    limit: usize,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

/// Characters of a table for the reason why a submission waits or failed: at most, and before other columns
/// get room.
const WORD_MOST: usize = 100;
const WORD_LEAST: usize = 24;

const PAGE: usize = 1_000;

pub(crate) fn run(args: &Queue, defaults: &Defaults) -> anyhow::Result<Answer> {
    let mut client = args.server.client(defaults.state())?;
    let open = [State::Queued, State::Opening, State::Running];
    let states: &[State] = match (args.states.as_slice(), args.all) {
        ([], true) => &State::ALL,
        ([], false) => &open,
        (states, _) => states,
    };
    let asked = Listing { states, user: args.user.as_deref(), name: args.name.as_deref(), limit: args.limit };
    let (submissions, has_more) = asked.get(&mut client)?;
    let text = match args.output.form() {
        Form::Json => {
            let document = Submissions {
                before: has_more.then(|| submissions.last().map_or(0, |one| one.number)),
                submissions,
            };
            format!("{:#}\n", serde_json::to_value(&document)?)
        }
        Form::Csv => csv(&submissions),
        Form::Table => {
            let service: Service = client.get("/api/v1/service")?;
            table(&service, &submissions, has_more, &out::view(args.output.file()))
        }
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

/// The query for all submissions.
pub(super) struct Listing<'a> {
    pub(super) states: &'a [State],
    pub(super) user: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) limit: usize,
}

impl Listing<'_> {
    /// Those there are, the latest first, page by page; and whether there are more.
    ///
    /// # Errors
    /// The service cannot be asked.
    pub(super) fn get(&self, client: &mut Client) -> anyhow::Result<(Vec<Submission>, bool)> {
        let states: Vec<&str> = self.states.iter().map(|state| state.name()).collect();
        let states = states.join(",");
        let mut all = Vec::new();
        let mut before: Option<u64> = None;
        loop {
            let limit = (self.limit - all.len()).min(PAGE).to_string();
            let from = before.map(|before| before.to_string());
            let asked = [
                ("state", Some(states.as_str())),
                ("user", self.user),
                ("name", self.name),
                ("limit", Some(limit.as_str())),
                ("before", from.as_deref()),
            ];
            let page: Submissions = client.get(&format!("/api/v1/submissions{}", query(&asked)))?;
            all.extend(page.submissions);
            before = page.before;
            if before.is_none() || all.len() >= self.limit {
                return Ok((all, before.is_some()));
            }
        }
    }
}

/// A row of the table: a submission, with one of its flows if it has any.
#[derive(Clone, Copy)]
struct Row<'a> {
    submission: &'a Submission,
    flow: Option<&'a Flow>,
}

fn rows(all: &[Submission]) -> Vec<Row<'_>> {
    let rows = |one| {
        let one: &Submission = one;
        let alone = one.flows.is_empty().then_some(Row { submission: one, flow: None });
        alone.into_iter().chain(one.flows.iter().map(move |flow| Row { submission: one, flow: Some(flow) }))
    };
    all.iter().flat_map(rows).collect()
}

/// The deadline of a flow, or the first one of a submission that has not started.
fn deadline_of(row: Row<'_>) -> Option<Timestamp> {
    row.flow.map_or(row.submission.deadline, |flow| flow.deadline)
}

fn status_text(row: Row<'_>, now: Timestamp) -> String {
    let Row { submission: one, flow } = row;
    match flow {
        // Its flows are cancelled; the state of the submission says more.
        Some(_) if one.state == State::Rejected => service::status(one, now),
        Some(flow) => match &flow.why {
            Some(why) => format!("{}: {}", service::verdict(flow, now), service::localised(why, now)),
            None => service::verdict(flow, now).to_owned(),
        },
        None if one.state.has_not_begun() && one.deadline.is_some_and(|at| at < now) => {
            format!("late already, {}", service::status(one, now))
        }
        None => service::status(one, now),
    }
}

/// The beginning of a text that fits the table, with a mark for the rest: `status` shows the whole text.
fn shorten(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    format!("{}…", line.chars().take(most.saturating_sub(1)).collect::<String>().trim_end())
}

/// The table of flows, with texts as long as there is room beside the other columns.
fn render_to_fit(rows: &[Row<'_>], now: Timestamp, view: &View) -> String {
    let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let words: Vec<String> = rows.iter().map(|row| shorten(&status_text(*row, now), WORD_MOST)).collect();
    let all = View { width: usize::MAX, colour: false, ..view.clone() };
    let lines = flows_table(rows, &words, now).render(&all);
    let needed = width(&lines);
    let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
    let room = longest.saturating_sub(needed.saturating_sub(view.width)).max(WORD_LEAST);
    let with = |room: usize| {
        let words: Vec<String> = words.iter().map(|word| shorten(word, room)).collect();
        flows_table(rows, &words, now)
    };
    // Where columns have fallen away all the same there is room again.
    let plain = View { colour: false, ..view.clone() };
    let left = view.width.saturating_sub(width(&with(room).render(&plain)));
    with(room + left).render(view)
}

fn table(service: &Service, all: &[Submission], has_more: bool, view: &View) -> String {
    let mut text = fitted(&format!("{}\n", service::headline(service)), view.width);
    if all.is_empty() {
        text.push_str("no submissions; --all includes ended ones\n");
        return text;
    }
    text.push('\n');
    text.push_str(&render_to_fit(&rows(all), service.now, view));
    if has_more {
        text.push_str("more submissions exist: --limit N shows them\n");
    }
    text
}

fn flows_table(rows: &[Row<'_>], status: &[String], now: Timestamp) -> Table {
    let words = |name: &str, cell: &dyn Fn(&Row<'_>) -> String| {
        Column::words(name, rows.iter().map(cell).collect::<Vec<_>>())
    };
    let of_flow = |name: &str, cell: &dyn Fn(&Flow) -> String| {
        words(name, &|row| row.flow.map_or_else(String::new, cell))
    };
    Table::of(vec![
        words("number", &|row| row.submission.number.to_string()),
        words("name", &|row| service::dated_name(row.submission)),
        of_flow("flow", &|flow| flow.flow.clone()),
        words("user", &|row| row.submission.user.clone()).rank(3),
        words("submitted", &|row| service::clock(row.submission.submitted, now)).rank(4),
        words("deadline", &|row| service::clock_if(deadline_of(*row), now)),
        of_flow("predicted", &|flow| service::predicted(flow, now)).rank(1),
        of_flow("completion", &|flow| service::clock_if(flow.completion, now)).rank(2),
        of_flow("tasks done", &|flow| format!("{} of {}", flow.done, flow.tasks)),
        of_flow("running", &|flow| flow.running.to_string()).rank(5),
        Column::words("status", status).heading(""),
    ])
}

/// The text of a row in one column.
type Cell<'a> = &'a dyn Fn(&Row<'_>) -> String;

fn csv(all: &[Submission]) -> String {
    let at = |at: Option<Timestamp>| at.map_or_else(String::new, |at| at.to_string());
    let of = |row: &Row<'_>, cell: &dyn Fn(&Flow) -> String| row.flow.map_or_else(String::new, cell);
    let columns: [(&str, Cell<'_>); 22] = [
        ("number", &|row| row.submission.number.to_string()),
        ("name", &|row| row.submission.name.clone()),
        ("user", &|row| row.submission.user.clone()),
        ("state", &|row| row.submission.state.name().to_owned()),
        ("why", &|row| row.submission.why.clone().unwrap_or_default()),
        ("submitted", &|row| row.submission.submitted.to_string()),
        ("ended", &|row| at(row.submission.ended)),
        ("priority", &|row| row.submission.priority.to_string()),
        ("flow", &|row| of(row, &|flow| flow.flow.clone())),
        ("flow_state", &|row| of(row, &|flow| flow.state.name().to_owned())),
        ("release", &|row| of(row, &|flow| flow.release.to_string())),
        ("deadline", &|row| at(deadline_of(*row))),
        ("predicted", &|row| of(row, &|flow| at(flow.predicted))),
        ("completion", &|row| of(row, &|flow| at(flow.completion))),
        ("late", &|row| of(row, &|flow| flow.late.map_or_else(String::new, |late| late.to_string()))),
        ("weight", &|row| of(row, &|flow| flow.weight.to_string())),
        ("tasks", &|row| of(row, &|flow| flow.tasks.to_string())),
        ("done", &|row| of(row, &|flow| flow.done.to_string())),
        ("running", &|row| of(row, &|flow| flow.running.to_string())),
        ("failed_attempts", &|row| of(row, &|flow| flow.failed_attempts.to_string())),
        ("unknown", &|row| of(row, &|flow| flow.unknown.to_string())),
        ("time", &|row| at(row.submission.occurrence.as_ref().map(|occurrence| occurrence.at))),
    ];
    let cells = |row: Row<'_>| columns.iter().map(|(_, cell)| cell(&row)).collect::<Vec<_>>();
    slackline::report::csv(&columns.map(|(name, _)| name), rows(all).into_iter().map(cells))
}

/// `status NUMBER`: one submission, whole.
pub(crate) fn one(
    number: u64,
    server: &ServerFlags,
    output: &OutputArgs,
    defaults: &Defaults,
) -> anyhow::Result<Answer> {
    let mut client = server.client(defaults.state())?;
    let one: Submission = client.get(&format!("/api/v1/submissions/{number}"))?;
    let text = match output.form() {
        Form::Json => format!("{:#}\n", serde_json::to_value(&one)?),
        Form::Csv => csv(std::slice::from_ref(&one)),
        Form::Table => submission_text(&one, &out::view(output.file())),
    };
    out::text(output.file(), &text)?;
    Ok(Answer::Yes)
}

/// `status --server`: the service.
pub(crate) fn service(
    server: &ServerFlags,
    output: &OutputArgs,
    defaults: &Defaults,
) -> anyhow::Result<Answer> {
    let service: Service = server.client(defaults.state())?.get("/api/v1/service")?;
    let text = match output.form() {
        Form::Json => format!("{:#}\n", serde_json::to_value(&service)?),
        Form::Csv => anyhow::bail!("--format: found csv, expected table or json for a service"),
        Form::Table => {
            let mut text =
                fitted(&format!("{}\n", service::headline(&service)), out::view(output.file()).width);
            let now = service.now;
            let started = service::clock(service.started, now);
            let _ = writeln!(text, "running since {started}, version {}", service.version);
            // A single machine needs no line.
            if service.machines.len() > 1 {
                let _ = writeln!(text, "machines: {}", machines(&service.machines));
            }
            let calibration = service.calibration;
            if calibration.flows > 0 {
                let _ = writeln!(
                    text,
                    "forecast accuracy ({}): {:.0} % inside the 80 % interval, mean error {:.0} %",
                    counted(calibration.flows, "flow"),
                    100.0 * calibration.inside,
                    100.0 * calibration.error
                );
            }
            if calibration.unknown > 0 {
                let flows = counted(calibration.unknown, "flow");
                let _ = writeln!(text, "no forecast of {flows}, because a job had never run");
            }
            text
        }
    };
    out::text(output.file(), &text)?;
    Ok(Answer::Yes)
}

fn submission_text(one: &Submission, view: &View) -> String {
    let now = Timestamp::now();
    let submitted = service::clock(one.submitted, now);
    let ended = one.ended.map_or_else(String::new, |at| format!(", ended at {}", service::clock(at, now)));
    let headline = format!(
        "{}: {} of {}, submitted at {submitted}{ended}: {}\n",
        one.number,
        one.name,
        one.user,
        service::status(one, now)
    );
    let mut text = fitted(&headline, view.width);
    if let Some(occurrence) = &one.occurrence {
        let _ = writeln!(text, "schedule {}, {}", occurrence.recurrence, service::clock(occurrence.at, now));
    }
    if let Some(other) = one.rerun_of {
        let _ = writeln!(text, "runs submission {other} again");
    }
    if let Some(commit) = &one.commit {
        let changed = if commit.ends_with('+') { ", changed since" } else { "" };
        let _ = writeln!(text, "flow file of commit {}{changed}", commit.trim_end_matches('+'));
    }
    if let Some(unpredicted) = &one.unpredicted {
        text.push_str(&fitted(&format!("{}\n", service::localised(unpredicted, now)), view.width));
    }
    if one.flows.is_empty() {
        return text;
    }
    let rows: Vec<Row<'_>> = one.flows.iter().map(|flow| Row { submission: one, flow: Some(flow) }).collect();
    text.extend(["\n", &render_to_fit(&rows, now, view)]);
    for flow in one.flows.iter().filter(|flow| flow.cause.is_some()) {
        let cause = flow.cause.as_deref().unwrap_or_default();
        text.push_str(&fitted(&format!("{}: {cause}\n", flow.flow), view.width));
    }
    let jobs: Vec<(&Flow, &Job)> =
        one.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job))).collect();
    if !jobs.is_empty() {
        text.extend(["\n", &jobs_table(&jobs).render(view)]);
    }
    if let Some(prediction) = one.prediction.as_ref().filter(|_| !one.state.is_over()) {
        let made = service::clock(prediction.made, now);
        let held = if one.held { ", if it is resumed then" } else { "" };
        let _ = write!(text, "\npredicted at {made}{held}:\n{}", predicted(prediction, now));
    }
    text
}

fn jobs_table(jobs: &[(&Flow, &Job)]) -> Table {
    let words = |name: &str, cell: &dyn Fn(&Flow, &Job) -> String| {
        Column::words(name, jobs.iter().map(|(flow, job)| cell(flow, job)).collect::<Vec<_>>())
    };
    let phase = |phase: slackline_serve::api::Phase| format!("{} of {}", phase.done, phase.tasks);
    Table::of(vec![
        words("flow", &|flow, _| flow.flow.clone()),
        words("job", &|_, job| job.job.clone()),
        words("maps done", &|_, job| phase(job.maps)),
        words("reduces done", &|_, job| phase(job.reduces)),
        words("running", &|_, job| (job.maps.running + job.reduces.running).to_string()).rank(1),
        words("after", &|_, job| job.after.join(", ")).rank(2),
    ])
}

/// `n1 with 1 slot, n2 with 4 slots (down)`.
fn machines(all: &[Machine]) -> String {
    let one = |machine: &Machine| {
        let away = if machine.up { "" } else { " (down)" };
        format!("{} with {}{away}", machine.machine, counted(machine.slots, "slot"))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(number: u64, why: &str) -> Submission {
        serde_json::from_value(serde_json::json!({
            "number": number, "name": "night", "user": "anna", "submitted": "2026-03-01T10:00:00Z", "state": "queued",
            "why": why, "held": false, "priority": 0, "flows": [], "deadline": "2026-03-02T10:00:00Z",
        }))
        .expect("a submission")
    }

    #[test]
    fn a_long_reason_is_shortened_before_columns_fall_away() {
        let long = format!("waits for {}/ready, which does not exist", "/data/incoming".repeat(8));
        let all = [queued(7, &long), queued(8, "held")];
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
        let shown = |width: usize| render_to_fit(&rows(&all), now, &View { width, ..View::default() });
        for width in [130, 160, 220] {
            let table = shown(width);
            let widest = table.lines().map(|line| line.chars().count()).max().expect("lines");
            assert!(widest <= width, "{width}: {table}");
            assert!(table.contains("queued: waits for /da") && table.contains('…'), "{table}");
        }
        // Columns of low rank are dropped first, and the reason is not cut to nothing.
        let narrow = shown(80);
        assert!(narrow.contains("queued: waits for /data") && !narrow.contains("submitted"), "{narrow}");
        let short = [queued(7, "held")];
        let table = render_to_fit(&rows(&short), now, &View { width: 200, ..View::default() });
        assert!(table.contains("queued: held") && !table.contains('…'), "{table}");
    }

    #[test]
    fn late_past_and_rejected_submissions_are_marked() {
        let now: Timestamp = "2026-03-02T12:00:00Z".parse().expect("a time");
        let status = |one: &Submission| {
            rows(std::slice::from_ref(one)).iter().map(|row| status_text(*row, now)).collect::<Vec<_>>()
        };
        let mut one = queued(7, "no slot");
        assert_eq!(status(&one), ["late already, queued: no slot"]);
        let predicted = Some("2026-03-02T11:00:00Z".parse().expect("a time"));
        let flow = Flow { state: slackline_serve::api::FlowStatus::Running, predicted, ..Flow::default() };
        let shown = service::predicted(&flow, now);
        assert!(shown.ends_with(" (passed)"), "{shown}");
        let unknown = Flow { unknown: true, predicted: None, ..flow.clone() };
        assert_eq!(service::predicted(&unknown, now), "unknown");
        let done = Flow { state: slackline_serve::api::FlowStatus::Finished, ..flow.clone() };
        assert!(!service::predicted(&done, now).contains("passed"));
        let cancelled = Flow { state: slackline_serve::api::FlowStatus::Cancelled, ..Flow::default() };
        (one.state, one.flows) = (State::Rejected, vec![cancelled]);
        assert_eq!(status(&one), ["rejected: no slot"]);
    }
}
