//! The documents of the HTTP API. The OpenAPI description is generated from these types.
//!
//! Dates are RFC 3339 in UTC with microseconds; durations are seconds. Unknown values are omitted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::state::auth::Role;

/// A flow file to be run, now, when something is there, or again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The flow file.
    pub document: String,
    /// What messages call it; its ending says in which format it is (TOML if nothing is said).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name under which its outputs are remembered: of submissions of one name one runs at a time. By
    /// default the name of the file, with the values of parameters that are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The directory that relative paths start from and commands run in, an absolute path; by default that of
    /// the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Values of the parameters that the file declares. Of something that recurs they may have strftime
    /// conversions, of the time of the recurrence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// A parameter with several values: every flow that uses it becomes one for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// Deadlines, by flow, still to come: a duration such as `2h`, a time of day, or a date and time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deadlines: BTreeMap<String, String>,
    /// The higher, the sooner it is taken from the queue. What is at work is not stopped.
    #[serde(default)]
    pub priority: u32,
    /// Whether it waits until it is let go.
    #[serde(default)]
    pub held: bool,
    /// What is done when a deadline of it is not expected to hold.
    #[serde(default)]
    pub if_late: IfLate,
    /// What is done when one of the same name is not over.
    #[serde(default)]
    pub overlap: Overlap,
    /// Patterns of files that have to be there before it begins; at least one file for each. Of something
    /// that recurs they may have strftime conversions, as `parameters`, and `%%` is a percent sign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
    /// Whether it waits for its own inputs.
    #[serde(default)]
    pub when_inputs: bool,
    /// When it is submitted again, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// A word of the sender's own, of at most 200 bytes: what they send again with the same one is not
    /// submitted a second time, as long as the first is remembered. So a request whose answer was lost can be
    /// sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A parameter with several values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// The parameter.
    pub parameter: String,
    /// A list such as `north,south`, days such as `2026-03-01..2026-03-07`, or whole numbers such as `1..24`.
    pub values: String,
}

/// What is done when a deadline is not expected to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfLate {
    /// It runs all the same.
    #[default]
    Accept,
    /// It is not begun.
    Reject,
}

/// What is done when a submission of the same name is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It waits for the other.
    #[default]
    Wait,
    /// It is left out.
    Skip,
    /// The other is stopped; jobs of it that are done and unchanged stay done.
    Replace,
}

/// When something is submitted again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Minute, hour, day of month, month, day of week, as in `0 2 * * 1-5`.
    pub cron: String,
    /// The time zone, as in `Europe/Berlin`; by default that of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What is done about times at which the service was not there.
    #[serde(default)]
    pub catch_up: CatchUp,
}

/// What is done about times that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    None,
    /// The last of them is made up for.
    #[default]
    Last,
    /// Each is made up for.
    All,
}

/// What became of a submission when it was durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// Its number; none of something that recurs, or was left out because of another of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its name.
    pub name: String,
    /// What is said of it, for a person.
    pub message: String,
    /// Of something that recurs: when it is submitted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The prediction, if it was waited for and came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
}

/// How far a submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits to begin; `why` says for what.
    Queued,
    /// Its inputs are looked up.
    Opening,
    /// Its flows are scheduled, or held.
    Live,
    /// All its flows are done.
    Done,
    /// A flow of it failed, or it could not begin.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was not begun, because a deadline was not expected to hold.
    Rejected,
}

impl State {
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Opening, Self::Live, Self::Done, Self::Failed, Self::Cancelled, Self::Rejected];

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Rejected)
    }

    /// Whether nothing of it is scheduled yet.
    pub fn has_not_begun(self) -> bool {
        matches!(self, Self::Queued | Self::Opening)
    }

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Opening => "opening",
            Self::Live => "live",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        }
    }
}

