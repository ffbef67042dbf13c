//! `--seeds` and `--budget`: how many seeds are simulated.

use std::cell::Cell;

use clap::Args;
use slackline::report::spread::{Runs, SEEDS_MOST, SEEDS_STEP, is_enough};

use super::value;
use crate::terminal::clock::Stopwatches;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Simulation")]
pub(crate) struct SeedArgs {
    /// Number of seeds [default: 10 to 20 where anything is random]
    ///
    /// Each seed gives other random numbers. Figures are means with 95 % intervals, and differences are paired by seed.
    /// --seeds 1 is one draw, whose differences may be chance. By default seeds are added, up to 20, until the intervals
    /// of the differences are at most 2 % of the values wide.
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(1, 10_000))]
    pub(crate) seeds: Option<u32>,
    /// Start no further seed after this time
    #[arg(long, hide_short_help = true, value_name = "DURATION", value_parser = value::seconds_above_zero)]
    pub(crate) budget: Option<f64>,
}

/// The seeds of a simulation: a given number, or as many as make differences precise.
pub(crate) struct Seeds<'a> {
    args: &'a SeedArgs,
    root: u64,
    /// The columns that are asked for, whose differences are to be precise.
    columns: &'a [String],
    watch: Stopwatches,
    /// Whether the time was over before there were enough.
    is_cut: Cell<bool>,
}

impl<'a> Seeds<'a> {
    /// The seeds from `root` on.
    pub(crate) fn new(args: &'a SeedArgs, root: u64, columns: &'a [String]) -> Self {
        let watch = Stopwatches::new(1);
        watch.seconds(0);
        Self { args, root, columns, watch, is_cut: Cell::new(false) }
    }

    /// The seed of this index.
    pub(crate) fn seed(&self, k: u32) -> u64 {
        self.root.wrapping_add(k.into())
    }

    /// At most this many seeds are simulated where anything is random.
    pub(crate) fn most(&self) -> u32 {
        self.args.seeds.unwrap_or(SEEDS_MOST)
    }

    /// Whether `n` seeds of a file are enough. `all` are the results of its seeds; `None` if further seeds make nothing
    /// more precise, because there are several files or pieces.
    pub(crate) fn is_enough(&self, n: u32, all: Option<&dyn Fn() -> Vec<Runs>>) -> bool {
        if n >= self.most() {
            return true;
        }
        if self.args.budget.is_some_and(|budget| self.watch.seconds(0) > budget) {
            self.is_cut.set(true);
            return true;
        }
        if self.args.seeds.is_some() {
            return false;
        }
        is_enough(n, || all.map_or_else(Vec::new, |all| all()), self.columns)
    }

    /// How many seeds to simulate after `n` before differences are checked again.
    pub(crate) fn to_next_step(&self, n: u32) -> u32 {
        let next = (n / SEEDS_STEP + 1) * SEEDS_STEP;
        next.min(self.most()).saturating_sub(n)
    }

    /// Whether `--budget` ended the sampling.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }
}
