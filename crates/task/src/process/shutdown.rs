//! The end of a worker process: all processes that it started end with it.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use std::{io, thread};

use slackline_model::Span;

use crate::process::report::{Report, too_long};

/// Time for the processes of a stopped attempt to end.
pub const GRACE: Duration = Duration::from_secs(2);

/// The state of the worker.
static DOING: AtomicU8 = AtomicU8::new(NOTHING);
/// It waits for an attempt.
const NOTHING: u8 = 0;
/// It runs an attempt.
const AN_ATTEMPT: u8 = 1;
const ENDING: u8 = 2;

/// Held while a command is started. The thread that ends the process locks it and never releases it: a
/// command that started during the shutdown would outlive the process.
static STARTING: Mutex<()> = Mutex::new(());

/// While this guard lives, no other command starts and the process does not end.
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an attempt, and ends the processes that its commands leave.
pub(crate) fn supervise(attempt: impl FnOnce() -> Report) -> Report {
    switch(NOTHING, AN_ATTEMPT);
    let report = attempt();
    switch(AN_ATTEMPT, NOTHING);
    system::sweep();
    report
}

/// Changes the state, unless the other thread ends the process: then no attempt starts or is reported any
/// more.
fn switch(before: u8, after: u8) {
    if DOING.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        loop {
            thread::park();
        }
    }
}

/// The same for an attempt with a time limit. After `limit` its processes are ended, `late` gets the report,
/// and the process ends.
pub(crate) fn supervise_within(
    limit: Option<Span>,
    attempt: impl FnOnce() -> Report,
    late: impl FnOnce(&Report) + Send + 'static,
) -> Report {
    let Some(limit) = limit else { return supervise(attempt) };
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
    let report = supervise(attempt);
    drop(is_over);
    report
}

/// From now on this process ends, with all processes that it started, when the other end of a pipe closes.
///
/// # Errors
/// The system has no more threads.
pub(crate) fn end_when_closed(pipe: impl AsFd + Send + 'static) -> io::Result<()> {
    system::prepare();
    // Its end is that of the process; no thread waits for it.
    thread::Builder::new().spawn(move || watch(pipe)).map(drop)
}

pub(crate) fn no_thread(error: &io::Error) -> String {
    format!("its process cannot start a thread: {error}")
}

/// Waits until the other end closes, then ends all processes. Meanwhile it reaps processes that lost their
/// parent.
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
    use crate::base::clock::{self, Stopwatch};
    use crate::process::process_tree;

    /// Interval between checks for orphans, 5 s: a command that starts a process for every line has some
    /// thousand by then.
    const EVERY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
    /// Pause between two checks of processes that were killed or asked to end.
    const STEP: std::time::Duration = std::time::Duration::from_millis(2);
    const STRIDE: std::time::Duration = std::time::Duration::from_millis(10);
    /// Longest wait after an attempt for processes that a signal cannot end.
    const SWEEP: std::time::Duration = std::time::Duration::from_secs(10);

    /// Makes this process the leader of a process group and the parent of orphans below it.
    pub(super) fn prepare() {
        if rustix::process::getpgrp() != rustix::process::getpid() {
            // Only the leader of a session is refused, and it leads its group already.
            let _ = rustix::process::setpgid(None, None);
        }
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Waits for a while; returns true as soon as the other end of a pipe closes.
    pub(super) fn is_closed(pipe: impl AsFd) -> bool {
        let mut fds = [PollFd::new(&pipe, PollFlags::empty())];
        let is_ready = poll(&mut fds, Some(&EVERY)).is_ok_and(|ready| ready > 0);
        is_ready && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    fn me() -> u64 {
        u64::from(std::process::id())
    }

    /// Reaps processes that lost their parent. A command leads its group: another thread waits for it.
    pub(super) fn reap_orphans() {
        let is_orphan = |(pid, process): &(u64, process_tree::Process)| {
            process.parent == me() && process.is_dead && process.group != *pid
        };
        for (pid, _) in process_tree::below(me()).iter().filter(|process| is_orphan(process)) {
            let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            let _ = rustix::process::waitpid(pid, WaitOptions::NOHANG);
        }
    }

    /// Kills the remaining processes below this one, whose commands have ended. One system call if there are
    /// none.
    pub(super) fn sweep() {
        let clock = Stopwatch::start();
        while clock.elapsed() < SWEEP {
            match rustix::process::wait(WaitOptions::NOHANG) {
                // An ended process is reaped; continue with the next.
                Ok(Some(_)) => {}
                Ok(None) => {
                    signal_all(Signal::KILL);
                    clock::pause(STEP);
                }
                // There is no process.
                Err(_) => return,
            }
        }
    }

    /// Prevents starts of commands from now on. A start that takes long, because its file system does not
    /// answer, is awaited for at most [`GRACE`].
    fn end_starts() {
        let clock = Stopwatch::start();
        loop {
            match STARTING.try_lock() {
                Err(TryLockError::WouldBlock) if clock.elapsed() < GRACE => clock::pause(STRIDE),
                held => return std::mem::forget(held),
            }
        }
    }

    /// Ends the processes below this one: by TERM, and after [`GRACE`] by KILL.
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

    /// The living processes below this one. A process that loses its parent during the first pass is found by
    /// the second, as this process has adopted it by then.
    fn alive() -> Vec<u64> {
        let look = || -> Vec<u64> {
            let below = process_tree::below(me()).into_iter();
            below.filter(|(_, process)| !process.is_dead).map(|(pid, _)| pid).collect()
        };
        let found = look();
        if found.is_empty() { look() } else { found }
    }

    /// Sends a signal to all living processes below this one; returns their number.
    fn signal_all(signal: Signal) -> usize {
        let alive = alive();
        for &pid in &alive {
            process_tree::signal(pid, signal);
        }
        alive.len()
    }
}
