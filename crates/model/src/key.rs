//! Seconds and costs as keys of ordered collections.

use std::fmt;

/// A number with a total order ([`f64::total_cmp`]), for heaps, B-trees and sorts.
///
/// It is stored as an integer in the same order, so that a comparison is one step. Not-a-number comes after
/// infinity, and −0 before 0; neither arises from valid input.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(i64);

impl Key {
    /// The key of a number.
    #[inline]
    pub fn new(number: f64) -> Self {
        Self(swap(number.to_bits().cast_signed()))
    }

    /// The number.
    #[inline]
    pub fn number(self) -> f64 {
        f64::from_bits(swap(self.0).cast_unsigned())
    }
}

/// Converts the bits of a number to its place in the total order and back: among negative numbers, a greater
/// magnitude comes first.
#[inline]
fn swap(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_totally() {
        let mut numbers = [2.0, f64::NAN, -1.0, f64::INFINITY, 0.0, -0.0, -2.5e-300, f64::NEG_INFINITY];
        let mut keys = numbers.map(Key::new);
        keys.sort_unstable();
        numbers.sort_by(f64::total_cmp);
        assert_eq!(keys.map(|key| key.number().to_bits()), numbers.map(f64::to_bits));
        assert_ne!(Key::new(0.0), Key::new(-0.0));
        assert_eq!(Key::default(), Key::new(0.0));
    }
}
