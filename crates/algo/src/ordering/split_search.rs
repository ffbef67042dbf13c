//! Best-first search over ranges, for a value whose bound holds over a range.
//!
//! The search cuts the range with the least bound in two, until a single point has the least bound of all
//! that remain, and visits that point. So it visits a point only if its bound is below the best value found
//! before, and never divides ranges without such points.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

/// The object of a search.
pub(super) trait Search {
    /// A lower bound on the value of any point of a range.
    type Bound: Ord + Copy;

    /// The bound over `range`, which is a part of a range of bound `whole`, if of any.
    fn bound(&mut self, range: RangeInclusive<u32>, whole: Option<Self::Bound>) -> Self::Bound;

    /// Whether no range of that bound is worth a visit any more. Once true for a bound, it stays true.
    fn is_hopeless(&self, bound: Self::Bound) -> bool;

    fn visit(&mut self, point: u32);

    /// The last point of the first part of a range that is cut in two.
    fn middle(&self, low: u32, high: u32) -> u32 {
        low + (high - low) / 2
    }

    /// Computes ahead what a range needs when its turn comes. Returns whether no further range is wanted now.
    fn look_ahead(&mut self, _low: u32, _high: u32) -> bool {
        true
    }

    /// A visit or a bound has settled this number of points.
    fn settled(&mut self, _points: u32) {}
}

/// The number of ranges that are looked through for one that needs to be computed ahead.
const AHEAD: usize = 8;

/// Visits every point of `points` that its bound does not rule out, best bound first; of equal bounds, those
/// in the smaller range and then at the smaller point. Returns how many points were visited.
pub(super) fn best_first<S: Search>(points: RangeInclusive<u32>, search: &mut S) -> u32 {
    let mut heap = BinaryHeap::new();
    let (mut lo, mut hi) = points.into_inner();
    let mut visited = 0;
    if lo > hi {
        return visited;
    }
    let mut bound = search.bound(lo..=hi, None);
    let mut next_ones = Vec::with_capacity(AHEAD);
    loop {
        while next_ones.len() < AHEAD
            && let Some(Reverse(next)) = heap.pop()
        {
            next_ones.push(Reverse(next));
            let (bound, width, from) = next;
            if search.is_hopeless(bound) || search.look_ahead(from, from + width) {
                break;
            }
        }
        heap.extend(next_ones.drain(..));
        if search.is_hopeless(bound) {
            search.settled(hi - lo + 1);
        } else if lo == hi {
            search.visit(lo);
            search.settled(1);
            visited += 1;
        } else {
            let middle = search.middle(lo, hi);
            for (lo, hi) in [(lo, middle), (middle + 1, hi)] {
                let bound = search.bound(lo..=hi, Some(bound));
                heap.push(Reverse((bound, hi - lo, lo)));
            }
        }
        let Some(Reverse((next, width, from))) = heap.pop() else { return visited };
        (bound, lo, hi) = (next, from, from + width);
    }
}
