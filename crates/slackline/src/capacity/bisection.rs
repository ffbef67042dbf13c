//! Bisection: finds the smallest number that meets the conditions, on the assumption that every larger one
//! does too, and checks this assumption.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Tries several numbers at once, each at most once. Returns whether each meets the conditions.
pub(super) type Try<'t, E> = dyn FnMut(&[u32]) -> Result<Vec<bool>, E> + 't;

/// The result of a bisection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fewest {
    /// The smallest number that was tried and meets the conditions. The next smaller number was tried and
    /// fails.
    pub(super) found: Option<u32>,
    /// Whether every tried number above it meets the conditions.
    pub(super) is_monotone: bool,
    /// The numbers that the search needed, in ascending order, without those that were tried in advance.
    pub(super) tried: Vec<u32>,
}

/// The maximum number of times that the search continues below a smaller number that meets the conditions.
const ROUNDS: usize = 4;
/// The first step away from the guess is 1/32 of it. Each further step is four times as long.
const STEP: (u32, u32) = (32, 4);
/// The checks are next to the answer, and 1/20 of it away on either side.
const AWAY: u32 = 20;
/// A number that was tried between 1/40 and 1/10 of the answer away from it replaces such a check.
const NOT_AS_FAR: (u32, u32) = (40, 10);
/// A guess is good enough if its error is at most 1/128 of it.
const ROUGH: u32 = 128;

struct Bisection<'t, 'e, E> {
    range: RangeInclusive<u32>,
    /// The numbers that the search needed, with their results.
    known: BTreeMap<u32, bool>,
    /// All tried numbers, including those tried in advance.
    tried: BTreeMap<u32, bool>,
    /// The number of simultaneous tries.
    width: usize,
    does: &'t mut Try<'e, E>,
}

/// Bisects the range until the smallest number that meets the conditions is known within 1/128 of it,
/// assuming that every larger one meets them too.
///
/// # Errors
/// The first error of a try.
pub(super) fn roughly<E>(
    range: RangeInclusive<u32>,
    width: usize,
    does: &mut Try<'_, E>,
) -> Result<Option<u32>, E> {
    let mut search = Bisection::new(range, width, does);
    search.bracket(None)?;
    search.narrow(ROUGH)?;
    Ok(search.smallest())
}

/// Finds the smallest number of a range that meets the conditions, starting from a guess if there is one.
/// Tries `width` numbers at once.
///
/// The search also tries the numbers 5 % from the answer once the answer is known within 1/128, unless it
/// already tried others 2.5 % to 10 % away. At the end it tries the neighbours of the answer. If a smaller
/// number meets the conditions, the search continues below it. O(log n) numbers are tried, about nine if the
/// guess is within a factor of 1 + 1/32.
///
/// # Errors
/// The first error of a try.
pub(super) fn fewest<E>(
    range: RangeInclusive<u32>,
    guess: Option<u32>,
    width: usize,
    does: &mut Try<'_, E>,
) -> Result<Fewest, E> {
    let mut search = Bisection::new(range, width, does);
    search.bracket(guess)?;
    // It is cheaper to find a smaller number before the answer is exact.
    search.settle(ROUGH, Bisection::far)?;
    search.settle(0, |search, found| search.far(found).into_iter().chain(found.checked_add(1)).collect())?;
    let found = search.smallest();
    let is_monotone = found.is_none_or(|found| search.known.range(found..).all(|(_, &does)| does));
    Ok(Fewest { found, is_monotone, tried: search.known.into_keys().collect() })
}

impl<'t, 'e, E> Bisection<'t, 'e, E> {
    fn new(range: RangeInclusive<u32>, width: usize, does: &'t mut Try<'e, E>) -> Self {
        Self { range, known: BTreeMap::new(), tried: BTreeMap::new(), width, does }
    }

    /// Tries those of the numbers that are in the range, and others in advance.
    fn ask(&mut self, numbers: &[u32], ahead: &[u32]) -> Result<(), E> {
        let mut new: Vec<u32> = numbers.iter().chain(ahead).copied().collect();
        new.retain(|n| self.range.contains(n) && !self.tried.contains_key(n));
        new.sort_unstable();
        new.dedup();
        // Numbers are tried in advance only together with needed ones.
        if numbers.iter().any(|n| new.contains(n)) {
            let answers = (self.does)(&new)?;
            self.tried.extend(new.into_iter().zip(answers));
        }
        self.known.extend(numbers.iter().filter_map(|n| self.tried.get_key_value(n)));
        Ok(())
    }

    fn one(&mut self, number: u32) -> Result<bool, E> {
        self.ask(&[number], &[])?;
        Ok(self.known[&number])
    }

    fn smallest(&self) -> Option<u32> {
        self.known.iter().find(|&(_, &does)| does).map(|(&n, _)| n)
    }

    /// Finds a number that meets the conditions, if there is one, and a smaller one that fails, if one is
    /// near.
    fn bracket(&mut self, guess: Option<u32>) -> Result<(), E> {
        let (least, most) = (*self.range.start(), *self.range.end());
        let Some(guess) = guess.map(|guess| guess.clamp(least, most)) else {
            self.one(most)?;
            return Ok(());
        };
        let is_down = self.one(guess)?;
        self.step(guess, is_down)
    }

    /// Goes down from a number that meets the conditions, or up from one that fails, in growing steps, until
    /// the result changes.
    fn step(&mut self, from: u32, is_down: bool) -> Result<(), E> {
        let (least, most) = (*self.range.start(), *self.range.end());
        let (mut step, mut at) = ((from / STEP.0).max(1), from);
        while at != if is_down { least } else { most } {
            at = if is_down { at.saturating_sub(step).max(least) } else { at.saturating_add(step).min(most) };
            if self.one(at)? != is_down {
                break;
            }
            step = step.saturating_mul(STEP.1);
        }
        Ok(())
    }

