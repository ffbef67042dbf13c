//! The linear program of mean busy times, solved in closed form.
//!
//! For jobs j with work V_j, weight w_j, floor l_j and tail h_j, and a capacity P
//! (docs/math/mean-busy-times.md P1):
//!
//! ```text
//! min Σ w_j C_j   with   Σ_{j∈S} V_j (C_j − h_j) ≥ V(S)² / (2P) for every set S,   C_j ≥ l_j.
//! ```
//!
//! Its optimum bounds Σ w_j C_j of every schedule that works at a rate of at most P from time 0 on, in
//! which job j completes no earlier than l_j and at least h_j after the mean time of its work. It is
//! the relaxation of DMRS (LP-MapReduce, section III.A), FLEX and FlowFlex alike.
//!
//! With x_j = V_j C_j the constraints are a contrapolymatroid (claim A1), so the greedy algorithm in
//! Smith order (non-increasing w_j / V_j) is optimal:
//!
//! 1. κ_j = l_j − h_j; best(A) = max over T ⊆ A of V(T)²/(2P) − Σ_T V_j κ_j, A the jobs so far;
//! 2. T is a prefix of A in order of κ (claim A2);
//! 3. C_k = l_k + (best(A_k) − best(A_{k−1})) / V_k (claim A3);
//! 4. the best prefix grows with A, so all best(A_k) follow by divide and conquer (claim A4).
//!
//! **Complexity**: O(N log N) time, O(N) space.
//! **Deviations** from DMRS: Lemma 1 as printed uses the key C_x − p_x/(2μ), which is wrong; the text's key
//! with μ_x is right, here C_x − h_x.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use slackline_model::Key;

/// A job of the relaxation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Work V ≥ 0. A job without work completes at its floor.
    pub work: f64,
    /// Weight w ≥ 0. A job of weight 0 comes last and delays no other.
    pub weight: f64,
    /// Floor l: the earliest completion.
    pub floor: f64,
    /// Tail h: least time from the mean time of its work to its completion. With h ≤ l the first job of all
    /// may start at time 0; the solution is optimal for any h.
    pub tail: f64,
}

/// An optimal solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Completion of each job, in the order given.
    pub completion: Vec<f64>,
    /// Σ w_j C_j.
    pub value: f64,
}

/// Solves the program exactly. O(N log N).
///
/// Ties in the Smith ratio and in κ go to the job given first; with ties in the ratio other optimal
/// solutions exist.
pub fn solve(jobs: &[Job], capacity: f64) -> Solution {
    let ratio = |j: usize| jobs[j].weight / jobs[j].work;
    let kappa = |j: usize| jobs[j].floor - jobs[j].tail;
    let mut smith: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].work > 0.0).collect();
    let mut by_kappa = smith.clone();
    // Each key is computed once.
    smith.sort_by_cached_key(|&j| Reverse(Key::new(ratio(j))));
    by_kappa.sort_by_cached_key(|&j| Key::new(kappa(j)));
    let mut best = vec![0.0; smith.len()];
    Prefixes::new(jobs, capacity, &smith, &by_kappa).fill(&mut best);

    let mut completion: Vec<f64> = jobs.iter().map(|job| job.floor).collect();
    let mut value: f64 = jobs.iter().map(|job| job.weight * job.floor).sum();
    let mut before = 0.0;
    for (k, &j) in smith.iter().enumerate() {
        completion[j] += (best[k] - before).max(0.0) / jobs[j].work;
        before = best[k];
        // Σ w_k (best_k − best_{k−1}) / V_k by parts: a sum of non-negative numbers, without cancellation.
        let next = smith.get(k + 1).map_or(0.0, |&next| ratio(next));
        value += (ratio(j) - next) * best[k];
    }
    Solution { completion, value }
}

