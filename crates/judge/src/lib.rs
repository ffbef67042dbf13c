#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! [`check`] names the first violation: first errors in the structure of the schedule, in the order of its
//! tables; then violations by time, at one instant those of the lowest phase; then claims that do not follow
//! from the rows, flow by flow. [`metrics()`] and [`completions`] recompute the results from the rows and use
//! no claimed number.
//!
//! In reading order:
//! - [`violation`]: the violations;
//! - `tolerance`: when two instants or amounts are the same;
//! - `ledger`: task rows by start and by phase; `coverage`: every task is done once;
//! - `slots`: no slot runs two attempts at once, and no phase holds more slots than its cap;
//! - `excess`: the sweep, shared by several rules, for the first instant above a limit;
//! - `segments`: changed settings of a run, and the slots that were available when;
//! - `barrier`, `order`: maps before reduces, lost map output, precedence, release;
//! - `durations`: seconds / speed;
//! - `ams`, `startups`: ApplicationMasters and the starts of tasks under the profile of a simulated
//!   cluster;
//! - `seconds`: speculative attempts;
//! - `inputs`: the distance of tasks from their input, and their wait for slots near it;
//! - `guarantee`, `minima`: promised slots;
//! - `plan`: the same rules for allocations;
//! - `summary`, [`metrics`](mod@metrics), `time_alone`, `totals`, `claims`: the results that follow from the
//!   rows, and the claims;
//! - [`stream`]: the same checks for rows that come one by one; [`open_stream`]: also for flows that come one
//!   by one.
//!
//! Time and memory depend on the number of rows, not of tasks, except for one visit of each attempt's slot.
#![warn(missing_docs)]
#![deny(clippy::unwrap_used)]

mod ams;
mod barrier;
mod claims;
mod coverage;
mod durations;
mod excess;
mod guarantee;
mod inputs;
mod ledger;
pub mod metrics;
mod minima;
pub mod open_stream;
mod order;
mod plan;
mod segments;
mod slots;
mod speculation;
mod startups;
pub mod stream;
mod summary;
mod time_alone;
mod tolerance;
mod totals;
pub mod violation;

use slackline_model::id::TiVec;
use slackline_model::schedule::{Clock, FlowResult, Schedule};
use slackline_model::{FlowId, Instance};

pub use metrics::{Metrics, completions};
pub use open_stream::{NotByStream, OpenStream};
pub use stream::Stream;
pub use summary::FlowFacts;
pub use totals::{metrics, metrics_of};
pub use violation::Violation;

use ledger::Ledger;
use order::Progress;
use plan::Plan;
use segments::Timeline;
use summary::Facts;
use violation::First;

/// The costs and metrics of a feasible schedule, recomputed from its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The objective's value over the flows that are done.
    pub cost: f64,
    /// Flows that failed.
    pub failed: usize,
    /// Task rows, or allocations if the schedule has these.
    pub rows: usize,
    /// Tasks done; 0 for allocations.
    pub tasks: u64,
    /// Every metric of the schedule.
    pub metrics: Metrics,
    /// The facts of each flow from the rows, for metrics of a subset of the flows ([`metrics_of`]).
    pub flows: TiVec<FlowId, FlowFacts>,
}

/// Checks that `schedule` is a feasible schedule of `instance` and that its claims are true.
///
/// Costs are those of the schedule's objective, with the instance's weights. With n rows of a task attempts:
/// O(n log n + a) time, O(n) memory and one entry per slot (see `minima` and `plan` for schedules that
/// promise minima).
///
/// # Errors
/// The first violation: structure, then by time and phase, then claims.
pub fn check(instance: &Instance, schedule: &Schedule) -> Result<Report, Violation> {
    let other = with_objective_of(instance, schedule)?;
    let instance = other.as_ref().unwrap_or(instance);
    order::check_slowstart(schedule)?;
    segments::check_rows(instance, schedule)?;
    let flows = claims::flow_rows(instance, schedule)?;
    let failed = |flow: FlowId| flows[flow.index()].status == FlowResult::Failed;
    let (facts, rows) = if summary::is_by_allocations(schedule) {
        (check_allocations(instance, schedule, failed)?, schedule.allocations.len())
    } else {
        (check_tasks(instance, schedule, failed)?, schedule.tasks.len())
    };
    claims::check_flows(instance, &flows, &facts)?;
    claims::check_whole(instance, schedule, &flows)?;
    report(instance, schedule, metrics::facts(&schedule.flows, facts), rows)
}

