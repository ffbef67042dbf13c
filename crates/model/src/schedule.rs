//! Schedules: where and when each task ran, and the claims about costs.
//!
//! A schedule is data. The judge decides whether it is feasible, and computes its real cost. Task rows are
//! run-length encoded like the tasks: equal tasks that start together are one row, and their slots are
//! ranges.

mod claims;

use crate::cluster::SlotRange;
use crate::cost::Objective;
use crate::id::{FlowId, JobId, PhaseId};
use crate::profile::Profile;
use crate::time::{Span, Time};

/// A schedule with its claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Name of the policy that made it.
    pub policy: String,
    /// Whether the policy promises to keep the minima; the judge then checks this.
    pub minima: bool,
    /// The meaning of durations.
    pub clock: Clock,
    /// The fraction of maps after which reduces could take slots; 1 for no early reduces.
    pub slowstart: f64,
    /// The profile of the simulated cluster, if it has one; the judge then checks the rows against it.
    pub profile: Option<Profile>,
    /// The parts of a run whose settings changed, in order. Empty if `policy` and `slowstart` hold for the
    /// whole schedule and all slots were always available.
    pub segments: Vec<Segment>,
    /// The objective that was minimised.
    pub objective: Objective,
    /// Claimed cost; `None` if a flow failed or nothing is claimed.
    pub cost: Option<f64>,
    /// Claimed lower bound on the cost of any schedule.
    pub lower_bound: Option<f64>,
    /// Claimed (cost − bound) / |bound|; `None` when the bound is not positive or nothing is claimed.
    pub gap: Option<f64>,
    /// Claimed metrics by their names in the comparison document; often none.
    pub metrics: Vec<(String, f64)>,
    /// Flow by flow, in any order.
    pub flows: Vec<FlowRow>,
    /// Task rows: what really ran.
    pub tasks: TaskRows,
    /// ApplicationMasters of jobs, if the profile has them, in any order.
    pub ams: Vec<AmRow>,
    /// Piecewise constant allocations of a plan; ignored if there are task rows.
    pub allocations: Vec<Allocation>,
}

/// The origin of a schedule; see the fields of [`Schedule`].
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Name of the policy that made it.
    pub policy: String,
    /// Whether the policy promises to keep the minima.
    pub minima: bool,
    /// The meaning of durations.
    pub clock: Clock,
    /// The fraction of maps after which reduces could take slots; 1 for no early reduces.
    pub slowstart: f64,
    /// The profile of the simulated cluster, if it has one.
    pub profile: Option<Profile>,
}

/// A part of a run with its settings. They hold from its start to the start of the next segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// When it starts.
    pub start: Time,
    /// The policy.
    pub policy: String,
    /// The fraction of maps after which reduces could take slots; 1 for no early reduces.
    pub slowstart: f64,
    /// The slots that were available, by [`SlotKind::index`](crate::SlotKind::index); `None` for all slots.
    pub slots: Option<[Vec<SlotRange>; 2]>,
}

/// The rows of a schedule, in one of its two forms.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Where and when each task ran.
    Tasks(TaskRows),
    /// The number of slots of each phase over time.
    Allocations(Vec<Allocation>),
}

/// The start and the completion of a flow, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowTimes {
    /// The first start of its work, if it ever held a slot.
    pub start: Option<f64>,
    /// When it was complete; `None` if it failed.
    pub completion: Option<f64>,
}

impl Schedule {
    /// Claims a lower bound on the cost of any schedule, and the gap to it.
    pub fn claim_bound(&mut self, bound: Option<f64>) {
        self.lower_bound = bound;
        self.gap = self.cost.zip(bound).and_then(|(cost, bound)| gap(cost, bound));
    }
}

/// (cost − bound) / |bound|; `None` if the bound is not positive, since a ratio would be meaningless.
pub fn gap(cost: f64, lower_bound: f64) -> Option<f64> {
    (lower_bound > 0.0).then(|| (cost - lower_bound) / lower_bound)
}

crate::named_enum! {
    /// The meaning of durations in a schedule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Clock {
        /// Durations are exactly seconds / speed.
        Exact = "exact",
        /// Durations were measured, or distorted on purpose; only the rest can be checked.
        Measured = "measured",
    }
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowResult {
    /// All its tasks are done.
    Done,
    /// The flow failed; it may be incomplete and has no cost.
    Failed,
}

/// The claims of a schedule on one flow. Times are seconds: plans are not bound to microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRow {
    /// The flow.
    pub flow: FlowId,
    /// Claimed release.
    pub release: f64,
    /// Claimed first start of any of its work, if it ever started.
    pub start: Option<f64>,
    /// Claimed completion, if it completed.
    pub completion: Option<f64>,
    /// Claimed cost, if it completed.
    pub cost: Option<f64>,
    /// How it ended.
    pub status: FlowResult,
}

