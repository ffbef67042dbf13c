//! Which flow is served next: the other replaceable part of WOHA.

use slackline_model::{FlowId, SlotKind, Time};

use super::plan::Plan;

/// Chooses among flows (the paper's Workflow Scheduler, section III-B). [`super::lag`] has the paper's
/// own, on several data structures.
///
/// A flow is submitted, enters and leaves the slot kinds in which it has tasks to run, and finishes. Every
/// task that is started is counted, and so is every task that must run again.
pub trait WorkflowScheduler {
    /// A flow arrives with its plan.
    fn submit(&mut self, flow: FlowId, plan: Plan, goal: Goal);

    /// A flow is done.
    fn finish(&mut self, flow: FlowId);

    /// A flow that was submitted may have tasks to run on slots of `slot_kind`. It is in the slot kind until
    /// it leaves; entering twice does nothing.
    fn enter(&mut self, flow: FlowId, slot_kind: SlotKind);

    /// A flow has no phase to run on slots of `slot_kind`; leaving twice does nothing.
    fn leave(&mut self, flow: FlowId, slot_kind: SlotKind);

    /// It is `now`, not earlier than at the last call.
    fn advance(&mut self, now: Time);

    /// The first flow in `slot_kind` that is accepted, and how many tasks it may start before another
    /// accepted one is to be served.
    fn first(&self, slot_kind: SlotKind, accept: &mut dyn FnMut(FlowId) -> bool) -> Option<Turn>;

    /// Tasks of a flow were started.
    fn assigned(&mut self, flow: FlowId, tasks: u32);

    /// Tasks of a flow that had been started must run again.
    fn lost(&mut self, flow: FlowId, tasks: u32);

    /// A copy of the scheduler in its current state, for look-ahead; `None` if it cannot be copied.
    fn copy(&self) -> Option<Box<dyn WorkflowScheduler + Send>> {
        None
    }
}

/// When a flow is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// At its deadline, by its plan; overdue tasks are due at once. It yields to other flows while it cannot
    /// be in time any more.
    Deadline(Time),
    /// The same, and it never gives way.
    Follow(Time),
    /// Its deadline cannot be met: it completes at this time at the earliest, and has no requirements.
    Hopeless(Time),
    /// At any time: it comes after all flows that have a deadline.
    Whenever,
}

/// The next flow to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub flow: FlowId,
    /// How many tasks it may start before another flow comes first; at least 1.
    pub tasks: u32,
}
