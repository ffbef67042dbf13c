//! The state that a process inherits from its caller (signals, descriptors, limits) and passes on to its
//! children.
//!
//! A signal that the caller ignores stays ignored, in this process and in its children: `nohup` ignores HUP,
//! a shell without job control ignores INT and QUIT for a background command. Two signals are exceptions.
//! CHLD cannot stay ignored, because the system would then forget how children ended. PIPE has its default
//! disposition in children, because pipelines need it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::{fs, io, thread};

use rustix::io::Errno;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// The signals that ask a program to stop.
const STOP: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The first descriptor that children do not get.
const FIRST_OWN: i32 = 3;

/// Adjusts what this process has inherited, so that children get descriptors 0 to 2 only, no blocked signals,
/// and default signal dispositions except for ignored signals. Call it before other threads start.
///
/// A write beyond the file size limit is an error from then on, and does not kill the process.
pub fn prepare() {
    close_fds::set_fds_cloexec(FIRST_OWN, &[]);
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    let ignored = ignored();
    // Handlers, and not "ignore": a child gets the default disposition in place of a handler.
    if !is_in(ignored, SIGXFSZ) {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
    if is_in(ignored, SIGCHLD) {
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}

/// Calls `stop` each time a signal asks this program to stop: INT, TERM or HUP. Signals that were ignored
/// when the program started stay ignored.
///
/// # Errors
/// The system has no more threads or descriptors. The signals then end the program, as they do by default.
pub fn on_stop_signal(mut stop: impl FnMut() + Send + 'static) -> io::Result<()> {
    let ignored = ignored();
    let begun = Signals::new::<[i32; 0], i32>([]).and_then(|mut signals| {
        let handle = signals.handle();
        // Handlers come after the thread that answers them.
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || signals.forever().for_each(|_| stop()))?;
        let mut wanted = STOP.into_iter().filter(|&signal| !is_in(ignored, signal));
        wanted.try_for_each(|signal| handle.add_signal(signal))
    });
    begun.map_err(|error| io::Error::new(error.kind(), format!("signals cannot be handled: {error}")))
}

/// Checks that the system can start this number of threads, for libraries that panic if it cannot.
///
/// # Errors
/// Too few threads are left.
pub fn try_threads(count: usize) -> io::Result<()> {
    let gate = RwLock::new(());
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let waiting = || drop(gate.read());
        let started: io::Result<Vec<_>> =
            (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, waiting)).collect();
        drop(closed);
        started.map(drop)
    })
}

/// The signals that this process ignores, a bit each; none if the system does not report them.
fn ignored() -> u64 {
    mask(&fs::read_to_string("/proc/self/status").unwrap_or_default(), "SigIgn:")
}

/// A set of signals in the format of the system.
fn mask(status: &str, name: &str) -> u64 {
    let digits = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    u64::from_str_radix(digits.trim(), 16).unwrap_or(0)
}

fn is_in(set: u64, signal: i32) -> bool {
    set >> (signal - 1) & 1 == 1
}

/// A message with the remedy for a limit of the process, if one was reached.
///
/// It reads the text: a report of a worker, and most messages with a path, have no other trace of the
/// system's error.
pub fn with_remedy(message: String) -> String {
    let found = REMEDIES.iter().find(|(number, _)| message.contains(&format!("(os error {number})")));
    match found {
        Some((_, remedy)) => format!("{message}; {remedy}"),
        None => message,
    }
}

/// The remedies for errors of the system, by number.
const REMEDIES: [(i32, &str); 3] = [
    (11, "the limit on processes and threads is reached: raise it (ulimit -u), or use fewer slots"),
    (24, "the limit on open files is reached: raise it (ulimit -n), or use fewer slots"),
    (27, "the limit on the size of files is reached: raise it (ulimit -f)"),
];

/// The reason why a file cannot be locked, with the remedy if its file system has no locks.
pub fn lock_refused(error: io::Error) -> io::Error {
    let has_locks = error.kind() != io::ErrorKind::Unsupported
        && error.raw_os_error() != Some(Errno::NOLCK.raw_os_error());
    if has_locks {
        return error;
    }
    let problem = format!(
        "its file system has no file locks ({error}): choose a directory on a local disk, with --state, or with --history \
         for a history"
    );
    io::Error::new(io::ErrorKind::Unsupported, problem)
}
