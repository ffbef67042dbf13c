//! Finds other runs of the same user on this machine. Each run announces itself with a file in a common
//! directory, and keeps the file locked while it lives.
//!
//! The directory is `slackline-UID` below `XDG_RUNTIME_DIR`, or below the system's directory for temporary
//! files. It is its user's alone: one of another user, or that another user may write to, is refused. A file
//! that no process has locked is left over from a run that was killed, and goes.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::cluster::Slots;

/// The announcement of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Announcement {
    /// The flow file.
    pub name: String,
    pub state: String,
    pub slots: u32,
    pub process: u32,
}

/// A run that has announced itself, until this is dropped.
#[derive(Debug)]
pub struct ConcurrentRun {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl ConcurrentRun {
    /// Announces a run of this process.
    ///
    /// # Errors
    /// The directory is not this user's alone, or cannot be written to.
    pub fn announce(name: &str, state: &Path, slots: u32) -> io::Result<Self> {
        Self::announce_in(&directory()?, name, state, slots)
    }

    fn announce_in(directory: &Path, name: &str, state: &Path, slots: u32) -> io::Result<Self> {
        make(directory)?;
        let process = std::process::id();
        // Two runs of one process have names of their own.
        let free =
            (0..=u16::MAX).map(|k| directory.join(format!("run-{process}-{k}"))).find(|path| !path.exists());
        let path = free.ok_or_else(|| io::Error::other("all names for the file of a run are in use"))?;
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        let said = Announcement { name: name.to_owned(), state: state.display().to_string(), slots, process };
        let written = file.lock().and_then(|()| file.write_all(&serde_json::to_vec(&said)?));
        if let Err(error) = written {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { path, _file: file })
    }
}

impl Drop for ConcurrentRun {
    fn drop(&mut self) {
        // A file that stays announces a run that has ended, but is not locked.
        let _ = fs::remove_file(&self.path);
    }
}

/// The other runs of this user on this machine, in the order of their processes. Where that cannot be found
/// out, none.
pub fn others() -> Vec<Announcement> {
    directory().map_or_else(|_| Vec::new(), |directory| others_in(&directory))
}

fn others_in(directory: &Path) -> Vec<Announcement> {
    if is_own(directory).is_err() {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<Announcement> = entries.filter_map(|entry| live(&entry.path())).collect();
    found.sort_by_key(|other| other.process);
    found
}

/// The announcement in a file, if its run is alive.
fn live(path: &Path) -> Option<Announcement> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        // No process has locked it; but an empty file may be about to be locked by its creator.
        Ok(()) => {
            if file.metadata().is_ok_and(|meta| meta.len() > 0) {
                let _ = fs::remove_file(path);
            }
            None
        }
        Err(TryLockError::WouldBlock) => serde_json::from_slice(&fs::read(path).ok()?).ok(),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Half of the slots of each kind, at least one.
pub(crate) fn half(slots: Slots) -> Slots {
    let half = |slots: u32| (slots / 2).max(1);
    match slots {
        Slots::Generic(slots) => Slots::Generic(half(slots)),
        Slots::MapReduce { map, reduce } => Slots::MapReduce { map: half(map), reduce: half(reduce) },
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
fn directory() -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let below = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let below = below.filter(|path| path.is_absolute() && path.is_dir()).unwrap_or_else(std::env::temp_dir);
    Ok(below.join(format!("slackline-{user}")))
}

#[cfg(not(unix))]
fn directory() -> io::Result<PathBuf> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "runs cannot detect each other on this system"))
}

/// The directory, which is made where it is missing.
///
/// # Errors
/// It is not this user's alone, or cannot be made.
pub(crate) fn place() -> io::Result<PathBuf> {
    let directory = directory()?;
    make(&directory)?;
    Ok(directory)
}

/// Makes the directory where it is missing.
fn make(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    match builder.create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    is_own(directory)
}

/// Whether a directory is this user's alone; a link to one is not.
#[cfg(unix)]
fn is_own(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(directory)?;
    let is_alone =
        meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw() && meta.mode() % 0o100 == 0;
    if is_alone {
        return Ok(());
    }
    let message = "other users have access to this directory: make it a directory of this user with mode 700";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {message}", directory.display())))
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_know_of_each_other_until_they_end_however_they_do() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("slackline-test");
        assert!(others_in(&place).is_empty());
        let first = ConcurrentRun::announce_in(&place, "a.toml", Path::new("/state/a"), 4).unwrap();
        let second = ConcurrentRun::announce_in(&place, "b.toml", Path::new("/state/b"), 2).unwrap();
        let found = others_in(&place);
        assert_eq!(found.iter().map(|other| other.slots).sum::<u32>(), 6);
        drop(second);
        assert_eq!(others_in(&place).len(), 1);
        assert_eq!(others_in(&place)[0].state, "/state/a");
        drop(first);
        // As a run leaves it that was killed.
        fs::write(place.join("run-1-0"), r#"{"name":"c","state":"/c","slots":1,"process":1}"#).unwrap();
        assert!(others_in(&place).is_empty() && fs::read_dir(&place).unwrap().next().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("slackline-test");
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        let error = ConcurrentRun::announce_in(&place, "a", Path::new("/a"), 1).unwrap_err().to_string();
        assert!(error.contains("other users have access to this directory"), "{error}");
        assert!(others_in(&place).is_empty() && fs::read_dir(&place).unwrap().next().is_none());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(ConcurrentRun::announce_in(&link, "a", Path::new("/a"), 1).is_err());
    }

    #[test]
    fn half_of_one_slot_is_one() {
        assert_eq!(half(Slots::Generic(5)), Slots::Generic(2));
        assert_eq!(half(Slots::MapReduce { map: 1, reduce: 4 }), Slots::MapReduce { map: 1, reduce: 2 });
    }
}
