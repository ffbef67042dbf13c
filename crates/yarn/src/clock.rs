//! The one file of this crate that owns the wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since some moment of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// That moment is now.
    pub(crate) fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a cluster is watched in real time")]
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Milliseconds since 1970, the time of Hadoop's documents.
pub(crate) fn unix_millis() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the table says until when it holds")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Waits.
pub(crate) fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "what failed is tried again after a moment")]
    std::thread::sleep(time);
}
