//! What may be simulated.

use slackline_model::{Seed, Span};

use crate::crashes::Crashes;

/// What a simulation does beyond running every task for exactly its time.
#[derive(Clone, Debug, PartialEq)]
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
}
