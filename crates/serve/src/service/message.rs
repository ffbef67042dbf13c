//! Messages of the threads of a service to its event loop, and status lines for its operator.

use std::sync::Arc;

use slackline_model::WallTime;
use tokio::sync::oneshot;

use crate::state::auth::Principal;
use crate::state::record::Record;
use crate::state::{Answer, Command, HealthProblem, Refusal, ServiceState, StateEvent};

/// Receives status lines for the operator.
pub type StatusCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Receives the answer to a command, once its records are on disk.
pub(crate) type AnswerSender = oneshot::Sender<Result<Answer, Refusal>>;

/// A query of the state, which sends its own answer.
pub(crate) type Query = Box<dyn FnOnce(&ServiceState, WallTime) + Send>;

/// Sends events to the state.
pub type Tell = Arc<dyn Fn(StateEvent) + Send + Sync>;

pub(crate) struct WriteResult {
    /// The records that were to be appended.
    pub(crate) records: Vec<Record>,
    /// The error, or whether most of the log is obsolete.
    pub(crate) outcome: Result<bool, String>,
}

/// A message to the event loop.
pub(crate) enum Message {
    Command(Principal, Command, AnswerSender),
    Query(Query),
    Event(StateEvent),
    /// A problem of the service itself; `None` when it is solved.
    Problem(HealthProblem, Option<String>),
    /// An event about the service: its kind and its message.
    Happened(&'static str, String),
    /// The writer has written its records, or failed.
    Written(WriteResult),
}
