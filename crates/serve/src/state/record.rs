//! Records: the state of the service is the sequence of its records. A record is on disk before it is
//! acknowledged or acted on.
//!
//! Records are lines of JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Moment;
use crate::api::{self, AlertKind, Calibration, CatchUp, Overlap, State};

/// What is submitted, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionSpec {
    /// As it was sent.
    pub submit: api::Submit,
    pub name: String,
    pub user: String,
    /// When it begins to count: when it was submitted, or its time, of something that recurs.
    pub since: Moment,
    /// Of something that recurs: its name.
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
    /// What is submitted, with a schedule.
    pub submit: api::Submit,
    /// Times up to this one are done with.
    pub handled: Moment,
    /// When it was submitted the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Moment>,
    /// Whether it is paused.
    #[serde(default)]
    pub paused: bool,
    /// Where the clock was set back: the time up to which times were done with before. None comes again when
    /// the clock is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Moment>,
}

impl ScheduleRecord {
    /// What is done when one of them is not over at the next.
    pub fn overlap(&self) -> Overlap {
        self.submit.overlap
    }

    /// What is done about times that were missed.
    pub fn catch_up(&self) -> CatchUp {
        self.submit.schedule.as_ref().map_or(CatchUp::None, |schedule| schedule.catch_up)
    }
}

/// What was changed of a flow. What is none stays as it is.
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
    /// The changes of a flow: its own, else those of the whole submission.
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

/// What was said of a flow when it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPrediction {
    /// When it is going to be done.
    pub completion: Moment,
    /// Between which moments eight of ten courses end it; none of a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[Moment; 2]>,
    /// Whether that is a guess; earlier versions, which say nothing of it, gave all others an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<bool>,
    /// When that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    /// In how many courses of a hundred that would hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// The end of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionEnd {
    pub number: u64,
    pub at: Moment,
    pub state: State,
    /// Why, unless it finished well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub flows: Vec<api::Flow>,
    /// Its prediction, and its effect on others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<api::Prediction>,
    /// Since when its flows could start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<jiff::Timestamp>,
    /// The end by the age clock, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Moment>,
}

/// Sums of how good predictions have been, and guesses, which are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Flows of which something was predicted.
    pub flows: f64,
    /// As many, which all have an interval, and those of them that were done in it; in sums of an earlier
    /// version, which counted guesses as flows, there are fewer.
    pub intervals: f64,
    /// See [`Scores::intervals`].
    pub inside: f64,
    /// How far off completions were, as parts of the time from submission to completion.
    pub error: f64,
    /// How much later they were, as such parts.
    pub bias: f64,
    /// Flows with deadlines, and those of which it was said rightly whether it holds.
    pub deadlines: f64,
    /// See [`Scores::deadlines`].
    pub right: f64,
    /// Flows whose completion was guessed, as nothing was known of how long their tasks take.
    #[serde(default)]
    pub guesses: f64,
    /// How far off guesses were, as such parts.
    #[serde(default)]
    pub guess_error: f64,
}

impl StoredPrediction {
    /// Whether it was a guess, as it was not known how long the tasks of the flow take.
    pub fn is_guess(&self) -> bool {
        self.guess.unwrap_or(self.between.is_none())
    }
}

impl Scores {
    /// As flows grow old they count less, so that some two thousand of them make the figures.
    const KEPT: f64 = 0.999;

    /// Takes in a flow that is done: what was said of it, and what came.
    pub fn add(&mut self, said: StoredPrediction, submitted: Moment, deadline: Option<Moment>, done: Moment) {
        let took = (done.saturating_sub(submitted) as f64).max(1.0);
        let later = (done as f64 - said.completion as f64) / took;
        if said.is_guess() {
            self.guesses = self.guesses * Self::KEPT + 1.0;
            self.guess_error = self.guess_error * Self::KEPT + later.abs();
            return;
        }
        // Without an interval the courses could not be simulated, which is told where it happens.
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

    /// The same of sums that an earlier version wrote, where guesses were among the flows: as many are taken
    /// out as there were, with their share of what was summed up.
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

    /// What they amount to.
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

/// One thing that is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The service was begun: its time starts here.
    Began(Moment),
    /// Sums and counters, where what they are from is not written down any more.
    Sums {
        /// The number of the next submission.
        next: u64,
        /// How good predictions have been.
        scores: Scores,
    },
    /// Something was submitted. Of something that recurs its time is done with.
    Submitted { number: u64, at: Moment, wanted: Box<SubmissionSpec> },
    /// Something recurs from now on, or in another way.
    Recurs(Box<ScheduleRecord>),
    /// Something recurs no more.
    RecursNoMore(String),
    /// Times of something that recurs were left out.
    LeftOut {
        recurrence: String,
        /// Up to this one.
        until: Moment,
    },
    /// A submission, or a flow of it, is held or let go.
    Held {
        number: u64,
        /// The flow; all of them if none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        /// Whether it is held.
        held: bool,
    },
    /// Something of a submission, or of a flow of it, is different.
    Changed {
        number: u64,
        /// The flow; all of them if none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        changed: FlowChange,
    },
    /// A submission, or a flow of it, is not to go on.
    Cancelled {
        number: u64,
        /// The flow; all of them if none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        /// Why, if it was not asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A submission that was to be predicted first may begin.
    LetIn(u64),
    /// What was said of a flow when it was submitted.
    Predicted { number: u64, flow: String, said: StoredPrediction },
    /// Somebody was told of something.
    Alerted {
        number: u64,
        flow: String,
        kind: AlertKind,
        /// When, and what was said; what is not shown any more is written down without them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<(Moment, String)>,
    },
    /// An alert that is shown.
    Alert(Box<api::Alert>),
    /// A submission ended.
    Ended(Box<SubmissionEnd>),
    /// A submission that is over and remembered.
    Remembered(Box<api::Submission>),
    /// The same where the clock was wrong: when it ended by the age clock.
    RememberedSince(Moment, Box<api::Submission>),
    /// The age clock of the service showed this.
    Aged(Moment),
    /// Whether nothing new begins.
    Draining(bool),
}

/// What stands in another way than the document says, by flow; those of all flows by none.
pub type Changes = BTreeMap<Option<String>, FlowChange>;
