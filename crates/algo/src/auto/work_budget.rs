//! The work that decisions may do: at most a constant multiple of the work of executing tasks.
//!
//! Work is counted and not timed, so a run is reproducible. A decision that the budget does not cover keeps the
//! order in force and inserts new flows by the rule of that order.

/// The work that decisions may do, in units of [`super::Evaluator`], for each flow and phase that arrives and each
/// assignment of slots. An assignment takes a simulator about as long as 20 units.
pub(super) const PER_STEP: f64 = 200.0;

/// The work that decisions may do beyond that in a run.
pub(super) const FREE: f64 = 5e5;

/// The work of a decision without rollouts, for each phase of an active flow.
const PER_PHASE: f64 = 8.0;

/// The share of the rest that one decision may use.
const SHARE: f64 = 0.25;

#[derive(Clone, Copy, Debug)]
pub(super) struct WorkBudget {
    effort: f64,
    /// Below 0 after a decision without rollouts that it did not cover.
    left: f64,
    /// The work of the last complete rollout for each phase.
    rollout: f64,
}

impl WorkBudget {
    pub(super) fn new(effort: f64) -> Self {
        Self { effort, left: effort * FREE, rollout: 1.0 }
    }

    /// This number of flows and phases has arrived, or slots were assigned this number of times.
    pub(super) fn earn(&mut self, steps: usize) {
        self.left += self.effort * PER_STEP * steps as f64;
    }

    pub(super) fn spend(&mut self, work: u64) {
        self.left -= work as f64;
    }

    /// Whether it covers a decision without rollouts.
    pub(super) fn is_open(&self) -> bool {
        self.effort <= 0.0 || self.left >= 0.0
    }

    /// Pays for the part of a decision that is not a rollout. Returns the work that its rollouts may do; `None` if
    /// what is left does not cover `rollouts` rollouts of these phases.
    pub(super) fn begin(&mut self, phases: usize, rollouts: usize) -> Option<u64> {
        self.left -= PER_PHASE * phases as f64;
        let least = rollouts as f64 * self.rollout * phases as f64;
        (self.left > least).then(|| least.max(SHARE * self.left) as u64)
    }

    /// Remembers the work of a complete rollout of `phases`.
    pub(super) fn note_rollout(&mut self, work: u64, phases: usize) {
        self.rollout = work as f64 / phases.max(1) as f64;
    }

    /// Whether something is left for rollouts.
    pub(super) fn has_left(&self) -> bool {
        self.left > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_do_at_most_a_multiple_of_the_work_of_execution() {
        let mut budget = WorkBudget::new(0.5);
        let may = budget.begin(100, 3).expect("the start is free");
        assert!(may < 250_000, "one decision does not use it all: {may}");
        budget.note_rollout(1_000, 100);
        budget.spend(249_000);
        assert_eq!((budget.is_open(), budget.begin(100, 3), budget.is_open()), (true, None, false));
        budget.earn(12);
        assert_eq!(budget.begin(1, 3), Some(148), "a quarter: {budget:?}");
        budget.earn(40);
        assert_eq!(budget.begin(100, 3), Some(3_000), "three rollouts of 1,000: {budget:?}");
    }

    #[test]
    fn without_effort_there_are_no_rollouts_and_the_rule_is_always_followed() {
        let mut budget = WorkBudget::new(0.0);
        for _ in 0..3 {
            budget.earn(1_000);
            assert!(budget.is_open() && budget.begin(10, 1).is_none() && !budget.has_left());
        }
    }
}
