//! The paper's job orders, and brute force over all of them.

use slackline_model::{JobId, Span};
use slackline_relax::johnson::{self, Stages};

use super::estimator::{Estimator, Mode, alone};
use super::workload::{Split, Workload};

/// How long the stages of a job are taken to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Times {
    /// Work over slots, as Algorithms 1 and 2 have it. Orders by it are stable (Theorem 3).
    Area,
    /// How long the stage takes alone: ⌈n/a⌉·d for n tasks of length d on a slots (Verma et al.).
    Stage,
}

/// Which times may make the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Candidates {
    /// Only those.
    Only(Times),
    /// Both; the better order is kept, that of the area times if they are equally good.
    #[default]
    Best,
}

impl Candidates {
    /// The times to try, in order.
    pub fn times(self) -> &'static [Times] {
        match self {
            Self::Only(Times::Area) => &[Times::Area],
            Self::Only(Times::Stage) => &[Times::Stage],
            Self::Best => &[Times::Area, Times::Stage],
        }
    }
}

slackline_model::named_enum! {
    /// A rule that orders jobs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Rule {
        /// Johnson's rule: for the makespan (Algorithm 1).
        MkJr = "mk-jr",
        /// Small jobs before large ones, each by Johnson's rule: for makespan and total completion time
        /// (Algorithm 2).
        MkTctJr = "mk-tct-jr",
    }
}

impl Rule {
    /// What the better of several orders of the rule is better at.
    pub fn goal(self) -> Goal {
        match self {
            Self::MkJr => Goal::Makespan,
            Self::MkTctJr => Goal::TotalCompletion,
        }
    }

    /// The same from an order of another split, which is nearly the same: O(n) then.
    pub(super) fn reorder(self, workload: &Workload, split: Split, times: Times, order: &mut [JobId]) {
        sort(self, &stage_times(workload, split, times), total, order);
    }

    /// The order of the workload's jobs on those slots. O(n log n).
    pub fn order(self, workload: &Workload, split: Split, times: Times) -> Vec<JobId> {
        match self {
            Self::MkJr => mk_jr(workload, split, times),
            Self::MkTctJr => mk_tct_jr(workload, split, times),
        }
    }
}

/// An order and what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The jobs, first to last.
    pub order: Vec<JobId>,
    /// When the last is done.
    pub makespan: Span,
    /// Sum of the completions, in microseconds.
    pub total_completion: u128,
}

impl Ordered {
    pub fn new(
        estimator: &mut Estimator,
        workload: &Workload,
        order: Vec<JobId>,
        split: Split,
        mode: Mode,
    ) -> Self {
        let estimate = estimator.run(workload, &order, split, mode);
        Self { makespan: estimate.makespan(), total_completion: estimate.total_completion(), order }
    }
}

/// MK_JR (Algorithm 1): Johnson's rule on the times of the stages; ties by id. O(n log n).
pub fn mk_jr(workload: &Workload, split: Split, times: Times) -> Vec<JobId> {
    order_of(Rule::MkJr, &stage_times(workload, split, times), total)
}

/// The reverse of MK_JR, the paper's unoptimised order: the worst of all on one slot of each kind
/// (Theorem 2).
pub fn reverse_johnson(workload: &Workload, split: Split, times: Times) -> Vec<JobId> {
    let mut order = mk_jr(workload, split, times);
    order.reverse();
    order
}

/// MK_TCT_JR (Algorithm 2): jobs whose stages together take no longer than the geometric mean of all
/// jobs come first, then the others; each part in the order of MK_JR. O(n log n).
///
/// Jobs that take no time come first and do not count in the mean, which they would make 0.
pub fn mk_tct_jr(workload: &Workload, split: Split, times: Times) -> Vec<JobId> {
    order_of(Rule::MkTctJr, &stage_times(workload, split, times), total)
}

fn total([map, reduce]: &Stages<u128>) -> f64 {
    (map + reduce) as f64
}

/// The order of a rule by how long the stages of each job last; ties by position. `total` is the time of
/// both stages. O(n log n).
pub(crate) fn order_of<I: From<usize> + Copy, T: Copy + PartialOrd>(
    rule: Rule,
    stages: &[Stages<T>],
    total: impl Fn(&Stages<T>) -> f64,
) -> Vec<I>
where
    usize: From<I>,
{
    let mut order: Vec<I> = (0..stages.len()).map(I::from).collect();
    sort(rule, stages, total, &mut order);
    order
}

