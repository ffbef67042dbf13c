//! The smallest cluster that meets a condition, and the sizes that were tried.

use slackline_trace::tuning::{Capacity as Document, TriedSize, write_capacity};

use crate::capacity::{Capacity, Condition};
use crate::policy_spec::PolicySpec;
use crate::report::number::{Unit, column, counted, exact};
use crate::report::table::{Align, Table};

/// Sizes that the table shows unless all are asked for: the last ones.
const SHOWN: usize = 20;

/// The answer in a sentence; `machines` is the range that was searched, in words.
pub fn outcome(found: &Capacity, condition: &Condition, machines: &str) -> String {
    match found.found {
        Some(count) => format!(
            "{} {} the fewest in {machines} with {condition}",
            counted(count.into(), "machine"),
            if count == 1 { "is" } else { "are" },
        ),
        None => format!("no number of machines in {machines} gives {condition}"),
    }
}

/// The sizes that were tried: all, or the last ones.
pub fn table(found: &Capacity, condition: &Condition, all: bool) -> String {
    let values: Vec<Option<f64>> = found.tried.iter().map(|&(_, value)| value).collect();
    let cells = column(&values, Unit::Measure);
    let from = if all { 0 } else { cells.len().saturating_sub(SHOWN) };
    let mut table = Table::new(&[("machines", Align::Right), (condition.metric(), Align::Right)]);
    for (&(count, _), cell) in found.tried.iter().zip(&cells).skip(from) {
        table.row([count.to_string(), cell.clone()]);
    }
    let hidden =
        if from > 0 { format!("({from} smaller sizes failed; --all shows them)\n") } else { String::new() };
    table.render() + &hidden
}

/// One row a size with all digits.
pub fn csv(found: &Capacity, condition: &Condition) -> String {
    let row = |&(count, value): &(u32, Option<f64>)| {
        let meets = found.found == Some(count);
        [count.to_string(), exact(value), meets.to_string()]
    };
    crate::report::csv(&["machines", condition.metric(), "found"], found.tried.iter().map(row))
}

/// The capacity document.
pub fn json(found: &Capacity, policy: &PolicySpec, condition: &Condition) -> String {
    let tried = found.tried.iter().map(|&(machines, value)| TriedSize { machines, value });
    write_capacity(&Document {
        until: condition.to_string(),
        policy: policy.spec().to_owned(),
        machines: found.found,
        tried: tried.collect(),
    })
}
