//! The events of an instant, from which a policy learns. This module is below the policy trait and the state
//! that makes events.

use slackline_model::{FlowId, JobId, MachineId, PhaseId, Span};

/// An event. The events of an instant come in the order of cause and effect: finished tasks and their
/// consequences, machines, tasks that run already, arrivals.
///
/// The enum is closed by design: the events are the contract between the driver and every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Tasks finished; each took `took` on a machine like `machine`.
    TasksDone {
        /// Their phase.
        phase: PhaseId,
        /// How many.
        count: u32,
        /// The machine of the first of them; the others ran at the same speed.
        machine: MachineId,
        /// How long each computed (waiting for maps not counted).
        took: Span,
    },
    /// The cluster itself started a task, on a slot of that machine.
    TaskRuns {
        /// Its phase.
        phase: PhaseId,
        /// Which task.
        task: u32,
        /// The machine.
        machine: MachineId,
    },
    /// Tasks must run again: they failed, or their machine died with them or with their output.
    TasksLost {
        /// Their phase.
        phase: PhaseId,
        /// How many.
        count: u32,
    },
    /// All tasks of a phase are done. For a phase without length ([`crate::State::is_instant`]) this is the
    /// only event: it comes when the phase becomes ready.
    PhaseDone(PhaseId),
    /// All phases of a job are done.
    JobDone(JobId),
    /// All jobs of a flow are done.
    FlowDone(FlowId),
    /// A flow failed, because a task of it failed too often: none of its phases is ready any more.
    FlowFailed(FlowId),
    /// A machine failed.
    MachineDown(MachineId),
    /// A machine came back.
    MachineUp(MachineId),
    /// A new machine joined: the cluster of the view has it.
    MachineJoined(MachineId),
    /// A machine left for good.
    MachineLeft(MachineId),
    /// A flow arrived.
    FlowArrived(FlowId),
    /// Tasks of a phase may start. Comes again if the phase had to stop because of lost map output.
    PhaseReady(PhaseId),
    /// The time of an [`crate::Action::WakeAt`] has come, or the assignment layer requested a wake-up.
    Wake,
}

impl Event {
    /// The flow that ends by this event, done or failed. It is known at this instant and at no later one, so
    /// a policy forgets it now.
    pub fn over(&self) -> Option<FlowId> {
        match *self {
            Self::FlowDone(flow) | Self::FlowFailed(flow) => Some(flow),
            _ => None,
        }
    }
}
