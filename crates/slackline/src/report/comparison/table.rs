//! The table of policies on one sample, with the best values marked.

use super::{Row, crowding, distances, metric_columns, notes};
use crate::report::significance::{self, Sampling, Verdict};
use crate::report::spread::Runs;
use crate::report::table::{Column, Table, View, fitted};

/// The table of policies, with the best values marked. Times are in seconds, or have units if seconds would
/// be unreadable. The reasons of refused policies follow below it, and what the table says in words. A single
/// random draw has no best values.
pub fn table(rows: &[Row], sampling: Sampling, view: &View) -> String {
    let runs: Vec<Runs> = rows.iter().map(Runs::of_row).collect();
    let verdict = Verdict::of(&runs, sampling);
    let verdict = verdict.map_or_else(String::new, |verdict| format!("\n{}\n", verdict.sentence()));
    let remarks = notes(rows) + &distances(&runs) + &crowding(rows) + &verdict;
    let columns =
        if sampling.is_one_draw { metric_columns(rows, |_| Vec::new()) } else { marked_columns(rows) };
    Table::of(columns).render(view) + &fitted(&remarks, view.width)
}

/// The columns of the table of policies, with the best values marked.
pub(crate) fn marked_columns(rows: &[Row]) -> Vec<Column> {
    let runs: Vec<Runs> = rows.iter().map(Runs::of_row).collect();
    let all: Vec<&Runs> = runs.iter().collect();
    metric_columns(rows, |spec| significance::best(&all, &|figures| spec.value(figures), spec.best()))
}
