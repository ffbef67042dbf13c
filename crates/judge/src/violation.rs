//! The violations of a schedule: one variant for each rule, and the search for the first violation.
//!
//! - `names`: phases, tasks, slots and tables by their names in the documents;
//! - `problems`: the problems of rows, segments, speculative attempts and ApplicationMasters.

use slackline_model::{PhaseId, SlotKind};

mod names;
mod problems;

pub use names::{Place, Subject, Table};
pub(crate) use names::{flow_name, job_name};
pub use problems::{AmProblem, RowProblem, SegmentProblem, SpeculationProblem};

/// A broken rule. Times are seconds after the start of the workload.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// An invalid row.
    #[error("row {row} of {table}: {problem}")]
    Row {
        /// Where the row stands.
        table: Table,
        /// Its number, from 0.
        row: usize,
        /// What is wrong with it.
        problem: RowProblem,
    },
    /// A slow-start fraction outside 0 to 1.
    #[error("slowstart: found {found}, expected a fraction from 0 to 1")]
    Slowstart {
        /// The fraction.
        found: f64,
    },
    /// An invalid segment.
    #[error("segment {segment}: {problem}")]
    Segment {
        /// Its number, from 0.
        segment: usize,
        /// What is wrong with it.
        problem: SegmentProblem,
    },
    /// The schedule's objective needs numbers that the workload does not give.
    #[error("objective: {problem}")]
    Objective {
        /// What the workload lacks.
        problem: Box<str>,
    },
    /// A flow without a row.
    #[error("flow {flow}: found no row in flows, expected one")]
    FlowMissing {
        /// Name of the flow.
        flow: Box<str>,
    },
    /// A flow with several rows.
    #[error("flow {flow}: found a second row in flows, expected one")]
    FlowTwice {
        /// Name of the flow.
        flow: Box<str>,
    },
    /// A task without an attempt that is done.
    #[error("{task}: found no finished attempt, expected one")]
    TaskMissing {
        /// The task.
        task: Subject,
    },
    /// A task with several attempts that are done.
    #[error("{task}: found {found} finished attempts, expected one")]
    TaskTwice {
        /// The task.
        task: Subject,
        /// How many.
        found: u32,
    },
    /// Attempts of a task that are not numbered 0, 1, 2, … in the order of their starts.
    #[error(
        "{task}: found number {found} for the attempt that starts at {start} s, expected {expected} (attempts are numbered from 0 in the order of their starts)"
    )]
    Attempt {
        /// The task.
        task: Subject,
        /// The attempt's number.
        found: u16,
        /// The number it should have.
        expected: u32,
        /// When it starts.
        start: f64,
    },
    /// Allocations on machines of several speeds.
    #[error("allocations: found machines of several speeds, expected task rows instead")]
    Speed,
    /// More or less work than the phase has.
    #[error("{phase}: found {found} slot-seconds of work, expected {expected}")]
    Work {
        /// The phase.
        phase: Subject,
        /// Slot-seconds at speed 1.
        found: f64,
        /// Slot-seconds at speed 1.
        expected: f64,
    },
    /// A slot that two attempts use at once.
    #[error("at {at} s: {task} on {place} overlaps {other}")]
    SlotOverlap {
        /// When the second one starts.
        at: f64,
        /// The one that starts.
        task: Subject,
        /// The slot.
        place: Place,
        /// The one that holds the slot.
        other: Box<Subject>,
    },
    /// More slots allocated than there are.
    #[error(
        "at {at} s: {phase} starts, and {found} {} slots are in use, expected at most {slots}",
        slot_kind.name()
    )]
    Capacity {
        /// From when on.
        at: f64,
        /// A phase whose allocation starts then.
        phase: Subject,
        /// Which slots.
        slot_kind: SlotKind,
        /// Slots in use.
        found: u64,
        /// Slots there are.
        slots: u32,
    },
    /// A phase above its cap.
    #[error("at {at} s: {phase} holds {found} slots, expected at most {cap}")]
    Cap {
        /// From when on.
        at: f64,
        /// The phase.
        phase: Subject,
        /// Slots it holds.
        found: u64,
        /// Its cap.
        cap: u32,
    },
    /// Work before the flow's release.
    #[error("at {at} s: {who} starts before its release at {release} s")]
    Release {
        /// When it starts.
        at: f64,
        /// The phase or task.
        who: Subject,
        /// When the flow arrives.
        release: f64,
    },
    /// A job that starts before a job it comes after is done.
    #[error("at {at} s: {who} starts before the end of job {after}, {}", when_done(*done))]
    Precedence {
        /// When it starts.
        at: f64,
        /// The phase or task.
        who: Subject,
        /// Name of the job it comes after.
        after: Box<str>,
        /// When that job is done, if ever.
        done: Option<f64>,
    },
    /// A reduce that starts, or is done, before the maps it needs.
    #[error("at {at} s: {who} {event} before the end of {}, {}", maps(*needed), when_done(*done))]
    MapBeforeReduce {
        /// When it starts or ends.
        at: f64,
        /// The phase or task.
        who: Subject,
        /// Whether it starts or ends then.
        event: ReduceEvent,
        /// How many maps should be done; none for the whole map phase.
        needed: Option<u32>,
        /// When that number of maps is done, if ever.
        done: Option<f64>,
    },
    /// A reduce that takes a slot early and leaves none to the maps.
    #[error(
        "at {at} s: {task} takes a slot early, and waiting reduces hold {found} slots, expected fewer than all {slots}"
    )]
    EarlyReduce {
        /// When it takes the slot.
        at: f64,
        /// The task.
        task: Subject,
        /// Slots held by waiting reduces, its own included.
        found: u64,
        /// Slots there are.
        slots: u32,
    },
    /// An attempt that starts on a slot that is not available.
    #[error("at {at} s: {task} starts on {place}, which is not available in segment {segment}")]
    SlotAbsent {
        /// When it starts.
        at: f64,
        /// The task.
        task: Subject,
        /// The slot.
        place: Place,
        /// The number of the segment, from 0.
        segment: usize,
    },
    /// An attempt longer or shorter than its task takes.
    #[error("at {at} s: {task} on {place} ends after {found} s, expected {}{expected} s", at_most(*outright))]
    Duration {
        /// When it ends.
        at: f64,
        /// The task.
        task: Subject,
        /// Where it ran.
        place: Place,
        /// Seconds of running, waiting for maps not counted.
        found: f64,
        /// Seconds / speed.
        expected: f64,
        /// Whether the attempt finished. A finished attempt takes exactly this time, any other attempt at
        /// most this time.
        outright: bool,
    },
    /// Tasks whose own code starts sooner or later after they took their slots than the profile of the
    /// cluster allows.
    #[error(
        "at {at} s: {task} takes a slot and runs its own code {found} s later, expected {least} to {most} s{}",
        if *.profile { " (container-start and am-heartbeat of the profile)" } else { ", as there is no profile" }
    )]
    Startup {
        /// When it takes the slot.
        at: f64,
        /// The task.
        task: Subject,
        /// Seconds to its own code.
        found: f64,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
        /// Whether there is a profile.
        profile: bool,
    },
    /// A task that did not wait for a slot near its input for as long as the profile of the cluster requires.
    #[error(
        "at {at} s: {task} starts on {place}, {distance}, expected a start at {earliest} s or later (node-delay and \
         rack-delay of the profile)"
    )]
    Delay {
        /// When it starts.
        at: f64,
        /// The task.
        task: Subject,
        /// Where.
        place: Place,
        /// Its distance from the input.
        distance: Distance,
        /// The earliest allowed start.
        earliest: f64,
    },
    /// An invalid speculative attempt.
    #[error("at {at} s: a speculative attempt of {task}: {problem}")]
    Speculative {
        /// When it starts.
        at: f64,
        /// The task.
        task: Subject,
        /// What is wrong.
        problem: SpeculationProblem,
    },
    /// An invalid ApplicationMaster of a job.
    #[error("at {at} s: flow {flow}, job {job}: {problem}")]
    Am {
        /// When.
        at: f64,
        /// Name of the flow.
        flow: Box<str>,
        /// Name of the job.
        job: Box<str>,
        /// What is wrong.
        problem: AmProblem,
    },
    /// A phase below its guarantee.
    #[error("at {at} s: {phase} holds {found} slots, expected its minimum of {minimum}{}", taken_by(taker.as_deref()))]
    Minimum {
        /// When.
        at: f64,
        /// The phase.
        phase: Subject,
        /// Slots it holds.
        found: u64,
        /// Its minimum at that instant.
        minimum: u32,
        /// The phase above its own minimum that takes a slot instead; none in allocations.
        taker: Option<Box<Subject>>,
    },
    /// A claimed release that is not the flow's.
    #[error("flow {flow}: found release {found}, expected {expected}")]
    FlowRelease {
        /// Name of the flow.
        flow: Box<str>,
        /// The claim.
        found: f64,
        /// The flow's release.
        expected: f64,
    },
    /// A claimed start that is not the first of the flow's rows.
    #[error("flow {flow}: found start {}, expected {}", show(*found), show(*expected))]
    Start {
        /// Name of the flow.
        flow: Box<str>,
        /// The claim.
        found: Option<f64>,
        /// What follows from the rows.
        expected: Option<f64>,
    },
    /// A claimed completion that does not follow from the rows.
    #[error("flow {flow}: found completion {}, expected {}", show(*found), show(*expected))]
    Completion {
        /// Name of the flow.
        flow: Box<str>,
        /// The claim.
        found: Option<f64>,
        /// What follows from the rows.
        expected: Option<f64>,
    },
    /// A claimed cost of a flow that does not follow from its completion.
    #[error("flow {flow}: found cost {}, expected {}", show(*found), show(*expected))]
    FlowCost {
        /// Name of the flow.
        flow: Box<str>,
        /// The claim.
        found: Option<f64>,
        /// What follows from the completion; none of a failed flow.
        expected: Option<f64>,
    },
    /// A claimed cost that is not that of the flows together.
    #[error("cost: found {}, expected {expected}", show(*found))]
    Cost {
        /// The claim.
        found: Option<f64>,
        /// The flows' costs together.
        expected: f64,
    },
    /// A lower bound above the cost.
    #[error("lower_bound: found {found}, expected at most the cost of {cost}")]
    LowerBound {
        /// The claim.
        found: f64,
        /// The cost.
        cost: f64,
    },
    /// A claimed gap that does not follow from cost and bound.
    #[error("gap: found {found}, expected {}", show(*expected))]
    Gap {
        /// The claim.
        found: f64,
        /// (cost − bound) / |bound|; none without a cost and a positive bound.
        expected: Option<f64>,
    },
    /// A claimed metric that does not follow from the rows.
    #[error("metric {name}: found {found}, expected {}", known(*expected))]
    Metric {
        /// Its name.
        name: Box<str>,
        /// The claim.
        found: f64,
        /// What follows from the rows; none if there is no metric of that name.
        expected: Option<f64>,
    },
}

