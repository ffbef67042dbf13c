//! The water-line of equal claims, updated as they change.

use std::collections::BTreeSet;

use slackline_model::PhaseId;

/// Claims of weight 1 without a minimum, of whole slots. The shares are those of
/// [`super::water_line`] to the last bit, because all sums are whole numbers.
///
/// A change costs O(log claims), and O(log claims) more for each claim that the level passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvenLine {
    /// The claims that get all they want, by what they want.
    full: BTreeSet<(u32, PhaseId)>,
    /// The sum of what they want.
    sum: u64,
    /// The claims that want more than the level, and get the level. None wants less than a full claim.
    rest: BTreeSet<(u32, PhaseId)>,
}

impl EvenLine {
    /// The number of claims.
    pub(crate) fn len(&self) -> usize {
        self.full.len() + self.rest.len()
    }

    /// What the largest of the full claims gets.
    fn top(&self) -> u32 {
        self.full.last().map_or(0, |&(max, _)| max)
    }

    /// Whether a claim of `max` slots gets all of them. Only valid after [`EvenLine::settle`].
    pub(crate) fn is_full(&self, max: u32) -> bool {
        max <= self.top()
    }

    pub(crate) fn insert(&mut self, max: u32, phase: PhaseId) {
        if max <= self.top() {
            self.full.insert((max, phase));
            self.sum += u64::from(max);
        } else {
            self.rest.insert((max, phase));
        }
    }

    pub(crate) fn remove(&mut self, max: u32, phase: PhaseId) {
        if self.full.remove(&(max, phase)) {
            self.sum -= u64::from(max);
        } else {
            self.rest.remove(&(max, phase));
        }
    }

    /// The number of slots in use at a level: not below the full claims, and not above the others.
    fn at(&self, level: u32) -> u64 {
        self.sum + self.rest.len() as u64 * u64::from(level)
    }

    /// Divides the slots. Calls `passed` with each claim that the level passed since the last call, and
    /// returns the level; infinite if all claims are full.
    pub(crate) fn settle(&mut self, slots: u32, mut passed: impl FnMut(PhaseId, u32)) -> f64 {
        while let Some(&(max, phase)) = self.full.last()
            && self.at(max) >= u64::from(slots)
        {
            self.full.pop_last();
            self.sum -= u64::from(max);
            self.rest.insert((max, phase));
            passed(phase, max);
        }
        while let Some(&(max, phase)) = self.rest.first()
            && self.at(max) < u64::from(slots)
        {
            self.rest.pop_first();
            self.full.insert((max, phase));
            self.sum += u64::from(max);
            passed(phase, max);
        }
        if self.rest.is_empty() {
            return f64::INFINITY;
        }
        let left = f64::from(slots) - self.at(self.top()) as f64;
        f64::from(self.top()) + (left / self.rest.len() as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::classic::{Claim, water_line};

    proptest! {
        /// Claims come, change and go at random, and so do slots.
        #[test]
        fn agrees_with_the_water_line(
            steps in prop::collection::vec((0u32..10, prop::option::of(1u32..30), 0u32..60), 1..60),
        ) {
            let mut line = EvenLine::default();
            let mut wants: BTreeMap<PhaseId, u32> = BTreeMap::new();
            let mut is_full: BTreeMap<PhaseId, bool> = BTreeMap::new();
            for (phase, max, slots) in steps {
                let phase = PhaseId(phase);
                if let Some(old) = wants.remove(&phase) {
                    line.remove(old, phase);
                    is_full.remove(&phase);
                }
                if let Some(max) = max {
                    line.insert(max, phase);
                    wants.insert(phase, max);
                }
                let mut passed = Vec::new();
                let level = line.settle(slots, |phase, max| passed.push((phase, max)));
                for (phase, max) in passed.into_iter().chain(max.map(|max| (phase, max))) {
                    prop_assert_eq!(wants[&phase], max);
                    is_full.insert(phase, line.is_full(max));
                }
                let claims: Vec<Claim> = wants
                    .values()
                    .map(|&max| Claim { min: 0.0, max: f64::from(max), weight: 1.0 })
                    .collect();
                let share = |(phase, &max): (&PhaseId, &u32)| if is_full[phase] { f64::from(max) } else { level };
                let shares: Vec<f64> = wants.iter().map(share).collect();
                prop_assert_eq!(shares, water_line(&claims, f64::from(slots)));
                prop_assert_eq!(line.len(), wants.len());
            }
        }
    }
}
