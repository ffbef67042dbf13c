//! Results of effects, and events of the engine.

use slackline::run::RunEvent;

use crate::Moment;
use crate::api;
use crate::state::forecasts::ForecastResult;

/// Results of effects and events of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum StateEvent {
    Opened(Opened),
    NotOpened {
        number: u64,
        /// The value found, and the value expected.
        problem: String,
        /// Whether a retry is useless.
        is_final: bool,
    },
    /// An event of a run.
    Run {
        number: u64,
        event: RunEvent,
    },
    /// Tasks of a flow take much longer or shorter than estimated.
    EstimatesOff {
        number: u64,
        flow: String,
        /// The difference, as text.
        message: String,
    },
    /// The engine has stopped a run: all its flows have ended, or it is retried later.
    Returned {
        number: u64,
        /// The reason why the run cannot continue. `None`: it has ended.
        stopped: Option<String>,
    },
    /// The first deadline of a queued submission, from its file.
    Read {
        number: u64,
        /// The first deadline of its flows.
        due: Option<Moment>,
    },
    /// The result of a check for the files that a submission waits for.
    Files {
        number: u64,
        /// The first missing file.
        missing: Option<String>,
    },
    Predicted(ForecastResult),
    Machines(Vec<api::Machine>),
    /// The policy's limits that keep flows from free slots.
    Limits(slackline::resident::Limits),
    /// A message about the machines.
    Machine(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub number: u64,
    /// The start of the run.
    pub started: Moment,
    pub flows: Vec<FlowFacts>,
    /// Flows that cannot be run, and the reason for each.
    pub unrunnable: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FlowFacts {
    pub flow: String,
    pub release: Moment,
    pub deadline: Option<Moment>,
    pub weight: f64,
    pub jobs: Vec<JobFacts>,
    /// The outputs of other flows of the submission that this flow reads, by flow and job. No task of the
    /// flow starts before all of them exist.
    pub reads: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFacts {
    /// The number of the job in [`RunEvent`].
    pub index: u32,
    /// The progress of the job so far.
    pub job: api::Job,
}