slackline_model::named_enum! {
    /// The distance of a machine from the input of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Distance {
        /// The machine holds the input.
        Node = "where its input is",
        /// The machine is in the rack of a machine that holds the input.
        Rack = "in a rack of its input",
        /// The machine is in none of these racks.
        OffRack = "in none of the racks of its input",
    }
}

slackline_model::named_enum! {
    /// The event of a reduce that is too early.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum ReduceEvent {
        /// It takes its slot.
        Starts = "starts",
        /// It is done.
        Ends = "finishes",
    }
}

fn show(value: Option<f64>) -> String {
    value.map_or_else(|| "none".to_owned(), |v| v.to_string())
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "a name of the comparison document".to_owned(), |v| v.to_string())
}

fn when_done(at: Option<f64>) -> String {
    at.map_or_else(|| "which never happens".to_owned(), |at| format!("which is at {at} s"))
}

fn maps(needed: Option<u32>) -> String {
    needed.map_or_else(|| "the map phase".to_owned(), |n| format!("{n} map tasks"))
}

fn at_most(outright: bool) -> &'static str {
    if outright { "" } else { "at most " }
}

fn taken_by(taker: Option<&Subject>) -> String {
    taker.map_or_else(String::new, |who| format!(", while {who} takes a slot above its own minimum"))
}

