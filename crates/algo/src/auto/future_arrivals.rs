//! The cost of an order if flows complete later than estimated, because more flows arrive.
//!
//! A rollout has no future flows. If all deadlines can be met, all orders cost nothing in it, and an order
//! without slack looks as good as any other until the next flow arrives and makes one flow late. So each
//! order is also rated with every completion delayed by the same time: half of the time that a recent flow
//! takes of the whole cluster or, for the largest of costs that rise in steps, twice that time. Experiments
//! chose both (`record/auto.md`).

use slackline_model::{Combine, CostFn, Objective};

/// The mean covers about this number of the last flows.
const MEMORY: f64 = 32.0;

/// How much later than estimated flows may complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Prospect {
    n: f64,
    /// Mean area of recent flows, seconds of the whole cluster.
    area: f64,
}

impl Prospect {
    /// A flow of that area has arrived.
    pub(super) fn note(&mut self, area: f64) {
        self.n = (self.n + 1.0).min(MEMORY);
        self.area += (area - self.area) / self.n;
    }

    /// The delay of completions in seconds; 0 if it makes no difference between orders.
    pub(super) fn delay(&self, objective: Objective, costs: &[&CostFn]) -> f64 {
        let is_linear = costs.iter().all(|cost| cost.as_linear().is_some());
        match (objective.combine, is_linear) {
            (Combine::Sum, true) => 0.0,
            (Combine::Sum, false) | (Combine::Max, true) => self.area / 2.0,
            // A single late flow decides the whole cost.
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
