//! Durations drawn from the distributions of the job-ordering paper, section 7.2, which were fitted there to
//! the Facebook distributions published with Delay Scheduling.

use slackline_model::random::{self, ChaCha8Rng};

/// A number of seconds as whole microseconds, so that a document and its instance agree: further digits are
/// noise of arithmetic.
pub(crate) fn whole_micros(seconds: f64) -> f64 {
    let micros = seconds * 1e6;
    if micros.is_finite() { micros.round() / 1e6 } else { seconds }
}

/// Milliseconds of a map.
pub(crate) const MAP_MILLIS: LogNormal = LogNormal { mu: 9.9511, sigma: 1.6764 };
/// Milliseconds of a reduce.
pub(crate) const REDUCE_MILLIS: LogNormal = LogNormal { mu: 12.375, sigma: 1.6262 };

#[derive(Clone, Copy, Debug)]
pub(crate) struct LogNormal {
    /// Mean of the logarithm.
    pub(crate) mu: f64,
    /// Standard deviation of the logarithm.
    pub(crate) sigma: f64,
}

impl LogNormal {
    pub(crate) fn draw(self, rng: &mut ChaCha8Rng) -> f64 {
        random::lognormal(rng, self.mu, self.sigma)
    }

    /// Seconds, from a distribution of milliseconds.
    pub(crate) fn seconds(self, rng: &mut ChaCha8Rng) -> f64 {
        self.draw(rng) / 1000.0
    }
}
