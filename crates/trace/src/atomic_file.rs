//! Files that are written as a whole or not at all.
//!
//! Not `tempfile`: its files are readable by their owner alone, and results should be as readable as any
//! other new file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file as a whole or not at all: beside it first, then under its name. A device or a pipe is
/// written directly. A file that is replaced keeps its permissions.
///
/// # Errors
/// Errors of the file system or of `content`; then the file is unchanged.
pub fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // Devices and pipes cannot be replaced.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        let mut device = BufWriter::new(File::create(path)?);
        content(&mut device)?;
        return device.flush();
    }
    replace(path, content)
}

/// The same, but what has the name is replaced, be it a device, a pipe or a link: for files that other users
/// may replace.
///
/// # Errors
/// As [`fn@write`].
pub fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let temporary_path = temporary_path(path)?;
    let before = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let written = File::create_new(&temporary_path).and_then(|file| {
        if let Some(before) = before {
            file.set_permissions(before.permissions())?;
        }
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.flush()?;
        fs::rename(&temporary_path, path)
    });
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = fs::remove_file(&temporary_path);
    }
    written
}

/// A name in the same directory that no other process uses at the same time.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_pipe_without_a_reader_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        replace(&path, |out| write!(out, "after")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for mode in [0o600, 0o444, 0o640] {
            write(&path, |out| write!(out, "before")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write(&path, |out| write!(out, "after")).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"after");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
        }
    }
}
