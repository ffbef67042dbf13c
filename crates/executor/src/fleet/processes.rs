//! A fleet of one: this machine. Attempts run in long-lived worker processes, one attempt at a time in each.
//!
//! One loop listens to all workers; there is no thread for any of them. A worker is started when an attempt
//! starts and none is idle, and is ended with everything that it started when its attempt is stopped. Where a
//! process does not end at once after it is killed, a thread waits for it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{self, PipeReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use slackline_task::base::activity::during;
use slackline_task::base::clock::Stopwatch;
use slackline_task::process::cgroups::Groups;
use slackline_task::process::process_tree::{self, MARK};
use slackline_task::process::report::Report;
use slackline_task::process::shutdown;
use slackline_task::process::spec::{Job, Spec};
use slackline_task::process::worker_command::WorkerCommand;

use super::{Assignment, Capacity, Fleet, FleetEvent, Waker};
use crate::store::pid_file::PidFile;

/// A report with the last words of a command is far shorter.
const REPORT_MAX: usize = 1 << 20;

/// The time for a worker to end its processes before it is killed: a little longer than it gives to commands.
const PATIENCE: Duration = Duration::from_secs(shutdown::GRACE.as_secs() + 1);

/// Worker processes of this machine.
pub(crate) struct Processes {
    command: WorkerCommand,
    /// Variables of their environment beside those of this process.
    env: Vec<(String, String)>,
    /// The directory of the pid files.
    pids: PathBuf,
    workers: BTreeMap<u64, Worker>,
    /// Workers without an attempt; the one that ran last is the last.
    idle: Vec<u64>,
    /// Which worker works on an attempt.
    at_work: BTreeMap<u64, u64>,
    /// Control groups for attempts with a memory limit, if available.
    groups: Option<Groups>,
    /// The name of the next worker.
    next_name: u64,
    event: VecDeque<FleetEvent>,
    /// Workers that threads wait for: their number, and the results.
    reaping: usize,
    reaped: Receiver<WorkerEnd>,
    reaper: Sender<WorkerEnd>,
    clock: Stopwatch,
    woken: PipeReader,
    waker: Waker,
}

/// The error of the attempt of a worker that ended, if it had one.
struct WorkerEnd(Option<(u64, String)>);

/// A worker, running or idle. Closing its standard input is the order to end with everything it started.
struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// What its standard input could not take yet.
    unsaid: Vec<u8>,
    /// The start of an incomplete line.
    unread: Vec<u8>,
    attempt: Option<u64>,
    /// When it is killed if it has not ended by then.
    deadline: Option<Duration>,
    pid_file: PidFile,
}

