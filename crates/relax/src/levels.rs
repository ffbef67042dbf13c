//! Step costs: choosing a level for each job.
//!
//! **Source**: docs/math/flex.md C4 (exact search over levels), C6 (levels as deadlines); the relaxation is
//! ours.
//!
//! A step cost offers a few levels, each a deadline and its price (SLA; a tardy flow has two). A choice
//! of one level per job is possible exactly if the [`DeadlineTest`] says so. [`exact`] searches all
//! choices; [`bound`] relaxes the test to its necessary conditions Σ must_j(D_j, t) ≤ S·t at some
//! instants t, priced by multipliers: for any π ≥ 0,
//!
//! min Σ_j [c_j + Σ_t π_t must_j(D_j, t)] − Σ_t π_t S·t
//!
//! is a lower bound, and the minimum separates by job. A cost that is not a step function is bounded from
//! below by one, on a grid, so that every minisum objective has this bound.

use crate::deadlines::DeadlineTest;
use crate::malleable::{Job, horizon};

/// A level in which a job may end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Latest completion in plan time, with the tolerance of instants; infinite for the last level.
    pub due: f64,
    /// The cost of a completion by then.
    pub cost: f64,
}

/// The levels of a job in order of rising due time and cost: all that it can reach alone.
///
/// For a step cost these are exact. Any other cost is cut at its breakpoints and at `grid` points up to
/// `last`, and each piece priced at its left end (a lower bound).
pub fn levels(job: &Job, last: f64, grid: usize) -> Vec<Level> {
    let alone = job.alone();
    let mut costs = vec![job.cost_at(alone)];
    if let Some(steps) = job.cost.as_steps() {
        costs.extend(steps.iter().map(|&(_, level)| level));
    } else {
        let ratio = (last / alone.max(last * 1e-6)).max(1.0);
        let points = (1..=grid).map(|k| alone + (last - alone).max(0.0) * share(ratio, k, grid));
        costs.extend(points.map(|t| job.cost_at(t)));
        costs.extend(job.cost.breakpoints().iter().map(|&t| job.cost.eval(t)));
    }
    let least = job.cost_at(alone);
    costs.retain(|&c| c >= least);
    costs.sort_unstable_by(f64::total_cmp);
    costs.dedup();
    let due: Vec<f64> = costs.iter().map(|&c| job.latest_lenient(c).unwrap_or(0.0)).collect();
    if job.cost.as_steps().is_some() {
        return costs.into_iter().zip(due).map(|(cost, due)| Level { due, cost }).collect();
    }
    // Between two grid costs, a completion costs at least the lower one and is due at the time of the higher
    // one.
    let ends = due.iter().skip(1).copied().chain([f64::INFINITY]);
    costs.iter().zip(ends).map(|(&cost, due)| Level { due, cost }).collect()
}

/// The k-th of n parts of an interval, finer towards its start the larger the ratio of its ends.
fn share(ratio: f64, k: usize, n: usize) -> f64 {
    let x = k as f64 / n as f64;
    if ratio > 4.0 { x * x } else { x }
}

/// The result of an exact search over levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// The smallest total cost found; `None` if no choice costs less than the given cost.
    pub cost: Option<f64>,
    /// The deadlines of that choice; empty without one.
    pub due: Vec<f64>,
    /// A lower bound on every choice; equal to the optimum if the search was complete.
    pub bound: f64,
    /// Whether all choices were explored.
    pub complete: bool,
}

/// Branch and bound over the levels of step costs: the cheapest choice that passes the deadline test, if it
/// costs less than `below`. Explores at most `nodes` partial choices.
///
/// Exponential in J in the worst case; J = 10 with four levels takes a few thousand tests.
pub fn exact(jobs: &[Job], slots: u32, below: f64, nodes: u64) -> Exact {
    let last = horizon(jobs, slots);
    let mut choices: Vec<(usize, Vec<Level>)> =
        jobs.iter().enumerate().map(|(j, job)| (j, levels(job, last, 0))).collect();
    let stake = |list: &[Level]| list.last().map_or(0.0, |l| l.cost) - list[0].cost;
    choices.sort_by(|a, b| stake(&b.1).total_cmp(&stake(&a.1)).then(a.0.cmp(&b.0)));
    let mut search = Search {
        jobs,
        choices: &choices,
        test: DeadlineTest::new(slots),
        due: vec![f64::INFINITY; jobs.len()],
        best: (below, Vec::new()),
        nodes,
        cut: f64::INFINITY,
    };
    search.branch(0, 0.0);
    let found = !search.best.1.is_empty();
    let (best, cut) = (search.best.0, search.cut);
    Exact {
        cost: found.then_some(best),
        due: search.best.1,
        bound: best.min(cut),
        complete: cut == f64::INFINITY,
    }
}

struct Search<'a> {
    jobs: &'a [Job],
    /// Levels of each job, the job with most at stake first.
    choices: &'a [(usize, Vec<Level>)],
    test: DeadlineTest,
    due: Vec<f64>,
    best: (f64, Vec<f64>),
    nodes: u64,
    /// The smallest bound of an unexplored branch.
    cut: f64,
}

