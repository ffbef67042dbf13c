//! What an order would cost if flows completed later than is believed, as others are still to come.
//!
//! A rollout knows nothing of flows that have not come. Where deadlines can all be met, all orders cost nothing in it, and the
//! one that leaves no slack is as good as another until the next flow comes and makes one flow late. So an order is also looked
//! at as if every flow completed later by a delay that is common: half of what a flow that came lately takes of the whole cluster or,
//! for the largest of costs that do not rise evenly, twice of it. Both were chosen by experiment (`record/auto.md`).

use slackline_model::{Combine, CostFn, Objective};

/// The mean is over so many flows, more or less.
const MEMORY: f64 = 32.0;

/// How much later flows may complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Prospect {
    n: f64,
    /// Mean area of the flows that came lately, seconds of the whole cluster.
    area: f64,
}

impl Prospect {
    /// A flow of that area has come.
    pub(super) fn note(&mut self, area: f64) {
        self.n = (self.n + 1.0).min(MEMORY);
        self.area += (area - self.area) / self.n;
    }

    /// By how many seconds flows may complete later; 0 where that makes no difference between orders.
    pub(super) fn delay(&self, objective: Objective, costs: &[&CostFn]) -> f64 {
        let is_linear = costs.iter().all(|cost| cost.as_linear().is_some());
        match (objective.combine, is_linear) {
            (Combine::Sum, true) => 0.0,
            (Combine::Sum, false) | (Combine::Max, true) => self.area / 2.0,
            // One flow that is late decides all of it.
            (Combine::Max, false) => 2.0 * self.area,
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Metric;

    use super::*;

    #[test]
    fn the_delay_is_half_the_mean_area_of_flows_that_came_lately() {
        let mut prospect = Prospect::default();
        let tardiness = Objective::new(Metric::Tardiness, Combine::Sum);
        let due = CostFn::tardiness(1.0, 10.0);
        assert!(prospect.delay(tardiness, &[&due]).abs() < 1e-12, "nothing has come");
        prospect.note(2.0);
        prospect.note(4.0);
        assert!((prospect.delay(tardiness, &[&due]) - 1.5).abs() < 1e-12);
        for _ in 0..500 {
            prospect.note(8.0);
        }
        assert!((prospect.delay(tardiness, &[&due]) - 4.0).abs() < 1e-3, "what was long ago is forgotten");
    }

    #[test]
    fn a_delay_of_all_flows_makes_no_difference_to_a_sum_of_linear_costs() {
        let mut prospect = Prospect::default();
        prospect.note(2.0);
        let linear = CostFn::linear(1.0, 0.0);
        let sum = Objective::new(Metric::Response, Combine::Sum);
        let max = Objective::new(Metric::Response, Combine::Max);
        assert!(prospect.delay(sum, &[&linear]).abs() < 1e-12);
        assert!(prospect.delay(max, &[&linear]) > 0.5, "of those that are alike the heaviest is the largest");
    }

    #[test]
    fn for_the_largest_of_costs_that_do_not_rise_evenly_the_delay_is_longer() {
        let mut prospect = Prospect::default();
        prospect.note(3.0);
        let (linear, due) = (CostFn::linear(1.0, 0.0), CostFn::tardiness(1.0, 10.0));
        let delay =
            |combine, costs: &[&CostFn]| prospect.delay(Objective::new(Metric::Tardiness, combine), costs);
        assert!((delay(Combine::Max, &[&linear]) - 1.5).abs() < 1e-12);
        assert!((delay(Combine::Max, &[&linear, &due]) - 6.0).abs() < 1e-12);
        assert!((delay(Combine::Sum, &[&linear, &due]) - 1.5).abs() < 1e-12);
    }
}
