//! EDF: the flow with the earliest deadline first.
//!
//! **Paper**: WOHA §V-B ports it to workflows: all jobs of a workflow have its deadline.
//! **Problem**: flows with deadlines; those without come last. **Idea**: phases wait in the order of
//! their flows' deadlines (ties: release, then id); within a flow, the job that became ready first is
//! served first. **Guarantee**: none with several slots. **Complexity**: O(log phases) a decision.
//! **Deviations**: none.

use slackline_model::{FlowId, JobId, Time};
use slackline_policy::{Action, Ask, Event, Grant, Policy, ReadyQueue, Style, View};

use super::{CAPABILITIES, JobReady, fluid, propose};
use crate::registry::{Planner, PolicyEntry};

/// EDF in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    name: "edf",
    summary: "the flow with the earliest deadline first; flows without one come last",
    source: "woha, section V-B",
    guarantee: "none",
    capabilities: CAPABILITIES,
    params: &[],
    make: |_, _, _| Box::new(Edf::new()),
    page: &[],
    planner: Planner::Allocations(|instance, _, _| propose(instance, fluid::Rule::Edf)),
};

/// Flows that have a deadline come before those that have none.
type Due = (bool, Time);

/// The EDF policy.
#[derive(Clone, Debug, Default)]
pub struct Edf {
    ready: JobReady,
    queue: ReadyQueue<(Due, Time, FlowId, Time, JobId)>,
}

impl Edf {
    /// EDF over flows.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Policy for Edf {
    fn name(&self) -> &'static str {
        "edf"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        let Self { ready, queue } = self;
        queue.update(events, view, |phase| {
            let id = view.instance.flow_of(phase);
            let flow = view.instance.flow(id);
            let due = (flow.deadline.is_none(), flow.deadline.unwrap_or_default());
            (due, flow.release, id, ready.of(phase, view), view.instance.phase(phase).job)
        });
        ready.note(events, view);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}
