//! Control groups of version 2 (cgroup v2 of Linux): one for each attempt whose commands have a memory limit.
//! The limit is for all processes of an attempt together, including their files in memory.
//!
//! The groups are made below the group of this process. That needs the memory controller, a writable group,
//! and no other process in it. The kernel gives controllers to child groups only if no process is in the
//! parent group itself, so this process moves to a child group and back:
//!
//! ```text
//! own                        the group this process was in: memory is handed on to what is below
//! └── slackline-PID-TIME     one run: the same
//!     ├── engine             this process and its workers
//!     └── 17                 the commands of attempt 17: memory.max
//! ```
//!
//! Only the uppermost group may have processes and also pass on controllers: there no process moves, and
//! other processes in it do not matter. A run that was killed leaves empty groups, which [`remove_left`]
//! removes. Only groups are ever removed.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst of Linux, "No Internal Process Constraint" and "Memory".

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::fs::Access;

use crate::base::clock;

/// The names of the files of a group: its processes, the available controllers, and those that it passes on.
pub const PROCESSES: &str = "cgroup.procs";
const CONTROLLERS: &str = "cgroup.controllers";
const HANDED_ON: &str = "cgroup.subtree_control";

/// The group of the engine and its workers.
const ENGINE: &str = "engine";

/// Number of attempts, and the last pause between them, to remove a group whose processes have just been
/// killed.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// The operations on groups beside reading and writing their files.
pub trait System: Send {
    /// Makes a group.
    ///
    /// # Errors
    /// An error of the system.
    fn make(&self, group: &Path) -> io::Result<()>;

    /// Moves a process into a group.
    ///
    /// # Errors
    /// An error of the system.
    fn join(&self, pid: u64, group: &Path) -> io::Result<()>;

    /// Removes an empty group.
    ///
    /// # Errors
    /// An error of the system.
    fn remove(&self, group: &Path) -> io::Result<()>;

    /// Whether this process may write to a path.
    fn is_writable(&self, path: &Path) -> bool;
}

#[derive(Debug)]
pub struct Linux;

impl System for Linux {
    fn make(&self, group: &Path) -> io::Result<()> {
        fs::create_dir(group)
    }

    fn join(&self, pid: u64, group: &Path) -> io::Result<()> {
        fs::write(group.join(PROCESSES), pid.to_string())
    }

    fn remove(&self, group: &Path) -> io::Result<()> {
        fs::remove_dir(group)
    }

    fn is_writable(&self, path: &Path) -> bool {
        rustix::fs::access(path, Access::WRITE_OK).is_ok()
    }
}

/// The groups of a run. When dropped, they are removed, and this process returns to its earlier group.
pub struct Groups {
    system: Box<dyn System>,
    place: Own,
    /// The group of the run.
    all: PathBuf,
    /// Whether the group above passed on the memory controller before.
    was_handed_on: bool,
    /// Bytes, by attempt.
    limits: BTreeMap<u64, u64>,
    /// Groups of attempts that could not be removed yet.
    busy: Vec<PathBuf>,
}

/// The group that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    group: PathBuf,
    is_uppermost: bool,
}

/// The group of this process, if groups can be made below it. `root` is the directory from which the file
/// system is seen. Writes nothing.
///
/// # Errors
/// The reason why groups cannot be made.
pub fn look(root: &Path, system: &dyn System) -> Result<Own, String> {
    let group = own(root).ok_or("found no control groups of version 2")?;
    let shown = group.display();
    if !has_memory(&group.join(CONTROLLERS)) {
        return Err(format!("found no memory controller in the control group {shown}"));
    }
    let files = [PROCESSES, HANDED_ON].map(|name| group.join(name));
    if !files.iter().chain([&group]).all(|path| system.is_writable(path)) {
        return Err(format!("found the control group {shown} not writable"));
    }
    let is_uppermost = !group.join("cgroup.type").exists();
    if !is_uppermost && processes(&group).iter().any(|&pid| pid != me()) {
        return Err(format!("found other processes in the control group {shown}"));
    }
    Ok(Own { group, is_uppermost })
}

