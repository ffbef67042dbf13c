//! The optimum of any minimax objective over malleable jobs: bisection with the exact deadline test.
//!
//! **Source**: docs/math/flex.md C4. "The largest cost is at most L" requires every job to complete by D_j(L)
//! = sup{t : w_j(t) ≤ L}, which [`DeadlineTest`] decides.

use crate::deadlines::DeadlineTest;
use crate::malleable::{Job, horizon};

/// The optimum of a minimax objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimax {
    /// The smallest level at which the deadlines below can be met (to 1e-12 relative).
    pub level: f64,
    /// A lower bound on the largest cost of any schedule.
    pub bound: f64,
    /// The deadlines of that level in plan time; infinite for none.
    pub due: Vec<f64>,
}

/// Relative precision of an optimum.
const EXACT: f64 = 1e-13;

/// Bisection steps; each halves the interval, so more have no effect on an `f64`.
const STEPS: u32 = 200;

/// The smallest possible largest cost of `jobs` on `slots` slots.
///
/// O(J log J) for each of about 50 tests. The level is exact at levels of step functions and to 1e-12
/// relative between them; the minima must fit together (Σ m ≤ S).
pub fn minimax(jobs: &[Job], slots: u32) -> Minimax {
    if jobs.is_empty() {
        return Minimax { level: 0.0, bound: 0.0, due: Vec::new() };
    }
    let mut search = Search { jobs, test: DeadlineTest::new(slots) };
    let whole: Vec<Job> = jobs.iter().map(|job| Job { firm: job.work, ..job.clone() }).collect();
    let mut exact = Search { jobs: &whole, test: DeadlineTest::new(slots) };
    // Both levels are attained: no job costs less than alone, and by the horizon all jobs can be done.
    let low = max(jobs.iter().map(|job| job.cost_at(job.alone())));
    let last = horizon(jobs, slots);
    let high = max(jobs.iter().map(|job| job.cost_at(last)));
    let levels = exact.levels(low, high);
    let (_, level) = exact.bisect(&levels, Job::latest, EXACT);
    let below = levels.partition_point(|&l| l < level);
    let upto: Vec<f64> = levels[..below].iter().copied().chain([level]).collect();
    let (infeasible, feasible) = search.bisect(&upto, Job::latest_lenient, EXACT);
    // If no level below is feasible, the level is a jump (or the start) and itself the bound.
    let bound = if feasible >= level { level } else { infeasible };
    let due = jobs.iter().map(|job| job.latest(level).unwrap_or(0.0)).collect();
    Minimax { level, bound, due }
}

/// Deadlines that can be met, of a level at most `precision` (relative) above the optimum: for policies that
/// only need the order, at a fraction of the tests.
pub fn deadlines_near(jobs: &[Job], slots: u32, precision: f64) -> Vec<f64> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let mut search = Search { jobs, test: DeadlineTest::new(slots) };
    let low = max(jobs.iter().map(|job| job.cost_at(job.alone())));
    let last = horizon(jobs, slots);
    let high = max(jobs.iter().map(|job| job.cost_at(last)));
    let levels = search.levels(low, high);
    let (_, level) = search.bisect(&levels, Job::latest, precision);
    jobs.iter().map(|job| job.latest(level).unwrap_or(0.0)).collect()
}

fn max(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

struct Search<'a> {
    jobs: &'a [Job],
    test: DeadlineTest,
}

