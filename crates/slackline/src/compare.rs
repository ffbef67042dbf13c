//! Runs several policies on one instance, side by side.

use std::convert::Infallible;

use slackline_judge::Violation;
use slackline_model::Instance;

use crate::parallel;
use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, Simulated, simulate};

/// What became of one policy.
#[derive(Debug)]
pub struct Compared {
    /// The policy.
    pub policy: PolicySpec,
    /// Its judged simulation, or what the judge found wrong with it.
    pub result: Result<Simulated, Violation>,
}

/// How several simulations run at a time.
#[derive(Clone, Copy)]
pub struct SideBySide<'a> {
    /// At most this many threads.
    pub threads: usize,
    /// Is told which policy has how many tasks done.
    pub progress: &'a (dyn Fn(usize, u64) + Sync),
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
