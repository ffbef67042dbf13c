//! Every number of the comparison document that is a number of the schedule, from its rows.
//!
//! Failed flows (by their row, or because something of them is missing) are left out of everything
//! but two numbers: one that has a deadline counts as missed, and what its attempts used counts as
//! busy.

use slackline_model::cost::is_late;
use slackline_model::id::TiVec;
use slackline_model::schedule::{FlowRow, FlowStatus, Schedule};
use slackline_model::{FlowId, Instance};

use crate::summary::Summary;

macro_rules! define_metrics {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// The metrics of a schedule. Times are seconds; means of no flows are 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Metrics { $($(#[$doc])* pub $field: f64),* }

        impl Metrics {
            /// Names and values in the order of the comparison document.
            pub fn entries(&self) -> Vec<(&'static str, f64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }
    };
}

define_metrics! {
    /// The latest completion, counted from the start of the workload.
    makespan,
    /// Sum of completion times.
    total_completion,
    /// Sum of weighted completion times.
    weighted_completion,
    /// Mean of completion − release.
    mean_response,
    /// Median of completion − release (nearest rank, as are all percentiles).
    p50_response,
    /// 95th percentile of completion − release.
    p95_response,
    /// 99th percentile of completion − release.
    p99_response,
    /// Mean of first start − release; a flow that was done without ever holding a slot started at its release.
    mean_wait,
    /// 95th percentile of first start − release.
    p95_wait,
    /// Mean of response over total work; 0 of a flow without work.
    mean_stretch,
    /// Maximum of response over total work.
    max_stretch,
    /// Mean of response over time alone on the cluster; 0 of a flow without work.
    mean_slowdown,
    /// Maximum of response over time alone on the cluster.
    max_slowdown,
    /// Mean of response over time alone on the cluster, or over 10 s where that is longer, so that flows of
    /// milliseconds do not decide; 0 of a flow without work.
    mean_bounded_slowdown,
    /// Maximum of the same.
    max_bounded_slowdown,
    /// Flows that have a deadline.
    deadlines,
    /// Flows that have a deadline and completed after it or never.
    missed,
    /// Sum of max(0, completion − deadline), unweighted.
    total_tardiness,
    /// Maximum of max(0, completion − deadline), unweighted.
    max_tardiness,
    /// Busy slot-seconds over slots times makespan; reduces that wait for maps are not busy.
    utilisation,
    /// Tasks done, as rows show them: those of a phase without length need none; 0 for allocations.
    tasks,
}

/// Names of the comparison document that are not numbers of a schedule but of how it was made.
pub(crate) const NOT_OF_THE_SCHEDULE: [&str; 3] = ["decisions", "decision_seconds_p99", "seconds"];

/// The divisor of the bounded slowdown is at least this, seconds.
const BOUNDED_FROM: f64 = 10.0;

/// What the rows say of one flow; times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// When its first task started, if any did; the release of a flow that was done without ever holding a slot.
    pub start: Option<f64>,
    /// When it was complete; `None` of a failed flow (by its row, or because something of it is missing).
    pub completion: Option<f64>,
    /// Slot-seconds that its attempts used; reduces that wait for maps use none.
    pub busy: f64,
    /// Its tasks that are done; 0 for allocations.
    pub tasks: u64,
}

/// Metrics of a schedule, recomputed from its rows; whether it is feasible is not looked at, and rows
/// that mean nothing are left out. O(n log n).
pub fn metrics(instance: &Instance, schedule: &Schedule) -> Metrics {
    of_all(instance, &facts(instance, &schedule.flows, &Summary::new(instance, schedule)))
}

/// When each flow completed, in seconds, in flow order, recomputed from the rows; `None` for flows
/// that are not complete.
pub fn completions(instance: &Instance, schedule: &Schedule) -> Vec<Option<f64>> {
    Summary::new(instance, schedule).completions.raw
}