/// `slots` slots for a phase from `start` to `end` (seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// The phase.
    pub phase: PhaseId,
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
    /// How many slots.
    pub slots: u32,
}

crate::named_enum! {
    /// How an attempt ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Outcome {
        /// Finished; this is the attempt that counts.
        Done = "done",
        /// Ended with an error.
        Failed = "failed",
        /// Stopped from outside: its machine failed, or another attempt won.
        Killed = "killed",
        /// Finished, but its output was lost with its machine.
        Lost = "lost",
    }
}

/// Attempts of `count` consecutive tasks of one phase that start and end together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The phase.
    pub phase: PhaseId,
    /// First task.
    pub first: u32,
    /// How many tasks; at least 1.
    pub count: u32,
    /// When they took their slots.
    pub start: Time,
    /// When they left them.
    pub end: Time,
    /// How long after `start` their own code started, as far as known.
    pub startup: Span,
    /// Which attempt of its tasks this is, from 0.
    pub attempt: u16,
    /// How they ended.
    pub outcome: Outcome,
    /// Where the row's slots start in the table of places.
    places_start: u32,
    /// How many ranges of slots.
    n_places: u32,
}

/// Task rows and their places: the k-th task of a row runs on the k-th slot of its ranges, which
/// are slots of the kind that serves the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRows {
    rows: Vec<TaskRow>,
    places: Vec<SlotRange>,
}

impl TaskRows {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row on `places`, which hold exactly `row.count` slots, and returns its index.
    pub fn push(&mut self, row: NewRow, places: &[SlotRange]) -> usize {
        self.set(self.rows.len(), row, places);
        self.rows.len() - 1
    }

    /// Sets the row of that index; rows may come in any order. The caller must also set all rows before it.
    pub fn set(&mut self, index: usize, row: NewRow, places: &[SlotRange]) {
        debug_assert_eq!(places.iter().map(|p| p.len).sum::<u32>(), row.count);
        let places_start =
            u32::try_from(self.places.len()).expect("invariant: fewer than 2^32 ranges of slots");
        self.places.extend_from_slice(places);
        let NewRow { phase, first, count, start, end, startup, attempt, outcome } = row;
        let n_places = places.len() as u32;
        let row =
            TaskRow { phase, first, count, start, end, startup, attempt, outcome, places_start, n_places };
        if index >= self.rows.len() {
            self.rows.resize(index + 1, TaskRow { count: 0, n_places: 0, ..row });
        }
        self.rows[index] = row;
    }

    /// The rows in the order in which they were added.
    pub fn rows(&self) -> &[TaskRow] {
        &self.rows
    }

    /// The row of that index.
    pub fn row(&self, index: usize) -> &TaskRow {
        &self.rows[index]
    }

    /// Sets when and how a row ended.
    pub fn end(&mut self, index: usize, end: Time, outcome: Outcome) {
        let row = &mut self.rows[index];
        row.end = end;
        row.outcome = outcome;
    }

    /// The ranges of slots of a row.
    pub fn places(&self, row: &TaskRow) -> &[SlotRange] {
        &self.places[row.places_start as usize..][..row.n_places as usize]
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

impl From<&TaskRow> for NewRow {
    fn from(row: &TaskRow) -> Self {
        let TaskRow { phase, first, count, start, end, startup, attempt, outcome, .. } = *row;
        Self { phase, first, count, start, end, startup, attempt, outcome }
    }
}

/// A row to be added; see [`TaskRow`].
#[derive(Clone, Copy, Debug)]
pub struct NewRow {
    /// The phase.
    pub phase: PhaseId,
    /// First task.
    pub first: u32,
    /// How many tasks.
    pub count: u32,
    /// When they took their slots.
    pub start: Time,
    /// When they left them.
    pub end: Time,
    /// How long after `start` their own code started, as far as known.
    pub startup: Span,
    /// Which attempt, from 0.
    pub attempt: u16,
    /// How they ended.
    pub outcome: Outcome,
}

/// The ApplicationMaster of a job: it requests the slots of the tasks, and holds one itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmRow {
    /// Its job.
    pub job: JobId,
    /// Its slot, a generic one; `None` if ApplicationMasters need no slot.
    pub slot: Option<u32>,
    /// When it was started.
    pub start: Time,
    /// From when on tasks of the job could take slots; `None` if it was stopped before.
    pub up: Option<Time>,
    /// When it left its slot.
    pub end: Time,
    /// [`Outcome::Done`] with its job, or stopped with it.
    pub outcome: Outcome,
}
