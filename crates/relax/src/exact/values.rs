//! The lower bound on sums of costs: what the open flows of a state cost and pay at least under prices of
//! slots, less the price of all that is free.
//!
//! A flow is an in-tree of phases, each a few chains of tasks, as in [`crate::prices`]. Starts are rounded
//! down to cells of time, and payments are the least in a cell, so that the bound holds for all starts.

use std::collections::BTreeMap;

use super::problem::{Problem, State};
use crate::prices::SlotPrices;

/// The largest number of cells.
const CELLS_MAX: u32 = 600;

/// Lower bounds on the costs and payments of flows, by what is left of them.
pub(super) struct Values<'a> {
    problem: &'a Problem<'a>,
    /// By kind of slots.
    prices: Vec<Option<SlotPrices>>,
    /// Ticks of a cell.
    width: u32,
    /// The number of cells; the last one has no end, and nothing has a price in it.
    cells: usize,
    /// The least payment of a task of each class that starts in each cell.
    payments: Vec<Vec<f64>>,
    /// The cost of each flow that completes in each cell.
    costs: Vec<Vec<f64>>,
    /// Known values of each flow.
    memo: Vec<BTreeMap<Box<[u32]>, f64>>,
    scratch: Scratch,
}

/// Buffers.
#[derive(Default)]
struct Scratch {
    key: Vec<u32>,
    heads: Vec<u32>,
    ends: Vec<u32>,
    /// The least payments of the phases before each phase, if they end before each cell.
    below: Vec<Vec<f64>>,
    chain: Vec<f64>,
    sum: Vec<f64>,
}

impl<'a> Values<'a> {
    pub(super) fn new(problem: &'a Problem<'a>, prices: &[SlotPrices]) -> Self {
        let kinds = problem.instance.cluster().slot_kinds();
        let of_kind = |kind| prices.iter().find(|prices| prices.serving == kind).cloned();
        let prices: Vec<Option<SlotPrices>> = kinds.iter().map(|&kind| of_kind(kind)).collect();
        let tick = problem.seconds(1);
        let horizon = prices.iter().flatten().map(SlotPrices::end).fold(0.0, f64::max);
        let ticks = (horizon / tick).ceil().clamp(0.0, f64::from(u32::MAX / 2)) as u32 + 1;
        let width = ticks.div_ceil(CELLS_MAX);
        let cells = ticks.div_ceil(width) as usize + 1;
        let start = |cell: usize| problem.seconds(cell as u32 * width);
        let of_class = |class: &super::problem::Class| {
            let Some(prices) = &prices[problem.phases[class.phase].pool] else { return vec![0.0; cells] };
            let length = problem.seconds(class.ticks);
            // Between whole ticks nothing starts.
            let last = |cell: usize| if width == 1 { start(cell) } else { start(cell + 1) };
            (0..cells).map(|cell| prices.least(length, start(cell), last(cell))).collect()
        };
        let payments = problem.classes.iter().map(of_class).collect();
        let of_flow = |flow| (0..cells).map(|cell| problem.cost(flow, cell as u32 * width)).collect();
        let costs = (0..problem.flows.len()).map(of_flow).collect();
        let n = problem.phases.len();
        let scratch =
            Scratch { heads: vec![0; n], ends: vec![0; n], below: vec![Vec::new(); n], ..Scratch::default() };
        let memo = vec![BTreeMap::new(); problem.flows.len()];
        Self { problem, prices, width, cells, payments, costs, memo, scratch }
    }

    /// A lower bound on the sum of costs of every schedule that a state starts.
    pub(super) fn of_sum(&mut self, state: &State) -> f64 {
        let (mut sum, mut size) = (state.cost, state.cost.abs());
        for flow in 0..self.problem.flows.len() {
            if self.problem.is_open(state, flow) {
                let value = self.of_flow(state, flow);
                sum += value;
                size += value.abs();
            }
        }
        for (pool, prices) in self.prices.iter().enumerate() {
            let Some(prices) = prices else { continue };
            for &at in self.problem.free(state, pool) {
                let free = prices.from(self.problem.seconds(at));
                sum -= free;
                size += free;
            }
        }
        sum - 1e-11 * size
    }

    fn cell(&self, at: u32) -> usize {
        ((at / self.width) as usize).min(self.cells - 1)
    }

    /// What an open flow costs and pays at least.
    fn of_flow(&mut self, state: &State, flow: usize) -> f64 {
        let mut key = std::mem::take(&mut self.scratch.key);
        key.clear();
        key.push(state.now());
        for &phase in &self.problem.flows[flow] {
            key.push(self.problem.end(state, phase));
            key.extend(
                state.unstarted[self.problem.phases[phase].classes.clone()].iter().map(|&n| u32::from(n)),
            );
        }
        let known = self.memo[flow].get(&key[..]).copied();
        let value = known.unwrap_or_else(|| {
            let value = self.compute(state, flow);
            self.memo[flow].insert(key.clone().into(), value);
            value
        });
        self.scratch.key = key;
        value
    }

