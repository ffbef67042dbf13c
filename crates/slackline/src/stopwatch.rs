//! The only file that reads the wall clock: it measures durations for `--timings` and limits for `--budget`
//! and `--policy-timeout`.

#[cfg(feature = "command")]
use std::time::Duration;
use std::time::Instant;

pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "timings never decide anything; a budget only ends searches that have a valid plan, a time-out a \
                      run with an error"
        )]
        Self(Instant::now())
    }

    /// Nanoseconds since the start.
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Time since the start.
    #[cfg(feature = "command")]
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
