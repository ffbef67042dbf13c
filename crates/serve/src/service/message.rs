//! Messages of the threads of a service to its event loop, and status lines for its operator.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::service::writer::WriteResult;
use crate::state::auth::Principal;
use crate::state::{Answer, Command, HealthProblem, Refusal, StateEvent};

/// Receives status lines for the operator.
pub type StatusCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// A command, with the channel of its answer.
pub struct CommandRequest {
    pub principal: Principal,
    pub command: Command,
    /// The receiver of the answer, which is sent once its records are on disk.
    pub answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// A message to the event loop.
pub(crate) enum Message {
    Command(CommandRequest),
    Event(StateEvent),
    /// A problem of the service itself; `None` when it is solved.
    Problem(HealthProblem, Option<String>),
    /// An event about the service: its kind and its message.
    Happened(&'static str, String),
    /// The writer has written its records, or failed.
    Written(WriteResult),
}
