//! What may be simulated.

use slackline_model::{Seed, Span};

use crate::crashes::Crashes;

/// What a simulation does beyond running every task for exactly its time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Seed of everything that is drawn.
    pub seed: Seed,
    /// Time between two reports of a machine; zero to report at once.
    pub heartbeat: Span,
    /// Standard deviation of the logarithm of a random factor (mean 1) on every task's duration;
    /// 0 for exact durations.
    pub jitter: f64,
    /// Machine failures.
    pub crashes: Crashes,
}

impl Options {
    /// Exact durations, immediate reports, machines that never die.
    pub fn exact() -> Self {
        Self { seed: Seed(0), heartbeat: Span::ZERO, jitter: 0.0, crashes: Crashes::Never }
    }

    /// With this seed of everything that is drawn.
    #[must_use]
    pub fn with_seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// With machines that report only this often; zero to report at once.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Span) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// With random durations; see [`Options::jitter`].
    #[must_use]
    pub fn with_jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// With machines that fail.
    #[must_use]
    pub fn with_crashes(mut self, crashes: Crashes) -> Self {
        self.crashes = crashes;
        self
    }
}
