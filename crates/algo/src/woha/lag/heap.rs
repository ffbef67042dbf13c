//! Queues on an indexed 4-ary heap: one array of keys, and a table with the position of each flow.
//!
//! The head is found at once, a key changes in place by sifting one entry, and four children share a cache
//! line or two. Walking past the head costs more than in a list: best first, O(k log k) for k steps;
//! the two that are nearly always all need no memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::queue::Queue;

const WAYS: usize = 4;
const NOWHERE: u32 = u32::MAX;

/// An indexed 4-ary heap.
#[derive(Clone, Debug)]
pub struct Heap<K> {
    entries: Vec<(K, u32)>,
    /// Place of each flow in `entries`.
    at: Vec<u32>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), at: Vec::new() }
    }
}

/// The children of a place, as far as there are any.
fn children(place: usize, len: usize) -> std::ops::Range<usize> {
    let first = (WAYS * place + 1).min(len);
    first..(first + WAYS).min(len)
}

impl<K: Ord + Copy> Heap<K> {
    fn put(&mut self, place: usize, key: K, id: u32) {
        self.entries[place] = (key, id);
        self.at[id as usize] = place as u32;
    }

    /// Moves the entry at the hole towards the root as far as necessary.
    fn sift_up(&mut self, mut place: usize, key: K, id: u32) {
        while place > 0 {
            let parent = (place - 1) / WAYS;
            let above = self.entries[parent];
            if above <= (key, id) {
                break;
            }
            self.put(place, above.0, above.1);
            place = parent;
        }
        self.put(place, key, id);
    }

    /// Moves the entry at the hole away from the root as far as necessary.
    fn sift_down(&mut self, mut place: usize, key: K, id: u32) {
        while let Some(child) =
            children(place, self.entries.len()).min_by(|&a, &b| self.entries[a].cmp(&self.entries[b]))
            && self.entries[child] < (key, id)
        {
            let below = self.entries[child];
            self.put(place, below.0, below.1);
            place = child;
        }
        self.put(place, key, id);
    }

    /// Fills the hole at a place with an entry that stood elsewhere.
    fn settle(&mut self, place: usize, key: K, id: u32) {
        if place > 0 && (key, id) < self.entries[(place - 1) / WAYS] {
            self.sift_up(place, key, id);
        } else {
            self.sift_down(place, key, id);
        }
    }
}

impl<K: Ord + Copy> Queue<K> for Heap<K> {
    fn insert(&mut self, key: K, id: u32) {
        if self.at.len() <= id as usize {
            self.at.resize(id as usize + 1, NOWHERE);
        }
        let place = self.entries.len();
        self.entries.push((key, id));
        self.sift_up(place, key, id);
    }

    fn remove(&mut self, _key: K, id: u32) {
        let place = std::mem::replace(&mut self.at[id as usize], NOWHERE) as usize;
        let (key, last) = self.entries.pop().expect("invariant: a flow that is removed is in the heap");
        if place < self.entries.len() {
            self.settle(place, key, last);
        }
    }

    fn change(&mut self, _from: K, to: K, id: u32) {
        self.settle(self.at[id as usize] as usize, to, id);
    }

    fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    fn walk(&self, visit: &mut dyn FnMut(K, u32) -> bool) {
        let Some(&(key, id)) = self.entries.first() else { return };
        if !visit(key, id) {
            return;
        }
        // The second is the least child of the root; only a third needs a queue.
        let second = children(0, self.entries.len()).min_by(|&a, &b| self.entries[a].cmp(&self.entries[b]));
        let Some(second) = second else { return };
        let (key, id) = self.entries[second];
        if !visit(key, id) {
            return;
        }
        let mut next: BinaryHeap<Reverse<((K, u32), usize)>> = BinaryHeap::new();
        let rest = children(0, self.entries.len()).filter(|&place| place != second);
        next.extend(rest.chain(children(second, self.entries.len())).map(|p| Reverse((self.entries[p], p))));
        while let Some(Reverse(((key, id), place))) = next.pop() {
            if !visit(key, id) {
                return;
            }
            next.extend(children(place, self.entries.len()).map(|p| Reverse((self.entries[p], p))));
        }
    }
}
