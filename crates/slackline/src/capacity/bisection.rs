//! The smallest number that does, where every larger one is believed to do as well, and a look whether that is so.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Numbers are tried by this: several at once, each once.
pub(super) type Try<'t, E> = dyn FnMut(&[u32]) -> Result<Vec<bool>, E> + 't;

/// What a bisection came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fewest {
    /// The smallest number that was tried and does; the next smaller one was tried and does not.
    pub(super) found: Option<u32>,
    /// Whether everything that was tried above it does.
    pub(super) is_monotone: bool,
    /// What was tried, in rising order, whatever was tried ahead of need.
    pub(super) tried: Vec<u32>,
}

/// How often a smaller number that does is followed further down.
const ROUNDS: usize = 4;
/// The first step away from a guess is this part of it, and each further one so many times as long.
const STEP: (u32, u32) = (32, 4);
/// The checks are next to the answer, and this part of it away on either side.
const AWAY: u32 = 20;
/// What was tried between these parts of the answer away from it is such a check already.
const NOT_AS_FAR: (u32, u32) = (40, 10);
/// A guess is good enough when it is off by this part of it.
const ROUGH: u32 = 128;

struct Bisection<'t, 'e, E> {
    range: RangeInclusive<u32>,
    /// What was tried because it had to be known.
    known: BTreeMap<u32, bool>,
    /// What was tried ahead of need too.
    tried: BTreeMap<u32, bool>,
    /// How many are tried at once.
    width: usize,
    does: &'t mut Try<'e, E>,
}

/// Halves the range until the smallest number that does is found but for a 128th of it, if every larger one does too.
///
/// # Errors
/// The first of trying.
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

/// Looks for the smallest number of a range that does, from a guess if there is one, `width` numbers at once.
///
/// The numbers 5 % from the answer are tried too, unless others from 2.5 % to 10 % from it were on the way, as soon as it is
/// known but for a 128th, and those next to it at the end; where a smaller one does, the search goes on below it. O(log n)
/// numbers are tried, where the guess is off by a factor of 1 + 1/32 or less about nine.
///
/// # Errors
/// The first of trying.
pub(super) fn fewest<E>(
    range: RangeInclusive<u32>,
    guess: Option<u32>,
    width: usize,
    does: &mut Try<'_, E>,
) -> Result<Fewest, E> {
    let mut search = Bisection::new(range, width, does);
    search.bracket(guess)?;
    // A smaller number that does is better found before the last digits of the answer are.
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

    /// Finds out about those of the numbers that are in the range, and tries others at the same time.
    fn ask(&mut self, numbers: &[u32], ahead: &[u32]) -> Result<(), E> {
        let mut new: Vec<u32> = numbers.iter().chain(ahead).copied().collect();
        new.retain(|n| self.range.contains(n) && !self.tried.contains_key(n));
        new.sort_unstable();
        new.dedup();
        // Where nothing is needed nothing is tried ahead.
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

    /// Finds a number that does, if there is one, and one below that does not, if there is one near.
    fn bracket(&mut self, guess: Option<u32>) -> Result<(), E> {
        let (least, most) = (*self.range.start(), *self.range.end());
        let Some(guess) = guess.map(|guess| guess.clamp(least, most)) else {
            self.one(most)?;
            return Ok(());
        };
        let is_down = self.one(guess)?;
        self.step(guess, is_down)
    }

    /// Goes down from a number that does, or up from one that does not, by larger and larger steps, to one of the other kind.
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

    /// Narrows the answer down to this part of it ([`Self::narrow`]) and tries what `checks` names for it, again below a
    /// smaller one that does.
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

    /// Numbers that would show whether much smaller ones than the answer do, or much larger ones do not.
    fn far(&self, found: u32) -> Vec<u32> {
        // Those next to it are others.
        let part = |part: u32| (found / part).max(2);
        let (near, far) = (part(NOT_AS_FAR.0), part(NOT_AS_FAR.1));
        let known = |range: RangeInclusive<u32>| self.known.range(range).next().is_some();
        let below = !known(found.saturating_sub(far)..=found.saturating_sub(near));
        let above = !known(found.saturating_add(near)..=found.saturating_add(far));
        let below = below.then(|| found.saturating_sub(part(AWAY)));
        let above = above.then(|| found.saturating_add(part(AWAY)));
        [below, above].into_iter().flatten().collect()
    }

    /// Halves what lies between the smallest number that does and the next one below that does not, until the rest is at
    /// most this part of it, or there is none if that is 0.
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

/// The middle of what may be the answer (`low` to `high`, the latter known), then the middles of the halves, and so on.
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

    /// What is found, and how many numbers were tried.
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
    fn a_smaller_number_that_does_is_followed_and_told() {
        // Halves come to 625 and 688; the check is at 665.
        let (found, _) = search(1..=1000, None, 1, |n| n >= 700 || (660..=670).contains(&n));
        assert_eq!((found.found, found.is_monotone), (Some(660), false));
        // A number above the answer that does not.
        let (found, _) = search(1..=100, None, 1, |n| n >= 40 && n != 44);
        assert_eq!((found.found, found.is_monotone), (Some(40), false));
    }

    #[test]
    fn what_is_found_does_not_depend_on_how_many_are_tried_at_once() {
        let odd = |n: u32| n > 300 || n.is_multiple_of(7);
        let one = search(1..=1000, None, 1, odd).0;
        for width in 2..9 {
            assert_eq!(search(1..=1000, None, width, odd).0, one);
        }
    }

    #[test]
    fn what_comes_first_is_tried_first() {
        assert_eq!(middles(1, 9, 1), [5]);
        assert_eq!(middles(1, 9, 3), [5, 3, 7]);
        assert_eq!(middles(1, 2, 5), [1]);
    }
}
