//! The trait of engines: an engine runs tasks on slots and reports their ends.
//!
//! The simulator, the engine of processes and the engines of Hadoop clusters implement [`Engine`]. No engine
//! takes scheduling decisions.

use std::collections::BTreeSet;

use slackline_model::cluster::Group;
use slackline_model::instance::Arrival;
use slackline_model::{FlowId, Instance, JobId, MachineId, PhaseId, SlotRange, Span, Time};

/// A batch of equal tasks that started together, counted over the whole run: at most 2^32 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// The capabilities of the engine; requested once, before the first poll.
    fn capabilities(&self) -> Capabilities;

    /// Advances to the next instant with an event, appends its reports and returns the instant. The order of
    /// reports is: finished tasks, machines, tasks that run already, arrivals, offers. Returns `None` if no
    /// further event is possible without an order, with a [`Report::GaveUp`] at most.
    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time>;

    /// Starts a batch now, or takes over a batch that runs already ([`Start::since`]). `live` has the flows
    /// that have arrived and are not done.
    fn start(&mut self, start: &Start<'_>, live: &Instance);

    /// Changes a running batch now.
    fn order(&mut self, order: Order);

    /// Carries out an order for a whole job, if jobs need ApplicationMasters ([`Capabilities::ams`]).
    fn am(&mut self, order: AmOrder, live: &Instance) {
        let _ = live;
        unreachable!("an engine without AMs cannot carry out {order:?}");
    }

    /// Requests [`Report::Woken`] at that time.
    fn wake_at(&mut self, at: Time);

    /// For each slot kind, whether tasks wait for slots. Until this changes, the engine may leave out offers of
    /// slots of the other kinds ([`Offers::Heartbeat`]), except at instants with other reports. Before the first
    /// call it makes all offers.
    fn want_offers(&mut self, slot_kinds: [bool; 2]) {
        let _ = slot_kinds;
    }

    /// A free slot stays free because every task that could start there would end after its machine leaves
    /// ([`Report::Ends`]).
    fn blocked_by_deadline(&mut self) {}

    /// Whether tasks may start now. If not, the engine reports an event when they may.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Whether flows may still arrive. If not, a run ends when all flows that arrived are done.
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

/// The times at which an engine on a real clock must report [`Report::Woken`].
#[derive(Clone, Debug, Default)]
pub struct Wakes(BTreeSet<Time>);

impl Wakes {
    /// [`Engine::wake_at`]: a past time becomes the next microsecond.
    pub fn add(&mut self, at: Time, now: Time) {
        self.0.insert(at.max(Time(now.0 + 1)));
    }

    /// The first of them.
    pub fn first(&self) -> Option<Time> {
        self.0.first().copied()
    }

    /// Removes the times that have come, and reports them together.
    pub fn report(&mut self, now: Time, reports: &mut Vec<Report>) {
        let later = self.0.split_off(&Time(now.0 + 1));
        if !std::mem::replace(&mut self.0, later).is_empty() {
            reports.push(Report::Woken);
        }
    }
}

/// The capabilities of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The tasks that one start may comprise.
    pub batch: Batch,
    /// The losses when a machine fails.
    pub faults: Faults,
    /// When free slots may be used.
    pub offers: Offers,
    /// The meaning of the task durations of the instance.
    pub lengths: Lengths,
    /// The rules about ApplicationMasters, if jobs need them.
    pub ams: Option<Ams>,
}

impl Capabilities {
    /// Whether a free slot is used as soon as a phase may have it. Only then can a policy promise minima.
    pub fn is_prompt(&self) -> bool {
        self.offers == Offers::Immediate && self.ams.is_none()
    }
}

/// Each job is submitted first, then gets an ApplicationMaster that must be up while its tasks run, as in
/// Hadoop. When a policy gives a slot to a job without one, the slot goes to the ApplicationMaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ams {
    /// The number of slots that ApplicationMasters may hold at a time, fewer than all; `None` if they need no
    /// slot.
    pub most: Option<u32>,
    /// How long an ApplicationMaster keeps its slot after the end of its job.
    pub linger: Span,
}

/// The losses when a machine fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Machines never fail, and the driver does not record where output lies.
    Never,
    /// The tasks that run on it. Their output is stored elsewhere.
    Tasks,
    /// The tasks that run on it, and the output of maps whose job is not done: those maps run again.
    TasksAndOutput,
}

/// Which tasks that start together may be one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Equal tasks on machines of equal speed.
    Speed,
    /// Equal tasks on one machine.
    Machine,
    /// Every task by itself.
    Task,
}

/// The meaning of the task durations of the instance for an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// Exact durations: a phase without length is done when it becomes ready, and none of its tasks starts.
    #[default]
    Known,
    /// Estimates: the engine starts every task, even one of estimated length 0.
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
    /// The id of the batch in reports and orders.
    pub row: RowId,
    /// When they started: now, or earlier if they run already.
    pub since: Time,
    /// The name under which the engine reported them as [`Report::Running`]. They run already, and only the
    /// row is new.
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

