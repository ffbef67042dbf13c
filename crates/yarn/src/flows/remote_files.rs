//! Access to any file system of Hadoop, through the submitter.

use std::error::Error;
use std::io;
use std::path::Path;

use crate::submitter::{Entry, Submitter, SubmitterError};

/// A file system. Paths are URIs.
pub(super) trait FileSystem: Send + Sync {
    /// A file or directory, if it exists.
    fn stat(&self, path: &str) -> io::Result<Option<Entry>>;

    /// The content of a directory, or the matches of a pattern.
    fn list(&self, pattern: &str) -> io::Result<Vec<Entry>>;

    fn read(&self, path: &str, length: u64) -> io::Result<Vec<u8>>;

    /// Makes a directory and its parents.
    fn make_directory(&self, path: &str) -> io::Result<()>;

    /// Writes a small file.
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Writes a copy of a local file.
    fn upload(&self, path: &str, local: &Path) -> io::Result<()>;

    /// Moves a file or directory to a free path.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file or directory with its content.
    fn delete(&self, path: &str) -> io::Result<()>;
}

impl FileSystem for Submitter {
    fn stat(&self, path: &str) -> io::Result<Option<Entry>> {
        Submitter::stat(self, path).map_err(io_error(path))
    }

    fn list(&self, pattern: &str) -> io::Result<Vec<Entry>> {
        Submitter::list(self, pattern).map_err(io_error(pattern))
    }

    fn read(&self, path: &str, length: u64) -> io::Result<Vec<u8>> {
        Submitter::read(self, path, 0, length).map_err(io_error(path))
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        Submitter::mkdirs(self, path).map_err(io_error(path))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        Submitter::write(self, path, bytes).map_err(io_error(path))
    }

    fn upload(&self, path: &str, local: &Path) -> io::Result<()> {
        Submitter::upload(self, path, local).map_err(io_error(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Submitter::rename(self, from, to).map_err(io_error(to))
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        Submitter::delete(self, path).map_err(io_error(path))
    }
}

fn io_error(path: &str) -> impl FnOnce(SubmitterError) -> io::Error {
    let path = path.to_owned();
    move |error| {
        let message = error.to_string();
        let message = if message.contains(&path) { message } else { format!("{path}: {message}") };
        if error.is_final() { io::Error::other(message) } else { io::Error::other(Unavailable(message)) }
    }
}

/// A file system or the submitter does not answer now; a retry may succeed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unavailable(pub(super) String);

/// Whether a retry may succeed.
pub(super) fn may_pass(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<Unavailable>)
}
