//! Computes every number of the comparison document that is a property of the schedule, from the rows.
//!
//! A flow failed if its row says so or if a part of it is missing. Failed flows are left out of all metrics
//! except two: a failed flow with a deadline counts as missed, and the time of its attempts counts as busy.

use slackline_model::Instance;
use slackline_model::schedule::{FlowResult, FlowRow, Schedule};

use crate::summary::{self, Facts};

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
    /// Mean of first start − release. A flow that was done without ever holding a slot started at its
    /// release.
    mean_wait,
    /// 95th percentile of first start − release.
    p95_wait,
    /// Mean of response over total work; 0 for a flow without work.
    mean_stretch,
    /// Maximum of response over total work.
    max_stretch,
    /// Mean of response over time alone on the cluster; 0 for a flow without work.
    mean_slowdown,
    /// Maximum of response over time alone on the cluster.
    max_slowdown,
    /// Mean of max(1, response / max(time alone, 10 s)); 0 for a flow without work (Feitelson, Metrics for
    /// parallel job scheduling and their convergence, JSSPP 2001).
    mean_bounded_slowdown,
    /// Maximum of the bounded slowdown.
    max_bounded_slowdown,
    /// Flows that have a deadline.
    deadlines,
    /// Flows that have a deadline and completed after it or never.
    missed,
    /// Sum of max(0, completion − deadline), unweighted.
    total_tardiness,
    /// Maximum of max(0, completion − deadline), unweighted.
    max_tardiness,
    /// Busy slot-seconds over slots times makespan, or times the end of the last attempt of a failed flow if
    /// that is later. Reduces that wait for maps are not busy.
    utilisation,
    /// Tasks done, from rows: a phase without length needs no row; 0 for allocations.
    tasks,
}

/// Names of the comparison document that describe how a schedule was made, not the schedule.
pub(crate) const NOT_OF_THE_SCHEDULE: [&str; 3] = ["decisions", "decision_seconds_p99", "seconds"];

/// The completion of each flow, in seconds, in flow order, recomputed from the rows; `None` for flows that
/// are not complete.
pub fn completions(instance: &Instance, schedule: &Schedule) -> Vec<Option<f64>> {
    summary::of_schedule(instance, schedule).iter().map(|fact| fact.completion).collect()
}

/// The same for metrics: a failed flow is not complete.
pub(crate) fn facts(flows: &[FlowRow], mut facts: Facts) -> Facts {
    for row in flows.iter().filter(|row| row.status == FlowResult::Failed) {
        if let Some(facts) = facts.get_mut(row.flow) {
            facts.completion = None;
        }
    }
    facts
}
