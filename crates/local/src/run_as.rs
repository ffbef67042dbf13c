//! As whom the files of a run are read and written, and its tasks run: another user than that of this process, which then
//! has to be root.
//!
//! Two things are done as a user:
//! - whatever this process does with files of a run, by a thread that [acts](act) as the user meanwhile. Its *effective* user,
//!   group and supplementary groups are theirs then, so that it has no capabilities, and the kernel decides about every path,
//!   permission and symbolic link as if the user had done it, but for links in `/proc` to what this process has open, which
//!   [`theirs`](crate::theirs) does not follow. The real and the saved user stay root: nobody else may send this
//!   process signals or look into it, and the thread can come back;
//! - tasks, by workers that give everything else up for good before they are told what to do (`RunAs::stay`).
//!
//! # What is done as the user, and why that is enough
//!
//! A user decides what is in their inputs, in their outputs and in the state directory of their runs: any name there may be a link to
//! somewhere else at any moment. So nothing is looked at first and done then; all of it is done as the user:
//! - opening a run: patterns of inputs, the sizes and times of files, the journal, locks of outputs, what is removed of earlier runs;
//! - its turns in an engine that stays: commits and publication by renaming, the journal, logs of attempts, sampling of inputs;
//! - its end: documents, locks, and the removal of the state directory; and whatever is read of it to be shown.
//!
//! As this process are done, in directories that it alone may write to: pid files and control groups, the start of workers, and the
//! making and removal of the state directory's own entry, whose parent is root's. Whose a state directory is, is what its owner
//! says ([`owner_of`]): only root can have made it there.
//!
//! A thread that is started while another acts is the user's for good, as the kernel has credentials for each thread; what
//! removes files beside the engine is such a one. No process is started while a thread acts: it would be root's by its
//! real user, so that whoever starts one does it as this process (`as_this_process`).

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A user of this machine, with all that their processes have of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs(Arc<User>);

#[derive(Debug, PartialEq, Eq)]
struct User {
    ids: Ids,
    account: Option<Account>,
}

/// The numbers of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ids {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

/// What the user database says of somebody beside numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Their name.
    pub name: String,
    /// Their home directory.
    pub home: PathBuf,
    /// Their shell; empty if it does not say.
    pub shell: PathBuf,
}

impl RunAs {
    /// A user by their number, with their group and the others that they are in.
    pub fn new(uid: u32, gid: u32, groups: impl Into<Vec<u32>>) -> Self {
        let ids = Ids { uid, gid, groups: groups.into() };
        Self(Arc::new(User { ids, account: None }))
    }

    /// With what the user database says of them.
    #[must_use]
    pub fn with_account(self, account: Account) -> Self {
        Self(Arc::new(User { ids: self.0.ids.clone(), account: Some(account) }))
    }

    /// Their number.
    pub fn uid(&self) -> u32 {
        self.0.ids.uid
    }

    /// The number of their group.
    pub fn gid(&self) -> u32 {
        self.0.ids.gid
    }

    /// What they are called; the number of one of whom no more is known.
    pub fn name(&self) -> String {
        self.0.account.as_ref().map_or_else(|| format!("uid-{}", self.uid()), |account| account.name.clone())
    }

    /// Their numbers, for a process that is to become theirs.
    pub(crate) fn ids(&self) -> &Ids {
        &self.0.ids
    }

    /// Variables of the environment that say who somebody is.
    pub(crate) fn env(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let Some(Account { name, home, shell }) = &self.0.account else { return Vec::new() };
        let mut env = vec![("HOME", home.into()), ("USER", name.into()), ("LOGNAME", name.into())];
        if !shell.as_os_str().is_empty() {
            env.push(("SHELL", shell.into()));
        }
        env
    }
}

impl Ids {
    /// Makes this process theirs for good; it has to have one thread alone, and root's rights.
    ///
    /// # Errors
    /// Whatever the system says, and rights that are still there; then the process has to end.
    pub(crate) fn stay(&self) -> io::Result<()> {
        system::stay(self)
    }
}

/// Whose a directory is, if that is another user than that of this process and this process is root: only then
/// can it act as them. Of their groups only that of the directory is known.
///
/// # Errors
/// It is not there, or it is something else than a directory.
pub fn owner_of(directory: &Path) -> io::Result<Option<RunAs>> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        return Err(io::Error::other(format!(
            "{}: found something else, expected a directory",
            directory.display()
        )));
    }
    let is_others = is_root() && found.uid() != 0;
    Ok(is_others.then(|| RunAs::new(found.uid(), found.gid(), [])))
}

/// The number of the user of this process.
pub(crate) fn own() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whether this process is root.
pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

