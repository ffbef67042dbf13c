//! Policies against metrics: one row a policy.

use slackline_judge::Metrics;
use slackline_model::Schedule;
use slackline_model::schedule::FlowStatus;
use slackline_trace::{ComparisonEntry, ObjectiveResult};

use crate::report::number::{NOTHING, Unit, column, exact};
use crate::report::table::{Align, Table};
use crate::simulate::Simulated;

/// What became of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy with its parameters.
    pub policy: String,
    /// Its figures, or why there are none.
    pub result: Result<Figures, String>,
}

/// What a schedule amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The objective's value; `None` if a flow failed.
    pub cost: Option<f64>,
    /// A lower bound on it.
    pub lower_bound: Option<f64>,
    /// (cost − bound) / bound.
    pub gap: Option<f64>,
    /// Flows that failed.
    pub failed: usize,
    /// Metrics by their names in the comparison document, in its order; `None` where they are about flows
    /// that are done and none is.
    pub metrics: Vec<(&'static str, Option<f64>)>,
}

impl Figures {
    /// The figures of a simulation, in the order of the comparison document.
    pub fn of_simulation(simulated: &Simulated) -> Self {
        let mut figures = Self::of_schedule(&simulated.schedule, &simulated.metrics);
        figures.metrics.push(("decisions", Some(simulated.decisions as f64)));
        if let Some(timings) = simulated.timings {
            figures.metrics.push(("decision_seconds_p99", Some(timings.decision_seconds_p99)));
            figures.metrics.push(("seconds", Some(timings.seconds)));
        }
        figures
    }

    /// The figures of a schedule. Those of flows that are done are none if none is.
    pub fn of_schedule(schedule: &Schedule, metrics: &Metrics) -> Self {
        let failed = failed(schedule);
        let nothing = failed > 0 && failed == schedule.flows.len();
        let of_all = |name: &str| matches!(name, "deadlines" | "missed" | "tasks");
        let known =
            |&(name, value): &(&'static str, f64)| (name, Some(value).filter(|_| !nothing || of_all(name)));
        Self {
            cost: schedule.cost,
            lower_bound: schedule.lower_bound,
            gap: schedule.gap,
            failed,
            metrics: metrics.entries().iter().map(known).collect(),
        }
    }

    /// The metric of that name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| *known == name)?.1
    }
}

/// How many flows failed.
pub fn failed(schedule: &Schedule) -> usize {
    schedule.flows.iter().filter(|row| row.status == FlowStatus::Failed).count()
}

/// A column of the table of policies: its heading, the metric, how it is written.
const COLUMNS: [(&str, &str, Unit); 8] = [
    ("mean\nresponse", "mean_response", Unit::Measure),
    ("p95\nresponse", "p95_response", Unit::Measure),
    ("mean\nslowdown", "mean_slowdown", Unit::Measure),
    ("max\nslowdown", "max_slowdown", Unit::Measure),
    ("missed\ndeadlines", "missed", Unit::Count),
    ("max\ntardiness", "max_tardiness", Unit::Measure),
    ("makespan", "makespan", Unit::Measure),
    ("utili-\nsation", "utilisation", Unit::Percent),
];

/// Whether a metric says nothing where no flow has a deadline.
fn of_deadlines(metric: &str) -> bool {
    matches!(metric, "missed" | "max_tardiness")
}

/// The columns that say something about these results.
pub(crate) fn columns(figures: &[&Figures]) -> Vec<(&'static str, &'static str, Unit)> {
    let deadlines = figures.iter().any(|f| f.metric("deadlines").is_some_and(|n| n > 0.0));
    let timed = figures.iter().any(|f| f.metric("seconds").is_some());
    let mut columns = COLUMNS.to_vec();
    columns.retain(|&(_, metric, _)| deadlines || !of_deadlines(metric));
    if timed {
        columns.push(("decision\np99 [µs]", "decision_seconds_p99", Unit::Measure));
        columns.push(("run\n[s]", "seconds", Unit::Measure));
    }
    columns
}

