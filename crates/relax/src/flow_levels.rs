//! Step costs of flows: choosing a level for each, by best-first branch and bound (docs/math/flowflex.md B7,
//! "level MIP").
//!
//! A level is a deadline D and its price. If a choice of levels is possible, the work of every flow can be
//! done on the fast machines between its heads and its deadline less its tails (the test of
//! [`mod@crate::prefix_area`]). The cheapest choice that passes is a lower bound. The search explores partial
//! choices in order of their least cost: chosen levels, and for each other flow the cheapest level that
//! passes beside them. When it reaches the limit on tests, the least of the remaining partial choices is the
//! bound.

use std::collections::BTreeSet;

use slackline_model::id::{TiSlice, TiVec};
use slackline_model::{CostFn, FlowId, Instance};

use crate::budget::Budget;
use crate::per_flow::FlowBound;
use crate::prefix_area::{Deadlines, latest};
use crate::tails::Slice;

/// Most runs of the deadline test over all slices; fewer for larger instances.
const TESTS: usize = 4000;
const SLICE_RUNS: usize = 4_000_000;
/// About how long a test takes for a slice.
const SLICE_NANOS: usize = 300;

/// A choice of levels and the lower bound on the cost of any choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// No schedule costs less.
    pub bound: f64,
    /// The deadline of each flow in the last explored choice, the cheapest complete one if the search ended.
    pub due: TiVec<FlowId, f64>,
    /// Whether the search ended.
    pub complete: bool,
}

/// Branch and bound; `None` unless all costs are step functions (or constant).
pub fn choose(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    budget: &mut Budget,
) -> Option<Choice> {
    let mut levels: TiVec<FlowId, Vec<(f64, f64)>> = TiVec::new();
    for (flow, bound) in instance.flows().iter().zip(flows) {
        levels.push(of_flow(&flow.cost, bound.earliest)?);
    }
    let mut order: Vec<FlowId> = levels.keys().filter(|&f| levels[f].len() > 1).collect();
    let stake = |f: FlowId| levels[f][levels[f].len() - 1].1 - levels[f][0].1;
    order.sort_by(|&a, &b| stake(b).total_cmp(&stake(a)).then(a.cmp(&b)));
    let wanted = SLICE_RUNS.min(slices.len() * TESTS);
    let tests = (budget.grant(wanted, SLICE_NANOS) / slices.len().max(1)).min(TESTS);
    let mut search = Search {
        levels: &levels,
        deadlines: Deadlines::new(instance, slices, flows),
        due: levels.iter().map(|list| list[list.len() - 1].0).collect(),
        tests,
    };
    Some(search.run(&order))
}

/// Deadlines and prices of a flow in order of price, those it can meet alone.
fn of_flow(cost: &CostFn, earliest: f64) -> Option<Vec<(f64, f64)>> {
    let steps: Vec<(f64, f64)> = match (cost.as_steps(), cost.as_linear()) {
        (Some(steps), _) => steps.to_vec(),
        (None, Some((0.0, _))) => Vec::new(),
        _ => return None,
    };
    let mut prices = vec![cost.eval(earliest)];
    prices.extend(steps.into_iter().map(|(_, price)| price));
    prices.sort_by(f64::total_cmp);
    prices.dedup();
    prices.retain(|&p| p >= cost.eval(earliest));
    Some(prices.into_iter().map(|price| (latest(cost, price, earliest), price)).collect())
}

/// A partial choice: its least cost (ordered as bits of a non-negative number), its age, and the number of
/// flows, in order, at each level.
type Node = (u64, std::cmp::Reverse<usize>, Vec<u32>);

struct Search<'a> {
    levels: &'a TiSlice<FlowId, Vec<(f64, f64)>>,
    deadlines: Deadlines<'a>,
    due: TiVec<FlowId, f64>,
    tests: usize,
}

impl Search<'_> {
    fn run(&mut self, order: &[FlowId]) -> Choice {
        let fixed: f64 = self.levels.iter().filter(|list| list.len() == 1).map(|list| list[0].1).sum();
        let mut open: BTreeSet<Node> = BTreeSet::new();
        let mut born = 0;
        open.insert((fixed.max(0.0).to_bits(), std::cmp::Reverse(0), Vec::new()));
        while let Some((bits, _, chosen)) = open.pop_first() {
            let bound = f64::from_bits(bits);
            if chosen.len() == order.len() || self.tests == 0 {
                self.set(order, &chosen);
                return Choice { bound, due: self.due.clone(), complete: chosen.len() == order.len() };
            }
            let flow = order[chosen.len()];
            for level in 0..self.levels[flow].len() {
                let mut next = chosen.clone();
                next.push(level as u32);
                self.set(order, &next);
                if let Some(least) = self.least(order, &next, fixed) {
                    born += 1;
                    // Rounding of sums must not lower a bound that is proven already.
                    open.insert((least.max(bound).to_bits(), std::cmp::Reverse(born), next));
                }
            }
        }
        // With every flow in its last level the test always passes, so some choice was open.
        Choice { bound: fixed, due: self.due.clone(), complete: false }
    }

    fn set(&mut self, order: &[FlowId], chosen: &[u32]) {
        for (k, &flow) in order.iter().enumerate() {
            let list = &self.levels[flow];
            let level = chosen.get(k).map_or(list.len() - 1, |&l| l as usize);
            self.due[flow] = list[level].0;
        }
    }

    /// The least cost of the choice, `None` if it is impossible.
    fn least(&mut self, order: &[FlowId], chosen: &[u32], fixed: f64) -> Option<f64> {
        let mut least = fixed;
        for (&flow, &level) in order.iter().zip(chosen) {
            least += self.levels[flow][level as usize].1;
        }
        if !self.test() {
            return None;
        }
        for &flow in &order[chosen.len()..] {
            let list = &self.levels[flow];
            let cheapest = (0..list.len()).find(|&level| {
                self.due[flow] = list[level].0;
                level + 1 == list.len() || self.test()
            });
            self.due[flow] = list[list.len() - 1].0;
            least += list[cheapest.unwrap_or(list.len() - 1)].1;
        }
        Some(least)
    }

    /// Whether the deadlines can be met on the fast machines; always true once the tests are used up.
    fn test(&mut self) -> bool {
        if self.tests == 0 {
            return true;
        }
        self.tests -= 1;
        self.deadlines.feasible(&self.due)
    }
}
