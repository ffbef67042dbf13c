//! Insertion: moves one flow at a time to the best place of the order, as long as that pays
//! (docs/math/flowflex.md B8).
//!
//! FLEX's insertion (`flex::search`) is another search, which documents the differences.

use super::list::{Lister, Rule};
use crate::classic::budget::Budget;

/// Improvements below this part of the cost are rounding.
const NEAR: f64 = 1e-12;

/// Improves an order whose cost is known; returns the cost after it. Costs are compared first by the
/// objective, then by the sum of all costs, so that a maximum does not hide progress.
pub fn insertion(
    lister: &mut Lister<'_>,
    order: &mut Vec<usize>,
    mut cost: (f64, f64),
    budget: &mut Budget<'_>,
) -> (f64, f64) {
    let (mut quiet, mut at) = (0, 0);
    while quiet < order.len() {
        let Some(best) = best_place(lister, order, at, cost, budget) else { return cost };
        if best.1 == at {
            quiet += 1;
        } else {
            let flow = order.remove(at);
            order.insert(best.1, flow);
            cost = best.0;
            quiet = 0;
        }
        // A flow that moved back leaves the next one in its place.
        at = if best.1 > at { at } else { at + 1 };
        if at >= order.len() {
            at = 0;
        }
    }
    cost
}

/// The best place for the flow at `at` and the cost there; `None` when the budget is spent.
fn best_place(
    lister: &mut Lister<'_>,
    order: &[usize],
    at: usize,
    cost: (f64, f64),
    budget: &mut Budget<'_>,
) -> Option<((f64, f64), usize)> {
    let mut trial = order.to_vec();
    let mut best = (cost, at);
    let flow = trial.remove(at);
    trial.insert(0, flow);
    for place in 0..order.len() {
        if place > 0 {
            trial.swap(place - 1, place);
        }
        if place == at {
            continue;
        }
        if !budget.may_begin() {
            return None;
        }
        let before = lister.steps();
        let found = lister.cost_up_to(Rule::Flows(&trial), best.0.0);
        budget.charge(lister.steps() - before);
        if let Some(found) = found
            && is_less(found, best.0)
        {
            best = (found, place);
        }
    }
    Some(best)
}

/// Whether one cost is less than another by more than rounding.
pub fn is_less(a: (f64, f64), b: (f64, f64)) -> bool {
    let near = |x: f64| NEAR * x.abs();
    a.0 < b.0 - near(b.0) || (a.0 <= b.0 + near(b.0) && a.1 < b.1 - near(b.1))
}
