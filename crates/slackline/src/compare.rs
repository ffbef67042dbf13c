//! Runs several policies on one instance, side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use slackline_judge::Violation;
use slackline_model::Instance;

use crate::registry::Chosen;
use crate::simulate::{Options, Simulated, simulate};

/// What became of one policy.
#[derive(Debug)]
pub struct Compared {
    /// The policy.
    pub policy: Chosen,
    /// Its judged simulation, or what the judge found wrong with it.
    pub result: Result<Simulated, Violation>,
}

/// Simulates every policy on the same instance with the same options, `threads` at a time, and
/// returns the results in the order of `policies`. `progress` is told which policy has how many
/// tasks done.
pub fn compare(
    instance: &Instance,
    policies: &[Chosen],
    options: &Options,
    bound: Option<f64>,
    (threads, progress): (usize, &(dyn Fn(usize, u64) + Sync)),
) -> Vec<Compared> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Simulated, Violation>>>> =
        policies.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(policy) = policies.get(k) else { return };
            let mut told = |done| progress(k, done);
            let result = simulate(instance, policy, options, bound, Some(&mut told));
            *results[k].lock().expect("invariant: no worker panics while it holds the lock") = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, policies.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let taken = results.into_iter().map(|slot| {
        let result = slot.into_inner().expect("invariant: no worker panics while it holds the lock");
        result.expect("invariant: every policy was taken by a worker")
    });
    policies.iter().cloned().zip(taken).map(|(policy, result)| Compared { policy, result }).collect()
}