/// Sorts positions in any order.
fn sort<I: From<usize> + Copy, T: Copy + PartialOrd>(
    rule: Rule,
    stages: &[Stages<T>],
    total: impl Fn(&Stages<T>) -> f64,
    order: &mut [I],
) where
    usize: From<I>,
{
    let large = match rule {
        Rule::MkJr => vec![false; stages.len()],
        Rule::MkTctJr => larger_than_mean(&stages.iter().map(total).collect::<Vec<f64>>()),
    };
    order.sort_by(|&i, &j| {
        let (i, j) = (usize::from(i), usize::from(j));
        large[i].cmp(&large[j]).then(johnson::precedence(stages[i], stages[j])).then(i.cmp(&j))
    });
}

/// Logarithms this close are equal: summing the logarithms of up to 10^7 times below 2^127 is off by
/// less, and times that differ by no more than a billionth are not worth telling apart.
const LOG_TOLERANCE: f64 = 1e-9;

/// Which values exceed the geometric mean of those above 0.
fn larger_than_mean(values: &[f64]) -> Vec<bool> {
    // Of values of 0 there are none.
    let logs: Vec<f64> =
        values.iter().map(|&v| if v > 0.0 { libm::log(v) } else { f64::NEG_INFINITY }).collect();
    let counted = || logs.iter().filter(|log| log.is_finite());
    let mean = counted().sum::<f64>() / counted().count().max(1) as f64;
    logs.iter().map(|&log| log > mean + LOG_TOLERANCE).collect()
}

/// The times of the stages of each job, in a unit that is the same for all jobs.
///
/// Area times are the works times each other's slots, cleared of their common divisor: they compare
/// exactly, and are the very same numbers on any number of equal nodes (Theorem 3).
pub(super) fn stage_times(workload: &Workload, split: Split, times: Times) -> Vec<Stages<u128>> {
    let (a, b) = (split.map(), split.reduce());
    let common = gcd(a, b);
    (workload.jobs().iter())
        .map(|job| match times {
            Times::Area => [
                u128::from(job.map.work().0) * u128::from(b / common),
                u128::from(job.reduce.work().0) * u128::from(a / common),
            ],
            Times::Stage => [alone(&job.map, a).into(), alone(&job.reduce, b).into()],
        })
        .collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Most jobs for which all orders are tried: 9! = 362,880.
pub const MAX_JOBS: usize = 9;

/// Too many jobs to try all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found} jobs, expected at most {MAX_JOBS}: all orders of more would take too long")]
pub struct TooMany {
    /// How many there are.
    pub found: usize,
}

/// What an order is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The makespan, then the total completion time.
    Makespan,
    /// The total completion time, then the makespan.
    TotalCompletion,
}

impl Goal {
    pub(super) fn key(self, makespan: Span, total_completion: u128) -> (u128, u128) {
        match self {
            Self::Makespan => (makespan.0.into(), total_completion),
            Self::TotalCompletion => (total_completion, makespan.0.into()),
        }
    }
}

/// The best and the worst of all orders for a goal; ties go to the order that is first in the
/// dictionary. O(n! · n).
///
/// # Errors
/// More than [`MAX_JOBS`] jobs.
pub fn all_orders(
    workload: &Workload,
    split: Split,
    mode: Mode,
    goal: Goal,
) -> Result<(Ordered, Ordered), TooMany> {
    if workload.len() > MAX_JOBS {
        return Err(TooMany { found: workload.len() });
    }
    let mut estimator = Estimator::default();
    let mut order: Vec<JobId> = workload.ids().collect();
    let first = Ordered::new(&mut estimator, workload, order.clone(), split, mode);
    let (mut best, mut worst) = (first.clone(), first);
    while next_order(&mut order) {
        let estimate = estimator.run(workload, &order, split, mode);
        let (makespan, total_completion) = (estimate.makespan(), estimate.total_completion());
        let key = goal.key(makespan, total_completion);
        if key < goal.key(best.makespan, best.total_completion) {
            best = Ordered { order: order.clone(), makespan, total_completion };
        } else if key > goal.key(worst.makespan, worst.total_completion) {
            worst = Ordered { order: order.clone(), makespan, total_completion };
        }
    }
    Ok((best, worst))
}

/// Turns an order into the next one of the dictionary; false after the last. O(n).
pub fn next_order(order: &mut [JobId]) -> bool {
    let Some(pivot) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let swap = order.iter().rposition(|&job| job > order[pivot]).expect("invariant: pivot + 1 is larger");
    order.swap(pivot, swap);
    order[pivot + 1..].reverse();
    true
}
