//! Runs several policies on one instance, side by side.

use std::convert::Infallible;

use slackline_model::Instance;

use crate::parallel;
use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, SimulateError, Simulated, simulate};

/// What became of one policy.
#[derive(Debug)]
pub struct Compared {
    /// The policy.
    pub policy: PolicySpec,
    /// Its judged simulation, or why there is none.
    pub result: Result<Simulated, SimulateError>,
}

/// How several simulations run at a time.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SideBySide<'a> {
    /// At most this many threads.
    pub threads: usize,
    /// Hears which policy has how many tasks done.
    pub progress: &'a (dyn Fn(usize, u64) + Sync),
}

impl<'a> SideBySide<'a> {
    /// With at most this many threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// With a function that hears which policy has how many tasks done.
    #[must_use]
    pub fn with_progress(mut self, progress: &'a (dyn Fn(usize, u64) + Sync)) -> Self {
        self.progress = progress;
        self
    }
}

impl Default for SideBySide<'_> {
    /// A thread for each processor, and no progress reports.
    fn default() -> Self {
        Self { threads: parallel::processors(), progress: &|_, _| {} }
    }
}

/// Simulates every policy on the same instance with the same options, and returns the results in the order
/// of `policies`. `bound` is as in [`simulate`].
pub fn compare(
    instance: &Instance,
    policies: &[PolicySpec],
    options: &Options,
    bound: Option<f64>,
    how: SideBySide<'_>,
) -> Vec<Compared> {
    let one = |k: usize| {
        let mut told = |done| (how.progress)(k, done);
        let policy = policies[k].clone();
        let result = simulate(instance, &policy, options, bound, Some(&mut told));
        Ok::<_, Infallible>(Compared { policy, result })
    };
    let Ok(all) = parallel::map(policies.len(), how.threads, one);
    all
}
