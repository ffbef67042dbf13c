//! The errors of runs.

use std::io;

use slackline_executor::run::error::EngineError;
use slackline_executor::store::log::LogError;
use slackline_judge::Violation;
use slackline_model::Invalid;
use slackline_model::names::unknown;
use slackline_trace::TraceError;

use crate::simulate::SimulateError;

/// The reason why a run cannot start, be resumed or be reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An error in the flow file, with its position.
    #[error(transparent)]
    Document(#[from] TraceError),
    /// An input cannot be read because its storage does not answer. A retry may succeed.
    #[error(transparent)]
    Away(TraceError),
    /// A flow file without flows.
    #[error("{name}: found no flows, expected one or more")]
    NoFlows {
        /// The flow file.
        name: String,
    },
    /// An invalid deadline.
    #[error(transparent)]
    Deadline(#[from] DeadlineError),
    /// An error of the history.
    #[error(transparent)]
    History(#[from] LogError),
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The remaining workload is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The executed schedule is invalid. It is written nevertheless.
    #[error(
        "internal error: the record of this run contradicts itself: {violation}; the outputs of its jobs are not \
         affected: those with _SUCCESS are complete. Please report this with the files journal.log, workload.json and \
         schedule.json in {state}"
    )]
    Infeasible {
        /// The violated constraint.
        violation: Box<Violation>,
        /// The state directory.
        state: String,
    },
    /// No prediction is available: it is invalid, or the policy could not continue.
    #[error("cannot predict the run: {0}")]
    Prediction(SimulateError),
    /// The policy could not continue. Finished work stays finished, and the run can be resumed.
    #[error("{policy}: {failure}")]
    Policy {
        /// The policy.
        policy: String,
        /// The error of the policy.
        failure: String,
    },
    /// A document of the outcome cannot be written.
    #[error("{path}: cannot be written: {problem}")]
    File {
        /// The document.
        path: String,
        /// The error of the file system.
        problem: io::Error,
    },
}

/// An error in the deadlines of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadlineError {
    /// Two deadlines for one flow.
    #[error("deadline: found flow {flow:?} twice, expected once")]
    Twice {
        /// The flow.
        flow: String,
    },
    /// An unknown flow.
    #[error("deadline: {}", unknown("flow", .flow, .known))]
    Unknown {
        /// The flow.
        flow: String,
        /// The known flows.
        known: Vec<String>,
    },
    /// A date and time outside the calendar.
    #[error("deadline: flow {flow:?}: {what}")]
    When {
        /// The flow.
        flow: String,
        /// The text that was found, and what was expected.
        what: String,
    },
}
