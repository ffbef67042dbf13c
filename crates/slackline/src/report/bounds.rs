//! Tables and documents of lower bounds.

use slackline_trace::{Bounds, NamedBound};

use crate::report::headline;
use crate::report::number::{Unit, column, exact};
use crate::report::table::{Align, Table, View};

/// One row per bound, with the best one marked, and whether it holds only for tasks. Lines below say how far searches
/// went, and whether no bound is above 0.
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
        let notes: Vec<&str> = [best, tasks].into_iter().flatten().collect();
        table.row([bound.name.clone(), cell, notes.join(", ")]);
    }
    let search = |bound: &NamedBound| Some(format!("{}: {}\n", bound.name, bound.search.as_deref()?));
    let searches: String = bounds.bounds.iter().filter_map(search).collect();
    let searches = if searches.is_empty() { searches } else { format!("\n{searches}") };
    let none = if bounds.best == Some(0.0) { "\nno bound above 0 found\n" } else { "" };
    table.render(view) + &searches + none
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
