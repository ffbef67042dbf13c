//! Records: the state of the service is the sequence of its records. A record is on disk before it is
//! acknowledged or acted on.
//!
//! Records are lines of JSON.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use slackline_model::Draft;
use slackline_model::WallTime;

use crate::api::{self, AlertKind, Calibration, CatchUp, State};
use crate::wall_time;

/// A submission and its user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionSpec {
    /// The request, as the client sent it.
    pub submit: api::Submit,
    pub name: String,
    pub user: String,
    /// The release time: the time of the submission, or the time of its schedule.
    pub since: WallTime,
    /// The name of the schedule, if a schedule submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<String>,
    /// Whether all its jobs run, also those that an earlier run has done: it is a run of a schedule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_all: bool,
    /// The parameters whose values distinguish its paths from those of other times of its schedule. Empty: they share
    /// paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_by: Vec<String>,
    /// The submission that it repeats, and which of its jobs run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<(u64, Rerun)>,
    /// The first deadline of its flows, if its file was read and has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<WallTime>,
    /// Its flow file, once it is parsed. Times count from `since`.
    #[serde(skip)]
    pub(crate) draft: OnceLock<Arc<Draft>>,
}

impl SubmissionSpec {
    /// A submission of a user, whose file has not been read.
    pub(crate) fn new(submit: api::Submit, name: String, user: String, since: WallTime) -> Self {
        let (recurrence, rerun, due, draft) = (None, None, None, OnceLock::new());
        Self { submit, name, user, since, recurrence, runs_all: false, own_by: Vec::new(), rerun, due, draft }
    }

    /// Whether it waits for files: patterns or its inputs.
    pub fn awaits_files(&self) -> bool {
        self.submit.when_inputs || !self.submit.when.is_empty()
    }

    /// The idempotency key. The service submits the occurrences of a schedule once, so they need none.
    pub fn key(&self) -> Option<&String> {
        self.submit.key.as_ref().filter(|_| self.recurrence.is_none())
    }
}

/// Which jobs of a submission run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    All,
    /// Those that have failed or have not run.
    Failed,
    /// This one, and those that depend on it.
    From(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub name: String,
    pub user: String,
    /// The submission, with its schedule.
    pub submit: api::Submit,
    /// All times up to this one are handled.
    pub handled: WallTime,
    /// The latest time that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<WallTime>,
    #[serde(default)]
    pub paused: bool,
    /// As in [`SubmissionSpec`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_by: Vec<String>,
    /// After the clock was set back: the former value of `handled`. Times up to it are not submitted again
    /// when the clock is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<WallTime>,
}

impl ScheduleRecord {
    /// The rule for missed times.
    pub fn catch_up(&self) -> CatchUp {
        self.submit.schedule.as_ref().map_or(CatchUp::None, |schedule| schedule.catch_up)
    }
}

/// Changes of a flow. `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<WallTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

impl FlowChange {
    /// These changes, and those of `before` that they leave.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self {
            deadline: self.deadline.or(before.deadline),
            weight: self.weight.or(before.weight),
            priority: self.priority.or(before.priority),
        }
    }

    /// The changes of a flow: its own first, then those of the whole submission.
    pub fn of(changes: &Changes, flow: &str) -> Self {
        let [all, own] =
            [None, Some(flow.to_owned())].map(|key| changes.get(&key).copied().unwrap_or_default());
        own.or(all)
    }
}

/// Decayed sums of the prediction errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Flows with a prediction interval.
    pub flows: f64,
    /// Flows that finished inside their interval.
    pub inside: f64,
    /// The sum of absolute errors of completions, relative to the time from submission to completion.
    pub error: f64,
    /// The sum of signed errors, relative as in `error`. Positive: later than predicted.
    pub bias: f64,
    /// Flows with deadlines.
    pub deadlines: f64,
    /// Flows for which the prediction was right whether they meet their deadline.
    pub right: f64,
    /// Flows whose completion was unknown, because a job had never run.
    #[serde(alias = "guesses")]
    pub unknown: f64,
}

impl Scores {
    /// The decay of the sums per finished flow: the latest 2,000 flows have 86 % of the weight.
    const KEPT: f64 = 0.999;

