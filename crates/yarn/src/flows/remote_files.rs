//! Files of any file system that Hadoop has, through the submitter.

use std::error::Error;
use std::io;
use std::path::Path;

use crate::submitter::{Entry, Submitter, SubmitterError};

/// What is asked of file systems. Paths are URIs.
pub(super) trait FileSystem: Send + Sync {
    /// A file or directory, if it is there.
    fn stat(&self, path: &str) -> io::Result<Option<Entry>>;

    /// What is in a directory, or matches a pattern.
    fn list(&self, pattern: &str) -> io::Result<Vec<Entry>>;

    /// The first bytes of a file.
    fn read(&self, path: &str, length: u64) -> io::Result<Vec<u8>>;

    /// Makes a directory and those above it.
    fn make_directory(&self, path: &str) -> io::Result<()>;

    /// Writes a small file as a whole.
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Writes a file of this machine as a whole.
    fn upload(&self, path: &str, local: &Path) -> io::Result<()>;

    /// Moves a file or directory to where nothing is.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes what is there, with all that is in it.
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

/// A file system, or the submitter, does not answer as it should; later it may.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unavailable(pub(super) String);

/// Whether what failed may be done when it is tried again later.
pub(super) fn may_pass(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<Unavailable>)
}
