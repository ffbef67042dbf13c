//! The ways to divide the slots of a cluster into map slots and reduce slots.

use std::ops::RangeInclusive;

use super::workload::{Ends, Split};

/// The splits to choose from: every node has the same number of slots, divided the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splits {
    nodes: u32,
    budget: u32,
}

/// A cluster whose slots cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found {nodes} nodes of {budget} slots, expected at least one node, two slots each, and fewer than 2^31 in all"
)]
pub struct NotDivisible {
    pub nodes: u32,
    /// Slots of each.
    pub budget: u32,
}

impl Splits {
    /// A total of `slots`: 1 map slot and the rest for reduces, 2 map slots, and so on.
    ///
    /// # Errors
    /// Fewer than 2 slots, or more than 2^31.
    pub fn of_total(slots: u32) -> Result<Self, NotDivisible> {
        Self::of_nodes(1, slots)
    }

    /// The paper's setting: `nodes` of `budget` slots each, with the same m map and r reduce slots on
    /// every node, m + r = `budget`.
    ///
    /// # Errors
    /// No nodes, fewer than 2 slots per node, or more than 2^31 in all.
    pub fn of_nodes(nodes: u32, budget: u32) -> Result<Self, NotDivisible> {
        if nodes == 0 || budget < 2 || u64::from(nodes) * u64::from(budget) >= 1 << 31 {
            return Err(NotDivisible { nodes, budget });
        }
        Ok(Self { nodes, budget })
    }

    /// Number of nodes; 1 if a total is divided.
    pub fn nodes(self) -> u32 {
        self.nodes
    }

    /// How many splits there are.
    pub fn count(self) -> u32 {
        self.budget - 1
    }

    /// All splits, by map slots.
    pub fn iter(self) -> impl Iterator<Item = Split> {
        self.points().map(move |m| self.at(m))
    }

    /// The split with equal numbers of map and reduce slots, or one more reduce slot per node: Hadoop's
    /// default.
    pub fn half(self) -> Split {
        self.at(self.budget / 2)
    }

    /// The split whose share of map slots is nearest to that of `split`.
    pub fn proportional(self, split: Split) -> Split {
        let (map, total) = (u64::from(split.map()), u64::from(split.map()) + u64::from(split.reduce()));
        let map = (map * u64::from(self.budget) * 2 + total) / (2 * total);
        self.at((map as u32).clamp(1, self.budget - 1))
    }

    pub(super) fn points(self) -> RangeInclusive<u32> {
        1..=self.budget - 1
    }

    /// The split of `map` slots for maps on every node.
    pub(super) fn at(self, map: u32) -> Split {
        Split::new(self.nodes * map, self.nodes * (self.budget - map)).expect("invariant: both are above 0")
    }

    /// The first and the last split of a range.
    pub(super) fn ends(self, range: &RangeInclusive<u32>) -> Ends {
        Ends { low: self.at(*range.start()), high: self.at(*range.end()) }
    }
}
