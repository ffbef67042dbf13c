//! What an engine is: it runs tasks on slots and reports how they ended.
//!
//! The simulator, the local engine and the adapters of real clusters implement [`Engine`]; none of
//! them takes a scheduling decision.

use slackline_model::{FlowId, MachineId, PhaseId, SlotRange, Time};

/// Index of a row of the run's task log: one batch of equal tasks that started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

/// Something that runs tasks.
pub trait Engine {
    /// What the engine can and cannot do; asked once, before the first poll.
    fn capabilities(&self) -> Capabilities;

    /// Goes to the next instant at which something happens, appends its reports (finished tasks
    /// before machines, machines before arrivals, arrivals before offers) and returns the instant;
    /// `None` if nothing will ever happen again unless it is ordered.
    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time>;

    /// Starts a batch now.
    fn start(&mut self, start: &Start<'_>);

    /// Changes a running batch now.
    fn order(&mut self, order: Order);

    /// Asks for [`Report::Woken`] at that time.
    fn wake_at(&mut self, at: Time);
}

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many tasks one start may comprise.
    pub batch: Batch,
    /// Whether machines may die, so that what ran where must be remembered.
    pub faults: bool,
    /// When free slots may be used.
    pub offers: Offers,
    /// What the lengths of the instance's tasks are to the engine.
    pub lengths: Lengths,
}

/// How far tasks that start together may be one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Equal tasks on machines of equal speed.
    Speed,
    /// Equal tasks on one machine.
    Machine,
    /// Every task by itself.
    Task,
}

/// What the lengths of the instance's tasks are to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// What tasks take: a phase without length is done when it becomes ready, and no task of it is started.
    Known,
    /// Guesses: every task is started, whatever its length is said to be.
    Guessed,
}

/// When free slots may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offers {
    /// At once.
    Immediate,
    /// When their machine reports [`Report::Offer`].
    Heartbeat,
}

/// Equal tasks that start together.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// How reports and orders name the batch.
    pub row: RowId,
    /// The phase.
    pub phase: PhaseId,
    /// First task.
    pub first: u32,
    /// How many consecutive tasks.
    pub count: u32,
    /// Which attempt of these tasks it is, from 0.
    pub attempt: u16,
    /// The slots, of the lane that serves the phase.
    pub places: &'a [SlotRange],
    /// Whether the tasks take their slots but cannot compute before [`Order::Go`] (early reduces).
    pub held: bool,
}

/// A change to a running batch. Closed by design: an engine has to carry out every order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The maps are done since `since`, not later than now: held tasks compute from then or, if they
    /// took their slots later, from when they did.
    Go {
        /// The batch.
        row: RowId,
        /// When the last map of the job ended; the engine may have reported it only now.
        since: Time,
    },
    /// Map output was lost: tasks that have not ended start again at the next [`Order::Go`].
    Hold(RowId),
    /// Stop it and forget it. A report that it ended nevertheless is not believed.
    Kill(RowId),
}

/// What happened. Closed by design: the driver has to believe every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// All tasks of a batch finished at `at`, not later than now.
    Finished {
        /// The batch.
        row: RowId,
        /// When.
        at: Time,
    },
    /// An attempt ended with an error at `at`, not later than now; its tasks have no output.
    Failed {
        /// The batch.
        row: RowId,
        /// When.
        at: Time,
    },
    /// A machine died; its batches are gone.
    Down(MachineId),
    /// A machine came back empty.
    Up(MachineId),
    /// A flow arrived.
    Arrived(FlowId),
    /// A machine asks for work ([`Offers::Heartbeat`]).
    Offer(MachineId),
    /// The time of a [`Engine::wake_at`] has come.
    Woken,
}