impl Violation {
    /// A short name of the kind of violation that stays the same in all versions.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Row { .. } => "row",
            Self::Slowstart { .. } => "slowstart",
            Self::Segment { .. } => "segment",
            Self::Objective { .. } => "objective",
            Self::FlowMissing { .. } => "flow-missing",
            Self::FlowTwice { .. } => "flow-twice",
            Self::TaskMissing { .. } => "task-missing",
            Self::TaskTwice { .. } => "task-twice",
            Self::Attempt { .. } => "attempt",
            Self::Speed => "speed",
            Self::Work { .. } => "work",
            Self::SlotOverlap { .. } => "slot-overlap",
            Self::Capacity { .. } => "capacity",
            Self::Cap { .. } => "cap",
            Self::Release { .. } => "release",
            Self::Precedence { .. } => "precedence",
            Self::MapBeforeReduce { .. } => "map-before-reduce",
            Self::EarlyReduce { .. } => "early-reduce",
            Self::SlotAbsent { .. } => "slot-absent",
            Self::Duration { .. } => "duration",
            Self::Startup { .. } => "startup",
            Self::Delay { .. } => "delay",
            Self::Speculative { .. } => "speculative-attempt",
            Self::Am { .. } => "am",
            Self::Minimum { .. } => "minimum",
            Self::FlowRelease { .. } => "flow-release",
            Self::Start { .. } => "start",
            Self::Completion { .. } => "completion",
            Self::FlowCost { .. } => "flow-cost",
            Self::Cost { .. } => "cost",
            Self::LowerBound { .. } => "lower-bound",
            Self::Gap { .. } => "gap",
            Self::Metric { .. } => "metric",
        }
    }
}

/// Keeps the earliest of the offered violations. At one instant it keeps that of the lowest phase, then the
/// one offered first.
#[derive(Debug, Default)]
pub(crate) struct First {
    best: Option<(f64, PhaseId, Violation)>,
}

impl First {
    pub(crate) fn offer(&mut self, at: f64, phase: PhaseId, violation: impl FnOnce() -> Violation) {
        let before = |b: &(f64, PhaseId, Violation)| at.total_cmp(&b.0).then(phase.cmp(&b.1)).is_lt();
        if self.best.as_ref().is_none_or(before) {
            self.best = Some((at, phase, violation()));
        }
    }

    pub(crate) fn into_result(self) -> Result<(), Violation> {
        self.best.map_or(Ok(()), |(_, _, violation)| Err(violation))
    }
}
