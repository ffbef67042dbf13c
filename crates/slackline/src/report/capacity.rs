//! The smallest cluster that meets a condition, and the sizes that were tried.

use slackline_trace::tuning::{Capacity as Document, TriedSize, write_capacity};

use crate::capacity::{Capacity, Condition};
use crate::policy_spec::PolicySpec;
use crate::report::comparison;
use crate::report::number::{Unit, counted, exact};
use crate::report::table::{Column, Table, View};

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

/// What may be asked for with `--columns`, beside the condition's metric.
pub const MACHINES: &str = "machines";

/// The sizes that were tried: all, or the last ones; ordered otherwise, all or the first ones.
pub fn table(found: &Capacity, condition: &Condition, all: bool, view: &View) -> String {
    let from = if all || view.sort.is_some() { 0 } else { found.tried.len().saturating_sub(SHOWN) };
    let tried = &found.tried[from..];
    let most = if all { usize::MAX } else { SHOWN };
    let sizes: Vec<Option<f64>> = tried.iter().map(|&(count, _)| Some(f64::from(count))).collect();
    let values: Vec<Option<f64>> = tried.iter().map(|&(_, value)| value).collect();
    let metric = condition.metric();
    let table = Table::of(vec![
        Column::numbers(MACHINES, &sizes, Unit::Count),
        Column::numbers(metric, &values, comparison::unit_of(metric)),
    ]);
    let hidden = match (from, tried.len().saturating_sub(most)) {
        (0, 0) => String::new(),
        (0, more) => format!("… {more} more (--all shows them)\n"),
        (from, _) => format!("({from} smaller sizes failed; --all shows them)\n"),
    };
    table.render_first(view, most) + &hidden
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
