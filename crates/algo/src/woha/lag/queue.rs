//! The operations of a list of flows.

/// An ordered set of flows, by key and then by id.
pub trait Queue<K: Ord + Copy>: Default {
    /// Adds a flow that is not in the set.
    fn insert(&mut self, key: K, id: u32);

    /// Removes a flow that is in the set under that key.
    fn remove(&mut self, key: K, id: u32);

    /// Changes the key of a flow that is in the set.
    fn change(&mut self, from: K, to: K, id: u32) {
        self.remove(from, id);
        self.insert(to, id);
    }

    fn first(&self) -> Option<(K, u32)>;

    /// Calls `visit` with the flows in order until it answers false.
    fn walk(&self, visit: &mut dyn FnMut(K, u32) -> bool);
}
