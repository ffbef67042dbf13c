//! Every number of the comparison document that is a number of the schedule, from its rows.
//!
//! Failed flows (by their row, or because something of them is missing) are left out of everything
//! but two numbers: one that has a deadline counts as missed, and what its attempts used counts as
//! busy.

use slackline_model::cost::is_late;
use slackline_model::schedule::{FlowStatus, Schedule};
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
    /// Mean of response over total work; 0 of a flow without work.
    mean_stretch,
    /// Maximum of response over total work.
    max_stretch,
    /// Mean of response over time alone on the cluster; 0 of a flow without work.
    mean_slowdown,
    /// Maximum of response over time alone on the cluster.
    max_slowdown,
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
    /// Tasks done; 0 for allocations.
    tasks,
}

/// Names of the comparison document that are not numbers of a schedule but of how it was made.
pub(crate) const NOT_OF_THE_SCHEDULE: [&str; 3] = ["decisions", "decision_seconds_p99", "seconds"];

/// Metrics of a schedule, recomputed from its rows; whether it is feasible is not looked at, and rows
/// that mean nothing are left out. O(n log n).
pub fn metrics(instance: &Instance, schedule: &Schedule) -> Metrics {
    of_summary(instance, schedule, &Summary::new(instance, schedule))
}

/// When each flow completed, in seconds, in flow order, recomputed from the rows; `None` for flows
/// that are not complete.
pub fn completions(instance: &Instance, schedule: &Schedule) -> Vec<Option<f64>> {
    Summary::new(instance, schedule).completions.raw
}

/// Completions of the flows that count: complete, and not failed.
pub(crate) fn counted(instance: &Instance, schedule: &Schedule, summary: &Summary) -> Vec<(FlowId, f64)> {
    let mut failed = vec![false; instance.flows().len()];
    for row in schedule.flows.iter().filter(|row| row.status == FlowStatus::Failed) {
        if let Some(flag) = failed.get_mut(row.flow.index()) {
            *flag = true;
        }
    }
    let all = summary.completions.iter_enumerated();
    all.filter(|(flow, _)| !failed[flow.index()]).filter_map(|(flow, &c)| Some((flow, c?))).collect()
}

pub(crate) fn of_summary(instance: &Instance, schedule: &Schedule, summary: &Summary) -> Metrics {
    let counted = counted(instance, schedule, summary);
    let mut m = Metrics { tasks: summary.tasks as f64, ..Metrics::default() };
    let mut responses = Vec::with_capacity(counted.len());
    let n = counted.len().max(1) as f64;
    for &(id, completion) in &counted {
        let flow = instance.flow(id);
        let response = completion - flow.release.seconds();
        let work = flow.work.slot_seconds();
        let (stretch, slowdown) =
            if work > 0.0 { (response / work, response / flow.alone) } else { (0.0, 0.0) };
        responses.push(response);
        m.makespan = m.makespan.max(completion);
        m.total_completion += completion;
        m.weighted_completion += flow.weight * completion;
        m.mean_response += response / n;
        m.mean_stretch += stretch / n;
        m.max_stretch = m.max_stretch.max(stretch);
        m.mean_slowdown += slowdown / n;
        m.max_slowdown = m.max_slowdown.max(slowdown);
        let Some(deadline) = flow.deadline else { continue };
        let deadline = deadline.seconds();
        let tardiness = (completion - deadline).max(0.0);
        m.total_tardiness += tardiness;
        m.max_tardiness = m.max_tardiness.max(tardiness);
        // Counted down from all flows with a deadline below.
        m.missed -= f64::from(u8::from(!is_late(completion, deadline)));
    }
    m.deadlines = instance.flows().iter().filter(|flow| flow.deadline.is_some()).count() as f64;
    m.missed += m.deadlines;
    responses.sort_by(f64::total_cmp);
    m.p50_response = nearest_rank(&responses, 50);
    m.p95_response = nearest_rank(&responses, 95);
    m.p99_response = nearest_rank(&responses, 99);
    let cluster = instance.cluster();
    let slots: f64 = cluster.lanes().iter().map(|&lane| f64::from(cluster.slots(lane))).sum();
    m.utilisation = if m.makespan > 0.0 { summary.busy / (slots * m.makespan) } else { 0.0 };
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
