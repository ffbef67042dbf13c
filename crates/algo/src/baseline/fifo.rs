//! FIFO: the oldest job first.
//!
//! **Paper**: FLEX §4 (the variant that obeys maxima and ignores minima), WOHA §V-B, DMRS §VI.
//! **Problem**: any; costs, deadlines, durations and speeds are ignored.
//! **Idea**: phases wait in the order in which their jobs became ready (ties: flow release, then id),
//! or, by flow, in the order in which their flows were released; a free slot goes to the first that can
//! use it. **Guarantee**: none. **Complexity**: O(log phases) a decision. **Deviations**: none.

use slackline_model::{FlowId, JobId, Time};
use slackline_policy::{Action, Ask, Event, Grant, Policy, ReadyQueue, View};

use super::{BY, JobReady, ShareUnit, fluid, propose};
use crate::registry::{Planner, PolicyEntry};

/// FIFO in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "flex, section 4; woha, section V-B",
    params: &[BY],
    planner: Planner::Allocations(|instance, settings, _| {
        propose(instance, fluid::Rule::Fifo(ShareUnit::chosen(settings)))
    }),
    ..PolicyEntry::new("fifo", "the oldest job first; keeps maxima, ignores minima", |_, _, settings| {
        Box::new(Fifo::new(ShareUnit::chosen(settings)))
    })
};

#[derive(Clone, Debug)]
pub struct Fifo {
    by: ShareUnit,
    ready: JobReady,
    queue: ReadyQueue<(Time, Time, FlowId, Time, JobId)>,
}

impl Fifo {
    /// FIFO over jobs or flows.
    pub fn new(by: ShareUnit) -> Self {
        Self { by, ready: JobReady::default(), queue: ReadyQueue::new() }
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        let Self { by, ready, queue } = self;
        queue.update(events, view, |phase| {
            let (since, flow) = (ready.of(phase, view), view.instance.flow_of(phase));
            let (release, job) = (view.instance.flow(flow).release, view.instance.phase(phase).job);
            match by {
                ShareUnit::Job => (since, release, FlowId(0), Time::ZERO, job),
                ShareUnit::Flow => (release, Time::ZERO, flow, since, job),
            }
        });
        ready.note(events, view);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}
