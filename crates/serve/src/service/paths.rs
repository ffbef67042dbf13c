//! The files of a service.
//!
//! ```text
//! service.log       records of submissions and their ends
//! flows/NAME/       the state directory of the runs of a name, as `run` has it
//! times/NAME/TIME/  the state directory of the runs of one time of a schedule that has separate paths
//! gone/             state directories that expired, kept for a day
//! engine/           of the engine: its running workers
//! past.history      durations of jobs
//! tokens.json       access tokens, if the service listens on a network
//! audit.log         accepted requests that change something
//! refused.log       refused requests
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use slackline_model::WallTime;
use slackline_task::base::regular_file;

use crate::http::users::{Users, group, own};
use crate::state::series::RunKey;

/// The state directory of a service.
#[derive(Clone, Debug)]
pub struct ServicePaths(PathBuf);

impl ServicePaths {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The log of all submissions and their ends.
    pub fn log(&self) -> PathBuf {
        self.0.join("service.log")
    }

    /// Whether a service has run in this directory.
    pub fn has_served(&self) -> bool {
        self.log().exists()
    }

    /// The state directory of runs.
    pub fn run(&self, key: &RunKey) -> PathBuf {
        match &key.time {
            Some(time) => self.0.join("times").join(&key.name).join(time),
            None => self.0.join("flows").join(&key.name),
        }
    }

    /// The new place of a state directory that is forgotten at `at`, by the age clock of the service.
    pub fn gone(&self, at: WallTime, key: &RunKey) -> PathBuf {
        let name = key.time.as_ref().unwrap_or(&key.name);
        self.0.join("gone").join(format!("{}-{name}", at.0))
    }

    /// The directory of state directories that were moved aside.
    pub fn all_gone(&self) -> PathBuf {
        self.0.join("gone")
    }

    pub fn engine(&self) -> PathBuf {
        self.0.join("engine")
    }

    /// Creates the directory and its lock files, with access for this user only. An existing directory keeps
    /// its mode. A user who can open a lock file could hold its lock.
    ///
    /// # Errors
    /// A directory or file cannot be created, or belongs to another user.
    pub fn prepare(&self) -> io::Result<()> {
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        if let Some(parent) = self.0.parent() {
            fs::create_dir_all(parent).map_err(|error| named(parent, error))?;
        }
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.0.is_dir() => {}
            made => made.map_err(|error| named(&self.0, error))?,
        }
        for lock in ["tokens.lock", "past.history.lock"].map(|name| self.0.join(name)) {
            regular_file::open_private(&lock).map_err(|error| named(&lock, error))?;
        }
        Ok(())
    }

    pub fn history(&self) -> PathBuf {
        self.0.join("past.history")
    }

    /// The socket for clients on this machine.
    pub fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    pub fn tokens(&self) -> PathBuf {
        self.0.join("tokens.json")
    }

    /// The log of accepted requests that change something.
    pub fn audit(&self) -> PathBuf {
        self.0.join("audit.log")
    }

    pub fn refused(&self) -> PathBuf {
        self.0.join("refused.log")
    }
}

/// Why other users could replace a state directory: the first directory on its path that they may write to. A
/// group that only this user has, by its number or name, does not count.
pub fn shared(directory: &Path) -> Option<String> {
    let uid = own();
    directory.ancestors().enumerate().find_map(|(k, above)| {
        let found = fs::metadata(above).ok()?;
        // In a directory with the sticky bit, such as /tmp, users cannot replace files of others.
        let is_kept = k > 0 && found.mode() & 0o1000 != 0;
        let by_others = || {
            let mode = found.mode();
            mode & 0o002 != 0 || mode & 0o020 != 0 && !is_own_group(found.gid(), uid)
        };
        let at = above.display();
        let (principal, advice) = match found.uid() {
            // The owner could make the directory writable again at any time.
            owner if owner != uid && owner != 0 => {
                (format!("user {owner}"), "choose another directory with --state".to_owned())
            }
            // This user cannot change a directory of root.
            owner if !is_kept && by_others() => {
                let advice = if owner == uid || uid == 0 {
                    format!("run `chmod go-w {at}`, or choose another directory with --state")
                } else {
                    "choose another directory with --state".to_owned()
                };
                ("others".to_owned(), advice)
            }
            _ => return None,
        };
        let directory = directory.display();
        Some(format!(
            "{directory}: {principal} may write to {at}, and could make the service run any program; {advice}"
        ))
    })
}

/// Whether a group belongs to one user alone, by its number or its name. Many systems create one for each
/// user. The primary group of a user can also be shared by all users.
fn is_own_group(gid: u32, uid: u32) -> bool {
    gid == uid || group(&Users::default().name(uid)) == Ok(gid)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_state_directory_and_its_locks_are_for_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ServicePaths::new(dir.path().join("above/state"));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let locks = ["tokens.lock", "past.history.lock"].map(|name| paths.root().join(name));
        paths.prepare().unwrap();
        assert_eq!(mode(paths.root()), 0o700);
        // An existing directory keeps its mode; lock files do not.
        for path in [paths.root(), &locks[0], &locks[1]] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        paths.prepare().unwrap();
        assert_eq!((mode(paths.root()), locks.map(|lock| mode(&lock))), (0o755, [0o600; 2]));
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(ServicePaths::new(&file).prepare().unwrap_err().to_string().contains("file: "));
    }

    #[test]
    fn directories_to_which_others_may_write_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (above, state) = (dir.join("above"), dir.join("above/state"));
        fs::create_dir_all(&state).unwrap();
        // The test does not control the directories above `dir`.
        let shared = |path: &Path| {
            shared(path).filter(|message| message.contains(&format!("write to {}", dir.display())))
        };
        let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&above, 0o755);
        set(&state, 0o755);
        assert_eq!(shared(&state), None);
        set(&above, 0o777);
        let message = shared(&state).unwrap();
        assert!(message.contains(&format!("others may write to {}, and", above.display())), "{message}");
        assert!(message.contains(&format!("`chmod go-w {}`", above.display())), "{message}");
        // With the sticky bit, users can replace only their own files.
        set(&above, 0o1777);
        assert_eq!(shared(&state), None);
        set(&state, 0o1777);
        assert!(shared(&state).unwrap().contains(&format!("write to {}, and", state.display())));
    }

    #[test]
    fn a_group_is_a_users_own_by_its_number_or_name() {
        assert!(is_own_group(54_321, 54_321));
        assert!(is_own_group(0, 0));
        // The primary group of a user can be shared by all users.
        assert!(!is_own_group(0, 54_321));
        assert!(!is_own_group(100, 54_321));
    }

    #[test]
    fn for_a_directory_of_another_user_the_advice_is_another_directory() {
        if own() != 0 {
            eprintln!("SKIPPED: not root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(54_321), None).unwrap();
        let message = shared(dir.path()).unwrap();
        assert!(
            message.contains("user 54321 may write")
                && message.ends_with("choose another directory with --state"),
            "{message}"
        );
        assert!(!message.contains("chmod"), "{message}");
    }
}
