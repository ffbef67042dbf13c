//! Numbers in the order of a list that changes little: what keeps its place among the others keeps its number.

/// Finds new numbers; keeps its memory for the next list.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// The entries that keep their numbers, by place.
    kept: Vec<(usize, f64)>,
}

impl Numbers {
    /// The places and new numbers of the entries that do not keep theirs, so that all numbers increase strictly;
    /// `None` if all entries need new numbers. New entries have none yet. O(entries).
    pub(super) fn moves(&mut self, list: impl Iterator<Item = Option<f64>>) -> Option<Vec<(usize, f64)>> {
        self.kept.clear();
        let mut len = 0;
        for (at, number) in list.enumerate() {
            len = at + 1;
            let Some(number) = number.filter(|number| number.is_finite()) else { continue };
            if self.kept.last().is_some_and(|last| number <= last.1) {
                // This one has moved back or the one before it forward.
                if self.kept.iter().rev().nth(1).is_some_and(|before| number <= before.1) {
                    continue;
                }
                self.kept.pop();
            }
            self.kept.push((at, number));
        }
        let mut moves = Vec::new();
        let mut from = (0, None);
        let ends = self.kept.iter().map(|&(at, number)| (at, Some(number))).chain([(len, None)]);
        for (end, above) in ends {
            let (first, below) = from;
            let n = (end - first) as f64;
            for (k, at) in (first..end).enumerate() {
                let part = (k + 1) as f64;
                let number = match (below, above) {
                    (Some(below), Some(above)) => below + (above - below) * (part / (n + 1.0)),
                    (Some(below), None) => below + part,
                    (None, Some(above)) => above - (n + 1.0 - part),
                    (None, None) => return None,
                };
                let last = moves.last().filter(|_| k > 0).map(|&(_, number)| number).or(below);
                if last.is_some_and(|last| number <= last) || above.is_some_and(|above| number >= above) {
                    return None;
                }
                moves.push((at, number));
            }
            from = (end + 1, above);
        }
        (4 * moves.len() <= len).then_some(moves)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moved_entry_and_a_new_one_get_numbers_between_their_neighbours() {
        let list = [0.0, 4.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0].map(Some);
        let moves = Numbers::default().moves(list.into_iter());
        assert_eq!(moves, Some(vec![(1, 0.5)]));
        let list = [Some(0.0), Some(1.0), None, Some(2.0), Some(3.0)];
        assert_eq!(Numbers::default().moves(list.into_iter()), Some(vec![(2, 1.5)]));
        assert_eq!(Numbers::default().moves([None].into_iter()), None);
    }

    proptest! {
        #[test]
        fn numbers_increase(list in prop::collection::vec(prop::option::weighted(0.9, 0u32..60), 0..60)) {
            let mut numbers: Vec<Option<f64>> = list.iter().map(|number| number.map(f64::from)).collect();
            if let Some(moves) = Numbers::default().moves(numbers.iter().copied()) {
                for (at, number) in moves {
                    numbers[at] = Some(number);
                }
                prop_assert!(numbers.iter().all(Option::is_some));
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
