//! Machines that start and stop attempts. A fleet knows nothing of flows, policies or journals.
//!
//! - `Processes`: this machine; its workers may be held by control `groups`; `pid_file` says who they are;
//! - `Agents`: machines that are reached over a `link`, on each of which an agent runs attempts for us; what
//!   is reported to them and what they say is in `protocol`, and comes as `lines`.

pub mod agent;
pub(crate) mod agents;
pub mod concurrent_runs;
pub(crate) mod hosts;
pub(crate) mod lines;
pub(crate) mod link;
pub(crate) mod processes;
pub(crate) mod protocol;
pub(crate) mod slurm;
pub mod speeds;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use slackline_model::{MachineId, PhaseKind};
use slackline_task::process::limits::{Capacity, Demand};
use slackline_task::process::report::Report;
use slackline_task::process::spec::Spec;

use crate::store::running_attempt::RunningAttempt;

/// Machines that run attempts. Each has a number in the fleet: those that are present at the start count from
/// 0 ([`Fleet::machines`]), those that join report theirs ([`FleetEvent::Joined`]).
pub(crate) trait Fleet: Send {
    /// The capacity of each machine that is present at the start.
    fn machines(&self) -> Vec<Capacity>;

    /// Whether machines may go, and come.
    fn changes(&self) -> bool {
        false
    }

    /// Starts an attempt. Its output is in its directory when it has succeeded. On a machine that has left
    /// nothing happens: [`FleetEvent::Down`] reports it.
    ///
    /// # Errors
    /// The attempt cannot be started; then no part of it runs.
    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()>;

    /// Stops an attempt and everything that it started. [`FleetEvent::Ended`] still comes when all its
    /// processes have ended.
    fn stop(&mut self, attempt: u64);

    /// Waits for news, not longer than `patience` and not longer than until [`Fleet::waker`] is used.
    fn next(&mut self, patience: Duration) -> Option<FleetEvent>;

    /// The slots of other runs on these machines.
    fn foreign_slots(&self) -> Vec<ForeignSlot> {
        Vec::new()
    }

    /// What ends a [`Fleet::next`] that waits, or the next one.
    fn waker(&self) -> Waker;

    /// The prospect of machines when nothing runs although work is left: no machine is present, or all leave
    /// too soon (`is_barred`).
    fn availability(&mut self, is_barred: bool) -> Availability {
        let _ = is_barred;
        Availability::Same
    }
}

/// Ends the waiting of a fleet, from any thread.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// What may be hoped for of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// The present machines remain.
    Same,
    /// Others may come, or come back.
    Coming,
    /// No machine will join any more, for this reason: the remaining work is for another session.
    Over(String),
}

/// An attempt and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// Its number, as the fleet knows it.
    pub(crate) number: u64,
    /// The displayed data of the running attempt.
    pub(crate) attempt: RunningAttempt,
    /// Its machine, as the fleet knows it.
    pub(crate) machine: MachineId,
    /// Its slot, of the slot kind that serves the task.
    pub(crate) slot: u32,
    /// The resources that it needs.
    pub(crate) demand: Demand,
}

/// A slot of another run on the same machines, and what its attempt takes of its machine, if one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignSlot {
    /// The kind of phase that the slot serves.
    pub(crate) phase: PhaseKind,
    /// The slot, of the slot kind that serves such phases.
    pub(crate) slot: u32,
    /// The machine, and what runs there.
    pub(crate) at_work: Option<(MachineId, Demand)>,
}

/// News of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FleetEvent {
    /// An attempt has ended, and nothing that it started is left.
    Ended {
        attempt: u64,
        /// Its report, or why there is none.
        report: Result<Report, String>,
    },
    /// A machine is not present any more, and no more reports arrive from its attempts. These may continue
    /// for a while.
    Down {
        machine: MachineId,
        /// Why it is assumed to be down.
        why: String,
    },
    /// A machine is back, without its earlier attempts.
    Up(MachineId),
    /// A machine that was not known before.
    Joined(NewMachine),
    /// A machine will be present until then.
    Until {
        machine: MachineId,
        /// For how long from now on.
        left: Duration,
    },
    /// Something that the user should know.
    Notice(String),
}

/// A machine that joins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewMachine {
    /// By which number the fleet knows it.
    pub(crate) number: MachineId,
    /// Its name, which no other has.
    pub(crate) name: String,
    /// How many attempts it takes at a time.
    pub(crate) slots: u32,
    /// Its speed, as far as it is known.
    pub(crate) speed: f64,
    pub(crate) capacity: Capacity,
}
