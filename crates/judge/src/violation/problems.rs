//! The problems of a row, a segment, a speculative attempt and an ApplicationMaster.

use super::names::{Place, Subject};

/// Why a row is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// The flow does not exist.
    #[error("found flow number {0}, expected one of the workload")]
    UnknownFlow(u32),
    /// The phase does not exist.
    #[error("found phase number {0}, expected one of the workload")]
    UnknownPhase(u32),
    /// The job does not exist.
    #[error("found job number {0}, expected one of the workload")]
    UnknownJob(u32),
    /// An ApplicationMaster of a job, although the profile of the cluster has none or there is no profile.
    #[error("found the AM of a job, expected none: the schedule has no task rows, or no `profile` with AMs")]
    NoAms,
    /// An ApplicationMaster without a slot, or with a slot although ApplicationMasters need none.
    #[error("found {} slot, expected {}", if *.0 { "a" } else { "no" }, if *.0 { "none (am-share=0)" } else { "one" })]
    AmSlot(bool),
    /// An ApplicationMaster that was up before its start or after its end.
    #[error("the AM is up at {0} s, expected a time between its start and its end")]
    AmUp(f64),
    /// Tasks that begin after their end.
    #[error("found a startup of {startup} s, expected at most the {length} s from start to end")]
    Startup {
        /// Seconds.
        startup: f64,
        /// Seconds from start to end.
        length: f64,
    },
    /// A task row of a phase that is not cut into tasks.
    #[error("found tasks of a phase that is not cut into tasks, expected allocations")]
    NoTasks,
    /// A row of no tasks.
    #[error("found a count of 0, expected at least 1 task")]
    Empty,
    /// Tasks beyond the last of the phase.
    #[error("found tasks {first} to {last}, expected task numbers below {tasks}")]
    TaskNumber {
        /// First task of the row.
        first: u32,
        /// Last task of the row.
        last: u64,
        /// How many tasks the phase has.
        tasks: u32,
    },
    /// More or fewer slots than tasks.
    #[error("found {found} slots for {expected} tasks, expected one each")]
    SlotCount {
        /// Slots of the row.
        found: u64,
        /// Tasks of the row.
        expected: u32,
    },
    /// Slots beyond the last of the slot kind, or an empty range.
    #[error("found {len} slots from slot {first} on, expected at least 1 slot, with numbers below {slots}")]
    SlotNumber {
        /// First slot of the range.
        first: u32,
        /// Slots in the range.
        len: u32,
        /// Slots of the slot kind.
        slots: u32,
    },
    /// An allocation of no slots.
    #[error("found 0 slots, expected at least 1")]
    NoSlots,
    /// Not an instant, or an instant beyond all calendars.
    #[error("found a time of {0} s, expected a finite one")]
    NotFinite(f64),
    /// The end comes before the start.
    #[error("found start {start} s and end {end} s, expected the start first")]
    Backwards {
        /// Seconds.
        start: f64,
        /// Seconds.
        end: f64,
    },
}

/// Why a segment is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentProblem {
    /// The first segment does not start at 0, or a later one not after the one before it.
    #[error("found start {found} s, expected {}", match .before { None => "0".to_owned(), Some(at) => format!("one after {at} s") })]
    Start {
        /// When it starts, seconds.
        found: f64,
        /// When the segment before it starts, seconds.
        before: Option<f64>,
    },
    /// A slow-start fraction outside 0 to 1.
    #[error("found slowstart {0}, expected a fraction from 0 to 1")]
    Slowstart(f64),
    /// Slots that the cluster does not have, or that are named twice.
    #[error("found {len} slots from slot {first} on, expected slot numbers below {slots}, each once")]
    Slots {
        /// First slot of the range.
        first: u32,
        /// Slots in the range.
        len: u32,
        /// Slots of the slot kind.
        slots: u32,
    },
}