impl Search<'_> {
    /// `low`, the levels at which some cost function jumps or bends, and `high`: ascending, distinct.
    fn levels(&self, low: f64, high: f64) -> Vec<f64> {
        let mut levels = vec![low, high];
        for job in self.jobs {
            levels.extend(job.cost.breakpoints().into_iter().map(|t| job.cost.eval(t)));
            levels.extend(job.cost.as_steps().into_iter().flatten().map(|&(_, level)| level));
        }
        levels.retain(|&l| low <= l && l <= high);
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        levels
    }

    fn feasible(&mut self, level: f64, latest: fn(&Job, f64) -> Option<f64>) -> bool {
        let jobs = self.jobs;
        let due = jobs.iter().map(|job| latest(job, level).unwrap_or(f64::NEG_INFINITY));
        jobs.iter().all(|job| latest(job, level).is_some()) && self.test.feasible(jobs, due)
    }

    /// The last infeasible and the first feasible level found; the last of `levels` is feasible, and every
    /// level below the first is infeasible.
    fn bisect(&mut self, levels: &[f64], latest: fn(&Job, f64) -> Option<f64>, precision: f64) -> (f64, f64) {
        let last = levels.len() - 1;
        // The first feasible of the given levels...
        let (mut from, mut to) = (0, last);
        while from < to {
            let mid = usize::midpoint(from, to);
            if self.feasible(levels[mid], latest) { to = mid } else { from = mid + 1 }
        }
        if to == 0 {
            return (levels[0], levels[0]);
        }
        // ... and between it and the one before it, costs are continuous.
        let (mut low, mut high) = (levels[to - 1], levels[to]);
        for _ in 0..STEPS {
            let mid = low + (high - low) / 2.0;
            if high - low <= precision * low.abs().max(high.abs()) || mid <= low || mid >= high {
                break;
            }
            if self.feasible(mid, latest) { high = mid } else { low = mid }
        }
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::CostFn;

    use super::*;

    fn level(jobs: &[Job], slots: u32) -> f64 {
        let found = minimax(jobs, slots);
        assert!(found.bound <= found.level);
        assert!(found.level - found.bound <= 1e-9 * found.level.abs().max(1.0), "{found:?}");
        assert!(DeadlineTest::new(slots).feasible(jobs, found.due.iter().copied()));
        found.level
    }

    #[test]
    fn makespan_is_area_or_the_longest_job() {
        let job = |work, max| Job::new(work, 0..=max, CostFn::linear(1.0, 0.0));
        assert!((level(&[job(2.0, 2), job(2.0, 2), job(2.0, 2)], 3) - 2.0).abs() < 1e-9);
        assert!((level(&[job(9.0, 2), job(2.0, 3)], 3) - 4.5).abs() < 1e-9);
    }

    #[test]
    fn step_costs_snap_to_a_level() {
        let steps = |d: f64, c: f64| CostFn::steps(vec![(d, c), (2.0 * d, 2.0 * c)]);
        let jobs = [Job::new(4.0, 0..=2, steps(2.0, 3.0)), Job::new(4.0, 0..=2, steps(2.0, 5.0))];
        // Both need the two slots up to 2, so one of them is late: the first is cheaper.
        assert_eq!(level(&jobs, 2), 3.0);
        assert_eq!(minimax(&jobs, 2).due, [4.0, 2.0]);
        assert_eq!(level(&jobs, 4), 0.0);
    }

    #[test]
    fn lateness_may_be_negative_and_bases_shift_time() {
        let job = |due: f64| Job::new(2.0, 0..=1, CostFn::linear(1.0, due));
        assert!((level(&[job(3.0), job(9.0)], 1) - -1.0).abs() < 1e-12);
        let later = |due: f64| Job { base: 5.0, ..job(due) };
        assert!((level(&[later(3.0), later(9.0)], 1) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn metrics_may_differ_by_job() {
        let jobs = [
            Job::new(4.0, 0..=2, CostFn::tardiness(2.0, 1.0)),
            Job::new(4.0, 0..=2, CostFn::steps(vec![(2.0, 1.5)])),
        ];
        // On two slots: first done at 1 + L/2; the second is late if L ≥ 1.5, else both end by 4 > 1 + L/2.
        let found = minimax(&jobs, 2);
        assert!((found.level - 2.0).abs() < 1e-12, "{found:?}");
    }
}
