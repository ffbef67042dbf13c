//! Seconds and costs as keys of ordered collections.

use std::cmp::Ordering;

/// A number that is ordered totally ([`f64::total_cmp`]), so that heaps, B-trees and sorts can hold it.
///
/// Not-a-number comes after infinity, and −0 before 0; neither arises from valid input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key(pub f64);

impl Key {
    /// A whole number in the same order, for where many keys are compared with each other.
    pub fn rank(self) -> i64 {
        let bits = self.0.to_bits().cast_signed();
        // Of negative numbers, a greater magnitude comes first.
        bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_totally() {
        let mut keys = [2.0, f64::NAN, -1.0, f64::INFINITY, 0.0, -0.0].map(Key);
        keys.sort();
        assert_eq!(keys, [-1.0, -0.0, 0.0, 2.0, f64::INFINITY, f64::NAN].map(Key));
        assert_ne!(Key(0.0), Key(-0.0));
        assert!(keys.is_sorted_by_key(|key| key.rank()));
        assert_ne!(Key(0.0).rank(), Key(-0.0).rank());
    }
}