/// The report of the facts of the flows. Checks the claimed metrics against it.
fn report(
    instance: &Instance,
    schedule: &Schedule,
    facts: TiVec<FlowId, FlowFacts>,
    rows: usize,
) -> Result<Report, Violation> {
    let metrics = totals::of_all(instance, schedule, &facts);
    claims::check_metrics(schedule, &metrics)?;
    let done = instance.flows().iter().zip(&facts);
    let costs: Vec<f64> = done.filter_map(|(flow, fact)| Some(flow.cost.eval(fact.completion?))).collect();
    Ok(Report {
        failed: instance.flows().len() - costs.len(),
        cost: instance.objective().combine.of(costs),
        rows,
        tasks: facts.iter().map(|fact| fact.tasks).sum(),
        metrics,
        flows: facts,
    })
}

/// The instance with the schedule's objective, if that is another one.
fn with_objective_of(instance: &Instance, schedule: &Schedule) -> Result<Option<Instance>, Violation> {
    if schedule.objective == instance.objective() {
        return Ok(None);
    }
    let other = instance.clone().with_objective(schedule.objective, instance.weights());
    other.map(Some).map_err(|e| Violation::Objective { problem: e.to_string().into() })
}

fn check_tasks(
    instance: &Instance,
    schedule: &Schedule,
    failed: impl Fn(FlowId) -> bool + Copy,
) -> Result<Facts, Violation> {
    coverage::check_rows(instance, &schedule.tasks)?;
    ams::check_rows(instance, schedule)?;
    let ledger = Ledger::new(instance, &schedule.tasks);
    coverage::check_tasks(&ledger, failed)?;
    ams::check_jobs(&ledger, schedule, failed)?;
    let timeline = Timeline::new(schedule);
    let progress = Progress::new(&ledger, &timeline);
    let mut first = First::default();
    slots::check_overlaps(&ledger, &mut first);
    segments::check_presence(&ledger, &timeline, &mut first);
    ams::check_times(&ledger, &progress, schedule, &mut first);
    speculation::check(&ledger, &progress, schedule, &mut first);
    inputs::check_delays(&ledger, schedule, &mut first);
    check_each_flow(&ledger, &progress, schedule, &mut first);
    if schedule.minima {
        minima::check(&ledger, &progress, failed, &mut first);
    }
    first.into_result()?;
    Ok(summary::of_tasks(&ledger, &progress, &schedule.policy))
}

/// Checks task rows flow by flow. On generic slots, the early reduces of all flows count together.
fn check_each_flow(ledger: &Ledger<'_>, progress: &Progress, schedule: &Schedule, first: &mut First) {
    slots::check_caps(ledger, first);
    order::check_precedence(ledger, progress, first);
    order::check_reduces(ledger, progress, &Timeline::new(schedule), first);
    startups::check(ledger, schedule.profile.as_ref(), first);
    if schedule.clock == Clock::Exact {
        durations::check(ledger, progress, schedule.profile.as_ref(), first);
    }
}

fn check_allocations(
    instance: &Instance,
    schedule: &Schedule,
    failed: impl Fn(FlowId) -> bool + Copy,
) -> Result<Facts, Violation> {
    plan::check_rows(instance, &schedule.allocations)?;
    ams::check_none(schedule)?;
    let plan = Plan::new(instance, &schedule.allocations);
    plan.check_work(failed)?;
    let mut first = First::default();
    plan.check_times(&mut first);
    if schedule.minima {
        plan.check_minima(failed, &mut first);
    }
    first.into_result()?;
    Ok(summary::of_plan(&plan))
}
