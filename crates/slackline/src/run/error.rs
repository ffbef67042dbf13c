//! Why flows cannot be run.

use std::io;

use slackline_executor::run::error::EngineError;
use slackline_executor::store::log::LogError;
use slackline_judge::Violation;
use slackline_model::Invalid;
use slackline_model::names::unknown;
use slackline_trace::TraceError;

use crate::simulate::SimulateError;

/// Why a run cannot begin, be resumed or be reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The flow file, with places.
    #[error(transparent)]
    Document(#[from] TraceError),
    /// The same, of files that cannot be looked at because what has them does not answer now: the next time they may be.
    #[error(transparent)]
    Away(TraceError),
    /// A flow file without flows.
    #[error("{name}: found no flows, expected one or more")]
    NoFlows {
        /// The flow file.
        name: String,
    },
    /// A deadline.
    #[error(transparent)]
    Deadline(#[from] DeadlineError),
    /// The history.
    #[error(transparent)]
    History(#[from] LogError),
    /// Whatever the engine says.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What is left of the workload is none.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The judge refuses the schedule of what happened, which is written all the same.
    #[error(
        "internal error: the record of this run contradicts itself: {violation}; what its jobs wrote is not affected: the \
         outputs with _SUCCESS are complete. Please report this with the files journal.log, workload.json and \
         schedule.json in {state}"
    )]
    Infeasible {
        /// What is wrong with it.
        violation: Box<Violation>,
        /// The state directory.
        state: String,
    },
    /// There is no prediction: the judge refuses it, or the policy could not go on.
    #[error("the prediction: {0}")]
    Prediction(SimulateError),
    /// The policy could not go on; what is done stays done, and the run can be resumed.
    #[error("{policy}: {failure}")]
    Policy {
        /// The policy.
        policy: String,
        /// What it says.
        failure: String,
    },
    /// A document of the outcome cannot be written.
    #[error("{path}: cannot be written: {problem}")]
    File {
        /// The document.
        path: String,
        /// What the file system says.
        problem: io::Error,
    },
}

/// What is wrong with the deadlines of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadlineError {
    /// Two for one flow.
    #[error("deadline: found flow {flow:?} twice, expected once")]
    Twice {
        /// The flow.
        flow: String,
    },
    /// No such flow.
    #[error("deadline: {}", unknown("flow", .flow, .known))]
    Unknown {
        /// The flow.
        flow: String,
        /// The flows there are.
        known: Vec<String>,
    },
    /// A date and time beyond all calendars.
    #[error("deadline: flow {flow:?}: {what}")]
    When {
        /// The flow.
        flow: String,
        /// What was found and expected.
        what: String,
    },
}
