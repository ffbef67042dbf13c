//! One fast machine with preemption and release times: the relaxation of a whole slot kind to a single
//! slot as fast as all of its slots together.
//!
//! In any interval the fast machine can do all work that the slot kind can do, so no schedule meets a
//! deadline that the fast machine misses. The best preemptive schedule of one machine is greedy: at every
//! instant the available item of the smallest key. With due dates as keys (EDF) it minimises maximum
//! lateness, with negative tails it is Jackson's preemptive schedule, with negative Smith ratios
//! (WSPT) it minimises the weighted sum of mean busy times (Goemans 1996).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::Key;

/// Work for the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// The earliest start, in seconds.
    pub release: f64,
    /// The time on the machine, in seconds.
    pub length: f64,
}

/// A stretch of time that the machine spends on one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The item, as its position in the list given to [`FastMachine::new`].
    pub item: usize,
    /// The start of the stretch, in seconds.
    pub start: f64,
    /// The length in seconds; the pieces of an item add up to its length.
    pub length: f64,
    /// Whether this is the last piece of the item.
    pub done: bool,
}

/// The machine, with its items in order of release. It runs with any keys.
#[derive(Clone, Debug)]
pub struct FastMachine {
    items: Vec<Item>,
    by_release: Vec<u32>,
    left: Vec<f64>,
    waiting: BinaryHeap<Reverse<(Key, u32)>>,
}

impl FastMachine {
    /// A machine for these items. O(n log n).
    pub fn new(items: Vec<Item>) -> Self {
        let mut by_release: Vec<u32> = (0..items.len() as u32).collect();
        by_release.sort_by(|&a, &b| items[a as usize].release.total_cmp(&items[b as usize].release));
        Self { left: Vec::with_capacity(items.len()), waiting: BinaryHeap::new(), items, by_release }
    }

    /// Always works on the available item of the smallest key (ties: the first given), is idle only without
    /// available items, and reports every piece in order of time.
    ///
    /// O(n log n); at most 2n pieces.
    pub fn run(&mut self, key: impl Fn(usize) -> f64, mut report: impl FnMut(Piece)) {
        let Self { items, by_release, left, waiting } = self;
        left.clear();
        left.extend(items.iter().map(|item| item.length));
        let mut coming = by_release.iter().copied().peekable();
        let mut now = f64::NEG_INFINITY;
        loop {
            if waiting.is_empty() {
                let Some(&next) = coming.peek() else { return };
                now = now.max(items[next as usize].release);
            }
            while let Some(item) = coming.next_if(|&i| items[i as usize].release <= now) {
                waiting.push(Reverse((Key::new(key(item as usize)), item)));
            }
            let Some(&Reverse((_, item))) = waiting.peek() else { return };
            let item = item as usize;
            let next = coming.peek().map_or(f64::INFINITY, |&i| items[i as usize].release);
            let done = now + left[item] <= next;
            let length = if done { left[item] } else { next - now };
            report(Piece { item, start: now, length, done });
            if done {
                waiting.pop();
                now += length;
            } else {
                left[item] -= length;
                now = next;
            }
        }
    }

    /// The smallest possible maximum of completion minus due date; −∞ without items.
    ///
    /// Preemptive EDF; equals the maximum over sets of (earliest release + total length − latest due
    /// date), so deadlines can be met if and only if it is at most 0. O(n log n).
    pub fn max_lateness(&mut self, due: impl Fn(usize) -> f64) -> f64 {
        let mut worst = f64::NEG_INFINITY;
        self.run(&due, |piece| {
            if piece.done {
                worst = worst.max(piece.start + piece.length - due(piece.item));
            }
        });
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(release: f64, length: f64) -> Item {
        Item { release, length }
    }

    #[test]
    fn urgent_arrivals_preempt() {
        let mut machine = FastMachine::new(vec![item(0.0, 4.0), item(1.0, 2.0), item(9.0, 1.0)]);
        let mut pieces = Vec::new();
        machine.run(|i| [9.0, 3.0, 10.0][i], |p| pieces.push((p.item, p.start, p.length, p.done)));
        assert_eq!(
            pieces,
            [(0, 0.0, 1.0, false), (1, 1.0, 2.0, true), (0, 3.0, 3.0, true), (2, 9.0, 1.0, true)]
        );
        assert_eq!(machine.max_lateness(|i| [9.0, 3.0, 10.0][i]), 0.0);
        assert_eq!(FastMachine::new(Vec::new()).max_lateness(|_| 0.0), f64::NEG_INFINITY);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// EDF against the condition on every set of items.
        #[test]
        fn lateness_is_that_of_the_worst_set(
            list in prop::collection::vec((0u8..12, 0u8..6, 0u8..20), 1..8),
        ) {
            let items = list.iter().map(|&(r, l, _)| item(f64::from(r), f64::from(l))).collect();
            let due = |i: usize| f64::from(list[i].2);
            let found = FastMachine::new(items).max_lateness(due);
            let expected = (1u32..1 << list.len()).map(|set| {
                let members = || list.iter().enumerate().filter(|&(i, _)| set >> i & 1 == 1).map(|(_, m)| m);
                let release = members().map(|m| m.0).min().unwrap();
                let length: u32 = members().map(|m| u32::from(m.1)).sum();
                let due = members().map(|m| m.2).max().unwrap();
                f64::from(release) + f64::from(length) - f64::from(due)
            });
            prop_assert_eq!(found, expected.fold(f64::NEG_INFINITY, f64::max));
        }
    }
}
