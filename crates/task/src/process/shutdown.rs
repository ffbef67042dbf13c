//! The end of a worker process: everything that it started ends with it.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use std::{io, thread};

use slackline_model::Span;

use crate::process::report::{Report, too_long};

/// How long processes of an attempt that is stopped may take to end.
pub const GRACE: Duration = Duration::from_secs(2);

/// What a worker is doing.
static DOING: AtomicU8 = AtomicU8::new(NOTHING);
/// It waits for an attempt.
const NOTHING: u8 = 0;
/// It runs an attempt.
const AN_ATTEMPT: u8 = 1;
const ENDING: u8 = 2;

/// Held while a command is started. The thread that ends the process takes it and never gives it back: a
/// command that started while the others are asked to end would outlive it.
static STARTING: Mutex<()> = Mutex::new(());

/// No other command is started, and the process is not ended, until this is dropped.
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an attempt, and ends what its commands leave behind.
pub(crate) fn supervise(attempt: impl FnOnce() -> Report) -> Report {
    switch(NOTHING, AN_ATTEMPT);
    let report = attempt();
    switch(AN_ATTEMPT, NOTHING);
    system::sweep();
    report
}

/// Does something else from now on, unless the other thread ends the process: then nothing is begun or
/// reported any more.
fn switch(before: u8, after: u8) {
    if DOING.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        loop {
            thread::park();
        }
    }
}

/// The same for an attempt that may take no longer than `limit`. After that what it started is ended, `late`
/// is given the report of that, and the process ends.
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

/// From now on this process ends, with everything that it started, as soon as the other end of a pipe is
/// closed.
///
/// # Errors
/// The system has no more threads.
pub(crate) fn end_when_closed(pipe: impl AsFd + Send + 'static) -> io::Result<()> {
    system::prepare();
    // Its end is the process's; there is nothing to wait for.
    thread::Builder::new().spawn(move || watch(pipe)).map(drop)
}

pub(crate) fn no_thread(error: &io::Error) -> String {
    format!("its process cannot start a thread: {error}")
}

/// Waits until the other end is closed, then ends everything. Meanwhile it takes note of the end of processes
/// that lost their parent.
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

    /// How often orphans are looked for, 5 s: a command that starts a process for every line has some
    /// thousand by then.
    const EVERY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
    /// Between two looks at processes that were killed, and at processes that were asked to end.
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

    /// Waits for a while; true as soon as the other end of a pipe is closed.
    pub(super) fn is_closed(pipe: impl AsFd) -> bool {
        let mut fds = [PollFd::new(&pipe, PollFlags::empty())];
        let is_ready = poll(&mut fds, Some(&EVERY)).is_ok_and(|ready| ready > 0);
        is_ready && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    fn me() -> u64 {
        u64::from(std::process::id())
    }

    /// Takes note of the end of processes that lost their parent. A command leads its group: another process
    /// waits for it.
    pub(super) fn reap_orphans() {
        let is_orphan = |(pid, process): &(u64, process_tree::Process)| {
            process.parent == me() && process.is_dead && process.group != *pid
        };
        for (pid, _) in process_tree::below(me()).iter().filter(|process| is_orphan(process)) {
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
                // No process is there.
                Err(_) => return,
            }
        }
    }

    /// No command is started from now on. One whose start takes long, as its file system does not answer, is
    /// not waited for beyond [`GRACE`].
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

    /// What lives below this process. Who loses its parent while it is checked is found by the second look,
    /// as this process has taken it over by then.
    fn alive() -> Vec<u64> {
        let look = || -> Vec<u64> {
            let below = process_tree::below(me()).into_iter();
            below.filter(|(_, process)| !process.is_dead).map(|(pid, _)| pid).collect()
        };
        let found = look();
        if found.is_empty() { look() } else { found }
    }

    /// Sends a signal to all that live below this process; says how many.
    fn signal_all(signal: Signal) -> usize {
        let alive = alive();
        for &pid in &alive {
            process_tree::signal(pid, signal);
        }
        alive.len()
    }
}
