//! Queues on the standard library's B-tree, as a baseline.
//!
//! A separate type, because neither the trait nor the set is of this crate.

use std::collections::BTreeSet;

use slackline_algo::woha::lag::Queue;

/// A set of flows by key.
#[derive(Clone, Debug)]
pub(super) struct BTree<K>(BTreeSet<(K, u32)>);

impl<K> Default for BTree<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord + Copy> Queue<K> for BTree<K> {
    fn insert(&mut self, key: K, id: u32) {
        self.0.insert((key, id));
    }

    fn remove(&mut self, key: K, id: u32) {
        self.0.remove(&(key, id));
    }

    fn first(&self) -> Option<(K, u32)> {
        self.0.first().copied()
    }

    fn walk(&self, visit: &mut dyn FnMut(K, u32) -> bool) {
        let _ = self.0.iter().all(|&(key, id)| visit(key, id));
    }
}