/// A change to a running batch. The enum is closed by design: an engine must carry out every order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The maps are done since `since`, not later than now. Held tasks compute from then, or from their own
    /// start if that is later.
    Go {
        /// The batch.
        row: RowId,
        /// When the last map of the job ended; the engine may have reported it only now.
        since: Time,
    },
    /// Map output was lost: tasks that have not ended start again at the next [`Order::Go`].
    Hold(RowId),
    /// Stop the batch and forget it. A later report of its end is ignored.
    Kill(RowId),
    /// The task that was reported as [`Report::Running`] under this name must not run: it runs already, its
    /// phase may not start or is at its cap, or its slot is busy. Stop it.
    Refuse(u64),
}

/// An order for a whole job. The enum is closed by design, like [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmOrder {
    /// The job may start: submit it to the cluster. The answer is [`Report::Submitted`].
    Submit(JobId),
    /// Start the ApplicationMaster, on that generic slot if it needs one. The answer is [`Report::AmUp`].
    Start {
        /// The job.
        job: JobId,
        /// The slot.
        slot: Option<u32>,
        /// When it was started: now, or earlier if another engine started it.
        since: Time,
    },
    /// The job ended at `at`, not later than now. The answer is [`Report::AmGone`], when the slot is
    /// free.
    End {
        /// The job.
        job: JobId,
        /// The slot.
        slot: Option<u32>,
        /// When it ended.
        at: Time,
    },
    /// The job failed or was withdrawn: its ApplicationMaster ends at once, without further reports.
    Kill(JobId),
}

/// A report of an engine. The enum is closed by design: the driver must handle every report.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The startup time of a batch whose end, or stop, is in one of the next reports.
    Began {
        /// The batch.
        row: RowId,
        /// The time from its start to its own work.
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
        /// Whether no further attempt can succeed: the flow fails at once, even below the limit on failures.
        is_final: bool,
    },
    /// The job of a running batch cannot finish: no further task of it starts, nor of jobs that wait for it, nor, with
    /// `all`, of any job of its flow. Running tasks end, and then the flow fails, when nothing of it can run.
    JobFailed {
        /// The batch.
        row: RowId,
        /// Whether the other jobs of the flow start no tasks either.
        all: bool,
    },
    /// This batch already runs without an order of the driver: the cluster started it, or it started before
    /// the driver did. The answer is a [`Start`] with its name, or [`Order::Refuse`].
    Running(Running),
    /// A speculative attempt of a running task was started on an idle slot. The answer is a [`Start`] with
    /// its name, or [`Order::Refuse`]. The attempt that ends first counts, and the other is stopped. Only
    /// engines whose machines never leave send this.
    Speculative(SpeculativeAttempt),
    /// A machine failed with its batches.
    Down(MachineId),
    /// A machine came back without tasks or output.
    Up(MachineId),
    /// New machines. They get the next ids, and their slots the next numbers.
    Joined(Group),
    /// A machine left for good, with its tasks.
    Left(MachineId),
    /// The machine leaves at that time: no task starts there that is estimated to take longer. This holds
    /// until the machine leaves, or the engine reports another time.
    Ends {
        /// The machine.
        machine: MachineId,
        /// Until when.
        at: Time,
    },
    /// A flow arrived. It gets the next id, and its jobs and phases the next of theirs.
    Arrived(Box<Arrival>),
    /// The client withdraws a flow: its running tasks are stopped, and no more of its tasks start. Nothing
    /// happens if the flow is finished. An engine whose attempts keep running may submit the flow again, in
    /// its state at that time, and report them as [`Report::Running`].
    Withdrawn(FlowId),
    /// The cluster has accepted a job.
    Submitted(JobId),
    /// The ApplicationMaster of a job is up: its tasks may start.
    AmUp(JobId),
    /// The ApplicationMaster of a finished job has left its slot.
    AmGone(JobId),
    /// A machine asks for work ([`Offers::Heartbeat`]).
    Offer(MachineId),
    /// A time requested by [`Engine::wake_at`] has come.
    Woken,
    /// Why the engine ends an unfinished run, for example because it would repeat itself forever.
    GaveUp(String),
}

/// A task that runs already; see [`Report::Running`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The engine's name for it until it has a row.
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

/// A speculative attempt of a running task; see [`Report::Speculative`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeculativeAttempt {
    /// The row of the first attempt, of that task alone.
    pub row: RowId,
    /// The engine's name for the speculative attempt until it has a row.
    pub name: u64,
    /// Its slot, of the slot kind that serves the phase.
    pub slot: u32,
    /// When it started.
    pub since: Time,
}
