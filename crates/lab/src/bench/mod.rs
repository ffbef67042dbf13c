//! Benchmarks: the cost of a run, and its growth with size.
//!
//! One binary with suites (`cargo xtask bench [suite …]`): each suite has a large size, and a small size that
//! runs as a test so that it keeps working. Every measurement prints a hash of its result, which shows if a
//! faster version computes something else. Machines are noisy: compare ratios within one run, and medians.
//!
//! - [`measure`]: clock, memory, hash;
//! - [`size`]: the size of a suite;
//! - [`auto`]: rollouts, by the number of active flows;
//! - [`dmrs`]: the linear program and the list of DMRS;
//! - [`flex`]: epochs of FLEX;
//! - [`flowflex`]: epochs of FlowFlex, and its minimum-cost flow;
//! - [`ordering`]: exact sweeps over splits of slots;
//! - [`sim`]: the simulator on days of growing size;
//! - [`woha`]: WOHA's decisions and plans.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

pub mod auto;
pub mod dmrs;
pub mod flex;
pub mod flowflex;
pub mod measure;
pub mod ordering;
pub mod sim;
pub mod size;
pub mod woha;

pub use size::Size;

/// A suite: its name, and a function that runs it at its small or large size.
pub type Suite = (&'static str, fn(Size));

pub const SUITES: &[Suite] = &[
    ("auto", auto::run),
    ("dmrs", dmrs::run),
    ("flex", flex::run),
    ("flowflex", flowflex::run),
    ("ordering", ordering::run),
    ("sim", sim::run),
    ("woha", woha::run),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_run_at_their_small_size() {
        for (_, run) in SUITES {
            run(Size::Small);
        }
    }
}