impl Search<'_> {
    fn branch(&mut self, depth: usize, spent: f64) {
        let rest = self.rest(depth);
        if spent + rest >= self.best.0 - 1e-12 * self.best.0.abs() {
            return;
        }
        let Some((job, levels)) = self.choices.get(depth) else {
            self.best = (spent, self.due.clone());
            return;
        };
        if self.nodes == 0 {
            self.cut = self.cut.min(spent + rest);
            return;
        }
        self.nodes -= 1;
        for level in levels {
            self.due[*job] = level.due;
            if self.test.feasible(self.jobs, self.due.iter().copied()) {
                self.branch(depth + 1, spent + level.cost);
            }
        }
        self.due[*job] = f64::INFINITY;
    }

    /// The least cost of the undecided jobs: each at its cheapest level that fits beside the decided ones.
    fn rest(&mut self, depth: usize) -> f64 {
        let mut rest = 0.0;
        for (job, levels) in &self.choices[depth..] {
            let cheapest = levels.iter().find(|level| {
                self.due[*job] = level.due;
                self.test.feasible(self.jobs, self.due.iter().copied())
            });
            self.due[*job] = f64::INFINITY;
            match cheapest {
                Some(level) => rest += level.cost,
                None => return f64::INFINITY,
            }
        }
        rest
    }
}

/// Instants at which the relaxation limits the jobs to the area; more make it slower, not wrong.
const INSTANTS: usize = 48;
/// Points of the grid for a cost without steps.
const GRID: usize = 24;
/// Halvings of the multiplier of a single instant.
const HALVINGS: u32 = 40;
/// Steps of the ascent over all instants together.
const ASCENT: u32 = 200;
/// Most evaluations of one job, level and instant in the relaxation.
const EVALUATIONS: usize = 40_000_000;

/// A lower bound on the sum of costs of any schedule. `upper`, the cost of some schedule, only steers
/// the ascent. O(jobs · levels · instants) per step.
pub fn bound(jobs: &[Job], slots: u32, upper: f64) -> f64 {
    let last = horizon(jobs, slots);
    let grid = if jobs.len() > 2000 { 6 } else { GRID };
    let levels: Vec<Vec<Level>> = jobs.iter().map(|job| levels(job, last, grid)).collect();
    let mut relaxation = Relaxation::new(jobs, &levels, slots);
    let zero = vec![0.0; relaxation.instants.len()];
    let mut best = relaxation.value(&zero);
    let (single, mut price) = relaxation.best_single();
    best = best.max(single);
    let work = relaxation.must.len().max(1);
    let steps = (EVALUATIONS / work).min(ASCENT as usize);
    let (mut reach, mut since) = (1.0, 0);
    for _ in 0..steps {
        let value = relaxation.value(&price);
        if value > best + 1e-9 * best.abs() {
            (best, since) = (value, 0);
        } else {
            since += 1;
        }
        if since == 8 {
            (reach, since) = (reach / 2.0, 0);
        }
        let norm: f64 = relaxation.excess.iter().map(|e| e * e).sum();
        if norm == 0.0 || upper <= value {
            break;
        }
        let step = reach * (upper - value) / norm;
        for (price, excess) in price.iter_mut().zip(&relaxation.excess) {
            *price = (*price + step * excess).max(0.0);
        }
    }
    best
}

/// The relaxation with one constraint an instant, scaled so that each has the right-hand side 1.
struct Relaxation<'a> {
    levels: &'a [Vec<Level>],
    instants: Vec<f64>,
    /// must_j(D_jl, t) / (S·t) by job, level and instant.
    must: Vec<f64>,
    /// The excess of each constraint at the last evaluation (negative if it holds).
    excess: Vec<f64>,
}

impl<'a> Relaxation<'a> {
    fn new(jobs: &[Job], levels: &'a [Vec<Level>], slots: u32) -> Self {
        let dues = levels.iter().flatten().map(|l| l.due);
        let mut instants: Vec<f64> = dues.filter(|t| t.is_finite() && *t > 0.0).collect();
        instants.sort_unstable_by(f64::total_cmp);
        instants.dedup();
        let n = instants.len();
        if n > INSTANTS {
            instants = (0..INSTANTS).map(|k| instants[(k + 1) * n / INSTANTS - 1]).collect();
        }
        let mut must = Vec::new();
        for (job, levels) in jobs.iter().zip(levels) {
            for level in levels {
                must.extend(instants.iter().map(|&t| job.must(level.due, t) / (f64::from(slots) * t)));
            }
        }
        let excess = vec![0.0; instants.len()];
        Self { levels, instants, must, excess }
    }

