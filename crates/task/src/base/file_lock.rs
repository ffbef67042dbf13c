//! Locks of files. Every wait for a lock has a limit: the process that holds it may be stopped.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::base::clock;
use crate::base::system::lock_refused;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a file.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process still holds the lock after `patience`; its file system
/// has no locks.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<()> {
    for _ in 0..=patience.as_millis() / PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => clock::pause(PAUSE),
            Err(TryLockError::Error(error)) => return Err(lock_refused(error)),
        }
    }
    let holder = holder(file).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    let problem = format!(
        "{holder} has held its lock for {} s: end that process, or wait for it and retry",
        patience.as_secs()
    );
    Err(io::Error::new(io::ErrorKind::WouldBlock, problem))
}

/// Whether an open file is the one at that path.
///
/// # Errors
/// Any error of the file system.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let of = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        named => Ok(of(named?) == of(file.metadata()?)),
    }
}

/// The process that holds the lock of a file, if the system reports it.
fn holder(file: &File) -> Option<u64> {
    holder_in(&fs::read_to_string("/proc/locks").ok()?, file.metadata().ok()?.ino())
}

/// The same from a table of locks: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`.
fn holder_in(locks: &str, inode: u64) -> Option<u64> {
    let inode = inode.to_string();
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return None };
        let is_it = file.rsplit(':').next() == Some(inode.as_str());
        // 0 is a process of another container.
        pid.parse().ok().filter(|&pid| is_it && pid > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_not_waited_for_without_limit_and_its_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (held, wanted) = (File::create(&path).unwrap(), File::create(&path).unwrap());
        lock_within(&held, Duration::ZERO).unwrap();
        let error = lock_within(&wanted, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(
            error.to_string().contains("process has held its lock for 0 s")
                || error.to_string().contains(&format!("process {} has held its lock", std::process::id())),
            "{error}"
        );
        drop(held);
        lock_within(&wanted, Duration::ZERO).unwrap();
        assert!(is_at(&wanted, &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&wanted, &path).unwrap());
    }

    #[test]
    fn the_holder_is_the_process_with_the_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:1234 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 0 fd:01:1234 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 8 fd:01:1234 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 9 00:2a:1234 0 EOF\n";
        assert_eq!(holder_in(locks, 1234), Some(9));
        assert_eq!(holder_in(locks, 234), None);
    }
}