    /// Narrows the answer to `1 / part` of it ([`Self::narrow`]) and tries the numbers of `checks`. Repeats
    /// this below a smaller number that meets the conditions.
    fn settle(&mut self, part: u32, checks: impl Fn(&Self, u32) -> Vec<u32>) -> Result<(), E> {
        self.narrow(part)?;
        for _ in 0..ROUNDS {
            let Some(found) = self.smallest() else { break };
            self.ask(&checks(self, found), &[])?;
            match self.smallest() {
                Some(smaller) if smaller < found => self.step(smaller, true)?,
                _ => break,
            }
            self.narrow(part)?;
        }
        Ok(())
    }

    /// The numbers that test whether much smaller ones meet the conditions, or much larger ones fail.
    fn far(&self, found: u32) -> Vec<u32> {
        // At least 2, because the neighbours are checked separately.
        let part = |part: u32| (found / part).max(2);
        let (near, far) = (part(NOT_AS_FAR.0), part(NOT_AS_FAR.1));
        let known = |range: RangeInclusive<u32>| self.known.range(range).next().is_some();
        let below = !known(found.saturating_sub(far)..=found.saturating_sub(near));
        let above = !known(found.saturating_add(near)..=found.saturating_add(far));
        let below = below.then(|| found.saturating_sub(part(AWAY)));
        let above = above.then(|| found.saturating_add(part(AWAY)));
        [below, above].into_iter().flatten().collect()
    }

    /// Bisects between the smallest number that meets the conditions and the next smaller one that fails.
    /// Stops when the interval is at most `1 / part` of the answer, or empty if `part` is 0.
    fn narrow(&mut self, part: u32) -> Result<(), E> {
        loop {
            let Some(high) = self.smallest() else { return Ok(()) };
            let low = self.known.range(..high).next_back().map(|(&n, _)| n);
            let low = low.map_or(*self.range.start(), |n| n + 1);
            if high.saturating_sub(low) <= high.checked_div(part).unwrap_or(0) {
                return Ok(());
            }
            let middles = middles(low, high, self.width);
            self.ask(&middles[..1], &middles[1..])?;
        }
    }
}

/// The middle of the interval of possible answers (`low` to `high`, where `high` is known), then the middles
/// of its halves, and so on.
fn middles(low: u32, high: u32, width: usize) -> Vec<u32> {
    let mut parts = std::collections::VecDeque::from([(low, high)]);
    let mut middles = Vec::new();
    while middles.len() < width.max(1)
        && let Some((low, high)) = parts.pop_front()
    {
        if low < high {
            let middle = low + (high - low) / 2;
            middles.push(middle);
            parts.extend([(low, middle), (middle + 1, high)]);
        }
    }
    middles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer, and the number of tries.
    fn search(
        range: RangeInclusive<u32>,
        guess: Option<u32>,
        width: usize,
        does: impl Fn(u32) -> bool,
    ) -> (Fewest, usize) {
        let mut tried = Vec::new();
        let mut ask = |numbers: &[u32]| {
            tried.extend_from_slice(numbers);
            Ok::<_, ()>(numbers.iter().map(|&n| does(n)).collect())
        };
        let found = fewest(range.clone(), guess, width, &mut ask).unwrap();
        assert!(tried.iter().all(|n| range.contains(n)), "{tried:?}");
        let n = tried.len();
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), n, "each is tried once");
        (found, n)
    }

    #[test]
    fn the_smallest_that_does_is_found_from_any_guess() {
        for least in 1..8 {
            for most in least..12 {
                for answer in least..=most + 1 {
                    for guess in [None, Some(1), Some(4), Some(9), Some(99)] {
                        for width in 1..4 {
                            let (found, _) = search(least..=most, guess, width, |n| n >= answer);
                            let expected = (answer <= most).then_some(answer);
                            assert_eq!((found.found, found.is_monotone), (expected, true));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn few_numbers_are_tried() {
        let (found, tried) = search(10..=6000, None, 1, |n| n >= 2531);
        assert_eq!(found.found, Some(2531));
        assert!(tried <= 18, "{tried}");
        let (found, tried) = search(10..=6000, Some(2500), 1, |n| n >= 2531);
        assert_eq!(found.found, Some(2531));
        assert!(tried <= 12, "{tried}");
    }

    #[test]
    fn a_smaller_number_that_does_is_found_and_reported() {
        // The bisection reaches 625 and 688, and the check is at 665.
        let (found, _) = search(1..=1000, None, 1, |n| n >= 700 || (660..=670).contains(&n));
        assert_eq!((found.found, found.is_monotone), (Some(660), false));
        // A number above the answer that fails.
        let (found, _) = search(1..=100, None, 1, |n| n >= 40 && n != 44);
        assert_eq!((found.found, found.is_monotone), (Some(40), false));
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_parallel_trials() {
        let odd = |n: u32| n > 300 || n.is_multiple_of(7);
        let one = search(1..=1000, None, 1, odd).0;
        for width in 2..9 {
            assert_eq!(search(1..=1000, None, width, odd).0, one);
        }
    }

    #[test]
    fn middles_are_tried_in_order() {
        assert_eq!(middles(1, 9, 1), [5]);
        assert_eq!(middles(1, 9, 3), [5, 3, 7]);
        assert_eq!(middles(1, 2, 5), [1]);
    }
}
