//! The number of tasks that flows are behind their WOHA plans. The plan of a flow is made at its first use.

use slackline_model::FlowId;
use slackline_policy::{IdTable, View};

use crate::woha::{Cap, JobOrder, PlanGenerator, Progress, Request, Step};

/// The plans of the paper: the fewest slots with which the deadline is met.
const GENERATOR: Progress = Progress { order: JobOrder::LongestPath, cap: Cap::Search, pooled: false };

/// The progress requirements of the flows that are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Plans(IdTable<FlowId, Vec<Step>>);

impl Plans {
    /// The tasks of a flow that should have been started by now less those that were; below all others
    /// without a deadline. O(log steps + phases), and a plan the first time.
    pub(super) fn lag(&mut self, flow: FlowId, view: &View<'_>) -> f64 {
        let Some(deadline) = view.instance.flow(flow).deadline else { return f64::NEG_INFINITY };
        let steps = &mut self.0[flow];
        if steps.is_empty() {
            let View { instance, estimates, now, .. } = *view;
            *steps = GENERATOR.plan(&Request { instance, flow, estimates, now }).into_steps();
        }
        // Times to the deadline fall from step to step.
        let due = steps.partition_point(|step| step.ttd >= deadline.since(view.now));
        let required = due.checked_sub(1).map_or(0, |last| steps[last].req);
        let started = |phase| view.phase(phase).total() - view.phase(phase).unstarted();
        let started: u32 = view.instance.flow(flow).phases().map(started).sum();
        required as f64 - f64::from(started)
    }

    pub(super) fn forget(&mut self, flow: FlowId) {
        self.0.forget([flow]);
    }
}