/// A submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// How far it is.
    pub state: State,
    /// For what it waits, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it is held.
    pub held: bool,
    /// Its priority in the queue.
    pub priority: u32,
    /// Its flows. Of one that has not begun they are read from its file, without their tasks; lists leave
    /// them out then.
    pub flows: Vec<Flow>,
    /// Of one that has not begun: the first deadline of its flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The recurrence that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<Occurrence>,
    /// The file that is why it has not begun: nothing is there of that name or pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Since when its flows could start: it had begun, and nobody held it. What was begun before the service
    /// was started again counts from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What is expected of it, as it was said last; of one that is over, as it was said first. Left out in
    /// lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// Why nothing is predicted of it, if that is so. Left out in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpredicted: Option<String>,
    /// The word of whoever sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// One time of something that recurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// Its name.
    pub recurrence: String,
    /// The time.
    pub at: Timestamp,
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    /// Nothing of it has started.
    #[default]
    Waiting,
    /// Something of it has started.
    Running,
    /// Nothing more of it starts before it is let go.
    Held,
    /// All its tasks are done.
    Done,
    /// A task of it failed for good, or it could not begin.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl FlowState {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Held => "held",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A flow of a submission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Flow {
    /// Its name.
    pub flow: String,
    /// How far it is.
    pub state: FlowState,
    /// When it is released.
    pub release: Timestamp,
    /// When it should be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Its weight.
    pub weight: f64,
    /// How many tasks it has; 0 before its inputs are looked up.
    pub tasks: u64,
    /// How many of them are done.
    pub done: u64,
    /// How many are at work.
    pub running: u64,
    /// How many attempts have failed.
    pub failed_attempts: u64,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Timestamp>,
    /// When it is going to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Timestamp>,
    /// Between which times eight of ten courses end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_between: Option<[Timestamp; 2]>,
    /// Whether that is a guess, as it is not known how long its tasks take.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guess: bool,
    /// Whether it was late, or is expected to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Why nothing more of it starts now, if it is for anything but want of slots: it is held, comes later,
    /// reads what another flow has not made yet, no machine is there, or its user's tasks hold as many slots
    /// as they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its jobs; left out in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

/// A job of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its name.
    pub job: String,
    /// The jobs that it comes after.
    pub after: Vec<String>,
    /// Its map tasks.
    pub maps: Phase,
    /// Its reduce tasks.
    pub reduces: Phase,
    /// How many of its attempts have failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is called so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How far a phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Phase {
    /// How many tasks it has.
    pub tasks: u64,
    /// How many are done.
    pub done: u64,
    /// How many are at work.
    pub running: u64,
}

/// What is expected of a submission, and what it means for the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// When this was said.
    pub made: Timestamp,
    /// Its flows.
    pub flows: Vec<FlowPrediction>,
    /// Flows of others that are expected to miss their deadlines with it, and would not without it.
    pub makes_late: Vec<DelayedFlow>,
    /// What would make deadlines hold that are not expected to.
    pub remedies: Vec<Remedy>,
}

impl Prediction {
    /// Whether a deadline of it is not expected to hold.
    pub fn is_late(&self) -> bool {
        self.flows.iter().any(|flow| flow.holds == Some(false))
    }
}

/// What is expected of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowPrediction {
    /// Its name.
    pub flow: String,
    /// When it is going to be done.
    pub completion: Timestamp,
    /// Between which times eight of ten courses end it; none of a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[Timestamp; 2]>,
    /// Whether its completion is a guess, as it is not known how long its tasks take.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guess: bool,
    /// Its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether the deadline is expected to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// In how many courses of a hundred it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// A flow that is late because of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DelayedFlow {
    /// The submission it is of.
    pub number: u64,
    /// The name of that.
    pub name: String,
    /// The flow.
    pub flow: String,
    /// Its deadline.
    pub deadline: Timestamp,
    /// When it would be done otherwise.
    pub without: Timestamp,
    /// When it is going to be done.
    pub with: Timestamp,
    /// How many seconds it is late then.
    pub late_by: f64,
}

/// Something that would make a deadline hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// A deadline that is expected to hold even if things take as long as nine in ten of their courses do, in
    /// whole seconds.
    Deadline {
        /// The flow.
        flow: String,
        /// The deadline.
        deadline: Timestamp,
    },
    /// So many slots instead of those there are.
    Slots {
        /// The flow.
        flow: String,
        /// How many.
        slots: u64,
    },
    /// These submissions held until it is done.
    Hold {
        /// The flow.
        flow: String,
        /// Their numbers.
        numbers: Vec<u64>,
    },
    /// Nothing here: alone on the machines it is done then.
    Nothing {
        /// The flow.
        flow: String,
        /// When it would be done.
        alone: Timestamp,
    },
}

/// A change to a submission or a flow of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The flow; all of them if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Another deadline, still to come: a duration after the release, the first such time of day after it, or
    /// a date and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Another weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Another priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// Something that recurs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recurrence {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// When.
    pub schedule: Schedule,
    /// What is done when one of them is not over at the next.
    pub overlap: Overlap,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was submitted the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// When it is submitted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// The service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Service {
    /// Version of the program.
    pub version: String,
    /// When the service was begun, the first time.
    pub began: Timestamp,
    /// When this process started.
    pub started: Timestamp,
    /// Now.
    pub now: Timestamp,
    /// The engine.
    pub engine: String,
    /// The policy.
    pub policy: String,
    /// What it keeps small: `sum of tardiness`, say.
    #[serde(default)]
    pub objective: String,
    /// How many slots there are, of machines that are there.
    pub slots: u64,
    /// How many of them the tasks of one user may hold at a time, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_by_user: Option<u64>,
    /// The machines.
    #[serde(default)]
    pub machines: Vec<Machine>,
    /// How many tasks are at work.
    pub running: u64,
    /// How many tasks of live submissions wait.
    pub waiting: u64,
    /// How many submissions there are in each state; of those that are over, as many as are remembered.
    pub submissions: BTreeMap<String, u64>,
    /// Whether nothing new begins.
    pub draining: bool,
    /// How good predictions have been.
    pub calibration: Calibration,
    /// What went wrong with the service itself, if anything does: a full disk, say; else with a directory
    /// that it watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A machine that attempts run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// Its name.
    pub machine: String,
    /// Its slots.
    pub slots: u64,
    /// Whether it is there.
    pub up: bool,
}