thread_local! {
    /// As whom this thread acts.
    static NOW: RefCell<Option<RunAs>> = const { RefCell::new(None) };
}

/// A thread that acts as somebody, until this is dropped; then it is who it was before. A process that cannot
/// take that back ends at once.
#[derive(Debug)]
#[must_use]
pub struct Acting {
    before: Option<RunAs>,
    /// It is of the thread that has made it.
    of_thread: PhantomData<*const ()>,
}

/// Has this thread act as a user, or as this process where there is none. Nothing is done where it does so already.
///
/// # Errors
/// The system refuses it; then the thread is who it was.
pub fn act(user: Option<&RunAs>) -> io::Result<Acting> {
    let before = current();
    change(before.as_ref(), user)?;
    Ok(Acting { before, of_thread: PhantomData })
}

/// As whom this thread acts; none if as this process.
pub fn current() -> Option<RunAs> {
    NOW.with_borrow(Clone::clone)
}

/// Does something as this process, whoever the thread acts as.
pub(crate) fn as_this_process<T>(what: impl FnOnce() -> T) -> T {
    let acting = act(None).expect("invariant: a thread that acts can come back");
    let done = what();
    drop(acting);
    done
}

impl Drop for Acting {
    fn drop(&mut self) {
        let now = current();
        if change(now.as_ref(), self.before.as_ref()).is_err() {
            // It would go on with the rights of somebody else.
            std::process::abort();
        }
    }
}

