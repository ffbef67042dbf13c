//! The end of an attempt, as its worker reports it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use slackline_model::Span;

use crate::base::error::TaskError;
use crate::process::spec::Outcome;

/// Bytes of each end of a long message in a report. Even if every byte needs six in JSON, the report is far
/// below the 1 MiB that an engine reads.
const QUOTE: usize = 32 << 10;

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Done(Outcome),
    Failed {
        /// The error, as text for the user; several lines if a command wrote to standard error.
        message: String,
        /// Whether another attempt would end in the same way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_final: bool,
        /// The directory of a committed map whose output a reduce found missing or damaged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<PathBuf>,
        /// The exit code of the command that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    },
}

impl Report {
    /// The report of an attempt.
    pub fn of(ended: Result<Outcome, TaskError>) -> Self {
        ended.map_or_else(|error| failure(&error), Self::Done)
    }

    /// A failed attempt, which may succeed if it is rerun.
    pub fn failed(message: String) -> Self {
        Self::Failed { message, is_final: false, lost: None, exit: None }
    }
}

/// The message for an attempt that was killed at its time limit.
pub fn too_long(limit: Span) -> String {
    format!("timed out after {limit} and was killed")
}

fn failure(error: &TaskError) -> Report {
    let (is_final, lost, exit) = (error.is_final(), error.lost_map(), error.exit());
    Report::Failed { message: short(&error.to_string()), is_final, lost, exit }
}

/// The beginning and the end of a long message.
fn short(message: &str) -> String {
    if message.len() <= 2 * QUOTE {
        return message.to_owned();
    }
    let [head, tail] = [&message.as_bytes()[..QUOTE], &message.as_bytes()[message.len() - QUOTE..]]
        .map(String::from_utf8_lossy);
    format!("{head} [... part left out ...] {tail}")
}
