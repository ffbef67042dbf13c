//! Finds and kills the processes that a worker has started.
//!
//! A process is found by its descent (`below`) while the worker lives, or by an environment variable
//! ([`end_marked`]), which it passes on to all processes that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::base::clock;

/// The variable that marks all processes of a worker: it has the name of the worker's pid file.
pub const MARK: &str = "SLACKLINE_WORKER";

/// Steps of [`STEP`] for which killed processes are awaited.
const STEPS: u32 = 1000;
const STEP: Duration = Duration::from_millis(10);

/// A process in the system's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process that started it, or adopted it.
    pub(crate) parent: u64,
    pub(crate) group: u64,
    /// Its start in ticks since the start of the machine.
    pub started: u64,
    /// Whether it has ended and only waits for its parent to reap it.
    pub is_dead: bool,
}

impl Process {
    pub fn of(pid: u64) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may have any characters; fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Self { parent: number(1)?, group: number(2)?, started: number(19)?, is_dead })
    }
}

/// The id of this start of the machine; empty if unknown. No process lives through a restart.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The numbers of all processes; empty if the system does not list them.
fn pids() -> Vec<u64> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The descendants of a process, dead ones included, with their numbers. O(processes · log processes).
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

/// Sends a signal to a process, if it exists.
pub fn signal(pid: u64, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Waits for a condition, at most ten seconds; returns whether it holds. The check may have side effects.
pub fn wait_for(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..STEPS {
        if is_so() {
            return true;
        }
        clock::pause(STEP);
    }
    false
}

/// The mark of the processes of a worker, by its pid file, for any form of the file's path.
pub fn mark(pid_file: &Path) -> String {
    std::path::absolute(pid_file).unwrap_or_else(|_| pid_file.to_owned()).display().to_string()
}

/// A handle of a process: a signal never reaches another process that has its number meanwhile, if the system
/// can distinguish them.
struct ProcessHandle {
    pid: u64,
    held: Option<OwnedFd>,
}

impl ProcessHandle {
    /// `None` if the process has ended.
    fn of(pid: u64) -> Option<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(held) => Some(Self { pid, held: Some(held) }),
            // A system from before 2019, or one without free descriptors.
            Err(Errno::NOSYS | Errno::PERM | Errno::MFILE | Errno::NFILE) => Some(Self { pid, held: None }),
            Err(_) => None,
        }
    }

    fn kill(&self) {
        match &self.held {
            // It may have ended just now.
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
/// A process that does not end within ten seconds, with its number.
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
        "process {}, which a worker started, still runs after it was killed",
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
        // Before it executes another program it has the environment of this test.
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
