//! The one file of the program that reads the wall clock: how long simulations take, for people who wait and for
//! `--timeout`.

use std::sync::OnceLock;
use std::time::Instant;

/// A stopwatch for each of several pieces of work, which starts when it is first looked at.
pub(crate) struct Stopwatches(Vec<OnceLock<Instant>>);

impl Stopwatches {
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|_| OnceLock::new()).collect())
    }

    /// Seconds since that one was first looked at; 0 then.
    pub(crate) fn seconds(&self, k: usize) -> f64 {
        #[expect(clippy::disallowed_methods, reason = "a time-out only ends a simulation, with an error")]
        let started = self.0[k].get_or_init(Instant::now);
        started.elapsed().as_secs_f64()
    }
}
