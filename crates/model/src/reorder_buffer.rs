//! Numbered items that arrive in any order and leave in the order of their numbers, so that sums of them are
//! the same to the last bit.

use std::collections::BTreeMap;

/// Items that wait for items with lower numbers.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    next: usize,
    waiting: BTreeMap<usize, T>,
    most: usize,
}

impl<T> ReorderBuffer<T> {
    /// A buffer of at most `most` items. When it is full, its first item no longer waits for missing ones,
    /// which leave when they arrive.
    pub fn new(most: usize) -> Self {
        Self { next: 0, waiting: BTreeMap::new(), most }
    }

    /// Adds the item of that number. Items that can leave do. O(log waiting), amortised.
    pub fn put(&mut self, number: usize, thing: T, mut leave: impl FnMut(T)) {
        if number < self.next {
            return leave(thing);
        }
        self.waiting.insert(number, thing);
        if self.waiting.len() > self.most
            && let Some(&first) = self.waiting.keys().next()
        {
            self.next = first;
        }
        while let Some(thing) = self.waiting.remove(&self.next) {
            leave(thing);
            self.next += 1;
        }
    }

    /// All waiting items leave.
    pub fn flush(&mut self, leave: impl FnMut(T)) {
        if let Some((&last, _)) = self.waiting.last_key_value() {
            self.next = last + 1;
        }
        std::mem::take(&mut self.waiting).into_values().for_each(leave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(most: usize, numbers: &[usize]) -> Vec<usize> {
        let (mut order, mut left) = (ReorderBuffer::new(most), Vec::new());
        for &number in numbers {
            order.put(number, number, |thing| left.push(thing));
        }
        order.flush(|thing| left.push(thing));
        left
    }

    #[test]
    fn things_leave_in_their_order() {
        assert_eq!(left(10, &[2, 0, 3, 1, 5]), [0, 1, 2, 3, 5]);
    }

    #[test]
    fn a_full_buffer_waits_no_longer_for_the_missing_number() {
        assert_eq!(left(2, &[1, 3, 2, 0, 4]), [1, 2, 3, 0, 4]);
    }
}
