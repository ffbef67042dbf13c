//! Checks the claims of a schedule: releases, starts, completions, costs, bound, gap, metrics.

use slackline_model::schedule::{Clock, FlowResult, FlowRow, Schedule};
use slackline_model::{FlowId, Instance, Work};

use crate::metrics::{Metrics, NOT_OF_THE_SCHEDULE};
use crate::summary::{Facts, FlowFacts};
use crate::tolerance;
use crate::violation::{RowProblem, Table, Violation, flow_name};

/// The row of each flow, in flow order; every flow has exactly one.
pub(crate) fn flow_rows<'a>(
    instance: &Instance,
    schedule: &'a Schedule,
) -> Result<Vec<&'a FlowRow>, Violation> {
    let mut rows = vec![None; instance.flows().len()];
    for (i, row) in schedule.flows.iter().enumerate() {
        let Some(entry) = rows.get_mut(row.flow.index()) else {
            let problem = RowProblem::UnknownFlow(row.flow.0);
            return Err(Violation::Row { table: Table::Flows, row: i, problem });
        };
        if entry.replace(row).is_some() {
            return Err(Violation::FlowTwice { flow: flow_name(instance, row.flow) });
        }
    }
    let missing = |i: usize| Violation::FlowMissing { flow: flow_name(instance, FlowId(i as u32)) };
    rows.into_iter().enumerate().map(|(i, row)| row.ok_or_else(|| missing(i))).collect()
}

/// Offers the first claim on a flow that does not follow from the rows.
///
/// `rows` are in flow order; the costs of `instance` are those of the schedule's objective.
pub(crate) fn check_flows(instance: &Instance, rows: &[&FlowRow], facts: &Facts) -> Result<(), Violation> {
    rows.iter().try_for_each(|row| check_flow(instance, row, facts))
}

fn check_flow(instance: &Instance, row: &FlowRow, facts: &Facts) -> Result<(), Violation> {
    let name = || flow_name(instance, row.flow);
    let flow = instance.flow(row.flow);
    let release = flow.release.seconds();
    if !tolerance::same_instant(row.release, release) {
        return Err(Violation::FlowRelease { flow: name(), found: row.release, expected: release });
    }
    let done = row.status == FlowResult::Done;
    let FlowFacts { start, completion, .. } = facts[row.flow];
    // A flow without rows starts at its release. Older documents omit this start.
    let unsaid = row.start.is_none() && flow.work == Work::ZERO && same(start, Some(release));
    if !same(row.start, start) && !unsaid {
        return Err(Violation::Start { flow: name(), found: row.start, expected: start });
    }
    // A failed flow need not complete, but must not claim events that did not happen.
    if !same(row.completion, completion) && (done || row.completion.is_some()) {
        return Err(Violation::Completion { flow: name(), found: row.completion, expected: completion });
    }
    let expected = completion.filter(|_| done).map(|c| flow.cost.eval(c));
    // Rounding a completion within its tolerance also moves the cost, even over a step.
    let claimed = row.completion.filter(|_| done).map(|c| flow.cost.eval(c));
    let follows = |from: Option<f64>| match (row.cost, from) {
        (None, None) => true,
        (Some(found), Some(from)) => tolerance::same_amount(found, from),
        _ => false,
    };
    if follows(expected) || follows(claimed) {
        Ok(())
    } else {
        Err(Violation::FlowCost { flow: name(), found: row.cost, expected })
    }
}

fn same(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => tolerance::same_instant(found, expected),
        _ => false,
    }
}

/// The first claim on the whole schedule that does not follow from the claims of the flows.
pub(crate) fn check_whole(
    instance: &Instance,
    schedule: &Schedule,
    rows: &[&FlowRow],
) -> Result<(), Violation> {
    let failed = rows.iter().any(|row| row.status == FlowResult::Failed);
    // The costs of the flows have been checked before.
    let expected = instance.objective().combine.of(rows.iter().filter_map(|row| row.cost));
    check_total(schedule, failed, expected)
}

/// The same check if the claimed costs of the flows sum up to `expected`; `failed` is whether a flow failed.
pub(crate) fn check_total(schedule: &Schedule, failed: bool, expected: f64) -> Result<(), Violation> {
    let silent = schedule.cost.is_none() && (failed || schedule.clock == Clock::Measured);
    if !silent && !schedule.cost.is_some_and(|cost| tolerance::same_amount(cost, expected)) {
        return Err(Violation::Cost { found: schedule.cost, expected });
    }
    // A bound is a bound on the cost of all flows. If some flows failed there is nothing to compare.
    let cost = schedule.cost.filter(|_| !failed);
    if let Some(bound) = schedule.lower_bound {
        let cost = cost.unwrap_or(f64::INFINITY);
        let above = cost.is_finite() && bound > cost + tolerance::amount(cost);
        if above || !bound.is_finite() {
            return Err(Violation::LowerBound { found: bound, cost });
        }
    }
    let positive = schedule.lower_bound.filter(|&bound| bound > 0.0);
    let gap = schedule.cost.zip(positive).map(|(cost, bound)| (cost - bound) / bound);
    match schedule.gap {
        Some(found) if !gap.is_some_and(|gap| tolerance::same_amount(found, gap)) => {
            Err(Violation::Gap { found, expected: gap })
        }
        _ => Ok(()),
    }
}

/// The first claimed metric that does not follow from the rows. Numbers about how the schedule was made are
/// not checked.
pub(crate) fn check_metrics(schedule: &Schedule, metrics: &Metrics) -> Result<(), Violation> {
    let entries = metrics.entries();
    for (name, found) in &schedule.metrics {
        if NOT_OF_THE_SCHEDULE.contains(&name.as_str()) {
            continue;
        }
        let expected = entries.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        if !expected.is_some_and(|expected| tolerance::same_amount(*found, expected)) {
            return Err(Violation::Metric { name: name.as_str().into(), found: *found, expected });
        }
    }
    Ok(())
}
