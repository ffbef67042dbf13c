//! What an engine is: it runs tasks on slots and reports how they ended.
//!
//! The simulator, the local engine and the adapters of real clusters implement [`Engine`]; none of
//! them takes a scheduling decision.

use std::collections::BTreeSet;

use slackline_model::cluster::Group;
use slackline_model::instance::Arrival;
use slackline_model::{FlowId, Instance, JobId, MachineId, PhaseId, SlotRange, Span, Time};

/// A batch of equal tasks that started together, counted over the whole run: at most 2^32 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl From<usize> for RowId {
    fn from(index: usize) -> Self {
        Self(u32::try_from(index).expect("invariant: a run has at most 2^32 batches"))
    }
}

impl From<RowId> for usize {
    fn from(id: RowId) -> Self {
        id.0 as usize
    }
}

/// Something that runs tasks.
pub trait Engine {
    /// What the engine can and cannot do; asked once, before the first poll.
    fn capabilities(&self) -> Capabilities;

    /// Goes to the next instant at which something happens, appends its reports (finished tasks
    /// before machines, then what runs already, then arrivals, then offers) and returns the instant;
    /// `None` if nothing will ever happen again unless it is ordered, with a [`Report::GaveUp`] at most.
    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time>;

    /// Starts a batch now, or takes over one that runs already ([`Start::since`]). `live` holds what has
    /// arrived and is not done.
    fn start(&mut self, start: &Start<'_>, live: &Instance);

    /// Changes a running batch now.
    fn order(&mut self, order: Order);

    /// Has something done for a job as a whole; only where jobs need it ([`Capabilities::masters`]).
    fn master(&mut self, order: MasterOrder, live: &Instance) {
        let _ = live;
        unreachable!("an engine without masters cannot carry out {order:?}");
    }

    /// Asks for [`Report::Woken`] at that time.
    fn wake_at(&mut self, at: Time);

    /// A free slot stays free because its machine goes before what could start there would have ended
    /// ([`Report::Ends`]).
    fn blocked_by_deadline(&mut self) {}

    /// How many more tasks of a flow may start now, if its user has a quota of slots. When the user may have
    /// more again, the engine reports an event: the end of the task that freed the slot.
    fn room(&mut self, flow: FlowId) -> u32 {
        let _ = flow;
        u32::MAX
    }

    /// Whether flows may still arrive. Without any, a run is over when all that arrived are done.
    fn may_bring_flows(&mut self) -> bool;
}

/// Any engine as `dyn Engine`, so that most of the driver is compiled once and not for each engine.
pub trait AsEngine: Engine {
    /// This engine.
    fn as_engine(&mut self) -> &mut dyn Engine;
}

impl<E: Engine> AsEngine for E {
    fn as_engine(&mut self) -> &mut dyn Engine {
        self
    }
}

/// The times at which an engine on a real clock has to report [`Report::Woken`].
#[derive(Clone, Debug, Default)]
pub struct Wakes(BTreeSet<Time>);

impl Wakes {
    /// [`Engine::wake_at`]: a time that has passed is the next microsecond.
    pub fn add(&mut self, at: Time, now: Time) {
        self.0.insert(at.max(Time(now.0 + 1)));
    }

    /// The first of them.
    pub fn first(&self) -> Option<Time> {
        self.0.first().copied()
    }

    /// Takes out those that have come, and reports them together.
    pub fn report(&mut self, now: Time, reports: &mut Vec<Report>) {
        let later = self.0.split_off(&Time(now.0 + 1));
        if !std::mem::replace(&mut self.0, later).is_empty() {
            reports.push(Report::Woken);
        }
    }
}

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many tasks one start may comprise.
    pub batch: Batch,
    /// What a machine that dies takes with it.
    pub faults: Faults,
    /// When free slots may be used.
    pub offers: Offers,
    /// What the lengths of the instance's tasks are to the engine.
    pub lengths: Lengths,
    /// What jobs need beside slots for their tasks, if they do.
    pub masters: Option<Masters>,
}

impl Capabilities {
    /// Whether a free slot is used as soon as a phase may have it: only then can a policy promise minima.
    pub fn is_prompt(&self) -> bool {
        self.offers == Offers::Immediate && self.masters.is_none()
    }
}

/// Each job is submitted first, then has a master that must be up while its tasks run, as the applications of
/// Hadoop have. A policy that gives a slot to a job without a master gives it to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masters {
    /// How many slots masters may hold at a time, fewer than there are; `None` if they need no slot.
    pub most: Option<u32>,
    /// How long a master keeps its slot after the end of its job.
    pub linger: Span,
}

