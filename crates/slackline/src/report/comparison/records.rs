//! The results of policies on one sample as CSV.

use super::{FLOWS, Group, Row, by_group};
use crate::report::number::exact;
use crate::report::significance::{Sampling, Verdict};

/// The names of all metrics of these rows, each once.
fn metric_names(rows: &[Row]) -> Vec<&'static str> {
    let mut metrics: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().filter_map(|row| row.result.as_ref().ok()).flat_map(|f| &f.metrics) {
        if !metrics.contains(name) {
            metrics.push(name);
        }
    }
    metrics
}

/// One row per policy and group, with all metrics and all digits.
pub fn csv_by(by: &'static str, rows: &[Row]) -> String {
    let (groups, rows) = by_group(by, rows);
    let metrics = metric_names(&rows);
    let header: Vec<&str> = ["policy", by, FLOWS].into_iter().chain(metrics.clone()).collect();
    let record = |(group, row): (&&Group, &Row)| {
        let figures = row.result.as_ref().ok();
        let numbers = metrics.iter().map(|name| exact(figures.and_then(|f| f.metric(name))));
        let words = [row.policy.clone(), group.name.clone(), group.flows.to_string()];
        words.into_iter().chain(numbers).collect::<Vec<_>>()
    };
    crate::report::csv(&header, groups.iter().zip(&rows).map(record))
}

/// One row per policy, with all metrics and all digits, and whether the policy is one of the best by the verdict. That
/// column is empty after a single random draw.
pub fn csv(rows: &[Row], sampling: Sampling) -> String {
    let (header, records) = records(rows, &best(rows, sampling));
    crate::report::csv(&header, records)
}

/// The column with the best policies of one sample.
pub(super) fn best(rows: &[Row], sampling: Sampling) -> Vec<String> {
    match Verdict::of_rows(rows, sampling) {
        Some(verdict) if !sampling.is_one_draw => verdict.is_best.iter().map(bool::to_string).collect(),
        _ => vec![String::new(); rows.len()],
    }
}

/// The header and the records of [`csv()`].
pub(super) fn records(rows: &[Row], best: &[String]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let metrics = metric_names(rows);
    let header: Vec<&'static str> = ["policy", "cost", "lower_bound", "gap"]
        .into_iter()
        .chain(metrics.clone())
        .chain(["failed", "best", "refused"])
        .collect();
    let record = |(row, best): (&Row, &String)| {
        let figures = row.result.as_ref().ok();
        let mut cells = vec![row.policy.clone()];
        cells.extend([figures.and_then(|f| f.cost), figures.and_then(|f| f.lower_bound)].map(exact));
        cells.push(exact(figures.and_then(|f| f.gap)));
        cells.extend(metrics.iter().map(|name| exact(figures.and_then(|f| f.metric(name)))));
        cells.push(figures.map_or_else(String::new, |f| f.failed.to_string()));
        cells.push(best.clone());
        cells.push(row.result.as_ref().err().cloned().unwrap_or_default());
        cells
    };
    (header, rows.iter().zip(best).map(record).collect())
}
