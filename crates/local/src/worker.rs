//! The process in which attempts run, one after the other.
//!
//! Its protocol: each line of standard input is a [`task::Spec`], as JSON, and is answered by a line of standard
//! output, a [`Report`]. Built-in programs run in the process itself; commands are started from it. When an attempt is
//! over, in whatever way, nothing that its commands started is left: the worker takes over what loses its parent (it is
//! a subreaper), so that all of it is found by its descent, and kills it before it reports.
//!
//! Whoever starts a worker keeps its standard input open: when that closes, because its engine closed it or died in
//! whatever way, the worker ends. What its commands started is told to (TERM), and killed after [`GRACE`]. An engine
//! starts it as leader of a process group of its own (a worker that is not makes itself one).

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slackline_model::Span;

use crate::guest;
use crate::surroundings;
use crate::task::{self, Outcome, Spec, TaskError};

/// How much a report quotes of each end of a long message, bytes. Even where every byte of it needs six in
/// JSON, the report is far below the 1 MiB that an engine reads.
const QUOTE: usize = 32 << 10;

/// How long processes of an attempt that is stopped may take to end.
pub const GRACE: Duration = Duration::from_secs(2);

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Done(Outcome),
    Failed {
        /// What stopped it, in words for a person; several lines if a command said something.
        message: String,
        /// Whether another attempt would end in the same way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_final: bool,
        /// The directory of a committed map whose output a reduce found gone or damaged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<PathBuf>,
        /// The exit code of the command that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    },
}

impl Report {
    /// What is said of an attempt.
    pub(crate) fn of(ended: Result<Outcome, TaskError>) -> Self {
        ended.map_or_else(|error| failure(&error), Self::Done)
    }

    /// An attempt that failed, and may not if it is made again.
    pub(crate) fn failed(message: String) -> Self {
        Self::Failed { message, is_final: false, lost: None, exit: None }
    }
}

/// The only argument of a program that is started as a worker of itself.
pub const ARGUMENT: &str = "worker";

/// Runs the worker to its end if this program was started as one, also as a [`guest`]. A program that runs flows on this
/// machine begins with this call, and ends with the exit code that it returns. It also [prepares](surroundings::prepare) the
/// process.
pub fn main_if_asked() -> Option<ExitCode> {
    surroundings::prepare();
    std::env::args_os().skip(1).eq([ARGUMENT]).then(main).or_else(guest::main_if_asked)
}

/// What a worker is doing.
static DOING: AtomicU8 = AtomicU8::new(NOTHING);
/// It waits for an attempt.
const NOTHING: u8 = 0;
/// It runs an attempt.
const AN_ATTEMPT: u8 = 1;
const ENDING: u8 = 2;

/// Held while a command is started. Whoever ends the process takes it and never gives it back: a command that started while
/// the others are told to end would outlive it.
static STARTING: Mutex<()> = Mutex::new(());

/// No other command is started, and the process is not ended, until this is dropped.
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the worker to its end.
pub fn main() -> ExitCode {
    if let Err(error) = end_with(io::stdin()) {
        // The report answers the first attempt.
        let _ = io::stdin().lock().read_line(&mut String::new());
        let _ = say(&Report::failed(no_thread(&error)));
        return ExitCode::FAILURE;
    }
    let (mut input, mut line, mut is_first) = (io::stdin().lock(), String::new(), true);
    loop {
        line.clear();
        let spec = match input.read_line(&mut line) {
            Ok(0) if !is_first => return ExitCode::SUCCESS,
            Ok(_) => serde_json::from_str::<Spec>(&line)
                .map_err(|e| format!("standard input holds no attempt: {e}")),
            Err(e) => Err(format!("cannot read the attempt from standard input: {e}")),
        };
        let is_attempt = spec.is_ok();
        let report = match spec {
            Ok(spec) => attempt(&spec),
            Err(message) => Report::failed(message),
        };
        if say(&report).is_err() || !is_attempt {
            return ExitCode::FAILURE;
        }
        is_first = false;
    }
}

/// Runs an attempt, and ends what its commands leave behind.
pub(crate) fn attempt(spec: &Spec) -> Report {
    go_on(NOTHING, AN_ATTEMPT);
    let report = Report::of(task::run(spec));
    go_on(AN_ATTEMPT, NOTHING);
    system::sweep();
    report
}

/// Does something else from now on, unless the other thread ends the process: then nothing is begun or reported any more.
fn go_on(before: u8, after: u8) {
    if DOING.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        loop {
            thread::park();
        }
    }
}

/// The same for an attempt that may take no longer than `limit`. After that what it started is ended, `late` is given the
/// report of that, and the process ends.
pub(crate) fn attempt_within(
    limit: Option<Span>,
    spec: &Spec,
    late: impl FnOnce(&Report) + Send + 'static,
) -> Report {
    let Some(limit) = limit else { return attempt(spec) };
    let (is_over, waits) = mpsc::channel::<()>();
    let watching = thread::Builder::new().spawn(move || {
        let is_late = waits.recv_timeout(Duration::from_micros(limit.0)) == Err(RecvTimeoutError::Timeout);
        let may_end =
            || DOING.compare_exchange(AN_ATTEMPT, ENDING, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_late && may_end() {
            system::end_all();
            late(&Report::failed(too_long(limit)));
            std::process::exit(0);
        }
    });
    if let Err(error) = watching {
        return Report::failed(no_thread(&error));
    }
    let report = attempt(spec);
    drop(is_over);
    report
}

/// What is said of an attempt that was killed because it took longer than it may.
pub(crate) fn too_long(limit: Span) -> String {
    format!("found no end after {limit}, expected one: it was killed")
}

fn say(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_string(report).expect("invariant: a report can be written as JSON");
    line.push('\n');
    io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush())
}

