//! Records: the state of the service is the sequence of its records. A record is on disk before it is
//! acknowledged or acted on.
//!
//! Records are lines of JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Moment;
use crate::api::{self, AlertKind, Calibration, CatchUp, Overlap, State};

/// A submission and its user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionSpec {
    /// The request, as the client sent it.
    pub submit: api::Submit,
    pub name: String,
    pub user: String,
    /// The release time: the time of the submission, or the time of its schedule.
    pub since: Moment,
    /// The name of the schedule, if a schedule submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<String>,
    /// The first deadline of its flows, if its file was read and has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub name: String,
    pub user: String,
    /// The submission, with its schedule.
    pub submit: api::Submit,
    /// All times up to this one are handled.
    pub handled: Moment,
    /// The latest time that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Moment>,
    #[serde(default)]
    pub paused: bool,
    /// After the clock was set back: the former value of `handled`. Times up to it are not submitted again
    /// when the clock is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Moment>,
}

impl ScheduleRecord {
    /// The rule for an occurrence whose predecessor has not finished.
    pub fn overlap(&self) -> Overlap {
        self.submit.overlap
    }

    /// The rule for missed times.
    pub fn catch_up(&self) -> CatchUp {
        self.submit.schedule.as_ref().map_or(CatchUp::None, |schedule| schedule.catch_up)
    }
}

/// Changes of a flow. `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

impl FlowChange {
    /// The changes of a flow: its own first, then those of the whole submission.
    pub fn of(changes: &Changes, flow: &str) -> Self {
        let [all, own] =
            [None, Some(flow.to_owned())].map(|key| changes.get(&key).copied().unwrap_or_default());
        Self {
            deadline: own.deadline.or(all.deadline),
            weight: own.weight.or(all.weight),
            priority: own.priority.or(all.priority),
        }
    }
}

/// The first prediction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPrediction {
    /// The predicted completion.
    pub completion: Moment,
    /// The 80 % prediction interval of the completion. `None` for a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[Moment; 2]>,
    /// Whether the prediction is a guess. Earlier versions did not store this; their predictions without an
    /// interval are guesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<bool>,
    /// The time of the prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    /// The predicted chance of meeting the deadline, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionEnd {
    pub number: u64,
    pub at: Moment,
    pub state: State,
    /// The reason, unless all flows finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub flows: Vec<api::Flow>,
    /// Its prediction, and its impact on others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<api::Prediction>,
    /// The time from which its flows could start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<jiff::Timestamp>,
    /// The end by the age clock, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Moment>,
}

/// Decayed sums of the prediction errors. Guesses are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Flows with a prediction.
    pub flows: f64,
    /// Flows with a prediction interval. This equals `flows`, except in sums of earlier versions, which
    /// counted guesses as flows.
    pub intervals: f64,
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
    /// Flows whose completion was a guess, because the durations of their tasks were unknown.
    #[serde(default)]
    pub guesses: f64,
    /// The sum of absolute errors of guesses, relative as in `error`.
    #[serde(default)]
    pub guess_error: f64,
}

impl StoredPrediction {
    /// Whether the prediction was a guess, because the durations of the flow's tasks were unknown.
    pub fn is_guess(&self) -> bool {
        self.guess.unwrap_or(self.between.is_none())
    }
}

impl Scores {
    /// The decay of the sums per finished flow: the latest 2,000 flows have 86 % of the weight.
    const KEPT: f64 = 0.999;

    /// Adds the prediction and the completion of a finished flow.
    pub fn add(&mut self, said: StoredPrediction, submitted: Moment, deadline: Option<Moment>, done: Moment) {
        let took = (done.saturating_sub(submitted) as f64).max(1.0);
        let later = (done as f64 - said.completion as f64) / took;
        if said.is_guess() {
            self.guesses = self.guesses * Self::KEPT + 1.0;
            self.guess_error = self.guess_error * Self::KEPT + later.abs();
            return;
        }
        // The intervals could not be simulated. This error is reported where it happens.
        let Some([least, most]) = said.between else { return };
        let Self { flows, intervals, inside, error, bias, deadlines, right, .. } = self;
        for sum in [&mut *flows, intervals, inside, error, bias, deadlines, right] {
            *sum *= Self::KEPT;
        }
        *flows += 1.0;
        *intervals += 1.0;
        *inside += f64::from(u8::from((least..=most).contains(&done)));
        *error += later.abs();
        *bias += later;
        if let Some(deadline) = deadline {
            *deadlines += 1.0;
            *right += f64::from(u8::from((said.completion <= deadline) == (done <= deadline)));
        }
    }

    /// Converts sums of an earlier version, which counted guesses as flows: moves that number of flows, with
    /// their share of the sums, to the guesses.
    #[must_use]
    pub fn apart(self) -> Self {
        if self.intervals >= self.flows {
            return self;
        }
        let share = self.intervals / self.flows;
        let Self { flows, intervals, inside, error, bias, deadlines, right, guesses, guess_error } = self;
        Self {
            flows: intervals,
            intervals,
            inside,
            error: error * share,
            bias: bias * share,
            deadlines: deadlines * share,
            right: right * share,
            guesses: guesses + (flows - intervals),
            guess_error: guess_error + error * (1.0 - share),
        }
    }

    /// The mean errors.
    pub fn calibration(&self) -> Calibration {
        let mean = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Calibration {
            flows: self.flows.round() as u64,
            inside: mean(self.inside, self.intervals),
            error: mean(self.error, self.flows),
            bias: mean(self.bias, self.flows),
            deadlines: (self.deadlines > 0.0).then(|| mean(self.right, self.deadlines)),
            guesses: self.guesses.round() as u64,
            guess_error: mean(self.guess_error, self.guesses),
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
    Began(Moment),
    /// Sums and counters whose source records have been removed.
    Sums {
        /// The number of the next submission.
        next: u64,
        scores: Scores,
    },
    /// A submission was accepted. If a schedule submitted it, its time is handled.
    Submitted {
        number: u64,
        at: Moment,
        wanted: Box<SubmissionSpec>,
    },
    /// A schedule was added, replaced or changed.
    Recurs(Box<ScheduleRecord>),
    /// A schedule was removed.
    RecursNoMore(String),
    /// Times of a schedule were skipped.
    LeftOut {
        recurrence: String,
        /// The last skipped time.
        until: Moment,
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
        flow: String,
        said: StoredPrediction,
    },
    /// An alert was sent.
    Alerted {
        number: u64,
        flow: String,
        kind: AlertKind,
        /// The time and the message. `None` if the alert is not shown any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<(Moment, String)>,
    },
    /// An alert that is shown.
    Alert(Box<api::Alert>),
    Ended(Box<SubmissionEnd>),
    /// A finished submission that is remembered.
    Remembered(Box<api::Submission>),
    /// The same after the clock was wrong, with its end by the age clock.
    RememberedSince(Moment, Box<api::Submission>),
    /// A reading of the age clock.
    Aged(Moment),
    /// Whether the service starts no new submissions.
    Draining(bool),
}

/// Changes by flow. The key `None` is the whole submission.
pub type Changes = BTreeMap<Option<String>, FlowChange>;
