//! A set of small numbers as bits, for sets of slots that change with every task.

/// Numbers below some limit that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(super) fn remove(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Removes the numbers that are not in `other`.
    pub(super) fn keep(&mut self, other: &Self) {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        self.0.iter_mut().zip(others).for_each(|(bits, other)| *bits &= other);
    }

    /// The numbers in order. O(limit / 64 + numbers that are read).
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        of_words(self.0.iter().copied())
    }

    /// Appends the numbers in order.
    pub(super) fn append_to(&self, to: &mut Vec<u32>) {
        for (first, &word) in (0u32..).step_by(64).zip(&self.0) {
            let mut bits = word;
            while bits != 0 {
                to.push(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// The numbers that are in `other` too and not in `without`, in order.
    pub(super) fn and_not<'a>(
        &'a self,
        other: &'a Self,
        without: &'a Self,
    ) -> impl Iterator<Item = u32> + 'a {
        let without = without.0.iter().copied().chain(std::iter::repeat(0));
        of_words(self.0.iter().zip(&other.0).zip(without).map(|((a, b), without)| a & b & !without))
    }
}

fn of_words(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    (0u32..).zip(words).flat_map(|(at, bits)| {
        let rest = std::iter::successors(Some(bits), |&bits| (bits != 0).then(|| bits & (bits - 1)));
        rest.take_while(|&bits| bits != 0).map(move |bits| at * 64 + bits.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_numbers() {
        let (mut a, mut b) = (Bits::default(), Bits::default());
        for number in [0, 1, 63, 64, 200] {
            a.insert(number);
        }
        for number in [1, 64, 65] {
            b.insert(number);
        }
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 1, 63, 64, 200]);
        let mut numbers = vec![7];
        a.append_to(&mut numbers);
        assert_eq!(numbers, [7, 0, 1, 63, 64, 200]);
        let mut one = Bits::default();
        one.insert(1);
        assert_eq!(a.and_not(&b, &one).collect::<Vec<_>>(), [64]);
        a.remove(200);
        a.remove(9_999);
        assert!(!a.contains(200) && a.contains(63) && !a.contains(9_999));
        a.keep(&b);
        assert_eq!(a.iter().collect::<Vec<_>>(), [1, 64]);
        a.clear();
        assert!(a.iter().next().is_none());
    }
}