/// The set whose constraint the completion times violate most, with the violation; `None` if they satisfy all
/// constraints.
///
/// The violation is V(S)²/(2P) − Σ_S V_j (C_j − h_j), and the worst set is a prefix in order of
/// C_j − h_j (claim A2). Floors are ignored. O(N log N).
pub fn most_violated(jobs: &[Job], capacity: f64, completion: &[f64]) -> Option<(Vec<usize>, f64)> {
    let key = |j: usize| completion[j] - jobs[j].tail;
    let mut order: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].work > 0.0).collect();
    order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    let mut sums = Sums::default();
    let (mut worst, mut len) = (0.0, 0);
    for (k, &j) in order.iter().enumerate() {
        sums.add(jobs[j].work, key(j));
        if sums.violation(capacity) > worst {
            (worst, len) = (sums.violation(capacity), k + 1);
        }
    }
    order.truncate(len);
    (len > 0).then_some((order, worst))
}

/// V(S) and Σ_S V_j κ_j of a set.
#[derive(Clone, Copy, Default)]
struct Sums {
    work: f64,
    weighted: f64,
}

impl Sums {
    fn add(&mut self, work: f64, kappa: f64) {
        self.work += work;
        self.weighted += work * kappa;
    }

    fn violation(self, capacity: f64) -> f64 {
        self.work * self.work / (2.0 * capacity) - self.weighted
    }
}

/// A job with work, at its position in one of the two orders.
#[derive(Clone, Copy)]
struct Entry {
    work: f64,
    kappa: f64,
    /// Its position in the other order.
    rank: u32,
}

/// The matrix whose row maxima are the result: row t, column k is the violation of the first k jobs in order
/// of κ that are among the first t + 1 in Smith order.
struct Prefixes {
    capacity: f64,
    smith: Vec<Entry>,
    by_kappa: Vec<Entry>,
}

impl Prefixes {
    fn new(jobs: &[Job], capacity: f64, smith: &[usize], by_kappa: &[usize]) -> Self {
        let ranks = |order: &[usize]| {
            let mut rank = vec![0; jobs.len()];
            for (k, &j) in order.iter().enumerate() {
                rank[j] = k as u32;
            }
            rank
        };
        let entries = |order: &[usize], rank: &[u32]| {
            let entry =
                |&j: &usize| Entry { work: jobs[j].work, kappa: jobs[j].floor - jobs[j].tail, rank: rank[j] };
            order.iter().map(entry).collect()
        };
        Self { capacity, smith: entries(smith, &ranks(by_kappa)), by_kappa: entries(by_kappa, &ranks(smith)) }
    }

    fn fill(&self, best: &mut [f64]) {
        self.rows(0, 0, self.by_kappa.len(), Sums::default(), best);
    }

    /// Maxima of the rows `first..first + best.len()`, which lie in the columns `low..=high`;
    /// `before` sums the jobs of Smith rank below `first` and κ rank below `low`.
    fn rows(&self, first: usize, low: usize, high: usize, before: Sums, best: &mut [f64]) {
        if best.is_empty() {
            return;
        }
        let half = best.len() / 2;
        let middle = first + half;
        let mut at_low = before;
        for entry in &self.smith[first..=middle] {
            if (entry.rank as usize) < low {
                at_low.add(entry.work, entry.kappa);
            }
        }
        let (mut sums, mut at_column, mut column) = (at_low, at_low, low);
        let mut most = at_low.violation(self.capacity);
        for (k, entry) in self.by_kappa.iter().enumerate().take(high).skip(low) {
            if entry.rank as usize <= middle {
                sums.add(entry.work, entry.kappa);
                if sums.violation(self.capacity) > most {
                    most = sums.violation(self.capacity);
                    (column, at_column) = (k + 1, sums);
                }
            }
        }
        let (above, rest) = best.split_at_mut(half);
        self.rows(first, low, column, before, above);
        if let [row, below @ ..] = rest {
            *row = most;
            self.rows(middle + 1, column, high, at_column, below);
        }
    }
}