/// The directory of the group of this process; `None` if it has none of version 2.
fn own(root: &Path) -> Option<PathBuf> {
    let read = |name: &str| fs::read_to_string(root.join("proc/self").join(name)).ok();
    let groups = read("cgroup")?;
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    let mounts = read("mountinfo")?;
    let below = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (from, at) = (words.next()?, words.next()?);
        // The system gives a group outside of the mount a path above it.
        let is_below = kind.starts_with("cgroup2 ") && !group.components().any(|c| c == Component::ParentDir);
        let below = group.strip_prefix(from).ok().filter(|_| is_below)?;
        Some(root.join(at.trim_start_matches('/')).join(below))
    };
    mounts.lines().find_map(below).filter(|group| group.is_dir())
}

fn me() -> u64 {
    u64::from(std::process::id())
}

/// Whether a list of controllers has that of memory.
fn has_memory(list: &Path) -> bool {
    fs::read_to_string(list).is_ok_and(|text| text.split_whitespace().any(|word| word == "memory"))
}

/// The processes of a group; 0 for processes that are not visible from here.
fn processes(group: &Path) -> Vec<u64> {
    let text = fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap_or(0)).collect()
}

impl Groups {
    /// Prepares groups below that of this process, and tries one. `note` gets the group of the run before it
    /// is created. On an error everything is as before.
    ///
    /// # Errors
    /// The reason of the failure, for the user.
    pub fn enter(
        place: Own,
        system: Box<dyn System>,
        note: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, String> {
        let all = place.group.join(format!("slackline-{}-{}", me(), clock::unix_micros()));
        let was_handed_on = has_memory(&place.group.join(HANDED_ON));
        let (limits, busy) = (BTreeMap::new(), Vec::new());
        let mut groups = Self { system, place, all, was_handed_on, limits, busy };
        // Dropping the groups undoes partial preparations.
        let prepared = note(&groups.all).and_then(|()| groups.prepare());
        let why = |e: io::Error| format!("control groups below {}: {e}", groups.place.group.display());
        prepared.map_err(why)?;
        Ok(groups)
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.system.make(&self.all)?;
        if !self.place.is_uppermost {
            let engine = self.all.join(ENGINE);
            self.system.make(&engine)?;
            self.system.join(me(), &engine)?;
        }
        if !self.was_handed_on {
            fs::write(self.place.group.join(HANDED_ON), "+memory")?;
        }
        fs::write(self.all.join(HANDED_ON), "+memory")?;
        let tried = self.begin(0, 1 << 30);
        self.end(0);
        tried.map(drop)
    }

    fn group(&self, attempt: u64) -> PathBuf {
        self.all.join(attempt.to_string())
    }

    /// Creates the group of an attempt, with this number of bytes of memory and no swap. If that is not
    /// enough, the kernel kills all its processes together.
    ///
    /// # Errors
    /// An error of the system; then the group does not exist.
    pub fn begin(&mut self, attempt: u64, bytes: u64) -> io::Result<PathBuf> {
        let group = self.group(attempt);
        let with_group =
            |e: io::Error| io::Error::new(e.kind(), format!("control group {}: {e}", group.display()));
        self.system.make(&group).map_err(with_group)?;
        self.limits.insert(attempt, bytes);
        // Some kernels lack the others.
        let others = [("memory.swap.max", "0"), ("memory.oom.group", "1")].into_iter();
        let mut others =
            others.map(|(name, value)| (group.join(name), value)).filter(|(path, _)| path.exists());
        let written = fs::write(group.join("memory.max"), bytes.to_string());
        if let Err(error) = written.and_then(|()| others.try_for_each(|(path, value)| fs::write(path, value)))
        {
            self.end(attempt);
            return Err(with_group(error));
        }
        Ok(group)
    }

    /// Removes the group of an attempt, if it has one, with all its processes. Returns a message for the user
    /// if its memory was not enough.
    pub fn end(&mut self, attempt: u64) -> Option<String> {
        let bytes = self.limits.remove(&attempt)?;
        let group = self.group(attempt);
        let killed = kills(&group);
        self.busy.push(group);
        self.remove_busy();
        (killed > 0).then(|| {
            let most = bytes >> 20;
            format!(
                "out of memory: its commands together used more than the {most} MiB of the job, and the system killed \
                 them"
            )
        })
    }

    /// Removes the empty groups of attempts that have ended.
    fn remove_busy(&mut self) {
        let Self { busy, system, .. } = self;
        busy.retain(|group| !is_removed(group, system.as_ref()));
    }
}

/// Number of processes of a group that were killed for lack of memory.
fn kills(group: &Path) -> u64 {
    let events = fs::read_to_string(group.join("memory.events")).unwrap_or_default();
    let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Kills the processes of a group, if the kernel can (since 5.14), and removes it; returns false if some are
/// still in it.
fn is_removed(group: &Path, system: &dyn System) -> bool {
    let kill = group.join("cgroup.kill");
    if kill.exists() {
        // A process that cannot be killed keeps the group busy.
        let _ = fs::write(kill, "1");
    }
    match system.remove(group) {
        Err(e) => e.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    }
}

/// The same, with several attempts.
fn is_removed_soon(group: &Path, system: &dyn System) -> bool {
    for _ in 1..TRIES {
        if is_removed(group, system) {
            return true;
        }
        clock::pause(PAUSE);
    }
    is_removed(group, system)
}

/// Removes the groups of a run, given the group that contains them; returns false if processes are still in
/// one of them.
pub fn remove_left(all: &Path, system: &dyn System) -> bool {
    let is_ours = all.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slackline-"));
    if !is_ours {
        return true;
    }
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    for group in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
        // The group above it cannot be removed either.
        is_removed_soon(&group, system);
    }
    is_removed(all, system)
}

impl Drop for Groups {
    fn drop(&mut self) {
        let attempts: Vec<u64> = self.limits.keys().copied().collect();
        for attempt in attempts {
            self.end(attempt);
        }
        for group in std::mem::take(&mut self.busy) {
            is_removed_soon(&group, self.system.as_ref());
        }
        // Moves back: a group that passes on controllers takes no processes. A group that cannot be removed
        // here stays until the run is resumed.
        let engine = self.all.join(ENGINE);
        let _ = fs::metadata(&self.all).and_then(|_| fs::write(self.all.join(HANDED_ON), "-memory"));
        if !self.was_handed_on {
            let _ = fs::write(self.place.group.join(HANDED_ON), "-memory");
        }
        for pid in processes(&engine) {
            let _ = self.system.join(pid, &self.place.group);
        }
        for group in [&engine, &self.all] {
            let _ = self.system.remove(group);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A directory that simulates the hierarchy of the kernel.
    #[derive(Clone)]
    pub(crate) struct Play {
        root: PathBuf,
        /// The path that is not writable.
        locked: Option<PathBuf>,
    }

    /// The mount point of the hierarchy, and the group of this process in it.
    const MOUNT: &str = "sys/fs/cgroup";
    const OWN: &str = "sys/fs/cgroup/user.slice/run.scope";

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    impl Play {
        /// A machine on which this process is alone in its group, which has the memory controller.
        pub(crate) fn new(root: &Path) -> Self {
            write(&root.join("proc/self/cgroup"), "1:name=systemd:/x\n0::/user.slice/run.scope\n");
            let mounts = "23 1 0:2 / / rw shared:1 - ext4 /dev/vda rw\n\
                          38 31 0:20 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
            write(&root.join("proc/self/mountinfo"), mounts);
            let play = Self { root: root.to_owned(), locked: None };
            fs::create_dir_all(root.join(OWN).parent().unwrap()).unwrap();
            play.make(&root.join(OWN)).unwrap();
            write(&root.join(OWN).join(CONTROLLERS), "cpu memory pids\n");
            write(&root.join(OWN).join(PROCESSES), &format!("{}\n", me()));
            play
        }

        pub(crate) fn own(&self) -> PathBuf {
            self.root.join(OWN)
        }

        fn groups(&self) -> Result<Groups, String> {
            look(&self.root, self).and_then(|place| Groups::enter(place, Box::new(self.clone()), |_| Ok(())))
        }

        /// The groups below that of this process.
        fn below(&self) -> Vec<PathBuf> {
            directories(&self.own())
        }
    }

    fn directories(path: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }

    impl System for Play {
        fn make(&self, group: &Path) -> io::Result<()> {
            fs::create_dir(group)?;
            let files = [PROCESSES, CONTROLLERS, HANDED_ON, "cgroup.type", "cgroup.kill", "memory.max"];
            for name in files.into_iter().chain(["memory.oom.group", "memory.swap.max"]) {
                fs::write(group.join(name), "")?;
            }
            fs::write(group.join("memory.events"), "low 0\noom 0\noom_kill 0\noom_group_kill 0\n")
        }

        fn join(&self, pid: u64, group: &Path) -> io::Result<()> {
            if has_memory_on(group) {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            for path in [self.own()].into_iter().chain(self.below()).flat_map(|all| {
                let below = directories(&all);
                below.into_iter().chain([all])
            }) {
                let left: Vec<u64> = processes(&path).into_iter().filter(|&other| other != pid).collect();
                let left: Vec<String> = left.iter().map(u64::to_string).collect();
                fs::write(path.join(PROCESSES), left.join("\n"))?;
            }
            fs::write(group.join(PROCESSES), format!("{pid}\n"))
        }

        fn remove(&self, group: &Path) -> io::Result<()> {
            let is_busy = group.exists() && (!processes(group).is_empty() || !directories(group).is_empty());
            if is_busy { Err(io::ErrorKind::ResourceBusy.into()) } else { fs::remove_dir_all(group) }
        }

        fn is_writable(&self, path: &Path) -> bool {
            path.symlink_metadata().is_ok() && self.locked.as_deref() != Some(path)
        }
    }

    fn has_memory_on(group: &Path) -> bool {
        fs::read_to_string(group.join(HANDED_ON)).is_ok_and(|text| text == "+memory")
    }

    #[test]
    fn groups_are_made_below_the_own_one_which_is_empty_meanwhile_and_are_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let play = Play::new(dir.path());
        let mut groups = play.groups().unwrap();
        let [all] = play.below().try_into().unwrap();
        assert_eq!((processes(&play.own()), processes(&all)), (vec![], vec![]));
        assert_eq!(processes(&all.join(ENGINE)), [me()]);
        assert!(has_memory_on(&play.own()) && has_memory_on(&all));
        let group = groups.begin(17, 300 << 20).unwrap();
        let said = |name: &str| fs::read_to_string(group.join(name)).unwrap();
        assert_eq!(["memory.max", "memory.swap.max", "memory.oom.group"].map(said), ["314572800", "0", "1"]);
        assert_eq!(groups.end(17), None);
        assert_eq!((group.exists(), groups.end(17)), (false, None));
        drop(groups);
        assert_eq!((play.below(), processes(&play.own())), (vec![], vec![me()]));
        assert!(!has_memory_on(&play.own()));
    }

    #[test]
    fn no_process_moves_in_the_uppermost_group() {
        let dir = tempfile::tempdir().unwrap();
        let play = Play::new(dir.path());
        write(&dir.path().join("proc/self/cgroup"), "0::/\n");
        let uppermost = dir.path().join(MOUNT);
        write(&uppermost.join(CONTROLLERS), "memory");
        write(&uppermost.join(HANDED_ON), "cpu memory");
        write(&uppermost.join(PROCESSES), &format!("1\n{}\n", me()));
        let groups = play.groups().unwrap();
        assert!(groups.all.starts_with(&uppermost) && !groups.all.join(ENGINE).exists());
        let all = groups.all.clone();
        drop(groups);
        assert!(!all.exists());
        assert_eq!(fs::read_to_string(uppermost.join(HANDED_ON)).unwrap(), "cpu memory");
        assert_eq!(processes(&uppermost), [1, me()]);
    }

    #[test]
    fn without_groups_the_reason_is_reported() {
        let why = |change: &dyn Fn(&mut Play)| {
            let dir = tempfile::tempdir().unwrap();
            let mut play = Play::new(dir.path());
            change(&mut play);
            let why = play.groups().err().unwrap();
            assert_eq!(play.below(), Vec::<PathBuf>::new());
            why.replace(&dir.path().display().to_string(), "")
        };
        let none = "found no control groups of version 2";
        assert_eq!(why(&|play| fs::remove_file(play.root.join("proc/self/cgroup")).unwrap()), none);
        assert_eq!(why(&|play| write(&play.root.join("proc/self/cgroup"), "4:memory:/x\n")), none);
        assert_eq!(why(&|play| write(&play.root.join("proc/self/cgroup"), "0::/../run.scope\n")), none);
        let mounts = "38 31 0:20 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n38 31 0:20 / /x";
        let of_version_1 = move |play: &mut Play| write(&play.root.join("proc/self/mountinfo"), mounts);
        assert_eq!(why(&of_version_1), none);
        let no_memory = |play: &mut Play| write(&play.own().join(CONTROLLERS), "cpu memory_x\n");
        let found = |what: &str| format!("found {what} control group /{OWN}");
        assert_eq!(why(&no_memory), found("no memory controller in the"));
        let locked = |play: &mut Play| play.locked = Some(play.own().join(HANDED_ON));
        assert_eq!(why(&locked), format!("{} not writable", found("the")));
        let others = |play: &mut Play| write(&play.own().join(PROCESSES), &format!("{}\n1234\n", me()));
        assert_eq!(why(&others), found("other processes in the"));
        let elsewhere = |play: &mut Play| write(&play.own().join(PROCESSES), "0\n");
        assert_eq!(why(&elsewhere), found("other processes in the"));
    }

    #[test]
    fn failed_preparations_are_undone() {
        let dir = tempfile::tempdir().unwrap();
        let play = Play::new(dir.path());
        fs::remove_file(play.own().join(HANDED_ON)).unwrap();
        std::os::unix::fs::symlink("nowhere/file", play.own().join(HANDED_ON)).unwrap();
        let why = play.groups().err().unwrap();
        assert!(why.starts_with("control groups below ") && why.contains(OWN), "{why}");
        assert_eq!((processes(&play.own()), play.below().len()), (vec![me()], 0));
        let refused = |_: &Path| Err(io::Error::other("the disk is full"));
        fs::remove_file(play.own().join(HANDED_ON)).unwrap();
        let place = look(dir.path(), &play);
        assert!(place.is_err(), "a group that hands nothing on is none");
        write(&play.own().join(HANDED_ON), "");
        let place = look(dir.path(), &play).unwrap();
        let why = Groups::enter(place, Box::new(play.clone()), refused).err().unwrap();
        assert!(why.ends_with("the disk is full"), "{why}");
        assert_eq!((processes(&play.own()), play.below()), (vec![me()], vec![]));
    }

    #[test]
    fn too_little_memory_is_reported_and_a_busy_group_is_removed_later() {
        let dir = tempfile::tempdir().unwrap();
        let play = Play::new(dir.path());
        let mut groups = play.groups().unwrap();
        let group = groups.begin(1, 300 << 20).unwrap();
        write(&group.join("memory.events"), "low 0\noom 1\noom_kill 3\n");
        write(&group.join(PROCESSES), "4321\n");
        let said = groups.end(1).unwrap();
        assert!(
            said.starts_with("out of memory: its commands together used more than the 300 MiB of the job"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(group.join("cgroup.kill")).unwrap(), "1");
        let next = groups.begin(2, 1 << 20).unwrap();
        assert!(group.exists() && next.exists());
        write(&group.join(PROCESSES), "");
        assert_eq!(groups.end(2), None);
        assert!(!group.exists() && !next.exists());
    }

    #[test]
    fn files_of_a_killed_run_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let play = Play::new(dir.path());
        let mut groups = play.groups().unwrap();
        let (group, all) = (groups.begin(9, 1 << 20).unwrap(), groups.all.clone());
        // It was killed with all processes in its groups.
        std::mem::forget(groups);
        write(&all.join(ENGINE).join(PROCESSES), "");
        write(&group.join(PROCESSES), "77\n");
        assert!(!remove_left(&all, &play) && group.exists(), "something is alive");
        write(&group.join(PROCESSES), "");
        assert!(remove_left(&all, &play) && !all.exists());
        assert!(remove_left(&all, &play), "what is gone is removed");
        assert!(remove_left(&play.own(), &play) && play.own().exists(), "it is no run's");
    }
}
