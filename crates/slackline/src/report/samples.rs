//! The figures of policies over several samples, their means and spreads, and how many seeds are enough.

use crate::report::comparison::{self, Figures, Row};

/// The word for one sample: `seed`, `day`, `file`.
pub const SEED: &str = "seed";

/// The results of one policy, sample by sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The policy with its parameters.
    pub policy: String,
    /// Its figures for every sample, or the reason why there are none.
    pub result: Result<Vec<Figures>, String>,
}

impl Runs {
    /// The figures of one sample.
    pub fn of_row(row: &Row) -> Self {
        Self { policy: row.policy.clone(), result: row.result.clone().map(|figures| vec![figures]) }
    }
}

/// The mean and the spread of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 for a single number.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); 0 for a single number.
    pub ci95: f64,
    /// How many numbers there are.
    pub n: usize,
    /// The least number.
    pub least: f64,
    /// The largest number.
    pub most: f64,
}

/// How the means of `n` values are shown.
pub const fn legend(n: usize) -> &'static str {
    if n < ENOUGH { "means and ranges" } else { "means ± half their 95 % interval" }
}

/// From this number of values on an interval is shown, and below it the range.
const ENOUGH: usize = 5;

/// What is shown beside a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// Nothing: all numbers are equal, or there is only one.
    None,
    /// Half the width of the 95 % confidence interval.
    Half(f64),
    /// The least and the largest of fewer than five numbers.
    Range(f64, f64),
}

impl Spread {
    /// What is shown beside the mean.
    pub fn interval(&self) -> Interval {
        match self.n {
            _ if self.least == self.most => Interval::None,
            ENOUGH.. => Interval::Half(self.ci95),
            _ => Interval::Range(self.least, self.most),
        }
    }

    /// Half the width of the interval, where one is shown.
    pub(crate) fn shown_half(&self) -> Option<f64> {
        match self.interval() {
            Interval::Half(half) => Some(half),
            _ => None,
        }
    }

    /// The mean and the spread; `None` for no numbers.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.is_empty() {
            return None;
        }
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let same = Self { mean: values[0], sd: 0.0, ci95: 0.0, n: values.len(), least, most };
        if least == most {
            return Some(same);
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        let sd = variance.sqrt();
        Some(Self { mean, sd, ci95: student_975(values.len() - 1) * sd / n.sqrt(), ..same })
    }
}

/// The 97.5th percentile of Student's t. Between two listed degrees of freedom the lower one counts, which
/// makes intervals wider.
fn student_975(freedom: usize) -> f64 {
    const FEW: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => FEW[freedom - 1],
        31..=39 => FEW[29],
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

impl Spread {
    /// The spread of a number over the samples that have it.
    pub(crate) fn over(runs: &[Figures], get: &dyn Fn(&Figures) -> Option<f64>) -> Option<Self> {
        Self::of(&runs.iter().filter_map(get).collect::<Vec<_>>())
    }

    /// The spread of the differences to `first`, over the samples that both have.
    pub(crate) fn of_differences(
        runs: &[Figures],
        first: &[Figures],
        get: &dyn Fn(&Figures) -> Option<f64>,
    ) -> Option<Self> {
        Self::of(&differences_of(runs, first, get))
    }
}

/// The differences to `first`, sample by sample.
fn differences_of(runs: &[Figures], first: &[Figures], get: &dyn Fn(&Figures) -> Option<f64>) -> Vec<f64> {
    runs.iter().zip(first).filter_map(|(a, b)| Some(get(a)? - get(b)?)).collect()
}

/// Whether values differ, but at least a third of them are the same: what differs is then too rare for its spread to
/// be known from few values.
fn is_rare(values: &[f64]) -> bool {
    let same = |value: &f64| values.iter().filter(|other| *other == value).count();
    let most = values.iter().map(same).max().unwrap_or(0);
    most < values.len() && 3 * most >= values.len()
}

/// The metrics whose differences decide how many seeds are simulated, unless columns are named.
const DECIDING: [&str; 6] =
    ["cost", "missed", "total_tardiness", "mean_response", "p95_response", "makespan"];
/// The 95 % intervals of differences are to be at most so wide, as fractions of the values.
const PRECISION: f64 = 0.02;

/// The number of seeds that are added at a time.
pub const SEEDS_STEP: u32 = 5;
/// The first number of seeds after which differences are checked. Checked after 5, intervals of values that happen to
/// be alike hold the truth in 92 % of the cases only (normal values, by simulation).
const SEEDS_LEAST: u32 = 10;
/// At most this many seeds are simulated, unless more are asked for.
pub const SEEDS_MOST: u32 = 20;

/// Whether `n` seeds are enough: after 10, 15 and 20 of them, if differences are precise ([`is_precise`]).
pub fn is_enough(n: u32, all: impl FnOnce() -> Vec<Runs>, columns: &[String]) -> bool {
    let is_checked = n >= SEEDS_LEAST && n.is_multiple_of(SEEDS_STEP);
    n >= SEEDS_MOST || is_checked && is_precise(&all(), columns)
}

/// Whether the 95 % interval of each paired difference to the first policy is at most 2 % of the value wide, in the named
/// columns or else in the usual ones. For a single policy, whether the intervals of its means are.
pub(super) fn is_precise(all: &[Runs], columns: &[String]) -> bool {
    let names = || comparison::specs().iter().map(|spec| spec.name);
    let is_wanted = |name: &&str| {
        if columns.is_empty() { DECIDING.contains(name) } else { columns.iter().any(|column| column == name) }
    };
    let ran: Vec<&[Figures]> = all.iter().filter_map(|runs| runs.result.as_deref().ok()).collect();
    let Some((first, others)) = ran.split_first() else { return true };
    names().filter(is_wanted).all(|name| {
        let get = |figures: &Figures| figures.value(name);
        let is_small = |values: &[f64], own: &[Figures]| {
            let Some((spread, own)) = Spread::of(values).zip(Spread::over(own, &get)) else { return true };
            2.0 * spread.ci95 <= PRECISION * own.mean.abs() && !is_rare(values)
        };
        match others {
            [] => is_small(&first.iter().filter_map(get).collect::<Vec<_>>(), first),
            others => others.iter().all(|own| is_small(&differences_of(own, first, &get), own)),
        }
    })
}