impl Processes {
    /// Workers that are started like this, with their pid files in a directory, which is made. What attempts
    /// may take of memory is held by control groups, or without them by resource limits.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn new(command: WorkerCommand, pids: PathBuf, groups: Option<Groups>) -> io::Result<Self> {
        fs::create_dir_all(&pids)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: cannot be made: {e}", pids.display())))?;
        let (woken, waking) = io::pipe()?;
        rustix::io::ioctl_fionbio(&woken, true)?;
        rustix::io::ioctl_fionbio(&waking, true)?;
        let waker: Waker = Arc::new(move || {
            // A pipe that is full has woken it already.
            let _ = (&waking).write(&[1]);
        });
        let (reaper, reaped) = channel();
        Ok(Self {
            reaping: 0,
            reaped,
            reaper,
            command,
            env: Vec::new(),
            pids,
            workers: BTreeMap::new(),
            idle: Vec::new(),
            at_work: BTreeMap::new(),
            groups,
            next_name: 0,
            event: VecDeque::new(),
            clock: Stopwatch::start(),
            woken,
            waker,
        })
    }

    /// With variables in the environment of the workers.
    pub(crate) fn with_env(mut self, env: Vec<(String, String)>) -> Self {
        self.env = env;
        self
    }

    /// Starts a worker. Its pid file is written before its first attempt, so that a later engine can end it.
    fn hire(&mut self) -> io::Result<u64> {
        let name = self.next_name;
        self.next_name += 1;
        let path = self.pids.join(name.to_string());
        during("start a worker with", path.display(), || self.hire_with(name, path.clone()))?;
        Ok(name)
    }

    fn hire_with(&mut self, name: u64, path: PathBuf) -> io::Result<()> {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new(&self.command.program)
            .args(&self.command.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env(MARK, process_tree::mark(&path))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.expect("invariant: both are piped");
        let ready = PidFile::create(path, u64::from(child.id())).and_then(|pid_file| {
            rustix::io::ioctl_fionbio(&stdin, true)?;
            rustix::io::ioctl_fionbio(&stdout, true)?;
            Ok(pid_file)
        });
        let pid_file = match ready {
            Ok(pid_file) => pid_file,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let worker = Worker {
            child,
            stdin: Some(stdin),
            stdout,
            unsaid: Vec::new(),
            unread: Vec::new(),
            attempt: None,
            deadline: None,
            pid_file,
        };
        self.workers.insert(name, worker);
        Ok(())
    }

    /// Waits until a worker sends something, can receive more, ends, or has used up its time; then handles
    /// that.
    fn listen(&mut self, patience: Duration) -> bool {
        let now = self.clock.elapsed();
        let deadlines = self.workers.values().filter_map(|worker| worker.deadline);
        let until = deadlines.min().map_or(patience, |at| patience.min(at.saturating_sub(now)));
        let ready = self.ready(until);
        let is_woken = ready.first() == Some(&None);
        if is_woken {
            let mut bytes = [0; 64];
            while matches!(self.woken.read(&mut bytes), Ok(read) if read > 0) {}
        }
        for name in ready.into_iter().flatten() {
            self.attend(name);
        }
        while let Ok(reaped) = self.reaped.try_recv() {
            self.take_in(reaped);
        }
        let now = self.clock.elapsed();
        for worker in self.workers.values_mut().filter(|w| w.deadline.is_some_and(|at| at <= now)) {
            // Its end arrives as that of its output.
            worker.kill();
            worker.deadline = None;
        }
        is_woken
    }

    /// The workers that need attention; `None`, first, if it was woken.
    fn ready(&self, patience: Duration) -> Vec<Option<u64>> {
        let mut names = vec![None];
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for (&name, worker) in &self.workers {
            names.push(Some(name));
            fds.push(PollFd::new(&worker.stdout, PollFlags::IN));
            if let Some(stdin) = worker.stdin.as_ref().filter(|_| !worker.unsaid.is_empty()) {
                names.push(Some(name));
                fds.push(PollFd::new(stdin, PollFlags::OUT));
            }
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        if poll(&mut fds, Some(&timeout)).is_err() {
            // A signal: the caller waits again.
            return Vec::new();
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        names.into_iter().zip(&fds).filter(|(_, fd)| is_ready(fd)).map(|(name, _)| name).collect()
    }

    /// Writes pending bytes to a worker, and reads its output.
    fn attend(&mut self, name: u64) {
        let Some(worker) = self.workers.get_mut(&name) else { return };
        // That it reads no more arrives as the end of its output.
        let _ = worker.tell();
        let has_ended = worker.hear();
        while let Some(at) = worker.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = worker.unread.drain(..=at).collect();
            // Messages of a worker that must end do not count.
            let Some(attempt) = worker.attempt.filter(|_| worker.deadline.is_none()) else { continue };
            worker.attempt = None;
            worker.pid_file.note(None);
            self.at_work.remove(&attempt);
            self.idle.push(name);
            let report = serde_json::from_slice::<Report>(&line);
            let report = report.map_err(|e| format!("its process sent an invalid report: {e}"));
            let report = closed(self.groups.as_mut(), attempt, report);
            self.event.push_back(FleetEvent::Ended { attempt, report });
        }
        if worker.unread.len() > REPORT_MAX {
            worker.kill();
        }
        if has_ended {
            self.bury(name);
        }
    }

    /// A worker has ended: nothing that it started stays.
    fn bury(&mut self, name: u64) {
        let Some(mut worker) = self.workers.remove(&name) else { return };
        let attempt = worker.attempt;
        self.idle.retain(|&other| other != name);
        worker.kill();
        self.reaping += 1;
        if let Ok(Some(status)) = worker.child.try_wait()
            && is_orderly(status)
        {
            let reaped = worker.attempt.map(|attempt| (attempt, said(status)));
            return self.take_in(WorkerEnd(reaped));
        }
        let (reaper, waker) = (self.reaper.clone(), self.waker.clone());
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        let started = thread.spawn(move || {
            let how = worker.reaped();
            // Its pid file is removed before the fleet, which may have ended, learns of its end.
            drop(worker);
            let _ = reaper.send(WorkerEnd(attempt.map(|attempt| (attempt, how))));
            waker();
        });
        if let Err(error) = started {
            let problem = format!("cannot start a thread that waits for its process: {error}");
            self.take_in(WorkerEnd(attempt.map(|attempt| (attempt, problem))));
        }
    }

    /// Nothing of a worker is left, or nothing can be done about it.
    fn take_in(&mut self, WorkerEnd(ended): WorkerEnd) {
        self.reaping -= 1;
        let Some((attempt, how)) = ended else { return };
        self.at_work.remove(&attempt);
        let report = closed(self.groups.as_mut(), attempt, Err(how));
        self.event.push_back(FleetEvent::Ended { attempt, report });
    }

    /// The spec of an attempt on this machine, with the control group of its commands, if they have one.
    fn spec<'a>(&mut self, attempt: u64, spec: &'a Spec) -> io::Result<Cow<'a, Spec>> {
        let has_commands = !matches!(spec.job, Job::Program { .. });
        let Some((groups, bytes)) = self.groups.as_mut().zip(spec.memory_limit.filter(|_| has_commands))
        else {
            return Ok(Cow::Borrowed(spec));
        };
        let memory_group = Some(groups.begin(attempt, bytes)?);
        Ok(Cow::Owned(Spec { memory_group, ..spec.clone() }))
    }

    /// Sends an attempt to a worker, as a line.
    fn hand_over(&mut self, attempt: Assignment, line: &[u8]) -> io::Result<()> {
        loop {
            let idle = self.idle.pop();
            let is_new = idle.is_none();
            let name = idle.map_or_else(|| self.hire(), Ok)?;
            let Some(worker) = self.workers.get_mut(&name) else { continue };
            worker.pid_file.note(Some(attempt.attempt));
            worker.unsaid.extend_from_slice(line);
            match worker.tell() {
                Ok(()) => {
                    worker.attempt = Some(attempt.number);
                    self.at_work.insert(attempt.number, name);
                    return Ok(());
                }
                Err(error) => {
                    // It has died while it was idle.
                    self.bury(name);
                    if is_new {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// The report of an attempt that has ended. Its control group is removed.
fn closed(
    groups: Option<&mut Groups>,
    attempt: u64,
    report: Result<Report, String>,
) -> Result<Report, String> {
    match groups.and_then(|groups| groups.end(attempt)) {
        Some(why) => explained(report, &why),
        None => report,
    }
}

/// The report of an attempt that ran out of memory.
fn explained(report: Result<Report, String>, why: &str) -> Result<Report, String> {
    match report {
        Ok(Report::Failed { message, is_final, lost, exit }) => {
            Ok(Report::Failed { message: format!("{why}; {message}"), is_final, lost, exit })
        }
        Err(message) => Err(format!("{why}; {message}")),
        done => done,
    }
}

/// Whether a worker ended by itself.
fn is_orderly(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 1))
}

fn said(status: ExitStatus) -> String {
    format!("its process ended without a report: {status}")
}

impl Worker {
    /// Writes as much of the pending output as its standard input takes.
    fn tell(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        while !self.unsaid.is_empty() {
            match stdin.write(&self.unsaid) {
                Ok(written) => drop(self.unsaid.drain(..written)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.unsaid.clear();
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// Reads its output; returns true at the end.
    fn hear(&mut self) -> bool {
        let mut block = [0; 1 << 12];
        while self.unread.len() <= REPORT_MAX {
            match self.stdout.read(&mut block) {
                Ok(0) => return true,
                Ok(read) => self.unread.extend_from_slice(&block[..read]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Waits until it has ended with all its processes. Returns how it ended.
    fn reaped(&mut self) -> String {
        let status = self.child.wait();
        // A worker that ended by itself has first ended its processes.
        let left = match &status {
            Ok(status) if is_orderly(*status) => Ok(()),
            _ => process_tree::end_marked(&BTreeSet::from([self.pid_file.mark()])),
        };
        match (status, left) {
            (_, Err(e)) => e.to_string(),
            (Ok(status), _) => said(status),
            (Err(e), _) => format!("its process cannot be waited for: {e}"),
        }
    }

    /// Kills its process. Its number is its own until it has been waited for.
    fn kill(&self) {
        process_tree::signal(u64::from(self.child.id()), Signal::KILL);
    }
}

impl Fleet for Processes {
    fn machines(&self) -> Vec<Capacity> {
        vec![Capacity::here()]
    }

    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()> {
        let event = self.spec(attempt.number, spec)?;
        let mut line = serde_json::to_vec(&event).expect("invariant: an attempt can be written as JSON");
        line.push(b'\n');
        let begun = self.hand_over(attempt, &line);
        if begun.is_err() {
            self.groups.as_mut().and_then(|groups| groups.end(attempt.number));
        }
        begun
    }

    fn stop(&mut self, attempt: u64) {
        let Some(worker) = self.at_work.get(&attempt).and_then(|name| self.workers.get_mut(name)) else {
            return;
        };
        worker.stdin = None;
        worker.unsaid.clear();
        worker.deadline.get_or_insert(self.clock.elapsed() + PATIENCE);
    }

    fn next(&mut self, patience: Duration) -> Option<FleetEvent> {
        let until = self.clock.elapsed() + patience;
        loop {
            if let Some(event) = self.event.pop_front() {
                return Some(event);
            }
            let left = until.saturating_sub(self.clock.elapsed());
            let is_woken = self.listen(left);
            if self.event.is_empty() && (is_woken || left.is_zero()) {
                return None;
            }
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let until = self.clock.elapsed() + PATIENCE;
        for worker in self.workers.values_mut() {
            worker.stdin = None;
            worker.deadline.get_or_insert(until);
        }
        while !self.workers.is_empty() && self.clock.elapsed() < until {
            self.listen(until.saturating_sub(self.clock.elapsed()));
        }
        let names: Vec<u64> = self.workers.keys().copied().collect();
        for name in names {
            self.bury(name);
        }
        while self.reaping > 0
            && let Ok(reaped) = self.reaped.recv_timeout(PATIENCE)
        {
            self.take_in(reaped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_task::process::spec::Outcome;

    #[test]
    fn an_attempt_that_failed_says_that_its_memory_did_not_do() {
        let failed = Report::failed("mapper \"sort\": signal: 9".to_owned());
        let Ok(Report::Failed { message, .. }) = explained(Ok(failed), "out of memory") else {
            panic!("it has not failed");
        };
        assert_eq!(message, "out of memory; mapper \"sort\": signal: 9");
        assert_eq!(explained(Err("gone".into()), "why"), Err("why; gone".into()));
        let done = || Ok(Report::Done(Outcome::default()));
        assert_eq!(explained(done(), "why"), done());
        assert_eq!(closed(None, 1, done()), done());
    }
}
