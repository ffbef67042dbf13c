//! Stopwatches for `--timeout` and progress lines. Nothing else in the program reads the wall clock.

use std::sync::OnceLock;
use std::time::Instant;

/// A stopwatch for each of several pieces of work, which starts at its first reading.
pub(crate) struct Stopwatches(Vec<OnceLock<Instant>>);

impl Stopwatches {
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|_| OnceLock::new()).collect())
    }

    /// Seconds since the first reading of that one; 0 at the first.
    pub(crate) fn seconds(&self, k: usize) -> f64 {
        #[expect(clippy::disallowed_methods, reason = "a time-out only ends a simulation, with an error")]
        let started = self.0[k].get_or_init(Instant::now);
        started.elapsed().as_secs_f64()
    }
}
