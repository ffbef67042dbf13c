//! What no schedule can beat, bound by bound.

use slackline_trace::Bounds;

use crate::report::headline;
use crate::report::number::{Unit, column, exact};
use crate::report::table::{Align, Table, View};

/// One row a bound, the best one marked.
pub fn table(bounds: &Bounds, view: &View) -> String {
    let objective = headline::objective(bounds.objective);
    let mut table =
        Table::new(&[("bound", Align::Left), (objective.as_str(), Align::Right), ("", Align::Left)]);
    let values: Vec<_> = bounds.bounds.iter().map(|(_, value)| Some(*value)).collect();
    let best = values.iter().position(|value| *value == bounds.best);
    for (k, cell) in column(&values, Unit::Measure).into_iter().enumerate() {
        let mark = if Some(k) == best { "best" } else { "" };
        table.row([bounds.bounds[k].0.clone(), cell, mark.to_owned()]);
    }
    table.render(view)
}

/// One row a bound with all digits.
pub fn csv(bounds: &Bounds) -> String {
    let rows = bounds.bounds.iter().map(|(name, value)| [name.clone(), exact(Some(*value))]);
    crate::report::csv(&["bound", "value"], rows)
}

/// The document of bounds.
pub fn json(bounds: &Bounds) -> String {
    slackline_trace::write_bounds(bounds)
}