/// The table of policies; times are seconds. Reasons of refused policies follow below it.
pub fn table(rows: &[Row]) -> String {
    let figures: Vec<&Figures> = rows.iter().filter_map(|row| row.result.as_ref().ok()).collect();
    let columns = columns(&figures);
    let mut headings = vec![("policy", Align::Left), ("cost", Align::Right)];
    let gaps = figures.iter().any(|f| f.gap.is_some());
    if gaps {
        headings.push(("gap", Align::Right));
    }
    headings.extend(columns.iter().map(|&(heading, ..)| (heading, Align::Right)));
    let mut table = Table::new(&headings);
    let of = |get: &dyn Fn(&Figures) -> Option<f64>| -> Vec<Option<f64>> {
        rows.iter().map(|row| row.result.as_ref().ok().and_then(get)).collect()
    };
    let mut cells = vec![column(&of(&|f| f.cost), Unit::Measure)];
    if gaps {
        cells.push(column(&of(&|f| f.gap), Unit::Percent));
    }
    for &(_, metric, unit) in &columns {
        cells.push(match metric {
            "missed" => missed(rows),
            "decision_seconds_p99" => column(&of(&|f| f.metric(metric).map(|s| s * 1e6)), unit),
            _ => column(&of(&|f| f.metric(metric)), unit),
        });
    }
    for (k, row) in rows.iter().enumerate() {
        let name = std::iter::once(row.policy.clone());
        table.row(name.chain(cells.iter().map(|column| column[k].clone())));
    }
    table.render() + &notes(rows)
}

/// `3/8`: deadlines missed, of how many.
fn missed(rows: &[Row]) -> Vec<String> {
    let cell = |row: &Row| {
        let figures = row.result.as_ref().ok()?;
        Some(format!("{}/{}", figures.metric("missed")?, figures.metric("deadlines")?))
    };
    rows.iter().map(|row| cell(row).unwrap_or_else(|| NOTHING.to_owned())).collect()
}

/// Why rows are empty, and where flows failed.
fn notes(rows: &[Row]) -> String {
    let note = |row: &Row| match &row.result {
        Err(reason) => Some(format!("{}: {reason}\n", row.policy)),
        Ok(f) if f.failed > 0 => {
            let flows = crate::report::number::counted(f.failed as u64, "flow");
            Some(format!("{}: {flows} failed and are left out of the metrics\n", row.policy))
        }
        Ok(_) => None,
    };
    rows.iter().filter_map(note).collect()
}

/// One row a policy with all metrics and all digits.
pub fn csv(rows: &[Row]) -> String {
    let mut metrics: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().filter_map(|row| row.result.as_ref().ok()).flat_map(|f| &f.metrics) {
        if !metrics.contains(name) {
            metrics.push(name);
        }
    }
    let header: Vec<&str> = ["policy", "cost", "lower_bound", "gap"]
        .into_iter()
        .chain(metrics.clone())
        .chain(["failed", "refused"])
        .collect();
    let record = |row: &Row| {
        let figures = row.result.as_ref().ok();
        let mut cells = vec![row.policy.clone()];
        cells.extend([figures.and_then(|f| f.cost), figures.and_then(|f| f.lower_bound)].map(exact));
        cells.push(exact(figures.and_then(|f| f.gap)));
        cells.extend(metrics.iter().map(|name| exact(figures.and_then(|f| f.metric(name)))));
        cells.push(figures.map_or_else(String::new, |f| f.failed.to_string()));
        cells.push(row.result.as_ref().err().cloned().unwrap_or_default());
        cells
    };
    crate::report::csv(&header, rows.iter().map(record))
}

/// The comparison document.
pub fn json(rows: &[Row]) -> String {
    let entries: Vec<ComparisonEntry> = rows.iter().map(entry).collect();
    slackline_trace::write_comparison(&entries)
}

fn entry(row: &Row) -> ComparisonEntry {
    let policy = row.policy.clone();
    match &row.result {
        Err(reason) => ComparisonEntry::Refused { policy, reason: reason.clone() },
        Ok(f) => ComparisonEntry::Ran {
            policy,
            objective: ObjectiveResult::new(f.cost, f.lower_bound),
            metrics: (f.metrics.iter())
                .map(|&(name, value)| (name.to_owned(), value))
                .chain([("failed".to_owned(), Some(f.failed as f64))])
                .collect(),
        },
    }
}
