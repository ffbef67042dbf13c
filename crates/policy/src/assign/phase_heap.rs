//! Phases in the order of keys that change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::PhaseId;

use crate::id_table::IdTable;

/// A binary heap of phases that finds each of them, so that keys change in place: O(log phases) a change and
/// O(1) for the two smallest. Ties go to the lower id.
#[derive(Clone, Debug)]
pub(super) struct PhaseHeap<K> {
    heap: Vec<(K, PhaseId)>,
    /// One more than the position of each phase in the heap; 0 for those outside.
    position: IdTable<PhaseId, u32>,
}

impl<K> Default for PhaseHeap<K> {
    fn default() -> Self {
        Self { heap: Vec::new(), position: IdTable::default() }
    }
}

impl<K: Ord + Copy> PhaseHeap<K> {
    /// Forgets phases, which are not in the heap any more.
    pub(super) fn forget(&mut self, phases: impl Iterator<Item = PhaseId>) {
        self.position.forget(phases);
    }

    /// Sets the key of a phase; without a key it leaves the heap.
    pub(super) fn set(&mut self, phase: PhaseId, key: Option<K>) {
        let at = self.position[phase].checked_sub(1).map(|at| at as usize);
        match (at, key) {
            (None, None) => {}
            (None, Some(key)) => {
                self.heap.push((key, phase));
                self.rise(self.heap.len() - 1);
            }
            (Some(at), Some(key)) => {
                let old = std::mem::replace(&mut self.heap[at].0, key);
                if key < old {
                    self.rise(at);
                } else if key > old {
                    self.sink(at);
                }
            }
            (Some(at), None) => {
                self.position[phase] = 0;
                self.heap.swap_remove(at);
                if at < self.heap.len() {
                    let at = self.rise(at);
                    self.sink(at);
                }
            }
        }
    }

    /// The two smallest entries outside `skip`. O(1), and O(log) for each phase of `skip`.
    pub(super) fn first_two(&self, skip: &[PhaseId]) -> [Option<(K, PhaseId)>; 2] {
        if skip.is_empty() {
            let second = self.heap.iter().skip(1).take(2).min();
            return [self.heap.first().copied(), second.copied()];
        }
        // Every entry but the first comes after its parent.
        let mut next: BinaryHeap<Reverse<((K, PhaseId), usize)>> = BinaryHeap::new();
        next.extend(self.heap.first().map(|&entry| Reverse((entry, 0))));
        let mut found = [None, None];
        let mut n = 0;
        while n < 2
            && let Some(Reverse((entry, at))) = next.pop()
        {
            if !skip.contains(&entry.1) {
                found[n] = Some(entry);
                n += 1;
            }
            let below = [2 * at + 1, 2 * at + 2].into_iter();
            next.extend(below.filter_map(|at| Some(Reverse((*self.heap.get(at)?, at)))));
        }
        found
    }

    fn put(&mut self, at: usize, key: K, phase: PhaseId) {
        self.heap[at] = (key, phase);
        self.position[phase] = at as u32 + 1;
    }

    /// Moves an entry towards the root as far as it is smaller. Returns its position.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while at > 0 && entry < self.heap[(at - 1) / 2] {
            let (key, phase) = self.heap[(at - 1) / 2];
            self.put(at, key, phase);
            at = (at - 1) / 2;
        }
        self.put(at, entry.0, entry.1);
        at
    }

    /// Moves an entry away from the root as far as it is larger.
    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let mut below = 2 * at + 1;
            if below + 1 < self.heap.len() && self.heap[below + 1] < self.heap[below] {
                below += 1;
            }
            if below >= self.heap.len() || entry <= self.heap[below] {
                break;
            }
            let (key, phase) = self.heap[below];
            self.put(at, key, phase);
            at = below;
        }
        self.put(at, entry.0, entry.1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys change at random; a sorted list is the reference.
        #[test]
        fn agrees_with_a_sorted_list(
            steps in prop::collection::vec((0u32..12, prop::option::of(0u32..6), 0u32..12, 0u32..3), 1..80),
        ) {
            let mut heap = PhaseHeap::default();
            let mut model = BTreeMap::new();
            for (phase, key, skipped, skips) in steps {
                let phase = PhaseId(phase);
                heap.set(phase, key);
                match key {
                    Some(key) => drop(model.insert(phase, key)),
                    None => drop(model.remove(&phase)),
                }
                let skip: Vec<PhaseId> = (skipped..skipped + skips).map(PhaseId).collect();
                let mut sorted: Vec<(u32, PhaseId)> =
                    model.iter().map(|(&phase, &key)| (key, phase)).collect();
                sorted.sort_unstable();
                let mut expected = sorted.into_iter().filter(|(_, phase)| !skip.contains(phase));
                prop_assert_eq!(heap.first_two(&skip), [expected.next(), expected.next()]);
            }
        }
    }
}
