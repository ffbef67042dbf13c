//! The documents about the service: machines, load, attempts, events and alerts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use slackline::run::AttemptProgress;
use utoipa::ToSchema;

/// The service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Service {
    /// The version of the program.
    pub version: String,
    /// The first start of the service.
    pub began: Timestamp,
    /// The start of this process.
    pub started: Timestamp,
    /// The current time of the service.
    pub now: Timestamp,
    /// The name of the engine.
    pub engine: String,
    /// The scheduling policy.
    pub policy: String,
    /// The objective that the policy minimizes, such as `sum of tardiness`.
    #[serde(default)]
    pub objective: String,
    /// The number of slots of all machines that are up.
    pub slots: u64,
    /// What the tasks of one user may hold at a time, such as `slots=8`. Omitted without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<String>,
    /// The machines.
    #[serde(default)]
    pub machines: Vec<Machine>,
    /// The number of running tasks.
    pub running: u64,
    /// The number of waiting tasks of submissions in the state `live`.
    pub waiting: u64,
    /// The number of submissions by state. Finished submissions count while they are remembered.
    pub submissions: BTreeMap<String, u64>,
    /// Whether the service starts no new submissions.
    pub draining: bool,
    /// The accuracy of the predictions.
    pub calibration: Calibration,
    /// A problem of the service itself, such as a full disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A machine of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// The name of the machine.
    pub machine: String,
    /// The number of slots.
    pub slots: u64,
    /// Whether the machine is up.
    pub up: bool,
}

/// The accuracy of predictions: the first prediction of each finished flow against its completion.
/// Flows whose completion was unknown are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Calibration {
    /// The number of predicted flows.
    pub flows: u64,
    /// The fraction of flows that finished inside their 80 % prediction interval.
    pub inside: f64,
    /// The mean absolute error of completions, relative to the time from submission to completion.
    pub error: f64,
    /// The mean signed error, relative as in `error`. Negative: earlier than predicted.
    pub bias: f64,
    /// The fraction of flows with a deadline for which the prediction was right whether they meet it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<f64>,
    /// The number of flows that could not be predicted, because a job had never run.
    #[serde(default)]
    pub unknown: u64,
}

/// The numbers of running and waiting tasks over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Load {
    /// The points, the earliest first.
    pub points: Vec<LoadPoint>,
}

/// The load at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadPoint {
    /// The time of the point.
    pub at: Timestamp,
    /// The mean number of running tasks since the previous point.
    pub running: f64,
    /// The number of waiting tasks of submissions in the state `live`.
    pub waiting: u64,
    /// The number of submissions in the queue.
    pub queued: u64,
}

/// Recently ended attempts, and running attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// The attempts, in the order of their starts. Running attempts have no end. Some engines do not report
    /// the slots of running attempts; then only ended attempts are listed.
    pub attempts: Vec<Attempt>,
}

/// An attempt of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// The number of the submission.
    pub number: u64,
    /// The name of the flow.
    pub flow: String,
    /// The name of the job.
    pub job: String,
    /// The phase: `map` or `reduce`.
    pub phase: String,
    /// The number of the task in its phase.
    pub task: u32,
    /// The number of the slot, counted across all machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// The start of the attempt.
    pub start: Timestamp,
    /// The end of the attempt. Omitted while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// The outcome: `done`, `failed`, `killed` or `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The progress of a running attempt: `waits` is `true` while it waits for memory or processors that other
    /// tasks on its machine have.
    #[serde(default, flatten)]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub progress: AttemptProgress,
}

/// An event of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The number of the event. A stream can continue after a number.
    pub id: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind: `submitted`, `opened`, `waits`, `ended`, `done`, `failed`, `cancelled`, `rejected`,
    /// `skipped`, `predicted`, `changed`, `likely_late`, `likely_in_time`, `late`, `estimates_off`,
    /// `alert_failed`, `not_written`, `recurrence`, `service`, `clock`.
    pub kind: String,
    /// The number of the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The name of the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The event as text.
    pub message: String,
}

/// An alert that may need an action of a user or operator. Each cause has at most one alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// The kind of the alert.
    pub kind: AlertKind,
    /// The time of the alert.
    pub at: Timestamp,
    /// The number of the submission.
    pub number: u64,
    /// The name of the submission.
    pub name: String,
    /// The name of the flow. Empty if the alert is about the whole submission.
    pub flow: String,
    /// The user who owns the submission.
    pub user: String,
    /// The alert as text.
    pub message: String,
}

/// The latest alerts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alerts {
    /// The alerts, the latest first.
    pub alerts: Vec<Alert>,
}

/// The kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A flow is predicted to miss its deadline.
    LikelyLate,
    /// A deadline has passed.
    Late,
    /// A flow has failed.
    Failed,
    /// Tasks take much longer or shorter than estimated.
    EstimatesOff,
    /// A submission has finished. Sent only if it is asked for, and not kept.
    Finished,
}

impl AlertKind {
    pub const ALL: [Self; 5] =
        [Self::LikelyLate, Self::Late, Self::Failed, Self::EstimatesOff, Self::Finished];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::LikelyLate => "likely_late",
            Self::Late => "late",
            Self::Failed => "failed",
            Self::EstimatesOff => "estimates_off",
            Self::Finished => "finished",
        }
    }
}