/// What a machine that dies takes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Machines never fail, and the driver does not record where output lies.
    Never,
    /// The tasks that run on it: what they wrote lies elsewhere.
    Tasks,
    /// The tasks that run on it, and the output of maps whose job is not done: those run again.
    TasksAndOutput,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// What tasks take: a phase without length is done when it becomes ready, and no task of it is started.
    #[default]
    Known,
    /// Guesses: the engine starts every task, even one of estimated length 0.
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
    /// When they started: now, or earlier if they run already.
    pub since: Time,
    /// The name under which the engine reported them as [`Report::Running`]: they run already, and all that
    /// is new is the row.
    pub reported_as: Option<u64>,
    /// The phase.
    pub phase: PhaseId,
    /// First task.
    pub first: u32,
    /// How many consecutive tasks.
    pub count: u32,
    /// Which attempt of these tasks it is, from 0.
    pub attempt: u16,
    /// The slots, of the slot kind that serves the phase.
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
    /// Stop it and forget it. A report that it ended nevertheless is ignored.
    Kill(RowId),
    /// What was reported as [`Report::Running`] under this name must not run: its task runs already, its
    /// phase may not start or is at its cap, or its slot is not free. Stop it.
    Refuse(u64),
}

/// What is to be done for a job as a whole. Closed by design, as [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterOrder {
    /// The job may start: make it known to the cluster. The answer is [`Report::Submitted`].
    Submit(JobId),
    /// Start its master, on that universal slot if it needs one. The answer is
    /// [`Report::MasterUp`].
    Start {
        /// The job.
        job: JobId,
        /// The slot.
        slot: Option<u32>,
        /// When it was started: now, or earlier if it was by another engine.
        since: Time,
    },
    /// The job ended then, not later than now. The answer is [`Report::MasterGone`], when the slot is free.
    End {
        /// The job.
        job: JobId,
        /// The slot.
        slot: Option<u32>,
        /// When it ended.
        at: Time,
    },
    /// The job was abandoned: its master goes at once, and nothing more is reported of it.
    Kill(JobId),
}

/// What happened. Closed by design: the driver has to believe every report.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A batch that ends, or is stopped, by the reports that follow had taken so long to begin with its own
    /// work.
    Began {
        /// The batch.
        row: RowId,
        /// How long after it took its slots.
        startup: Span,
    },
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
        /// Whether no further attempt can end better: their flow is given up at once, however often they may
        /// fail.
        is_final: bool,
    },
    /// This batch already runs without an order of the driver: the cluster started it, or it ran before the
    /// driver started. The answer is a [`Start`] with its name, or [`Order::Refuse`].
    Running(Running),
    /// A second attempt of a task was started on a slot that was left idle, while the first runs. The answer
    /// is a [`Start`] with its name, or [`Order::Refuse`]. Whichever of the two ends first is the task's, and
    /// the other is stopped. Only of engines whose machines never go.
    Second(Second),
    /// A machine died; its batches are gone.
    Down(MachineId),
    /// A machine came back empty.
    Up(MachineId),
    /// Machines that were not known before. They get the next ids, and their slots the next numbers.
    Joined(Group),
    /// A machine is gone for good, and what ran on it.
    Left(MachineId),
    /// The machine leaves at that time: no task starts on it any more that is estimated to take longer. This
    /// holds until the machine leaves, or the engine reports another time.
    Ends {
        /// The machine.
        machine: MachineId,
        /// Until when.
        at: Time,
    },
    /// A flow arrived. It gets the next id, and its jobs and phases the next of theirs.
    Arrived(Box<Arrival>),
    /// The client withdraws a flow: its running tasks are stopped, and no more of it starts. Nothing happens
    /// if the flow is finished. An engine whose attempts keep running may submit the flow again, in its state
    /// of then, and report them as [`Report::Running`].
    Withdrawn(FlowId),
    /// A job is known to the cluster.
    Submitted(JobId),
    /// The master of a job is there: its tasks may start.
    MasterUp(JobId),
    /// The master of a job that is over has left its slot.
    MasterGone(JobId),
    /// A machine asks for work ([`Offers::Heartbeat`]).
    Offer(MachineId),
    /// The time of a [`Engine::wake_at`] has come.
    Woken,
    /// Why the engine ends a run that could go on, such as one that would repeat itself forever.
    GaveUp(String),
}

/// One task that runs already; see [`Report::Running`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// How the engine names it until it has a row.
    pub name: u64,
    /// Its phase.
    pub phase: PhaseId,
    /// Which task.
    pub task: u32,
    /// The slot, of the slot kind that serves the phase.
    pub slot: u32,
    /// When it started.
    pub since: Time,
}

/// A second attempt of a task that runs; see [`Report::Second`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// The row of the first attempt, of that task alone.
    pub row: RowId,
    /// How the engine names the second one until it has a row.
    pub name: u64,
    /// Its slot, of the slot kind that serves the phase.
    pub slot: u32,
    /// When it started.
    pub since: Time,
}
