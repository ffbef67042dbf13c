//! Files that are removed whatever is in them, also while other things are done.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
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

/// Removes directories with very many files while other things are done. When it is dropped everything is removed, unless it
/// was told to leave it.
#[derive(Debug, Default)]
pub(crate) struct Remover {
    at_work: Option<(Sender<PathBuf>, JoinHandle<()>)>,
    is_left: Arc<AtomicBool>,
}

impl Remover {
    /// Takes a directory that nobody needs. What cannot be removed stays.
    pub(crate) fn take(&mut self, directory: PathBuf) {
        let (queue, _) = self.at_work.get_or_insert_with(|| {
            let (queue, taken) = channel::<PathBuf>();
            let is_left = self.is_left.clone();
            (queue, thread::spawn(move || taken.iter().for_each(|path| remove_unless(&path, &is_left))))
        });
        queue.send(directory).expect("invariant: the other end is there as long as this one");
    }

    /// Leaves what is not removed yet where it is.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        if let Some((queue, thread)) = self.at_work.take() {
            drop(queue);
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Removes what is in a directory, and then the directory, as long as it is not to be left.
fn remove_unless(directory: &Path, is_left: &AtomicBool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_left.load(Ordering::SeqCst) {
            return;
        }
        // What stays keeps the directory, too.
        let _ = remove(&entry.path());
    }
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(directory: &Path) {
        for map in 0..20 {
            let of_map = directory.join(map.to_string());
            fs::create_dir_all(&of_map).unwrap();
            fs::write(of_map.join("map.out"), "x").unwrap();
        }
    }

    #[test]
    fn what_is_taken_is_gone_in_the_end_unless_it_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, left] = ["first", "second", "left"].map(|name| dir.path().join(name));
        let mut remover = Remover::default();
        for directory in [&first, &second] {
            maps(directory);
            remover.take(directory.clone());
        }
        remover.take(dir.path().join("never-was"));
        drop(remover);
        assert!(!first.exists() && !second.exists());
        maps(&left);
        let mut remover = Remover::default();
        remover.leave();
        remover.take(left.clone());
        drop(remover);
        assert_eq!(fs::read_dir(left).unwrap().count(), 20);
    }
}
