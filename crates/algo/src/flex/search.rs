//! Insertion local search over packing orders, under a budget.
//!
//! A move takes one job out of the order and puts it back elsewhere; moves are tried from the front of
//! the order to its end until none gains (docs/math.md C6: from the best start this finds the best order of
//! all in nearly every small instance, for every metric).

use super::mps::Packer;

/// What a search may spend: steps (a job placed in a packing or a deadline test is one), and somebody
/// who may call it off.
pub struct Budget<'a> {
    left: u64,
    cancel: Option<&'a dyn Fn() -> bool>,
    cut: bool,
}

impl<'a> Budget<'a> {
    /// So many steps; `cancel` is asked before each evaluation and makes results depend on the clock
    /// if it does.
    pub fn new(steps: u64, cancel: Option<&'a dyn Fn() -> bool>) -> Self {
        Self { left: steps, cancel, cut: false }
    }

    /// Whether another evaluation of so many steps may begin; they are then spent.
    pub fn spend(&mut self, steps: usize) -> bool {
        if self.cut || self.left < steps as u64 || self.cancel.is_some_and(|cancel| cancel()) {
            self.cut = true;
            return false;
        }
        self.left -= steps as u64;
        true
    }

    /// Whether something was left undone for lack of budget.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn note_cut(&mut self) {
        self.cut = true;
    }

    /// A part of what is left, to be spent by one search; [`Budget::refund`] returns the rest.
    pub(super) fn share(&mut self, parts: u64) -> Self {
        let left = self.left / parts;
        self.left -= left;
        Budget { left, cancel: self.cancel, cut: self.cut }
    }

    pub(super) fn refund(&mut self, part: &Budget<'_>) {
        self.left += part.left;
    }
}

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
