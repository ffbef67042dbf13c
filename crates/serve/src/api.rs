//! The documents of the HTTP API. The OpenAPI description is generated from these types.
//!
//! Dates are RFC 3339 in UTC with microseconds; durations are seconds. Unknown values are omitted.

mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
pub use slackline::run::FlowStatus;
use utoipa::ToSchema;

use crate::state::auth::Role;

pub use service::{
    Alert, AlertKind, Alerts, Attempt, Calibration, Event, Load, LoadPoint, Machine, Service, Timeline,
};

/// A flow file to run: now, when files exist, or on a schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The flow file.
    pub document: String,
    /// The file name in messages. Its extension selects the format; the default is TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of the submission. Only one submission of a name runs at a time, and a later one reuses its
    /// outputs; `overlap` has exceptions. The default is the file name, with the values of `parameters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The working directory of commands, and the base of relative paths. It has to be absolute. The default
    /// is the working directory of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Values of the parameters that the file declares. With a schedule, they may have strftime conversions,
    /// which are filled with the scheduled time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// A parameter with several values. Each flow that uses it is repeated for each value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// Future deadlines by flow: a duration such as `2h`, a time of day, or a date and time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deadlines: BTreeMap<String, String>,
    /// The priority in the queue; higher values start first. Running tasks are not stopped.
    #[serde(default)]
    pub priority: u32,
    /// Whether the submission is held until a user resumes it.
    #[serde(default)]
    pub held: bool,
    /// The rule if the submission is predicted to miss a deadline.
    #[serde(default)]
    pub if_late: IfLate,
    /// The rule if a submission of the same name has not finished.
    #[serde(default)]
    pub overlap: Overlap,
    /// File patterns, each of which has to match a file before the submission starts. With a schedule, they
    /// may have strftime conversions, as in `parameters`; `%%` is a percent sign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
    /// Whether the submission waits until its own inputs exist.
    #[serde(default)]
    pub when_inputs: bool,
    /// How long the submission waits for files, seconds. Then it fails. The default is a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_for: Option<f64>,
    /// How long the files must not have changed before it starts, seconds. The default is 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_still: Option<f64>,
    /// The schedule of repeated submissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The time zone of the schedule, of deadlines by the clock and of dates in parameters, as in `Europe/Berlin`. The
    /// default is that of `schedule`, then that of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The git commit of the flow file, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// An idempotency key of at most 200 bytes. A request with a remembered key of the same user is not
    /// submitted again, so a client can safely retry a request after a lost response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Submit {
    /// Makes a repetition of it: not held, not rejected, and failed if its files are missing. It still waits for a submission
    /// with the same paths.
    pub(crate) fn repeat_now(&mut self) {
        (self.key, self.held, self.if_late) = (None, false, IfLate::Accept);
        if matches!(self.overlap, Overlap::Skip | Overlap::Replace) {
            self.overlap = Overlap::Wait;
        }
        (self.when_for, self.when_still) = (Some(0.0), Some(0.0));
    }
}

/// A parameter with several values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// The name of the parameter.
    pub parameter: String,
    /// A list such as `north,south`, days such as `2026-03-01..2026-03-07`, or whole numbers such as `1..24`.
    pub values: String,
}

/// The rule if a submission is predicted to miss a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfLate {
    /// Run the submission anyway.
    #[default]
    Accept,
    /// Reject the submission.
    Reject,
}

/// The rule if a submission of the same name has not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Run beside the other if both are times of a schedule that read and write separate paths; otherwise wait.
    #[default]
    Apart,
    /// Wait until the other has finished.
    Wait,
    /// Skip the new submission.
    Skip,
    /// Stop the other. Its finished jobs stay finished if they are unchanged.
    Replace,
}

/// The schedule of repeated submissions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// A cron expression: minute, hour, day of month, month, day of week, as in `0 2 * * 1-5`.
    pub cron: String,
    /// The time zone, as in `Europe/Berlin`. The default is the time zone of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The rule for times that were missed while the service was down.
    #[serde(default)]
    pub catch_up: CatchUp,
}

/// The rule for missed times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// Skip all missed times.
    None,
    /// Submit the latest missed time.
    #[default]
    #[serde(alias = "last")]
    Latest,
    /// Submit each missed time.
    All,
}

