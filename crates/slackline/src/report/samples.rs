//! The figures of policies over several samples, their means and spreads, and how many seeds are enough.

use crate::report::comparison::{self, Figures, Row};
use crate::statistics::{ENOUGH, Spread};

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

/// How the means of `n` values are shown.
pub const fn legend(n: usize) -> &'static str {
    if n < ENOUGH { "means and ranges" } else { "means ± half their 95 % interval" }
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

/// Whether `n` seeds are enough: after 10, 15 and 20 of them, if differences are precise.
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
