//! Panics, time and memory of what is tried.
//!
//! A panic is caught and its words kept. What takes longer than a minute, or more memory than there should be, ends the
//! process with the number of the input: neither can be interrupted.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::trial::Verdict;
use crate::eprint;

/// The longest time that an input may take.
const LONGEST: Duration = Duration::from_secs(60);

/// How long an input may take before it counts as wrong, seconds: another process may have the processor.
const SLOW: f64 = 20.0;

/// The most memory that the process may have, MiB.
const MEMORY_MAX: u64 = 3000;

/// The input that is tried, since when, and the words of its panic.
#[derive(Default)]
struct Current {
    name: String,
    since: Option<Instant>,
    thread: Option<ThreadId>,
    panic: Option<String>,
    slowest: f64,
}

/// Watches inputs, one at a time.
pub(super) struct Guard(Arc<Mutex<Current>>);

impl Guard {
    pub(super) fn start() -> Self {
        let current = Arc::new(Mutex::new(Current::default()));
        let (told, before) = (Arc::clone(&current), panic::take_hook());
        panic::set_hook(Box::new(move |info| {
            let mut current = lock(&told);
            if current.thread == Some(thread::current().id()) {
                current.panic = Some(info.to_string());
            } else {
                before(info);
            }
        }));
        let watched = Arc::clone(&current);
        thread::spawn(move || {
            loop {
                thread::park_timeout(Duration::from_secs(1));
                let Current { name, since, .. } = &*lock(&watched);
                let is_long = since.is_some_and(|since| since.elapsed() > LONGEST);
                let is_large = resident_mebibytes("VmRSS") > MEMORY_MAX;
                if since.is_some() && (is_long || is_large) {
                    let what = if is_long { "takes more than a minute" } else { "takes gigabytes" };
                    eprint(&format!("{name}: {what}\n"));
                    std::process::exit(1);
                }
            }
        });
        Self(current)
    }

    /// What became of an input.
    pub(super) fn watch(&self, target: &str, k: u64, tried: impl FnOnce() -> Verdict) -> Verdict {
        #[expect(clippy::disallowed_methods, reason = "how long an input takes is what is asked")]
        let since = Instant::now();
        {
            let mut current = lock(&self.0);
            *current = Current {
                name: format!("{target} {k}"),
                since: Some(since),
                thread: Some(thread::current().id()),
                panic: None,
                slowest: current.slowest,
            };
        }
        let verdict = panic::catch_unwind(AssertUnwindSafe(tried));
        let mut current = lock(&self.0);
        (current.since, current.thread) = (None, None);
        let seconds = since.elapsed().as_secs_f64();
        current.slowest = current.slowest.max(seconds);
        match verdict {
            Err(_) => Verdict::Wrong(current.panic.take().unwrap_or_else(|| "a panic".to_owned())),
            Ok(_) if seconds > SLOW => Verdict::Wrong(format!("took {seconds:.0} s")),
            Ok(verdict) => verdict,
        }
    }

    /// How long the slowest input took.
    pub(super) fn slowest_seconds(&self) -> f64 {
        lock(&self.0).slowest
    }
}

fn lock(current: &Mutex<Current>) -> std::sync::MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most memory that the process had, MiB; 0 where the system does not say.
pub(super) fn peak_mebibytes() -> u64 {
    resident_mebibytes("VmHWM")
}

fn resident_mebibytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_wrong_and_says_why() {
        let guard = Guard::start();
        let verdict = guard.watch("test", 7, || panic!("no way"));
        assert!(matches!(verdict, Verdict::Wrong(what) if what.contains("no way")));
        assert_eq!(guard.watch("test", 8, || Verdict::Read), Verdict::Read);
        assert!(peak_mebibytes() > 0 || !cfg!(target_os = "linux"));
    }
}