/// The result of a submission, which is on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The number of the submission. Omitted for a schedule, and for a skipped submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The name of the submission or schedule.
    pub name: String,
    /// The result as text.
    pub message: String,
    /// The next time of a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The prediction, if the client waited for it and it came in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
}

impl Accepted {
    pub(crate) fn new(number: Option<u64>, name: &str, message: String) -> Self {
        Self { number, name: name.to_owned(), message, next: None, prediction: None }
    }
}

/// The state of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The submission waits to start; `why` has the reason.
    Queued,
    /// The service looks up the inputs of the submission.
    Opening,
    /// The flows of the submission are scheduled, or held.
    Running,
    /// All flows have finished.
    Finished,
    /// A flow has failed, or the submission could not start.
    Failed,
    /// A user cancelled the submission, or a later one replaced it.
    Cancelled,
    /// The submission was predicted to miss a deadline, and `if_late` is `reject`.
    Rejected,
}

impl State {
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Opening,
        Self::Running,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
        Self::Rejected,
    ];

    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled | Self::Rejected)
    }

    /// Whether no flow is scheduled yet.
    pub fn has_not_begun(self) -> bool {
        matches!(self, Self::Queued | Self::Opening)
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Opening => "opening",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        }
    }
}

/// A submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// The number of the submission.
    pub number: u64,
    /// The name of the submission.
    pub name: String,
    /// The user who submitted it.
    pub user: String,
    /// The time of the submission.
    pub submitted: Timestamp,
    /// The state of the submission.
    pub state: State,
    /// The reason why the submission waits, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether the submission is held.
    pub held: bool,
    /// The priority in the queue.
    pub priority: u32,
    /// The flows. Before the start they are read from the file without task counts, and lists omit them.
    pub flows: Vec<Flow>,
    /// The first deadline of the flows. Omitted after the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The schedule and the time that this submission is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<Occurrence>,
    /// The number of the submission that it runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<u64>,
    /// The git commit of the flow file, as the client found it; with `+` if the file has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The missing file or pattern that keeps the submission from starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The time from which the flows could start: the submission was open and not held. After a restart of
    /// the service, this is the time at which the submission resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// The end of the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The latest prediction; after the end, the first one. Lists omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// The reason why there is no prediction. Lists omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpredicted: Option<String>,
    /// The time zone of its schedule, its deadlines by the clock and the dates in its parameters. Omitted if it is that
    /// of a machine without a named zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The name of its state directory below that of its schedule, if it is a time of a schedule that reads and writes
    /// separate paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_state: Option<String>,
    /// The idempotency key of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// The name of the schedule.
    pub recurrence: String,
    /// The scheduled time.
    pub at: Timestamp,
}

/// The states of a flow, for the description of the API.
fn flow_status() -> utoipa::openapi::schema::Object {
    utoipa::openapi::schema::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .description(Some("The state of a flow."))
        .enum_values(Some(FlowStatus::ALL.map(FlowStatus::name)))
        .build()
}

/// A flow of a submission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Flow {
    /// The name of the flow.
    pub flow: String,
    /// The state of the flow.
    #[schema(schema_with = flow_status)]
    pub state: FlowStatus,
    /// The release time: the flow may start from then on.
    pub release: Timestamp,
    /// The deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The weight of the flow in the objective.
    pub weight: f64,
    /// The number of tasks. 0 before the inputs are looked up.
    pub tasks: u64,
    /// The number of finished tasks.
    pub done: u64,
    /// The number of running tasks.
    pub running: u64,
    /// The number of failed attempts.
    pub failed_attempts: u64,
    /// The time at which the flow finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Timestamp>,
    /// The predicted completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Timestamp>,
    /// The 80 % prediction interval of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_between: Option<[Timestamp; 2]>,
    /// Whether the completion is unknown: a job never ran, and the flow file has no duration for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// Whether the flow was late, is late, or is predicted to be late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// The reason of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The reason why no more tasks start now, unless they only wait for slots. Examples: the flow is held or
    /// not released, an output of another flow is missing, no machine is up, or the user's limit of slots is
    /// reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The jobs. Lists omit them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

