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
    let all: Vec<u32> = (0..jobs.len() as u32).collect();
    let mut solver = Solver { smith: all.clone(), by_kappa: all, ..Solver::default() };
    let mut completion = Vec::new();
    let value = solver.solve(jobs, capacity, &mut completion);
    Solution { completion, value }
}

/// Solves one program after another whose jobs are mostly in the same order.
#[derive(Clone, Debug, Default)]
pub struct Solver {
    /// Jobs by Smith ratio. Before a solution: every job once, in an order that is better the closer it is.
    pub smith: Vec<u32>,
    /// The same by κ.
    pub by_kappa: Vec<u32>,
    ratios: Vec<f64>,
    kappas: Vec<f64>,
    ranks: Vec<u32>,
    prefixes: Prefixes,
    best: Vec<f64>,
}

impl Solver {
    /// Writes the completion of each job, as [`solve`] does, and returns Σ w_j C_j. O(N log N); O(N) for the
    /// sorting if both orders were nearly right.
    pub fn solve(&mut self, jobs: &[Job], capacity: f64, completion: &mut Vec<f64>) -> f64 {
        let Self { smith, by_kappa, ratios, kappas, .. } = self;
        ratios.clear();
        ratios.extend(jobs.iter().map(|job| job.weight / job.work));
        kappas.clear();
        kappas.extend(jobs.iter().map(|job| job.floor - job.tail));
        smith.retain(|&j| jobs[j as usize].work > 0.0);
        by_kappa.retain(|&j| jobs[j as usize].work > 0.0);
        smith.sort_by(|&a, &b| ratios[b as usize].total_cmp(&ratios[a as usize]).then(a.cmp(&b)));
        by_kappa.sort_by(|&a, &b| kappas[a as usize].total_cmp(&kappas[b as usize]).then(a.cmp(&b)));
        self.fill_best(jobs, capacity);

        let Self { smith, ratios, best, .. } = self;
        completion.clear();
        completion.extend(jobs.iter().map(|job| job.floor));
        let mut value: f64 = jobs.iter().map(|job| job.weight * job.floor).sum();
        let mut before = 0.0;
        for (k, &j) in smith.iter().enumerate() {
            let j = j as usize;
            completion[j] += (best[k] - before).max(0.0) / jobs[j].work;
            before = best[k];
            // Σ w_k (best_k − best_{k−1}) / V_k by parts: a sum of non-negative numbers, without cancellation.
            let next = smith.get(k + 1).map_or(0.0, |&next| ratios[next as usize]);
            value += (ratios[j] - next) * best[k];
        }
        value
    }

    /// best(A_k) of all prefixes of the Smith order.
    fn fill_best(&mut self, jobs: &[Job], capacity: f64) {
        let Self { smith, by_kappa, kappas, ranks, prefixes, best, .. } = self;
        let Prefixes { smith: rows, columns, .. } = prefixes;
        ranks.resize(jobs.len(), 0);
        for (k, &j) in (0..).zip(&*by_kappa) {
            ranks[j as usize] = k;
        }
        let entry = |j: u32, ranks: &[u32], at: u32| {
            let j = j as usize;
            Entry { work: jobs[j].work, kappa: kappas[j], rank: ranks[j], at }
        };
        rows.clear();
        rows.extend((0..).zip(&*smith).map(|(k, &j)| entry(j, ranks, k)));
        for (k, &j) in (0..).zip(&*smith) {
            ranks[j as usize] = k;
        }
        columns.clear();
        columns.extend((0..).zip(&*by_kappa).map(|(k, &j)| entry(j, ranks, k)));
        prefixes.capacity = capacity;
        best.clear();
        best.resize(smith.len(), 0.0);
        prefixes.rows(0, 0, 0, smith.len(), Sums::default(), best);
    }
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
#[derive(Clone, Copy, Debug)]
struct Entry {
    work: f64,
    kappa: f64,
    /// Its position in the other order.
    rank: u32,
    /// Its position in this order.
    at: u32,
}

/// The matrix whose row maxima are the result: row t, column k is the violation of the first k jobs in order
/// of κ that are among the first t + 1 in Smith order.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    capacity: f64,
    smith: Vec<Entry>,
    /// All jobs by κ, then those that count in the parts of the matrix that are being filled.
    columns: Vec<Entry>,
}

impl Prefixes {
    /// Maxima of the rows `first..first + best.len()`, which lie in the columns from `low` on of the jobs in
    /// the part `from..to` of `columns`; `before` sums the jobs of Smith rank below `first` and κ rank below
    /// `low`.
    fn rows(&mut self, first: usize, low: u32, from: usize, to: usize, before: Sums, best: &mut [f64]) {
        if best.is_empty() {
            return;
        }
        let half = best.len() / 2;
        let middle = first + half;
        let mut at_low = before;
        for entry in &self.smith[first..=middle] {
            if entry.rank < low {
                at_low.add(entry.work, entry.kappa);
            }
        }
        let part = self.keep(from, to, middle as u32);
        let (mut sums, mut at_column, mut column, mut split) = (at_low, at_low, low, part);
        let mut most = at_low.violation(self.capacity);
        for (k, entry) in (part + 1..).zip(&self.columns[part..]) {
            sums.add(entry.work, entry.kappa);
            let violation = sums.violation(self.capacity);
            if violation > most {
                most = violation;
                (column, at_column, split) = (entry.at + 1, sums, k);
            }
        }
        let (above, rest) = best.split_at_mut(half);
        self.rows(first, low, part, split, before, above);
        self.columns.truncate(part);
        if let [row, below @ ..] = rest {
            *row = most;
            let from = from + self.columns[from..to].partition_point(|entry| entry.at < column);
            self.rows(middle + 1, column, from, to, at_column, below);
        }
    }

    /// Appends the jobs of a part of `columns` that are in the rows up to `last`. Returns where they start.
    fn keep(&mut self, from: usize, to: usize, last: u32) -> usize {
        let part = self.columns.len();
        self.columns.resize(part + to - from, Entry { work: 0.0, kappa: 0.0, rank: 0, at: 0 });
        let (all, kept) = self.columns.split_at_mut(part);
        let mut n = 0;
        // Without a branch, which could not be predicted.
        for &entry in &all[from..to] {
            kept[n] = entry;
            n += usize::from(entry.rank <= last);
        }
        self.columns.truncate(part + n);
        part
    }
}
