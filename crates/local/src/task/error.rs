//! What stops an attempt.

use std::io;
use std::path::{Path, PathBuf};

/// What stopped an attempt, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The system refused something.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An input file holds something that cannot be read.
    #[error("{}, at byte {offset}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Where the reader stood, in bytes of the (decompressed) text.
        offset: u64,
        /// What was wrong.
        source: io::Error,
    },
    /// An input that a job names is not there.
    #[error("input {pattern:?}: {problem}")]
    Missing {
        /// The file, directory or pattern as it was given.
        pattern: String,
        /// What was found instead.
        problem: String,
    },
    /// Map output or a prepared file is not what was written.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: String,
    },
    /// A job asks for something that there is not.
    #[error("{0}")]
    Job(String),
    /// A command failed.
    #[error("{role} {command:?}: {status}{}", said(stderr))]
    Command {
        /// `mapper`, `combiner` or `reducer`.
        role: &'static str,
        /// The command.
        command: String,
        /// How it ended: its exit status or the signal.
        status: String,
        /// The last lines of its standard error.
        stderr: String,
    },
}

impl TaskError {
    /// Whether another attempt would end in the same way.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Job(_))
            || matches!(self, Self::Command { status, .. } if status == "exit status: 127")
    }

    /// The directory of the committed map whose output a reduce found gone or damaged, if that is what stopped it.
    pub(crate) fn lost_map(&self) -> Option<PathBuf> {
        let (Self::File { path, .. } | Self::Damaged { path, .. }) = self else { return None };
        let is_output = matches!(path.file_name()?.to_str()?, "map.out" | "map.index");
        is_output.then(|| path.parent().map(Path::to_owned))?
    }
}

/// The last words of a command, if it had any.
fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error ends:\n{stderr}") }
}

/// Puts an error of the system into words: `map_err(at("cannot read", path))`.
pub(crate) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TaskError {
    move |source| TaskError::File { what, path: path.to_owned(), source }
}
