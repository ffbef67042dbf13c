//! Ids in the order of keys that change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::id_table::IdTable;

/// A binary heap of ids that finds each of them, so that keys change in place: O(log ids) a change and O(1) for
/// the two smallest. Ties go to the lower id.
#[derive(Clone, Debug)]
pub struct IdHeap<I, K> {
    heap: Vec<(K, I)>,
    /// One more than the position of each id in the heap; 0 for those outside.
    position: IdTable<I, u32>,
}

impl<I: Copy + From<usize>, K> Default for IdHeap<I, K>
where
    usize: From<I>,
{
    fn default() -> Self {
        Self { heap: Vec::new(), position: IdTable::default() }
    }
}

impl<I: Copy + Ord + From<usize>, K: Ord + Copy> IdHeap<I, K>
where
    usize: From<I>,
{
    /// Forgets ids, which are not in the heap any more.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = I>) {
        self.position.forget(ids);
    }

    /// Sets the key of an id; without a key it leaves the heap.
    pub fn set(&mut self, id: I, key: Option<K>) {
        let at = self.position[id].checked_sub(1).map(|at| at as usize);
        match (at, key) {
            (None, None) => {}
            (None, Some(key)) => {
                self.heap.push((key, id));
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
                self.position[id] = 0;
                self.heap.swap_remove(at);
                if at < self.heap.len() {
                    let at = self.rise(at);
                    self.sink(at);
                }
            }
        }
    }

    /// The smallest entry. O(1).
    pub fn first(&self) -> Option<(K, I)> {
        self.heap.first().copied()
    }

    /// The two smallest entries outside `skip`. O(1), and O(log) for each id of `skip`.
    pub fn first_two(&self, skip: &[I]) -> [Option<(K, I)>; 2] {
        if skip.is_empty() {
            let second = self.heap.iter().skip(1).take(2).min();
            return [self.first(), second.copied()];
        }
        let mut rest = self.in_order().filter(|(_, id)| !skip.contains(id));
        [rest.next(), rest.next()]
    }

    /// The entries in their order. O(log) for each.
    pub fn in_order(&self) -> impl Iterator<Item = (K, I)> + '_ {
        // Every entry but the first comes after its parent.
        let mut next: BinaryHeap<Reverse<((K, I), usize)>> = BinaryHeap::new();
        next.extend(self.first().map(|entry| Reverse((entry, 0))));
        std::iter::from_fn(move || {
            let Reverse((entry, at)) = next.pop()?;
            let below = [2 * at + 1, 2 * at + 2].into_iter();
            next.extend(below.filter_map(|at| Some(Reverse((*self.heap.get(at)?, at)))));
            Some(entry)
        })
    }

    fn put(&mut self, at: usize, key: K, id: I) {
        self.heap[at] = (key, id);
        self.position[id] = at as u32 + 1;
    }

    /// Moves an entry towards the root as far as it is smaller. Returns its position.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while at > 0 && entry < self.heap[(at - 1) / 2] {
            let (key, id) = self.heap[(at - 1) / 2];
            self.put(at, key, id);
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
            let (key, id) = self.heap[below];
            self.put(at, key, id);
            at = below;
        }
        self.put(at, entry.0, entry.1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use slackline_model::PhaseId;

    use super::*;

    proptest! {
        /// Keys change at random; a sorted list is the reference.
        #[test]
        fn agrees_with_a_sorted_list(
            steps in prop::collection::vec((0u32..12, prop::option::of(0u32..6), 0u32..12, 0u32..3), 1..80),
        ) {
            let mut heap = IdHeap::default();
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
                let mut expected = sorted.iter().copied().filter(|(_, phase)| !skip.contains(phase));
                prop_assert!(heap.in_order().eq(sorted.iter().copied()));
                prop_assert_eq!(heap.first_two(&skip), [expected.next(), expected.next()]);
            }
        }
    }
}
