//! Estimates that are off: what a policy believes of durations when nobody knows them exactly.

use slackline_model::random;
use slackline_model::{Instance, Seed, Span};
use slackline_policy::Estimates;

/// The true means, each multiplied by a lognormal factor of mean 1 whose logarithm has standard
/// deviation `sigma` (0 for the truth). Every phase draws from its own stream.
pub fn distorted(instance: &Instance, sigma: f64, seed: Seed) -> Estimates {
    let mut estimates = Estimates::mean(instance);
    if sigma > 0.0 {
        for (phase, task) in estimates.task.iter_mut_enumerated() {
            let draw = factor(&mut random::rng(seed, "noise", u64::from(phase.0)), sigma);
            *task = Span::from_seconds_nearest(task.seconds() * draw);
        }
    }
    estimates
}

/// A lognormal factor with mean 1.
pub(crate) fn factor(rng: &mut random::ChaCha8Rng, sigma: f64) -> f64 {
    random::lognormal(rng, -sigma * sigma / 2.0, sigma)
}
