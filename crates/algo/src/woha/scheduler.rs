//! Which flow is served next: the other replaceable part of WOHA.

use slackline_model::{FlowId, Lane, Time};

use super::plan::Plan;

/// Chooses among flows (the paper's Workflow Scheduler, section III-B). [`super::lag`] has the paper's
/// own, on several data structures.
///
/// A flow is submitted, enters and leaves the lanes in which it has tasks to run, and finishes. Every
/// task that is started is counted, and so is every task that must run again.
pub trait WorkflowScheduler {
    /// A flow arrives with its plan, to be followed so that it ends at `due`; `None` for a flow that
    /// nobody waits for.
    fn submit(&mut self, flow: FlowId, plan: Plan, due: Option<Time>);

    /// A flow is done.
    fn finish(&mut self, flow: FlowId);

    /// A flow that was submitted may have tasks to run on slots of `lane`. It is in the lane until it
    /// leaves; entering twice does nothing.
    fn enter(&mut self, flow: FlowId, lane: Lane);

    /// A flow has nothing to run on slots of `lane`; leaving twice does nothing.
    fn leave(&mut self, flow: FlowId, lane: Lane);

    /// It is `now`, not earlier than at the last call.
    fn advance(&mut self, now: Time);

    /// The first flow in `lane` that is accepted, and how many tasks it may start before another
    /// accepted one is to be served.
    fn first(&self, lane: Lane, accept: &mut dyn FnMut(FlowId) -> bool) -> Option<Turn>;

    /// Tasks of a flow were started.
    fn assigned(&mut self, flow: FlowId, tasks: u32);

    /// Tasks of a flow that had been started must run again.
    fn lost(&mut self, flow: FlowId, tasks: u32);
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The flow.
    pub flow: FlowId,
    /// How many tasks it may start before another flow comes first; at least 1.
    pub tasks: u32,
}