    fn compute(&mut self, state: &State, flow: usize) -> f64 {
        let problem = self.problem;
        let (heads, ends) = (&mut self.scratch.heads, &mut self.scratch.ends);
        problem.measure(state, flow, heads, ends);
        let end = problem.flows[flow].iter().map(|&phase| ends[phase]).max().unwrap_or(0);
        let mut sum = std::mem::take(&mut self.scratch.sum);
        for &phase in &problem.flows[flow] {
            self.scratch.below[phase].clear();
            self.scratch.below[phase].resize(self.cells, 0.0);
        }
        sum.clear();
        sum.resize(self.cells, 0.0);
        for &phase in &problem.flows[flow] {
            let mut payments = std::mem::take(&mut self.scratch.below[phase]);
            self.pay(state, phase, &mut payments);
            let after = match problem.phases[phase].next {
                Some(next) => &mut self.scratch.below[next],
                None => &mut sum,
            };
            after.iter_mut().zip(&payments).for_each(|(sum, paid)| *sum += paid);
            self.scratch.below[phase] = payments;
        }
        let earliest = problem.cost(flow, end);
        let costs = self.costs[flow].iter().zip(&sum).skip(self.cell(end));
        let value = costs.map(|(cost, paid)| cost.max(earliest) + paid).fold(f64::INFINITY, f64::min);
        self.scratch.sum = sum;
        value
    }

    /// Replaces the least payments of the phases before a phase, if they end before each cell, by those with
    /// this phase.
    fn pay(&mut self, state: &State, phase: usize, payments: &mut [f64]) {
        let node = &self.problem.phases[phase];
        let end = self.cell(self.scratch.ends[phase]);
        let left = |class: &usize| u32::from(state.unstarted[*class]);
        let length = |class: &usize| left(class).div_ceil(node.at_once) * self.problem.classes[*class].ticks;
        let open = || node.classes.clone().filter(|class| left(class) > 0);
        let Some(longest) = open().max_by_key(length) else {
            payments[..end].fill(f64::INFINITY);
            payments[end..].fill(0.0);
            return;
        };
        let head = self.cell(self.scratch.heads[phase]);
        let mut chain = std::mem::take(&mut self.scratch.chain);
        payments[..head].fill(f64::INFINITY);
        for class in std::iter::once(longest).chain(open().filter(|&class| class != longest)) {
            let waves = left(&class).div_ceil(node.at_once);
            let long = left(&class) - (waves - 1) * node.at_once;
            let short = node.at_once - long;
            let mut bundles = vec![(long, waves), (short, waves - 1)];
            if class == longest {
                // The longest chains wait for the phases before.
                (0..waves).for_each(|_| self.wave(class, f64::from(long), head, payments));
                bundles.remove(0);
            }
            for (chains, waves) in bundles.into_iter().filter(|&(chains, waves)| chains > 0 && waves > 0) {
                chain.clear();
                chain.resize(self.cells, 0.0);
                chain[..head].fill(f64::INFINITY);
                (0..waves).for_each(|_| self.wave(class, f64::from(chains), head, &mut chain));
                payments.iter_mut().zip(&chain).for_each(|(sum, paid)| *sum += paid);
            }
        }
        payments[..end].fill(f64::INFINITY);
        self.scratch.chain = chain;
    }

    /// Adds one task of a class to each of some chains. `payments` has the least payments of chains that end
    /// before each cell.
    fn wave(&self, class: usize, chains: f64, head: usize, payments: &mut [f64]) {
        let length = (self.problem.classes[class].ticks / self.width) as usize;
        let last = self.cells - 1;
        let own = &self.payments[class];
        // From the back, so that each place is read before it is written.
        let from = |cell: usize| payments[cell] + chains * own[cell];
        let mut least_last = f64::INFINITY;
        for cell in last.saturating_sub(length).max(head)..=last {
            least_last = least_last.min(from(cell));
        }
        for cell in (length..last).rev() {
            payments[cell] = if cell - length < head {
                f64::INFINITY
            } else {
                payments[cell - length] + chains * own[cell - length]
            };
        }
        payments[..length.min(last)].fill(f64::INFINITY);
        payments[last] = least_last;
        let mut least = f64::INFINITY;
        for paid in payments.iter_mut() {
            least = least.min(*paid);
            *paid = least;
        }
    }
}
