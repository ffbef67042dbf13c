//! Derives the order of the list from completion times, and the guarantee of the order.
//!
//! Algorithm 1 sorts by C_j − p_j/(2μ_j). Every key C_j − a_j with 0 ≤ a_j ≤ p_j/(2μ_j) keeps Theorem 1
//! (docs/math/dmrs.md A6), so μ instead of μ_j, as Lemma 1 prints it, and plain C_j are allowed too.

use super::lp::{Job, Solution, System};

/// The sort key of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Key {
    /// C_j − p_j/(2μ_j), Algorithm 1 line 2.
    #[default]
    OwnRate,
    /// C_j − p_j/(2μ).
    FullRate,
    /// C_j.
    Completion,
}

/// σ: positions of the jobs in the order of the list; ties by position.
pub fn order(jobs: &[Job], system: &System, solution: &Solution, key: Key) -> Vec<usize> {
    let keys: Vec<f64> = (jobs.iter().zip(&solution.completion))
        .map(|(job, &completion)| completion - lag(job, system, key))
        .collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    order
}

/// By how much the key of a job lies before its completion.
pub(super) fn lag(job: &Job, system: &System, key: Key) -> f64 {
    match key {
        Key::Completion => 0.0,
        _ if job.work() <= 0.0 => 0.0,
        Key::OwnRate => job.work() / (2.0 * system.rate_of(job)),
        Key::FullRate => job.work() / (2.0 * system.all().capacity()),
    }
}

/// D, the task-skewness product: the largest number with p_{a,1}^M + p_{a,1}^R ≤ p_a/D for all jobs.
/// At least 1; infinite if no job has work.
pub fn skewness(jobs: &[Job]) -> f64 {
    let of = |job: &Job| job.work() / (job.map.longest + job.reduce.longest);
    jobs.iter().filter(|job| job.work() > 0.0).map(of).fold(f64::INFINITY, f64::min)
}

/// Theorem 1: DMRS is at most this many times Σ w_j C_j of the program. Holds for machines that run
/// either kind of task and for phases without caps.
pub fn ratio(jobs: &[Job], system: &System) -> f64 {
    let base = if jobs.iter().any(|job| job.release > 0.0) { 3.0 } else { 2.0 };
    base + 2.0 * (f64::from(system.all().count()) - 1.0) / skewness(jobs)
}

/// Lemma 2: for each position in `order`, the latest that its job can complete on the list. O(N).
///
/// max r + ((m−1)(p_{σ(j),1}^R + Σ_{k≤j} p_{σ(k),1}^M) + Σ_{k≤j} p_σ(k)) / μ.
pub fn latest(jobs: &[Job], system: &System, order: &[usize]) -> Vec<f64> {
    let others = f64::from(system.all().count()) - 1.0;
    let (mut release, mut longest, mut work) = (0.0f64, 0.0, 0.0);
    let of = |&j: &usize| {
        let job = &jobs[j];
        release = release.max(job.release);
        longest += job.map.longest;
        work += job.work();
        release + (others * (job.reduce.longest + longest) + work) / system.all().capacity()
    };
    order.iter().map(of).collect()
}
