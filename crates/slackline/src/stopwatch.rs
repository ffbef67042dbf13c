//! The one file that owns the wall clock: how long things really took, for `--timings`, and how long
//! they may take, for `--budget`.

use std::time::Instant;

/// A running stopwatch.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "timings never decide anything; a budget only ends searches that have a valid plan"
        )]
        Self(Instant::now())
    }

    /// Nanoseconds since the start.
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
