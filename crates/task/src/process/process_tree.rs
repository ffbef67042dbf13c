//! Finds and kills the processes that a worker has started.
//!
//! A process is found by its descent (`below`), as long as the worker lives that it descends from, or by a
//! variable of its environment ([`end_marked`]), which it hands on to everything that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::base::clock;

/// The variable by which everything that a worker starts is known: it holds the name of the worker's pid
/// file.
pub const MARK: &str = "SLACKLINE_WORKER";

/// How long killed processes are waited for, in steps of [`STEP`].
const STEPS: u32 = 1000;
const STEP: Duration = Duration::from_millis(10);

/// A process, as the system tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Who started it, or took it over.
    pub(crate) parent: u64,
    pub(crate) group: u64,
    /// When it began, in ticks since the machine did.
    pub started: u64,
    /// Whether it only waits to be taken note of: it does nothing any more.
    pub is_dead: bool,
}

impl Process {
    pub fn of(pid: u64) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Self { parent: number(1)?, group: number(2)?, started: number(19)?, is_dead })
    }
}

/// Which start of the machine this is; empty where it does not say. Before another one nothing is alive.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The numbers of all processes; none where the system does not list them.
fn pids() -> Vec<u64> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What descends from a process, dead ones included, with their numbers. O(processes · log processes).
pub(crate) fn below(root: u64) -> Vec<(u64, Process)> {
    let mut children: BTreeMap<u64, Vec<(u64, Process)>> = BTreeMap::new();
    for pid in pids() {
        if let Some(process) = Process::of(pid) {
            children.entry(process.parent).or_default().push((pid, process));
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(parent) = open.pop() {
        let of_parent = children.remove(&parent).unwrap_or_default();
        open.extend(of_parent.iter().map(|(pid, _)| *pid));
        found.extend(of_parent);
    }
    found
}

/// Sends a signal to a process, if it is there.
pub fn signal(pid: u64, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Waits for something, ten seconds at most; says whether it came. Each look may do something for it.
pub fn wait_for(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..STEPS {
        if is_so() {
            return true;
        }
        clock::pause(STEP);
    }
    false
}

/// The mark of the processes that the worker of a pid file starts, for any form of the file's path.
pub fn mark(pid_file: &Path) -> String {
    std::path::absolute(pid_file).unwrap_or_else(|_| pid_file.to_owned()).display().to_string()
}

/// A handle of a process: what is sent to it reaches no other that has its number meanwhile, where the system
/// can tell them apart.
struct ProcessHandle {
    pid: u64,
    held: Option<OwnedFd>,
}

impl ProcessHandle {
    /// None if it is gone.
    fn of(pid: u64) -> Option<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(held) => Some(Self { pid, held: Some(held) }),
            // A system from before 2019, or one that has no more of them.
            Err(Errno::NOSYS | Errno::PERM | Errno::MFILE | Errno::NFILE) => Some(Self { pid, held: None }),
            Err(_) => None,
        }
    }

    fn kill(&self) {
        match &self.held {
            // It may have ended by itself just now.
            Some(held) => drop(pidfd_send_signal(held, Signal::KILL)),
            None => signal(self.pid, Signal::KILL),
        }
    }
}

/// The user that started a process, even if it has changed its user since; `None` if it is gone.
fn user(pid: u64) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

/// Living processes of this user with one of these marks in their environment: other users may set any
/// environment. O(processes).
fn marked(marks: &BTreeSet<String>) -> Vec<ProcessHandle> {
    let own = rustix::process::getuid().as_raw();
    let is_marked = |held: &ProcessHandle| {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", held.pid)) else { return false };
        let mut variables = environment.split(|&byte| byte == 0);
        let start = format!("{MARK}=");
        let value = variables.find_map(|variable| variable.strip_prefix(start.as_bytes()));
        value.is_some_and(|value| marks.contains(&*String::from_utf8_lossy(value)))
            && user(held.pid) == Some(own)
    };
    let is_alive = |held: &ProcessHandle| Process::of(held.pid).is_some_and(|process| !process.is_dead);
    pids().into_iter().filter_map(ProcessHandle::of).filter(is_marked).filter(is_alive).collect()
}

/// Kills all processes of this user that have one of these marks in their environment, and waits until they
/// are gone.
///
/// # Errors
/// Something does not go within ten seconds; with its number.
pub fn end_marked(marks: &BTreeSet<String>) -> io::Result<()> {
    let mut left = Vec::new();
    let is_gone = wait_for(|| {
        left = marked(marks);
        left.iter().for_each(ProcessHandle::kill);
        left.is_empty()
    });
    if is_gone {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "found process {} still there that a worker started, expected it to be gone",
        left.first().map(|held| held.pid).unwrap_or_default()
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_of_another_user_is_not_killed_by_its_mark() {
        if !rustix::process::getuid().is_root() {
            eprintln!("SKIPPED: not root");
            return;
        }
        let mark = format!("/of/a/test/{}", std::process::id());
        let start = |uid: u32| {
            let mut command = Command::new("sleep");
            command.arg("60").env(MARK, &mark).uid(uid).current_dir("/").spawn().unwrap()
        };
        let (mut own, mut other) = (start(0), start(54_331));
        // Before it is another program it has the environment of this test.
        let is_there = |pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        };
        assert!(wait_for(|| is_there(own.id()) && is_there(other.id())));
        let waited = std::thread::spawn(move || own.wait().unwrap());
        end_marked(&BTreeSet::from([mark.clone()])).unwrap();
        assert!(!waited.join().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