/// The problem of a speculative attempt. Times are seconds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpeculationProblem {
    /// The profile has no speculative attempts.
    #[error("not allowed by the profile (speculate=0)")]
    Unexpected,
    /// The task has a third attempt.
    #[error("the task has a third attempt, expected at most its first one and one speculative attempt")]
    Third,
    /// Its row, or that of the first attempt, has other tasks too.
    #[error("its row has several tasks, expected one row for each attempt")]
    Several,
    /// The first attempt was not running its own code then.
    #[error("the first attempt does not run its own code at that time")]
    Beside,
    /// The first attempt would have been done as soon.
    #[error(
        "the first attempt ends at {ends} s at the latest, and {}",
        .new_ends.map_or_else(|| "no task of the phase has finished yet, so no duration is known".to_owned(), |at| format!("a new attempt would end at {at} s"))
    )]
    Quick {
        /// When the first attempt ends, or would have ended.
        ends: f64,
        /// When a new attempt would end, if some task of the phase is done.
        new_ends: Option<f64>,
    },
    /// More speculative attempts at a time than allowed.
    #[error(
        "found {found} at a time in its phase, expected at most {most} (speculate-least, -total, -running)"
    )]
    TooMany {
        /// The number at that time.
        found: u64,
        /// The allowed number.
        most: u64,
    },
    /// The attempt started when its ApplicationMaster did not check for slow tasks.
    #[error(
        "its ApplicationMaster starts speculative attempts only at {since} s and every {every} s after that (speculate, speculate-pause)"
    )]
    Look {
        /// The first check of the ApplicationMaster.
        since: f64,
        /// The interval of checks.
        every: f64,
    },
    /// One of the two attempts is done, and the other was not stopped then.
    #[error(
        "one attempt finished and the other has the outcome {outcome} at {found} s, expected it to be killed at {expected} s"
    )]
    Other {
        /// How the other ended.
        outcome: &'static str,
        /// When.
        found: f64,
        /// When it should have been stopped.
        expected: f64,
    },
}

/// The problem of the ApplicationMaster of a job. Times are seconds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AmProblem {
    /// Tasks of the job ran without an ApplicationMaster.
    #[error("found tasks without an AM, expected one")]
    Missing,
    /// A second ApplicationMaster.
    #[error("found a second AM, expected one")]
    Twice,
    /// The ApplicationMaster was stopped although its flow is done, or is done although its job is not.
    #[error("its AM is {found}, expected {expected}")]
    Outcome {
        /// How it ended.
        found: &'static str,
        /// How it should have ended.
        expected: &'static str,
    },
    /// The ApplicationMaster started before its job can have been submitted.
    #[error(
        "its AM starts before its job can be submitted, expected a start at {earliest} s or later (submit)"
    )]
    Early {
        /// The earliest allowed start.
        earliest: f64,
    },
    /// The ApplicationMaster took less or more time to start than the profile allows.
    #[error("its AM is up after {found} s, expected {least} to {most} s (am-start)")]
    Start {
        /// Seconds from its start to when it was up.
        found: f64,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
    },
    /// The ApplicationMaster left its slot sooner or later after its job than the profile allows.
    #[error("its AM ends, expected an end at {expected} s, after the end of the job (am-linger)")]
    End {
        /// When it should have left.
        expected: f64,
    },
    /// A task had a slot when the ApplicationMaster was not up.
    #[error("{task} has a slot while the AM of its job is not up")]
    Without {
        /// The task.
        task: Subject,
    },
    /// The ApplicationMaster holds a slot together with another holder.
    #[error("its AM on {place} overlaps {}", .other.as_ref().map_or_else(|| "the AM of another job".to_owned(), ToString::to_string))]
    Overlap {
        /// The slot.
        place: Place,
        /// The task it overlaps; none if the other holder is an ApplicationMaster.
        other: Option<Box<Subject>>,
    },
    /// ApplicationMasters hold more slots than allowed.
    #[error("its AM starts, and AMs hold {found} slots, expected at most {most} (am-share)")]
    TooMany {
        /// The number at that time.
        found: u64,
        /// The allowed number.
        most: u32,
    },
}
