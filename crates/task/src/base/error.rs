//! The errors that stop an attempt.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// What stopped an attempt, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The system refused something.
    #[error("{what} {}: {source}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An input file holds something that cannot be read.
    #[error("{}, at byte {offset}: {source}", path.display())]
    Input {
        path: PathBuf,
        /// Where the reader stood, in bytes of the (decompressed) text.
        offset: u64,
        source: io::Error,
    },
    /// An input file has changed since the run began.
    #[error("{}: {found} since the run began, expected it as it was", path.display())]
    Changed {
        path: PathBuf,
        /// The change.
        found: &'static str,
    },
    /// An input file is of a format that cannot be read.
    #[error("{}: found {found}, expected plain text, gzip, zstd, bzip2, xz or lz4", path.display())]
    Format { path: PathBuf, found: &'static str },
    /// An input that a job names is not there.
    #[error("input {pattern:?}: {problem}")]
    Missing {
        /// The file, directory or pattern as it was given.
        pattern: String,
        /// The problem that was found.
        problem: String,
    },
    /// The committed output of a map is missing or damaged: the map must run again.
    #[error("{}: {problem}", directory.display())]
    LostMap {
        directory: PathBuf,
        /// Found and expected.
        problem: String,
    },
    /// A prepared file or a file of the attempt differs from the written one.
    #[error("{}: {problem}", path.display())]
    Damaged {
        path: PathBuf,
        /// Found and expected.
        problem: String,
    },
    /// A job asks for something that there is not.
    #[error("{0}")]
    Job(String),
    #[error("{role} {:?}: {status}{}{}", brief(command), limited(*limit), said(stderr))]
    Command {
        /// `mapper`, `combiner` or `reducer`.
        role: &'static str,
        command: String,
        /// How it ended: its exit status or the signal.
        status: String,
        /// The last lines of its standard error.
        stderr: String,
        /// Its exit code, if it was not killed.
        exit: Option<u8>,
        /// How much address space each of its processes was allowed, bytes, if that was limited for its job.
        limit: Option<u64>,
    },
    /// The output of a command is invalid.
    #[error("{role} {:?}: its output cannot be used: {source}", brief(command))]
    Said {
        /// `mapper`, `combiner` or `reducer`.
        role: &'static str,
        command: String,
        source: io::Error,
    },
}

/// How many characters of a command are said.
const COMMAND_MOST: usize = 80;

/// The exit code of a shell that finds no such command.
const NOT_FOUND: u8 = 127;

impl TaskError {
    /// A file has changed since the run began, or is missing.
    pub(crate) fn changed(path: &Path) -> Self {
        let found = if path.exists() { "changed" } else { "removed" };
        Self::Changed { path: path.to_owned(), found }
    }

    /// Whether another attempt would fail in the same way: a missing, changed or damaged input, a record that
    /// is too long, a job that cannot be done, a command that is not found.
    pub fn is_final(&self) -> bool {
        use io::ErrorKind::{ArgumentListTooLong, FileTooLarge, InvalidInput, NotFound, PermissionDenied};
        match self {
            Self::Changed { .. } | Self::Format { .. } | Self::Missing { .. } | Self::Job(_) => true,
            Self::File { what, source, .. } => {
                matches!(*what, CANNOT_READ | CANNOT_ENTER | CANNOT_START)
                    && matches!(
                        source.kind(),
                        InvalidInput | NotFound | PermissionDenied | ArgumentListTooLong
                    )
            }
            // An error of the system may pass; an error of a decoder repeats for the same bytes.
            Self::Input { source, .. } => source.raw_os_error().is_none(),
            // A program that does not get the memory it begins with ends in this way, too.
            Self::Command { exit, limit, stderr, .. } => {
                *exit == Some(NOT_FOUND) && (limit.is_none() || stderr.contains("not found"))
            }
            Self::Said { source, .. } => source.kind() == FileTooLarge,
            Self::LostMap { .. } | Self::Damaged { .. } => false,
        }
    }

    /// The directory of the committed map whose output a reduce found missing or damaged. No attempt of the
    /// reduce can fix this, only another one of the map.
    pub fn lost_map(&self) -> Option<PathBuf> {
        match self {
            Self::LostMap { directory, .. } => Some(directory.clone()),
            _ => None,
        }
    }

    /// The exit code of the command that failed.
    pub fn exit(&self) -> Option<u8> {
        match self {
            Self::Command { exit, .. } => *exit,
            _ => None,
        }
    }
}

/// The message where a file is read.
const CANNOT_READ: &str = "cannot read";
/// The message where the working directory of a command is entered.
pub(crate) const CANNOT_ENTER: &str = "cannot enter";
/// The message where a shell is started.
pub(crate) const CANNOT_START: &str = "cannot start";

/// The start of a command that identifies it: the reason for its failure comes after it, and is more
/// important.
fn brief(command: &str) -> Cow<'_, str> {
    match command.char_indices().nth(COMMAND_MOST) {
        Some((end, _)) => format!("{}…", &command[..end]).into(),
        None => command.into(),
    }
}

/// The limit of a command, as text.
fn limited(limit: Option<u64>) -> String {
    let limit = limit.map(|bytes| bytes.div_ceil(1 << 20));
    limit.map_or_else(String::new, |mib| {
        format!("; by the memory of its job each of its processes had at most {mib} MiB of address space (ulimit -v)")
    })
}

/// The last words of a command, if it had any.
fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error ends:\n{stderr}") }
}

/// Puts an error of the system into words: `map_err(at("cannot read", path))`.
pub(crate) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TaskError {
    move |source| TaskError::File { what, path: path.to_owned(), source }
}

/// Whether a file system error may pass without a change by the user: a disk is full, a file server does not
/// answer.
pub fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    let kind = error.kind();
    !matches!(kind, InvalidFilename | InvalidInput | NotADirectory | PermissionDenied | ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_long_command_failed_is_not_far_away() {
        let said = |command: &str| {
            let failed = TaskError::Command {
                role: "mapper",
                command: command.into(),
                status: "exit status: 1".into(),
                stderr: String::new(),
                exit: Some(1),
                limit: None,
            };
            failed.to_string()
        };
        assert_eq!(said("count é"), "mapper \"count é\": exit status: 1");
        let long = "é".repeat(COMMAND_MOST);
        assert_eq!(said(&long), format!("mapper \"{long}\": exit status: 1"));
        assert_eq!(said(&format!("{long}!")), format!("mapper \"{long}…\": exit status: 1"));
    }

    #[test]
    fn a_command_that_may_lack_memory_says_what_it_was_allowed_and_is_tried_again() {
        let ended = |limit, stderr: &str| TaskError::Command {
            role: "mapper",
            command: "count".into(),
            status: "exit status: 127".into(),
            stderr: stderr.into(),
            exit: Some(NOT_FOUND),
            limit,
        };
        let poor = ended(Some(20 << 20), "libc.so.6: failed to map segment");
        assert!(!poor.is_final() && poor.to_string().contains("at most 20 MiB of address space"), "{poor}");
        assert!(ended(Some(20 << 20), "sh: 1: count: not found").is_final());
        let free = ended(None, "libc.so.6: failed to map segment");
        assert!(free.is_final() && !free.to_string().contains("MiB"), "{free}");
    }
}