fn change(from: Option<&RunAs>, to: Option<&RunAs>) -> io::Result<()> {
    if from == to {
        return Ok(());
    }
    if from.is_some() && system::come_back().is_err() {
        std::process::abort();
    }
    NOW.set(None);
    let Some(user) = to else { return Ok(()) };
    if let Err(error) = system::become_for_now(user.ids()) {
        // Whatever has been changed is taken back, and what was before is again.
        let again = from.map_or(Ok(()), |before| system::become_for_now(before.ids()));
        if again.is_err() {
            std::process::abort();
        }
        NOW.set(from.cloned());
        let (user, uid) = (user.name(), user.uid());
        return Err(io::Error::new(error.kind(), format!("cannot act as {user} (user {uid}): {error}")));
    }
    NOW.set(Some(user.clone()));
    Ok(())
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::sync::OnceLock;

    use rustix::process::{Gid, Uid, getegid, geteuid, getgid, getgroups, getuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    };

    use super::Ids;

    /// The groups of this process, as they were before anything was changed.
    static OWN: OnceLock<(Gid, Vec<Gid>)> = OnceLock::new();

    /// The numbers as the system takes them. Those of root, and the one that stands for nobody, are no user's that is acted as.
    fn numbers(ids: &Ids) -> io::Result<(Uid, Gid, Vec<Gid>)> {
        let is_gid = |gid: u32| gid != u32::MAX;
        if ids.uid == 0
            || ids.uid == u32::MAX
            || !is_gid(ids.gid)
            || !ids.groups.iter().all(|&gid| is_gid(gid))
        {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "found numbers that are no user's"));
        }
        let groups = ids.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
        Ok((Uid::from_raw(ids.uid), Gid::from_raw(ids.gid), groups))
    }

    /// This thread has the effective user and groups of somebody. Where that fails it is who it was.
    pub(super) fn become_for_now(ids: &Ids) -> io::Result<()> {
        let (uid, gid, groups) = numbers(ids)?;
        if OWN.get().is_none() {
            let own = (getegid(), getgroups()?);
            let _ = OWN.set(own);
        }
        let begun = set_thread_groups(&groups)
            .and_then(|()| set_thread_res_gid(None, gid, None))
            .and_then(|()| set_thread_res_uid(None, uid, None));
        if let Err(error) = begun {
            // Where nothing may be changed, nothing was.
            if geteuid().is_root() && set_thread_groups(&[]).is_ok() && come_back().is_err() {
                std::process::abort();
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// This thread is who it was.
    pub(super) fn come_back() -> io::Result<()> {
        let (gid, groups) = OWN.get().ok_or(io::ErrorKind::Other)?;
        // Root's rights come first, as they are needed for the rest.
        set_thread_res_uid(None, Uid::ROOT, None)?;
        set_thread_res_gid(None, *gid, None)?;
        set_thread_groups(groups)?;
        Ok(())
    }

    /// This process, which has one thread, is somebody's for good.
    pub(super) fn stay(ids: &Ids) -> io::Result<()> {
        let (uid, gid, groups) = numbers(ids)?;
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        let left = capabilities(None)?;
        let is_theirs = getuid() == uid && geteuid() == uid && getgid() == gid && getegid() == gid;
        // What could be taken back would be.
        let is_for_good = set_thread_res_uid(None, Uid::ROOT, None).is_err();
        if !is_theirs || !is_for_good || !(left.effective | left.permitted).is_empty() {
            return Err(io::Error::other("found rights that cannot be given up"));
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use super::Ids;

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "found another system, expected Linux")
    }

    pub(super) fn become_for_now(_: &Ids) -> io::Result<()> {
        Err(unsupported())
    }

    pub(super) fn come_back() -> io::Result<()> {
        Err(unsupported())
    }

    pub(super) fn stay(_: &Ids) -> io::Result<()> {
        Err(unsupported())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    /// Somebody who is nobody else, and groups of theirs.
    fn somebody() -> RunAs {
        RunAs::new(54_321, 54_322, [54_323, 54_324])
    }

    /// Whether a test that needs root can be made.
    fn can_test() -> bool {
        if !is_root() {
            eprintln!("SKIPPED: not root");
        }
        is_root()
    }

    fn status(of: &str) -> Vec<String> {
        let text = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(of)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_thread_acts_as_somebody_and_comes_back_and_no_other_thread_does() {
        if !can_test() {
            return;
        }
        let before = ["Uid:", "Gid:", "Groups:", "CapEff:"].map(status);
        let acting = act(Some(&somebody())).unwrap();
        assert_eq!(status("Uid:"), ["0", "54321", "0", "54321"]);
        assert_eq!(status("Groups:"), ["54323", "54324"]);
        assert_eq!(status("CapEff:"), ["0000000000000000"]);
        assert_eq!(current(), Some(somebody()));
        // Within it this process, and somebody else.
        as_this_process(|| assert_eq!(["Uid:", "Gid:", "Groups:", "CapEff:"].map(status), before));
        let other = RunAs::new(54_330, 54_331, []);
        let within = act(Some(&other)).unwrap();
        assert_eq!((status("Uid:")[1].as_str(), status("Groups:").len()), ("54330", 0));
        drop(within);
        assert_eq!((status("Uid:")[1].as_str(), status("Gid:")[1].as_str()), ("54321", "54322"));
        drop(acting);
        assert_eq!(["Uid:", "Gid:", "Groups:", "CapEff:"].map(status), before);
        for no_user in [
            RunAs::new(0, 1, []),
            RunAs::new(u32::MAX, 1, []),
            RunAs::new(1, u32::MAX, []),
            RunAs::new(1, 1, [u32::MAX]),
        ] {
            assert!(act(Some(&no_user)).is_err());
            assert_eq!(
                (["Uid:", "Gid:", "Groups:", "CapEff:"].map(status), current()),
                (before.clone(), None)
            );
        }
    }

    #[test]
    fn it_comes_back_when_what_it_does_panics() {
        if !can_test() {
            return;
        }
        let ended = std::panic::catch_unwind(|| {
            let _acting = act(Some(&somebody())).unwrap();
            panic!("in the middle of something");
        });
        assert!(ended.is_err());
        assert_eq!((status("Uid:"), current()), (vec!["0".to_owned(); 4], None));
    }

    #[test]
    fn what_it_makes_is_theirs_and_what_is_not_for_them_is_refused() {
        if !can_test() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [theirs, secret] = ["theirs", "secret"].map(|name| dir.path().join(name));
        fs::write(&secret, "for root").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(54_321), Some(54_322)).unwrap();
        let owner = owner_of(&theirs).unwrap().unwrap();
        assert_eq!((owner.uid(), owner.gid()), (54_321, 54_322));
        assert_eq!(owner_of(dir.path()).unwrap(), None);
        assert!(owner_of(&secret).is_err());
        {
            let _acting = act(Some(&owner)).unwrap();
            fs::write(theirs.join("made"), "").unwrap();
            std::os::unix::fs::symlink(&secret, theirs.join("link")).unwrap();
            assert!(fs::read(&secret).is_err() && fs::read(theirs.join("link")).is_err());
            assert!(fs::write(dir.path().join("new"), "").is_err());
            assert!(fs::rename(theirs.join("made"), dir.path().join("made")).is_err());
        }
        let made = fs::metadata(theirs.join("made")).unwrap();
        assert_eq!((made.uid(), made.gid()), (54_321, 54_322));
        assert_eq!(fs::read(&secret).unwrap(), b"for root");
        let link = theirs.join("to-secret");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(owner_of(&link).is_err(), "a link is nobody's directory");
    }

    #[test]
    fn without_anybody_nothing_is_done() {
        let acting = act(None).unwrap();
        assert_eq!(current(), None);
        drop(acting);
        as_this_process(|| assert_eq!(current(), None));
    }
}
