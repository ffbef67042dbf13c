//! Queues on the standard library's B-tree.

use std::collections::BTreeSet;

use super::queue::{Family, Queue};

/// B-trees.
#[derive(Clone, Copy, Debug, Default)]
pub struct BTree;

impl Family for BTree {
    type Of<K: Ord + Copy + std::fmt::Debug + Send> = BTreeSet<(K, u32)>;
}

impl<K: Ord + Copy> Queue<K> for BTreeSet<(K, u32)> {
    fn insert(&mut self, key: K, id: u32) {
        self.insert((key, id));
    }

    fn remove(&mut self, key: K, id: u32) {
        self.remove(&(key, id));
    }

    fn first(&self) -> Option<(K, u32)> {
        self.first().copied()
    }

    fn walk(&self, visit: &mut dyn FnMut(K, u32) -> bool) {
        let _ = self.iter().all(|&(key, id)| visit(key, id));
    }
}
