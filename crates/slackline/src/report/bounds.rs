//! Tables and documents of lower bounds.

use slackline_trace::{Bounds, NamedBound};

use crate::report::headline;
use crate::report::number::{Unit, column, exact};
use crate::report::table::{Align, Table, View};

/// One row per bound, with the best one marked. Each row says how far the search went, and whether the bound
/// holds only for tasks. If no bound is above 0, a line below says so.
pub fn table(bounds: &Bounds, view: &View) -> String {
    let objective = headline::objective_with(bounds.objective, bounds.weighted);
    let mut table =
        Table::new(&[("bound", Align::Left), (objective.as_str(), Align::Right), ("", Align::Left)]);
    let values: Vec<_> = bounds.bounds.iter().map(|bound| Some(bound.value)).collect();
    let best = values.iter().position(|value| *value == bounds.best);
    for (k, cell) in column(&values, Unit::Measure).into_iter().enumerate() {
        let bound = &bounds.bounds[k];
        let best = (Some(k) == best).then_some("best");
        let tasks = (bound.holds_for == "tasks").then_some("tasks only, not allocations");
        let notes: Vec<&str> = [best, tasks, bound.search.as_deref()].into_iter().flatten().collect();
        table.row([bound.name.clone(), cell, notes.join(", ")]);
    }
    let none = if bounds.best == Some(0.0) { "\nno bound above 0 found\n" } else { "" };
    table.render(view) + none
}

/// One row per bound, with all digits.
pub fn csv(bounds: &Bounds) -> String {
    let row = |bound: &NamedBound| {
        let search = bound.search.clone().unwrap_or_default();
        [bound.name.clone(), exact(Some(bound.value)), bound.holds_for.to_owned(), search]
    };
    crate::report::csv(&["bound", "value", "holds_for", "search"], bounds.bounds.iter().map(row))
}

/// The document of bounds.
pub fn json(bounds: &Bounds) -> String {
    slackline_trace::to_json(bounds)
}