/// What the rows say of each flow.
pub(crate) fn facts(instance: &Instance, flows: &[FlowRow], summary: &Summary) -> TiVec<FlowId, FlowFacts> {
    let fact = |flow: FlowId| FlowFacts {
        start: summary.starts[flow],
        completion: summary.completions[flow],
        busy: summary.busy[flow],
        tasks: summary.tasks[flow],
    };
    let mut facts: TiVec<FlowId, FlowFacts> = instance.flows().keys().map(fact).collect();
    for row in flows.iter().filter(|row| row.status == FlowStatus::Failed) {
        if let Some(facts) = facts.get_mut(row.flow) {
            facts.completion = None;
        }
    }
    facts
}

/// Metrics of all flows.
pub(crate) fn of_all(instance: &Instance, facts: &TiVec<FlowId, FlowFacts>) -> Metrics {
    metrics_of(instance, facts, &instance.flows().keys().collect::<Vec<_>>())
}

/// Metrics of some of the flows of a schedule, from what [`crate::check`] found of each flow. Their `utilisation` is
/// the part that they have in that of the whole schedule: over its makespan, not theirs. O(n log n) in all flows.
pub fn metrics_of(instance: &Instance, facts: &TiVec<FlowId, FlowFacts>, flows: &[FlowId]) -> Metrics {
    let mut m = Metrics::default();
    let (mut responses, mut waits) = (Vec::new(), Vec::new());
    let n = flows.iter().filter(|&&id| facts[id].completion.is_some()).count().max(1) as f64;
    let mut busy = 0.0;
    for &id in flows {
        let (flow, fact) = (instance.flow(id), &facts[id]);
        busy += fact.busy;
        m.tasks += fact.tasks as f64;
        m.deadlines += f64::from(u8::from(flow.deadline.is_some()));
        let Some(completion) = fact.completion else {
            m.missed += f64::from(u8::from(flow.deadline.is_some()));
            continue;
        };
        let release = flow.release.seconds();
        let (response, wait) = (completion - release, fact.start.map_or(0.0, |start| start - release));
        let over = |size: f64| if flow.work.0 > 0 { response / size } else { 0.0 };
        let (stretch, slowdown) = (over(flow.work.slot_seconds()), over(flow.alone));
        let bounded = over(flow.alone.max(BOUNDED_FROM));
        responses.push(response);
        waits.push(wait);
        m.makespan = m.makespan.max(completion);
        m.total_completion += completion;
        m.weighted_completion += flow.weight * completion;
        m.mean_response += response / n;
        m.mean_wait += wait / n;
        m.mean_stretch += stretch / n;
        m.max_stretch = m.max_stretch.max(stretch);
        m.mean_slowdown += slowdown / n;
        m.max_slowdown = m.max_slowdown.max(slowdown);
        m.mean_bounded_slowdown += bounded / n;
        m.max_bounded_slowdown = m.max_bounded_slowdown.max(bounded);
        let Some(deadline) = flow.deadline else { continue };
        let deadline = deadline.seconds();
        let tardiness = (completion - deadline).max(0.0);
        m.total_tardiness += tardiness;
        m.max_tardiness = m.max_tardiness.max(tardiness);
        m.missed += f64::from(u8::from(is_late(completion, deadline)));
    }
    responses.sort_by(f64::total_cmp);
    waits.sort_by(f64::total_cmp);
    m.p50_response = nearest_rank(&responses, 50);
    m.p95_response = nearest_rank(&responses, 95);
    m.p99_response = nearest_rank(&responses, 99);
    m.p95_wait = nearest_rank(&waits, 95);
    let cluster = instance.cluster();
    let slots: f64 = cluster.lanes().iter().map(|&lane| f64::from(cluster.slots(lane))).sum();
    let makespan = facts.iter().filter_map(|fact| fact.completion).fold(0.0, f64::max);
    m.utilisation = if makespan > 0.0 { busy / (slots * makespan) } else { 0.0 };
    m
}

/// The smallest value that at least `percent` % of all do not exceed; 0 of none.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1).map_or(0.0, |at| sorted[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!([50, 95, 99].map(|p| nearest_rank(&values, p)), [10.0, 19.0, 20.0]);
        assert_eq!(nearest_rank(&values[..1], 50), 1.0);
        assert_eq!(nearest_rank(&[], 50), 0.0);
    }
}