/// A job of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// The name of the job.
    pub job: String,
    /// The jobs that have to finish before this one starts.
    pub after: Vec<String>,
    /// The map tasks.
    pub maps: Phase,
    /// The reduce tasks.
    pub reduces: Phase,
    /// The number of failed attempts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The progress of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Phase {
    /// The number of tasks.
    pub tasks: u64,
    /// The number of finished tasks.
    pub done: u64,
    /// The number of running tasks.
    pub running: u64,
}

/// The prediction of a submission, and its impact on other submissions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// The time of the prediction.
    pub made: Timestamp,
    /// The predictions of the flows.
    pub flows: Vec<FlowPrediction>,
    /// Flows of other submissions that are predicted to miss their deadlines because of this submission.
    pub makes_late: Vec<DelayedFlow>,
    /// Changes with which the missed deadlines can be met.
    pub remedies: Vec<Remedy>,
}

impl Prediction {
    /// Whether a flow is predicted to miss its deadline.
    pub fn is_late(&self) -> bool {
        self.flows.iter().any(|flow| flow.holds == Some(false))
    }
}

/// The prediction of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowPrediction {
    /// The name of the flow.
    pub flow: String,
    /// The predicted completion. Omitted if it is unknown: a job never ran, and the flow file has no duration for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Timestamp>,
    /// The 80 % prediction interval of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[Timestamp; 2]>,
    /// The deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether the flow is predicted to meet its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// The chance of meeting the deadline, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// A flow that is late because of another submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DelayedFlow {
    /// The number of its submission.
    pub number: u64,
    /// The name of its submission.
    pub name: String,
    /// The name of the flow.
    pub flow: String,
    /// The deadline.
    pub deadline: Timestamp,
    /// The predicted completion without the other submission.
    pub without: Timestamp,
    /// The predicted completion with the other submission.
    pub with: Timestamp,
    /// The predicted lateness, seconds.
    pub late_by: f64,
}

/// A change with which a flow can meet its deadline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// A later deadline, at the end of the 80 % prediction interval, in whole seconds.
    Deadline {
        /// The name of the flow.
        flow: String,
        /// The proposed deadline.
        deadline: Timestamp,
    },
    /// A larger number of slots in total.
    Slots {
        /// The name of the flow.
        flow: String,
        /// The number of slots.
        slots: u64,
    },
    /// Hold other submissions until the flow has finished.
    Hold {
        /// The name of the flow.
        flow: String,
        /// The numbers of the submissions to hold.
        numbers: Vec<u64>,
    },
    /// No change of the other submissions helps: even alone on the cluster, the flow misses its deadline.
    Nothing {
        /// The name of the flow.
        flow: String,
        /// The predicted completion alone on the cluster.
        alone: Timestamp,
    },
}

/// A change to a submission, or to one of its flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The flow. The default is all flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// A new deadline in the future: a duration after the release, the first such time of day after it, or a
    /// date and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// A new weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// A new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// A recurring submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recurrence {
    /// The name of the schedule.
    pub name: String,
    /// The user who owns the schedule.
    pub user: String,
    /// The times of the submissions.
    pub schedule: Schedule,
    /// The rule if the previous submission has not finished.
    pub overlap: Overlap,
    /// Whether the schedule is paused.
    pub paused: bool,
    /// The latest time that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// The next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// The explanation why a flow waits or waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The explanation as text.
    pub text: String,
    /// The explanation as the JSON document of `explain`.
    pub document: serde_json::Value,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The value found and the value expected, in one or more lines.
    pub message: String,
}

/// The result of a successful command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// The result as text.
    pub message: String,
}

/// The identity of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    /// The name of the token, or of a user of this machine.
    pub name: String,
    /// The role of the client.
    pub role: Role,
}

/// The first event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamStart {
    /// Whether the stream continues the previous one without a gap. It does not after a restart of the
    /// service, or after a long interruption. Then the client has to request the state of the service again.
    pub complete: bool,
}

/// The health of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`. A service that is not healthy responds with a problem document.
    pub status: String,
}

/// Times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleTimes {
    /// The times, the earliest first.
    pub times: Vec<Timestamp>,
}

/// A page of submissions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submissions {
    /// The submissions of this page, the latest first.
    pub submissions: Vec<Submission>,
    /// The value of the parameter `before` for the next page. Omitted on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// All schedules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recurrences {
    /// The schedules, sorted by name.
    pub recurrences: Vec<Recurrence>,
}
