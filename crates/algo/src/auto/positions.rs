//! A set of positions in an order, which finds the first member at or after a position in a few steps.

/// A set of numbers below a limit: one bit each, and one for each non-zero word.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Positions {
    /// Makes it the empty set of numbers below `n`. Allocates only if it grows.
    pub(super) fn clear(&mut self, n: usize) {
        self.words.clear();
        self.words.resize(n.div_ceil(64), 0);
        self.summary.clear();
        self.summary.resize(self.words.len().div_ceil(64), 0);
    }

    pub(super) fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
        self.summary[at / 4096] |= 1 << (at / 64 % 64);
    }

    /// Removes a member. Returns whether it was in.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        let was_in = self.words[at / 64] >> (at % 64) & 1 == 1;
        self.words[at / 64] &= !(1 << (at % 64));
        if self.words[at / 64] == 0 {
            self.summary[at / 4096] &= !(1 << (at / 64 % 64));
        }
        was_in
    }

    /// The first member that is `from` or more.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let here = self.words.get(word)? & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let word = next_bit(&self.summary, word + 1)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

/// The first set bit at or after `from`.
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let mut mask = u64::MAX << (from % 64);
    for (at, &word) in words.iter().enumerate().skip(from / 64) {
        if word & mask != 0 {
            return Some(at * 64 + (word & mask).trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn agrees_with_an_ordered_set() {
        let n = 10_000;
        let (mut set, mut model) = (Positions::default(), BTreeSet::new());
        set.clear(n);
        let mut x = 7u64;
        let mut draw = |below: usize| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as usize % below
        };
        for step in 0..4000 {
            let at = draw(n);
            // Sparse at first, to test the summary.
            if draw(3) < if step < 300 { 1 } else { 2 } {
                set.insert(at);
                model.insert(at);
            } else {
                let at = model.range(at..).next().copied().unwrap_or(at);
                assert_eq!(set.remove(at), model.remove(&at));
            }
            let from = draw(n);
            assert_eq!(set.next(from), model.range(from..).next().copied(), "from {from}");
        }
        set.clear(n);
        assert_eq!(set.next(0), None);
    }
}