/// How good predictions have been: those that were made when flows were submitted, of the flows that are done
/// since. Guesses are counted apart: of them nothing was known of how long their tasks take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Calibration {
    /// How many flows, without those that were guessed.
    pub flows: u64,
    /// Which part of them was done in the interval of eight in ten.
    pub inside: f64,
    /// Mean of how far off the completion was, as a part of the time from submission to completion.
    pub error: f64,
    /// Mean of how much later than predicted it was, as such a part; negative if earlier.
    pub bias: f64,
    /// Of those with deadlines: which part was said rightly to hold or not to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<f64>,
    /// How many flows were guessed.
    #[serde(default)]
    pub guesses: u64,
    /// Mean of how far off guesses were, as a part of the time from submission to completion.
    #[serde(default)]
    pub guess_error: f64,
}

/// What is at work and waits, over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Load {
    /// The moments, the earliest first.
    pub points: Vec<LoadPoint>,
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadPoint {
    /// When.
    pub at: Timestamp,
    /// Tasks at work, on average since the moment before.
    pub running: f64,
    /// Tasks of live submissions that wait.
    pub waiting: u64,
    /// Submissions that wait in the queue.
    pub queued: u64,
}

/// Attempts that ended lately, and those at work now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// The attempts, the earliest start first; those at work have no end. An engine that cannot say on which
    /// slot something is at work has those that ended alone.
    pub attempts: Vec<Attempt>,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// The submission.
    pub number: u64,
    /// The flow.
    pub flow: String,
    /// The job.
    pub job: String,
    /// `map` or `reduce`.
    pub phase: String,
    /// The task.
    pub task: u32,
    /// The slot, counted through the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Since when.
    pub start: Timestamp,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// `done`, `failed`, `killed` or `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// Something that happened, as a line of the stream of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Events are numbered; a stream may be asked for those after a number.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// What: `submitted`, `opened`, `waits`, `ended`, `done`, `failed`, `cancelled`, `rejected`, `skipped`,
    /// `predicted`, `changed`, `likely_late`, `likely_in_time`, `late`, `estimates_off`, `alert_failed`,
    /// `not_written`, `recurrence`, `service`, `clock`.
    pub kind: String,
    /// The submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// What is said of it, for a person.
    pub message: String,
}

/// An alert: something that somebody may want to act on. There is at most one for each cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// What: `likely_late`, `late`, `failed` or `estimates_off`.
    pub kind: AlertKind,
    /// When.
    pub at: Timestamp,
    /// The submission.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// The flow.
    pub flow: String,
    /// Whose it is.
    pub user: String,
    /// What is said of it, for a person.
    pub message: String,
}

/// Alerts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alerts {
    /// The latest first.
    pub alerts: Vec<Alert>,
}

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A deadline is not expected to hold any more.
    LikelyLate,
    /// A deadline has passed.
    Late,
    /// A flow has failed.
    Failed,
    /// Tasks take much longer, or much shorter, than was expected.
    EstimatesOff,
}

impl AlertKind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::LikelyLate => "likely_late",
            Self::Late => "late",
            Self::Failed => "failed",
            Self::EstimatesOff => "estimates_off",
        }
    }
}

/// Why a flow waits, or waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// For a person.
    pub text: String,
    /// For a program: the document of `explain`.
    pub document: serde_json::Value,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What was found, and what was expected, in one or several lines.
    pub message: String,
}

/// That something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// What, for a person.
    pub message: String,
}

/// Who asks, as the service knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    /// Their name: of a token, or of a user of this machine.
    pub name: String,
    /// What they may.
    pub role: Role,
}

/// How a stream of events begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamStart {
    /// Whether the events that follow go on where those ended that were had before. If they do not (the
    /// service was started again, or it was too long ago), whatever is known of the service should be looked
    /// at anew.
    pub complete: bool,
}

/// How the service fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`: anything else is answered as a problem.
    pub status: String,
}

/// Several submissions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submissions {
    /// Those of this page, the latest first.
    pub submissions: Vec<Submission>,
    /// Of which numbers the next page has those before; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// What recurs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recurrences {
    /// By name.
    pub recurrences: Vec<Recurrence>,
}
