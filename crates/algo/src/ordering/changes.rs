//! The splits at which orders by area change: the best places to cut ranges.
//!
//! By area, the maps of a job take their work over the map slots. So from one split on they take at most as
//! long as its reduces, and the job is in the other part of Johnson's order. Between two such splits the
//! order of the jobs does not change (within the small and within the large ones, for MK_TCT_JR), and the
//! bounds of a range without such a split are about as good as those of its splits.

use super::orders::Times;
use super::splits::Splits;
use super::workload::{Job, Workload};

/// The points from which on a job is in another part, in their order.
#[derive(Clone, Debug)]
pub(super) struct Changes(Vec<u32>);

impl Changes {
    /// O(n log |S|).
    pub(super) fn new(workload: &Workload, splits: Splits) -> Self {
        let points = splits.points();
        let change = |job: &Job| {
            let (map, reduce) = (u128::from(job.map.work().0), u128::from(job.reduce.work().0));
            let is_shorter = |point: u32| {
                let split = splits.at(point);
                map * u128::from(split.reduce()) <= reduce * u128::from(split.map())
            };
            let (mut low, mut high) = (*points.start(), *points.end() + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_shorter(middle) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low
        };
        let mut changes: Vec<u32> = workload.jobs().iter().map(change).collect();
        changes.sort_unstable();
        changes.dedup();
        Self(changes)
    }

    /// The last point of the first part of a range that is cut in two: next to the change that is nearest to
    /// its middle.
    pub(super) fn middle(&self, times: Times, low: u32, high: u32) -> u32 {
        let middle = low + (high - low) / 2;
        if times != Times::Area {
            return middle;
        }
        let at = self.0.partition_point(|&change| change <= middle + 1);
        let below = at.checked_sub(1).map(|at| self.0[at]).filter(|&change| change > low);
        let above = self.0.get(at).copied().filter(|&change| change <= high);
        let nearest = match (below, above) {
            (Some(below), Some(above)) if above - middle < middle + 1 - below => above,
            (Some(change), _) | (None, Some(change)) => change,
            (None, None) => return middle,
        };
        nearest - 1
    }
}
