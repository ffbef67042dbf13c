//! Files that are removed whatever is in them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::clock;

/// Removes a file or a directory with all below it; it may be gone already, or have no place to be in.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        other => other,
    }
}

/// Removes a directory in which a process that was killed a moment ago may still be making files.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn remove_busy(path: &Path) -> io::Result<()> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match remove(path) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => clock::pause(Duration::from_millis(10)),
            other => return other,
        }
    }
    remove(path)
}
