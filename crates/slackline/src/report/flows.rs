//! The results of each flow of a schedule.

use std::io::{self, Write};

use slackline_model::cost::is_late;
use slackline_model::schedule::{FlowResult, FlowRow, Origin};
use slackline_model::{Instance, Schedule};

use crate::report::comparison::Figures;
use crate::report::number::{NOTHING, Unit, column, duration, exact, instants, number};
use crate::report::table::{Column, Table, View, list};
use crate::simulate::RowWriter;

/// `late`, `on time`, `failed`, or nothing without a deadline.
fn verdict(instance: &Instance, row: &FlowRow) -> &'static str {
    let deadline = instance.flow(row.flow).deadline;
    match (row.status, row.completion, deadline) {
        (FlowResult::Failed, ..) | (_, None, _) => "failed",
        (FlowResult::Done, Some(c), Some(d)) if is_late(c, d.seconds()) => "late",
        (FlowResult::Done, Some(_), Some(_)) => "on time",
        (FlowResult::Done, Some(_), None) => "",
    }
}

/// The flows of the schedule that exist in the instance.
fn known<'a>(instance: &'a Instance, schedule: &'a Schedule) -> impl Iterator<Item = &'a FlowRow> {
    schedule.flows.iter().filter(|row| instance.flows().contains(row.flow))
}

/// The valid names for `--columns`.
pub const COLUMNS: [&str; 9] =
    ["flow", "release", "start", "wait", "completion", "response", "deadline", "cost", "status"];

/// The first `most` flows, in the order of the schedule or of the view, and the number of flows that are left
/// out.
pub fn table(instance: &Instance, schedule: &Schedule, most: usize, view: &View) -> String {
    let flow = |row: &FlowRow| instance.flow(row.flow);
    let rows = || known(instance, schedule);
    let words = |get: &dyn Fn(&FlowRow) -> String| rows().map(get).collect::<Vec<_>>();
    let values = |get: &dyn Fn(&FlowRow) -> Option<f64>| rows().map(get).collect::<Vec<_>>();
    let numbers =
        |name: &str, unit, get: &dyn Fn(&FlowRow) -> Option<f64>| Column::numbers(name, &values(get), unit);
    let at = |name: &str, get: &dyn Fn(&FlowRow) -> Option<f64>| {
        let values = values(get);
        Column::written(name, &values, instants(&values, instance.start()))
    };
    let deadline = |row: &FlowRow| flow(row).deadline.map(slackline_model::Time::seconds);
    let table = Table::of(vec![
        Column::words("flow", words(&|row| flow(row).id.clone())),
        at("release", &|row| Some(row.release)).rank(4),
        at("start", &|row| row.start).rank(5),
        numbers("wait", Unit::Seconds, &|row| row.start.map(|start| start - row.release)).if_asked(),
        at("completion", &|row| row.completion).rank(1),
        numbers("response", Unit::Seconds, &|row| row.completion.map(|c| c - row.release)).rank(2),
        at("deadline", &deadline).rank(1),
        numbers("cost", Unit::Measure, &|row| row.cost).rank(3),
        Column::words("status", words(&|row| verdict(instance, row).to_owned())).rank(1),
    ]);
    let mut out = table.render_first(view, most);
    let more = rows().count().saturating_sub(most);
    if more > 0 {
        out.extend(["… ", &more.to_string(), " more (--all shows them)\n"]);
    }
    out
}

const HEADER: [&str; 9] =
    ["flow", "release", "start", "completion", "response", "deadline", "cost", "status", "late"];

/// One row per flow, with all digits.
pub fn csv(instance: &Instance, schedule: &Schedule) -> String {
    crate::report::csv(&HEADER, known(instance, schedule).map(|row| record(instance, row)))
}

fn record(instance: &Instance, row: &FlowRow) -> Vec<String> {
    let flow = instance.flow(row.flow);
    let deadline = flow.deadline.map(slackline_model::Time::seconds);
    let status = if row.status == FlowResult::Done { "done" } else { "failed" };
    let late = row.completion.zip(deadline).map(|(c, d)| is_late(c, d).to_string());
    vec![
        flow.id.clone(),
        exact(Some(row.release)),
        exact(row.start),
        exact(row.completion),
        exact(row.completion.map(|c| c - row.release)),
        exact(deadline),
        exact(row.cost),
        status.to_owned(),
        late.unwrap_or_default(),
    ]
}

/// Writes the rows of [`csv()`] when flows end.
pub struct CsvWriter<W: Write>(csv::Writer<W>);

impl<W: Write> CsvWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self(csv::Writer::from_writer(out))
    }

    /// Finishes the table.
    ///
    /// # Errors
    /// An error of the output.
    pub fn end(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> RowWriter for CsvWriter<W> {
    fn begin(&mut self, _: &Instance, _: &Origin) -> io::Result<()> {
        Ok(self.0.write_record(HEADER)?)
    }

    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        Ok(self.0.write_record(record(live, row))?)
    }
}

/// The metrics of one schedule, several per line, after named remarks.
pub fn figures(figures: &Figures, remarks: &[(&'static str, String)]) -> String {
    let shown = |name, unit| figures.metric(name).map_or_else(|| NOTHING.to_owned(), |v| number(v, unit));
    let measure = |name| shown(name, Unit::Measure);
    let seconds = |name| shown(name, Unit::Seconds);
    let together = |names: &[&str]| {
        column(&names.iter().map(|name| figures.metric(name)).collect::<Vec<_>>(), Unit::Seconds)
    };
    let responses = together(&["mean_response", "p50_response", "p95_response", "p99_response"]);
    let waits = together(&["mean_wait", "p95_wait"]);
    let mut entries = remarks.to_vec();
    entries.extend([
        (
            "response",
            format!(
                "mean {}, median {}, p95 {}, p99 {}",
                responses[0], responses[1], responses[2], responses[3]
            ),
        ),
        ("wait", format!("mean {}, p95 {}", waits[0], waits[1])),
        ("slowdown", format!("mean {}, max {}", measure("mean_slowdown"), measure("max_slowdown"))),
    ]);
    if let (Some(missed), Some(deadlines)) = (figures.metric("missed"), figures.metric("deadlines"))
        && deadlines > 0.0
    {
        let (total, max) = (seconds("total_tardiness"), seconds("max_tardiness"));
        entries.push((
            "deadlines",
            format!("{missed} of {deadlines} missed; tardiness {total} in all, at most {max}"),
        ));
    }
    let utilisation = figures.metric("utilisation").map(|u| number(u, Unit::Percent));
    entries.push((
        "makespan",
        format!("{}, slots busy {}", seconds("makespan"), utilisation.unwrap_or_else(|| NOTHING.to_owned())),
    ));
    if let (Some(seconds), Some(p99)) = (figures.metric("seconds"), figures.metric("decision_seconds_p99")) {
        let p99 = number(p99 * 1e6, Unit::Measure);
        entries.push(("timings", format!("{} in all, decision time p99 {p99} µs", duration(seconds))));
    }
    list(&entries)
}
