//! Removes files and directories of any content, also in the background.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, open, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::base::clock;

/// Removes a file or a directory with its contents; it may be missing already, and so may its parent.
///
/// # Errors
/// An error of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match opened(path) {
        Ok(directory) => empty(&directory).and_then(|()| fs::remove_dir(path)),
        Err(Errno::LOOP | Errno::NOTDIR) => fs::remove_file(path),
        Err(error) => Err(error.into()),
    };
    match removed {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        other => other,
    }
}

/// Opens a directory itself, without following a link.
fn opened(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, DIRECTORY, Mode::empty())
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// A directory on the way down to the one that is being emptied.
struct Level {
    /// Identifies it when the walk returns to it.
    id: (u64, u64),
    /// Its name in the parent directory.
    name: CString,
    /// Its subdirectories that are not visited yet.
    left: Vec<CString>,
}

/// Removes the contents of a directory of any depth, within limits on the stack and on open files. Only
/// entries that cannot be removed stay.
///
/// # Errors
/// The error of the file system for the first entry that stays.
fn empty(directory: &OwnedFd) -> io::Result<()> {
    let mut stays = None;
    let mut here = openat(directory, c".", DIRECTORY, Mode::empty())?;
    let mut levels = vec![level(&here, CString::default(), &mut stays)?];
    while let Some(mut last) = levels.pop() {
        if let Some(name) = last.left.pop() {
            levels.push(last);
            match openat(&here, &name, DIRECTORY, Mode::empty()) {
                Ok(below) => {
                    levels.push(level(&below, name, &mut stays)?);
                    here = below;
                }
                Err(error) => note(&mut stays, error),
            }
        } else if let Some(above) = levels.last() {
            let parent = openat(&here, c"..", DIRECTORY, Mode::empty())?;
            if id(&parent)? != above.id {
                // A process has moved it, and its current parent is another directory.
                return Err(io::Error::other("the directory was moved while it was being removed"));
            }
            if let Err(error) = unlinkat(&parent, &last.name, AtFlags::REMOVEDIR) {
                note(&mut stays, error);
            }
            here = parent;
        }
    }
    stays.map_or(Ok(()), |error: Errno| Err(error.into()))
}

/// Removes the files of a directory, and finds its subdirectories.
fn level(directory: &OwnedFd, name: CString, stays: &mut Option<Errno>) -> io::Result<Level> {
    let mut left = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir()),
            kind => kind.is_dir(),
        };
        if is_directory {
            left.push(name.to_owned());
        } else if let Err(error) = unlinkat(directory, name, AtFlags::empty()) {
            note(stays, error);
        }
    }
    Ok(Level { id: id(directory)?, name, left })
}

/// A file that another process has removed is no error.
fn note(stays: &mut Option<Errno>, error: Errno) {
    if error != Errno::NOENT {
        stays.get_or_insert(error);
    }
}

fn id(directory: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = fstat(directory)?;
    Ok((found.st_dev as u64, found.st_ino as u64))
}

/// Removes a directory in which a process that was killed a moment ago may still be making files.
///
/// # Errors
/// An error of the file system.
pub fn remove_busy(path: &Path) -> io::Result<()> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match remove(path) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => clock::pause(Duration::from_millis(10)),
            other => return other,
        }
    }
    remove(path)
}

/// The prefix of the new names of files that cannot be removed.
const ASIDE: &str = "cannot-be-removed";

/// Removes a file or a directory whose place is needed. If that fails, renames it.
///
/// # Errors
/// An entry that can neither be removed nor renamed.
pub fn clear_away(path: &Path) -> io::Result<()> {
    let Err(error) = remove(path) else { return Ok(()) };
    let is_aside = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ASIDE));
    if is_aside {
        return Ok(());
    }
    let free =
        (0..=u16::MAX).map(|k| path.with_file_name(format!("{ASIDE}-{k}"))).find(|free| !free.exists());
    free.and_then(|free| fs::rename(path, free).ok()).ok_or(error)
}

/// The entries of a directory that were renamed because they could not be removed.
pub fn set_aside(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(ASIDE));
    named.map(|entry| entry.path()).collect()
}

/// Removes directories with very many files in the background. When it is dropped, it waits for the removal,
/// unless it was stopped by [`Self::leave`].
#[derive(Debug, Default)]
pub struct Remover {
    at_work: Option<(Sender<PathBuf>, JoinHandle<()>)>,
    is_left: Arc<AtomicBool>,
}

impl Remover {
    /// Takes a directory that no process needs. Entries that cannot be removed stay.
    pub fn take(&mut self, directory: PathBuf) {
        if self.at_work.is_none() {
            let (queue, taken) = channel::<PathBuf>();
            let is_left = self.is_left.clone();
            let work = move || taken.iter().for_each(|path| remove_unless(&path, &is_left));
            self.at_work = thread::Builder::new().spawn(work).ok().map(|thread| (queue, thread));
        }
        match &self.at_work {
            Some((queue, _)) => {
                queue.send(directory).expect("invariant: the other end is there as long as this one");
            }
            // Without another thread the removal runs on this one.
            None => remove_unless(&directory, &self.is_left),
        }
    }

    /// Stops the removal; the remaining entries stay.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        if let Some((queue, thread)) = self.at_work.take() {
            drop(queue);
            // A thread that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

/// Removes the contents of a directory, and then the directory, unless `is_left` is set.
fn remove_unless(directory: &Path, is_left: &AtomicBool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_left.load(Ordering::SeqCst) {
            return;
        }
        // An entry that stays keeps the directory, too.
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

    /// Neither the stack nor the number of open files suffices for one directory in another.
    #[test]
    fn directories_are_removed_however_deep_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        maps(&kept);
        let deep = dir.path().join("deep");
        fs::create_dir(&deep).unwrap();
        let mut here = opened(&deep).unwrap();
        for depth in 0..20_000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            if depth % 1_000 == 0 {
                rustix::fs::symlinkat(&kept, &here, "link").unwrap();
                rustix::fs::mkdirat(&here, "beside", Mode::RWXU).unwrap();
            }
            here = openat(&here, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        drop(here);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        for path in [&deep, &link, &deep] {
            remove(path).unwrap();
            assert!(fs::symlink_metadata(path).is_err());
        }
        assert_eq!(fs::read_dir(kept).unwrap().count(), 20);
    }

    #[test]
    fn directories_are_removed_in_the_end_unless_they_are_left() {
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
