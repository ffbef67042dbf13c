//! The errors that stop an attempt.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// The error that stopped an attempt, with its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// An error of the system.
    #[error("{what} {}: {source}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An input file has content that cannot be read.
    #[error("{}, at byte {offset}: {source}", path.display())]
    Input {
        path: PathBuf,
        /// The position of the reader, in bytes of the (decompressed) text.
        offset: u64,
        source: io::Error,
    },
    /// An input file has changed since the run began.
    #[error("{}: {found} since the run began", path.display())]
    Changed {
        path: PathBuf,
        /// The change.
        found: &'static str,
    },
    /// An input file is of a format that cannot be read.
    #[error("{}: found {found}, expected plain text, gzip, zstd, bzip2, xz or lz4", path.display())]
    Format { path: PathBuf, found: &'static str },
    /// An input of a job is missing.
    #[error("input {pattern:?}: {problem}")]
    Missing {
        /// The file, directory or pattern in the job.
        pattern: String,
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
    /// A job refers to an unknown program, argument or field.
    #[error("{0}")]
    Job(String),
    #[error("{role} {:?}: {status}{}{}", brief(command), limited(*limit), said(stderr))]
    Command {
        /// `mapper`, `combiner` or `reducer`.
        role: &'static str,
        command: String,
        /// Its end: the exit status or the signal.
        status: String,
        /// The last lines of its standard error.
        stderr: String,
        /// Its exit code, if it was not killed.
        exit: Option<u8>,
        /// The limit on the address space of each of its processes, bytes, if its job has one.
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

/// Most characters of a command in a message.
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
    /// is too long, a job that cannot run, a command that is not found.
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
            // A program that does not get memory for its start also ends in this way.
            Self::Command { exit, limit, stderr, .. } => {
                *exit == Some(NOT_FOUND) && (limit.is_none() || stderr.contains("not found"))
            }
            Self::Said { source, .. } => source.kind() == FileTooLarge,
            Self::LostMap { .. } | Self::Damaged { .. } => false,
        }
    }

    /// The directory of the committed map whose output a reduce found missing or damaged. Only another
    /// attempt of the map, not of the reduce, can fix this.
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

/// The message for a file that cannot be read.
const CANNOT_READ: &str = "cannot read";
/// The message for the working directory of a command.
pub(crate) const CANNOT_ENTER: &str = "cannot enter";
/// The message for a shell that does not start.
pub(crate) const CANNOT_START: &str = "cannot start";

/// The start of a command, which identifies it: the reason for its failure comes after it, and is more
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
        format!(
            "; the memory of its job limits each process to at most {mib} MiB of address space (ulimit -v)"
        )
    })
}

/// The last lines of a command, if it wrote any.
fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error ends:\n{stderr}") }
}

/// Converts an error of the system to a message: `map_err(at("cannot read", path))`.
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
