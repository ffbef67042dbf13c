//! Benchmarks: what a run costs and how the cost grows with size.
//!
//! One binary with suites (`cargo xtask bench [suite …]`): each suite has a small size,
//! which runs as a test so that it cannot rot, and a large one. Every measurement prints a hash of its
//! result, so that a faster run that computes something else is noticed. Machines are noisy: read
//! ratios within one run, and medians.
//!
//! - [`measure`]: clock, memory, hash;
//! - [`size`]: how large a suite runs;
//! - [`auto`]: rollouts, by how many flows are there;
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

/// A suite: its name and what runs it, at its small or large size.
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
