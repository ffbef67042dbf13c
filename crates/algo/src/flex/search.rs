//! Insertion local search over packing orders, under a budget.
//!
//! A move takes one job out of the order and puts it back elsewhere; moves are tried from the front of the
//! order to its end until none gains (docs/math/flex.md C6: from the best start this finds the best order of
//! all in nearly every small instance, for every metric).
//!
//! FlowFlex's insertion (`flowflex::search`) is another search: it compares pairs of costs, stops an
//! evaluation at the best so far, continues elsewhere after a gain, and drops a place that it could not
//! finish looking for.

use super::mps::Packer;
use crate::classic::budget::Budget;

/// Gains below this part of the cost are rounding.
const GAIN: f64 = 1e-12;

/// Improves `order` of cost `cost` until no insertion gains or the budget is spent; returns the cost.
/// Each of at most J² moves a pass is one packing, O(J log J).
pub fn insertion(packer: &mut Packer<'_>, order: &mut Vec<usize>, cost: f64, budget: &mut Budget<'_>) -> f64 {
    insert(order, cost, budget, |order| packer.cost(order))
}

/// [`insertion`] for any evaluation of an order.
pub(super) fn insert(
    order: &mut Vec<usize>,
    mut cost: f64,
    budget: &mut Budget<'_>,
    mut evaluate: impl FnMut(&[usize]) -> f64,
) -> f64 {
    let n = order.len();
    let mut quiet = 0;
    let mut from = 0;
    // Stop after a whole round of jobs without a gain.
    while quiet < n {
        let job = order.remove(from);
        let mut best = (cost - GAIN * cost.abs(), None);
        for to in (0..n).filter(|&to| to != from) {
            if !budget.spend(n) {
                break;
            }
            order.insert(to, job);
            let found = evaluate(order);
            order.remove(to);
            if found < best.0 {
                best = (found, Some(to));
            }
        }
        quiet += 1;
        if let Some(to) = best.1 {
            (cost, quiet) = (best.0, 0);
            order.insert(to, job);
        } else {
            order.insert(from, job);
        }
        if budget.was_cut() {
            break;
        }
        from = (from + 1) % n;
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Out of order pairs.
    fn inversions(order: &[usize]) -> f64 {
        let pairs = (0..order.len()).flat_map(|a| (a + 1..order.len()).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| order[a] > order[b]).count() as f64
    }

    #[test]
    fn insertion_sorts() {
        let mut order = vec![4, 2, 0, 3, 1];
        let start = inversions(&order);
        let cost = insert(&mut order, start, &mut Budget::new(10_000, None), inversions);
        assert_eq!((cost, order), (0.0, vec![0, 1, 2, 3, 4]));
    }

    #[test]
    fn a_spent_budget_leaves_a_valid_order_that_is_no_worse() {
        let mut order = vec![4, 2, 0, 3, 1];
        let mut budget = Budget::new(12, None);
        let start = inversions(&order);
        let cost = insert(&mut order, start, &mut budget, inversions);
        assert!(budget.was_cut() && cost <= start && cost == inversions(&order));
        let mut never = Budget::new(1000, Some(&|| true));
        assert_eq!(insert(&mut order, cost, &mut never, inversions), cost);
    }
}