fn failure(error: &TaskError) -> Report {
    let (is_final, lost, exit) = (error.is_final(), error.lost_map(), error.exit());
    Report::Failed { message: short(&error.to_string()), is_final, lost, exit }
}

/// Of a long message the beginning and the end.
fn short(message: &str) -> String {
    if message.len() <= 2 * QUOTE {
        return message.to_owned();
    }
    let [head, tail] = [&message.as_bytes()[..QUOTE], &message.as_bytes()[message.len() - QUOTE..]]
        .map(String::from_utf8_lossy);
    format!("{head} [... some of it is left out here ...] {tail}")
}

/// From now on this process ends, with everything that it started, as soon as the other end of a pipe is closed.
///
/// # Errors
/// The system has no more threads.
pub(crate) fn end_with(pipe: impl AsFd + Send + 'static) -> io::Result<()> {
    system::prepare();
    // Its end is the process's; there is nothing to wait for.
    thread::Builder::new().spawn(move || watch(pipe)).map(drop)
}

fn no_thread(error: &io::Error) -> String {
    format!("its process cannot start a thread: {error}")
}

/// Waits until nobody has the other end, then ends everything. Meanwhile it takes note of the end of processes that lost
/// their parent.
fn watch(pipe: impl AsFd) {
    while !system::is_closed(&pipe) {
        if DOING.load(Ordering::SeqCst) == AN_ATTEMPT {
            system::reap_orphans();
        }
    }
    let was = DOING.swap(ENDING, Ordering::SeqCst);
    system::end_all();
    std::process::exit(i32::from(was == AN_ATTEMPT));
}

mod system {
    use std::os::fd::AsFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, Signal, WaitOptions};

    use super::{GRACE, STARTING, TryLockError};
    use crate::clock::{self, Stopwatch};
    use crate::process;

    /// How often orphans are looked for, 5 s: a command that starts a process for every line has some thousand by then.
    const EVERY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
    /// Between two looks at processes that were killed, and at processes that were told to end.
    const STEP: std::time::Duration = std::time::Duration::from_millis(2);
    const STRIDE: std::time::Duration = std::time::Duration::from_millis(10);
    /// Processes that a signal cannot end are waited for no longer than this after an attempt.
    const SWEEP: std::time::Duration = std::time::Duration::from_secs(10);

    /// Leads a process group, and takes over what loses its parent below this process.
    pub(super) fn prepare() {
        if rustix::process::getpgrp() != rustix::process::getpid() {
            // It is refused to the leader of a session alone, which leads its group.
            let _ = rustix::process::setpgid(None, None);
        }
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Waits for a while; true as soon as nobody has the other end of a pipe any more.
    pub(super) fn is_closed(pipe: impl AsFd) -> bool {
        let mut fds = [PollFd::new(&pipe, PollFlags::empty())];
        let is_ready = poll(&mut fds, Some(&EVERY)).is_ok_and(|ready| ready > 0);
        is_ready && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    fn me() -> u64 {
        u64::from(std::process::id())
    }

    /// Takes note of the end of processes that lost their parent. A command leads its group: somebody else waits for it.
    pub(super) fn reap_orphans() {
        let is_orphan = |(pid, process): &(u64, process::Process)| {
            process.parent == me() && process.is_dead && process.group != *pid
        };
        for (pid, _) in process::below(me()).iter().filter(|process| is_orphan(process)) {
            let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            let _ = rustix::process::waitpid(pid, WaitOptions::NOHANG);
        }
    }

    /// Kills what is left below this process, whose commands have ended. One system call if nothing is.
    pub(super) fn sweep() {
        let clock = Stopwatch::start();
        while clock.elapsed() < SWEEP {
            match rustix::process::wait(WaitOptions::NOHANG) {
                // What has ended is taken note of, one by one.
                Ok(Some(_)) => {}
                Ok(None) => {
                    signal_all(Signal::KILL);
                    clock::pause(STEP);
                }
                // Nobody is there.
                Err(_) => return,
            }
        }
    }

    /// No command is started from now on. One whose start takes long, as its file system does not answer, is not waited for
    /// beyond [`GRACE`].
    fn end_starts() {
        let clock = Stopwatch::start();
        loop {
            match STARTING.try_lock() {
                Err(TryLockError::WouldBlock) if clock.elapsed() < GRACE => clock::pause(STRIDE),
                held => return std::mem::forget(held),
            }
        }
    }

    /// Ends what is below this process: by TERM, and after [`GRACE`] by KILL.
    pub(super) fn end_all() {
        end_starts();
        let clock = Stopwatch::start();
        if signal_all(Signal::TERM) == 0 {
            return;
        }
        while clock.elapsed() < GRACE {
            clock::pause(STRIDE);
            if alive().is_empty() {
                return;
            }
        }
        while signal_all(Signal::KILL) > 0 && clock.elapsed() < SWEEP {
            clock::pause(STEP);
        }
    }

    /// What lives below this process. Who loses its parent while it is looked at is found by the second look, as this
    /// process has taken it over by then.
    fn alive() -> Vec<u64> {
        let look = || -> Vec<u64> {
            let below = process::below(me()).into_iter();
            below.filter(|(_, process)| !process.is_dead).map(|(pid, _)| pid).collect()
        };
        let found = look();
        if found.is_empty() { look() } else { found }
    }

    /// Sends a signal to all that live below this process; says how many.
    fn signal_all(signal: Signal) -> usize {
        let alive = alive();
        for &pid in &alive {
            process::signal(pid, signal);
        }
        alive.len()
    }
}