    /// Adds the prediction and the completion of a finished flow.
    pub fn add(
        &mut self,
        first: &api::FlowPrediction,
        submitted: WallTime,
        deadline: Option<WallTime>,
        done: WallTime,
    ) {
        let Some(completion) = first.completion.map(wall_time) else {
            self.unknown = self.unknown * Self::KEPT + 1.0;
            return;
        };
        let took = (done.since(submitted) as f64).max(1.0);
        let later = (done.0 as f64 - completion.0 as f64) / took;
        // The intervals could not be simulated. This error is reported where it happens.
        let Some([least, most]) = first.between.map(|between| between.map(wall_time)) else { return };
        let Self { flows, inside, error, bias, deadlines, right, .. } = self;
        for sum in [&mut *flows, inside, error, bias, deadlines, right] {
            *sum *= Self::KEPT;
        }
        *flows += 1.0;
        *inside += f64::from(u8::from((least..=most).contains(&done)));
        *error += later.abs();
        *bias += later;
        if let Some(deadline) = deadline {
            *deadlines += 1.0;
            *right += f64::from(u8::from((completion <= deadline) == (done <= deadline)));
        }
    }

    /// The mean errors.
    pub fn calibration(&self) -> Calibration {
        let mean = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Calibration {
            flows: self.flows.round() as u64,
            inside: mean(self.inside, self.flows),
            error: mean(self.error, self.flows),
            bias: mean(self.bias, self.flows),
            deadlines: (self.deadlines > 0.0).then(|| mean(self.right, self.deadlines)),
            unknown: self.unknown.round() as u64,
        }
    }
}

/// Why a submission or one of its flows was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    User,
    /// A later submission has its name.
    ReplacedBy(u64),
    /// It asked to be rejected if it would be late: why it counts as late.
    WouldBeLate(String),
}

impl CancelReason {
    /// The state in which it ends a submission.
    pub fn state(&self) -> State {
        if matches!(self, Self::WouldBeLate(_)) { State::Rejected } else { State::Cancelled }
    }

    /// For people; `None` where a user cancelled it, who knows.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::User => None,
            Self::ReplacedBy(number) => Some(format!("replaced by {number}")),
            Self::WouldBeLate(why) => Some(why.clone()),
        }
    }
}

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first start of the service. The time of its engine starts here.
    Began(WallTime),
    /// Sums and counters whose source records have been removed.
    Sums {
        /// The number of the next submission.
        next: u64,
        scores: Scores,
    },
    /// A submission was accepted. If a schedule submitted it, its time is handled.
    Submitted { number: u64, at: WallTime, wanted: Box<SubmissionSpec> },
    /// A schedule was added, replaced or changed.
    Recurs(Box<ScheduleRecord>),
    /// A schedule was removed.
    RecursNoMore(String),
    /// Times of a schedule were skipped.
    LeftOut {
        recurrence: String,
        /// The last skipped time.
        until: WallTime,
    },
    /// A submission or one flow was held or resumed.
    Held {
        number: u64,
        /// The flow. `None`: the whole submission.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        held: bool,
    },
    /// A deadline, weight or priority was changed.
    Changed {
        number: u64,
        /// The flow. `None`: the whole submission.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        changed: FlowChange,
    },
    /// A submission or one flow was cancelled.
    Cancelled {
        number: u64,
        /// The flow. `None`: the whole submission.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        reason: CancelReason,
    },
    /// A submission with `IfLate::Reject` was accepted.
    LetIn(u64),
    /// The first prediction of a flow.
    Predicted {
        number: u64,
        /// The time of the prediction.
        made: WallTime,
        first: api::FlowPrediction,
    },
    /// An alert was sent. It is shown while it is remembered.
    Alert(Box<api::Alert>),
    /// The same cause has no second alert.
    Alerted { number: u64, flow: String, kind: AlertKind },
    /// A finished submission that is remembered.
    Ended {
        /// The end by the age clock, if that differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        age: Option<WallTime>,
        ended: Box<api::Submission>,
        /// The submission, to run it again, unless an earlier record has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wanted: Option<Box<SubmissionSpec>>,
    },
    /// A reading of the age clock.
    Aged(WallTime),
    /// Whether the service starts no new submissions.
    Draining(bool),
}

/// Changes by flow. The key `None` is the whole submission.
pub type Changes = BTreeMap<Option<String>, FlowChange>;
