//! The verdict on a schedule: whether it is feasible and whether its cost is correct.

use serde_json::{Map, json};
use slackline_judge::Report;

use crate::import::Verdict;
use crate::report::comparison::Figures;
use crate::report::headline;
use crate::report::number::{Unit, counted, exact, number};

/// The verdict as one line.
pub fn line(verdict: &Verdict) -> String {
    let (schedule, report, is_weighted) = match verdict {
        Verdict::Not { why, .. } => return format!("not feasible: {why}\n"),
        Verdict::Feasible { schedule, report, is_weighted } => (schedule, report, *is_weighted),
    };
    let (objective, unit) = headline::named(schedule.objective, is_weighted);
    let mut line = format!(
        "feasible: {objective} under {}, {} {}{unit}, {}",
        schedule.policy,
        if report.failed > 0 { "cost of the finished flows" } else { "cost" },
        number(cost(report), Unit::Measure),
        counted(report.rows as u64, "row"),
    );
    if let Some(bound) = schedule.lower_bound {
        line.extend([", ", &headline::bound(Some(bound)), " as it claims"]);
    }
    if report.tasks > 0 {
        line.extend([", ", &counted(report.tasks, "task")]);
    }
    if report.failed > 0 {
        line.extend([", ", &counted(report.failed as u64, "flow"), " failed"]);
    }
    line + "\n"
}

/// An empty sum is -0.0; adding 0.0 removes the sign.
fn cost(report: &Report) -> f64 {
    report.cost + 0.0
}

/// The verdict as JSON.
pub fn json(verdict: &Verdict) -> String {
    let (schedule, report, is_weighted) = match verdict {
        Verdict::Not { kind, why } => {
            return slackline_trace::to_json(
                &json!({ "valid": false, "violation": { "kind": kind, "message": why } }),
            );
        }
        Verdict::Feasible { schedule, report, is_weighted, .. } => (schedule, report, is_weighted),
    };
    let figures = Figures::of_schedule(schedule, &report.metrics);
    slackline_trace::to_json(&json!({
        "valid": true,
        "policy": schedule.policy,
        "objective": {
            "metric": schedule.objective.metric.name(),
            "combine": schedule.objective.combine.name(),
        },
        "weighted": is_weighted,
        "cost": cost(report),
        "rows": report.rows,
        "failed": report.failed,
        "metrics": figures.metrics.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>(),
    }))
}

/// The verdict as CSV, one row.
pub fn csv(verdict: &Verdict) -> String {
    let header = ["valid", "violation", "message", "cost", "rows", "tasks", "failed"];
    let row = match verdict {
        Verdict::Not { kind, why } => {
            let known = ["false".to_owned(), (*kind).to_owned(), why.clone()];
            known.into_iter().chain(std::iter::repeat_n(String::new(), 4)).collect::<Vec<_>>()
        }
        Verdict::Feasible { report, .. } => {
            let counts = [report.rows as u64, report.tasks, report.failed as u64].map(|n| n.to_string());
            let known = ["true".to_owned(), String::new(), String::new(), exact(Some(cost(report)))];
            known.into_iter().chain(counts).collect()
        }
    };
    crate::report::csv(&header, [row])
}
