//! Files that are removed whatever is in them, and files that are written as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
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

/// Writes a file as a whole or not at all: beside it first, then under its name. Devices and pipes are written to as
/// they are.
///
/// # Errors
/// Whatever the file system or `content` says; then the file is as it was.
pub fn write_whole(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // They cannot be replaced.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return content(&mut File::create(path)?);
    }
    let beside = beside(path)?;
    let written = File::create_new(&beside).and_then(|file| {
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.flush()?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name in the same directory that no other process uses at the same time.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_as_a_whole_or_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_whole(&path, |out| out.write_all(b"first")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
