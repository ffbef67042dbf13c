//! Limits the work of bounds that search. Work is counted, not timed, so the same instance always has the same
//! bounds.

use slackline_model::Instance;

/// The remaining work for searches, in units of about a nanosecond.
#[derive(Clone, Debug)]
pub struct Budget(usize);

/// The least work of [`Budget::quick`].
const QUICK: usize = 50_000_000;
/// A fifth of the time of a simulation for each flow, job and run of equal tasks.
const OF_FLOW: usize = 800;
const OF_JOB: usize = 400;
const OF_RUN: usize = 100;

impl Budget {
    /// No limit.
    pub fn full() -> Self {
        Self(usize::MAX)
    }

    /// For bounds beside a simulation: about 50 ms, or a fifth of the time of the simulation if that is more.
    pub fn quick(instance: &Instance) -> Self {
        let phases = instance.phases().iter();
        let runs: usize = phases.map(|phase| phase.tasks().map_or(1, |tasks| tasks.runs().len())).sum();
        let of_all = OF_FLOW * instance.flows().len() + OF_JOB * instance.jobs().len() + OF_RUN * runs;
        Self(of_all.max(QUICK))
    }

    /// How many of the `wanted` steps, of `cost` nanoseconds each, a search may make: they take at most a
    /// quarter of the rest, so that later searches get some.
    pub(crate) fn grant(&mut self, wanted: usize, cost: usize) -> usize {
        let steps = wanted.min(self.0 / 4 / cost);
        self.0 -= steps * cost;
        steps
    }

    /// How many of the `wanted` steps the last search may make.
    pub(crate) fn rest(&self, wanted: usize, cost: usize) -> usize {
        wanted.min(self.0 / cost)
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn a_search_takes_at_most_a_quarter_of_what_is_left() {
        let mut budget = Budget(1000);
        assert_eq!(budget.grant(2, 100), 2);
        assert_eq!(budget.grant(100, 10), 20);
        assert_eq!((budget.rest(100, 10), budget.rest(5, 10)), (60, 5));
        assert_eq!(Budget::full().grant(1 << 40, 1000), 1 << 40);
    }
}