    /// The bound at these prices.
    fn value(&mut self, price: &[f64]) -> f64 {
        self.excess.fill(-1.0);
        let n = price.len();
        let mut value = -price.iter().sum::<f64>();
        let mut at = 0;
        for levels in self.levels {
            let mut cheapest = (f64::INFINITY, at);
            for (k, level) in levels.iter().enumerate() {
                let row = &self.must[at + k * n..at + (k + 1) * n];
                let priced = level.cost + price.iter().zip(row).map(|(p, m)| p * m).sum::<f64>();
                if priced < cheapest.0 {
                    cheapest = (priced, at + k * n);
                }
            }
            value += cheapest.0;
            let row = &self.must[cheapest.1..cheapest.1 + n];
            self.excess.iter_mut().zip(row).for_each(|(e, m)| *e += m);
            at += levels.len() * n;
        }
        value
    }

    /// The best bound with one instant alone, and its prices: the multiplier at which the excess
    /// changes its sign (a fractional multiple-choice knapsack).
    fn best_single(&mut self) -> (f64, Vec<f64>) {
        let n = self.instants.len();
        let stake: f64 = self.levels.iter().flatten().map(|l| l.cost).fold(0.0, f64::max);
        let mut best = (f64::NEG_INFINITY, vec![0.0; n]);
        if self.must.len().saturating_mul(n * HALVINGS as usize) > 8 * EVALUATIONS {
            return best;
        }
        for k in 0..n {
            let mut price = vec![0.0; n];
            let (mut low, mut high) = (0.0, stake * self.levels.len() as f64);
            for _ in 0..HALVINGS {
                price[k] = f64::midpoint(low, high);
                let value = self.value(&price);
                if value > best.0 {
                    best = (value, price.clone());
                }
                if self.excess[k] > 0.0 { low = price[k] } else { high = price[k] }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::CostFn;

    use super::*;

    fn instance() -> impl Strategy<Value = (Vec<Job>, u32)> {
        let one = (1u32..30, 0u32..2, 1u32..4, prop::collection::vec((1u32..20, 1u32..10), 1..4));
        (prop::collection::vec(one, 1..5), 2u32..6).prop_map(|(list, slots)| {
            let job = |(work, min, max, steps): (u32, u32, u32, Vec<(u32, u32)>)| {
                let (mut times, mut costs): (Vec<u32>, Vec<u32>) = steps.into_iter().unzip();
                times.sort_unstable();
                costs.sort_unstable();
                let steps = times.iter().zip(&costs).map(|(&t, &c)| (f64::from(t) / 2.0, f64::from(c)));
                let (min, max) = (min.min(max), max.min(slots));
                Job::new(f64::from(work) / 2.0, min..=max, CostFn::steps(steps.collect()))
            };
            let mut jobs: Vec<Job> = list.into_iter().map(job).collect();
            if jobs.iter().map(|j| j.min).sum::<u32>() > slots {
                for job in &mut jobs {
                    job.min = 0;
                }
            }
            (jobs, slots)
        })
    }

    /// The cheapest choice by enumeration.
    fn enumerated(jobs: &[Job], slots: u32) -> f64 {
        let lists: Vec<Vec<Level>> = jobs.iter().map(|j| levels(j, 1e9, 0)).collect();
        let total: usize = lists.iter().map(Vec::len).product();
        let mut best = f64::INFINITY;
        for mut code in 0..total {
            let (mut cost, mut due) = (0.0, Vec::new());
            for list in &lists {
                let level = list[code % list.len()];
                code /= list.len();
                cost += level.cost;
                due.push(level.due);
            }
            if cost < best && DeadlineTest::new(slots).feasible(jobs, due) {
                best = cost;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn search_is_exact_and_relaxation_is_below((jobs, slots) in instance()) {
            let optimum = enumerated(&jobs, slots);
            let found = exact(&jobs, slots, f64::INFINITY, 100_000);
            prop_assert!(found.complete);
            prop_assert_eq!(found.cost, Some(optimum));
            prop_assert_eq!(found.bound, optimum);
            let relaxed = bound(&jobs, slots, optimum);
            prop_assert!(relaxed <= optimum + 1e-9, "{relaxed} above {optimum}");
            let cut = exact(&jobs, slots, f64::INFINITY, 2);
            prop_assert!(cut.bound <= optimum);
        }
    }

    #[test]
    fn the_relaxation_sees_overload() {
        // Ten jobs of 2 slot-seconds due at 5 on 2 slots: five fit, five are late.
        let job = Job::new(2.0, 0..=2, CostFn::steps(vec![(5.0, 1.0)]));
        let relaxed = bound(&vec![job; 10], 2, 5.0);
        assert!(relaxed > 4.99 && relaxed <= 5.0, "{relaxed}");
    }

    #[test]
    fn other_costs_are_bounded_by_a_grid() {
        let jobs = vec![Job::new(4.0, 0..=4, CostFn::tardiness(1.0, 1.0)); 4];
        // On 4 slots they end at 1, 2, 3, 4 at best: 0 + 1 + 2 + 3.
        let relaxed = bound(&jobs, 4, 6.0);
        assert!(relaxed <= 6.0 && relaxed > 3.0, "{relaxed}");
    }
}
