//! The prefix-area bound on the maximum of costs.
//!
//! If no cost may exceed a level L, flow j must complete by D_j(L), the latest instant that costs at most L.
//! Work of phase i of flow j must then be done between r_j + head_i and D_j(L) − tail_i. If EDF on one
//! machine as fast as all slots of a kind misses such a deadline, every schedule costs more than L. Bisection
//! finds the largest such L; for step costs it searches their levels, which is exact.
//!
//! With phases cut into slices ([`crate::tails`]) the test also checks the parts of a phase that must be done
//! before the rest of it (`tail-hall`).
//!
//! (docs/math/flowflex.md B7 "minimax"; the papers' prefix-area test without release times, heads and tails
//! is the condition on sets of flows with D_j ≤ t.)

use slackline_model::id::{TiSlice, TiVec};
use slackline_model::{CostFn, FlowId, Instance, tolerance};

use crate::per_flow::FlowBound;
use crate::preemptive::{FastMachine, Item};
use crate::rounding_margin;
use crate::tails::Slice;

/// Relative width of the interval in which the search stops.
const PRECISION: f64 = 1e-9;
/// More halvings than an interval of floating-point numbers of similar magnitude allows.
const PROBES_MAX: usize = 200;

/// A lower bound on the largest cost in any schedule; 0 without flows.
///
/// O(n log n) for n slices, about 40 times, at most 200 times.
pub fn prefix_area(instance: &Instance, slices: &[Slice], flows: &TiSlice<FlowId, FlowBound>) -> f64 {
    let costs = || instance.flows().iter().map(|flow| &flow.cost);
    let alone = costs().zip(flows).map(|(cost, bound)| cost.eval(bound.earliest));
    let Some(alone) = alone.reduce(f64::max) else { return 0.0 };
    let mut search = Search::new(instance, slices, flows);
    match attained_levels(costs(), alone) {
        Some(levels) => {
            let infeasible = levels.partition_point(|&level| !search.probe(level).feasible);
            levels.get(infeasible).copied().unwrap_or(alone)
        }
        None => bisect(&mut search, alone),
    }
}

/// All values from `from` on that the largest cost may have, in order, if all costs are step functions.
fn attained_levels<'a>(costs: impl Iterator<Item = &'a CostFn>, from: f64) -> Option<Vec<f64>> {
    let mut levels = vec![0.0];
    for cost in costs {
        match (cost.as_steps(), cost.as_linear()) {
            (Some(steps), _) => levels.extend(steps.iter().map(|&(_, level)| level)),
            (None, Some((0.0, _))) => {}
            _ => return None,
        }
    }
    levels.retain(|&level| level >= from);
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    Some(levels)
}

/// The largest level found infeasible, or `alone` if that is feasible.
fn bisect(search: &mut Search<'_>, alone: f64) -> f64 {
    let first = search.probe(alone);
    if first.feasible {
        return alone;
    }
    let (mut low, mut high) = (alone, first.cost);
    for _ in 0..PROBES_MAX {
        let middle = low + (high - low) / 2.0;
        let narrow = high - low <= PRECISION * low.abs().max(high.abs());
        if narrow || !(low < middle && middle < high) {
            break;
        }
        let probe = search.probe(middle);
        if probe.feasible {
            high = middle.min(probe.cost);
        } else {
            low = middle;
            high = high.min(probe.cost);
        }
    }
    // Deadlines far from zero (a lateness of −10^9) round in units of the level, not of the completion.
    (low - rounding_margin::margin(low, 0)).max(alone)
}

/// The result of a test of one level.
struct Probe {
    /// Whether all deadlines can be met on the fast machines.
    feasible: bool,
    /// The largest cost of the schedule of the fast machines.
    cost: f64,
}

/// The fast machine of a slot kind, with the flow and tail of each of its items.
struct SlotKindMachine {
    machine: FastMachine,
    of: Vec<(FlowId, f64)>,
}

/// The work of one slot kind, its flows, and the tails after it.
#[derive(Default)]
struct SlotKindItems {
    items: Vec<Item>,
    of: Vec<(FlowId, f64)>,
}

struct Search<'a> {
    instance: &'a Instance,
    flows: &'a TiSlice<FlowId, FlowBound>,
    slot_kinds: Vec<SlotKindMachine>,
    latest: TiVec<FlowId, f64>,
    completion: TiVec<FlowId, f64>,
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance, slices: &[Slice], flows: &'a TiSlice<FlowId, FlowBound>) -> Self {
        let mut lists = [SlotKindItems::default(), SlotKindItems::default()];
        let cluster = instance.cluster();
        // Phases without work constrain only the critical path, which is in `earliest`.
        for slice in slices {
            let SlotKindItems { items, of } = &mut lists[slice.slot_kind.index()];
            let release = flows[slice.flow].release + slice.head;
            items.push(Item { release, length: slice.work / cluster.capacity(slice.slot_kind) });
            of.push((slice.flow, slice.tail));
        }
        let slot_kinds = lists
            .into_iter()
            .map(|SlotKindItems { items, of }| SlotKindMachine { machine: FastMachine::new(items), of });
        Self {
            instance,
            flows,
            slot_kinds: slot_kinds.collect(),
            latest: vec![0.0; flows.len()].into(),
            completion: vec![0.0; flows.len()].into(),
        }
    }

    /// Whether every flow can complete in time to cost at most `level`, on the fast machines.
    fn probe(&mut self, level: f64) -> Probe {
        for (id, flow) in self.instance.flows().iter_enumerated() {
            self.latest[id] = latest(&flow.cost, level, self.flows[id].earliest);
        }
        let feasible = self.meets();
        let costs = self.instance.flows().iter().zip(&self.completion).map(|(flow, &c)| flow.cost.eval(c));
        Probe { feasible, cost: costs.fold(f64::NEG_INFINITY, f64::max) }
    }

    /// Whether every flow completes by its `latest` on the fast machines; sets `completion`.
    fn meets(&mut self) -> bool {
        for (completion, bound) in self.completion.iter_mut().zip(self.flows) {
            *completion = bound.earliest;
        }
        let mut feasible = true;
        let Self { slot_kinds, latest, completion, .. } = self;
        for SlotKindMachine { machine, of } in slot_kinds {
            let due = |item: usize| latest[of[item].0] - of[item].1;
            machine.run(due, |piece| {
                if piece.done {
                    let (flow, tail) = of[piece.item];
                    let end = piece.start + piece.length + tail;
                    completion[flow] = completion[flow].max(end);
                    feasible &= end <= latest[flow] + rounding_margin::margin(end, of.len());
                }
            });
        }
        feasible
    }
}

/// Only the test: can every flow complete by a given instant on the fast machines?
pub(crate) struct Deadlines<'a>(Search<'a>);

impl<'a> Deadlines<'a> {
    pub(crate) fn new(
        instance: &'a Instance,
        slices: &[Slice],
        flows: &'a TiSlice<FlowId, FlowBound>,
    ) -> Self {
        Self(Search::new(instance, slices, flows))
    }

    /// Whether every flow can complete by `due`. O(n log n) for n slices.
    pub(crate) fn feasible(&mut self, due: &TiSlice<FlowId, f64>) -> bool {
        self.0.latest.copy_from_slice(due);
        self.0.meets()
    }
}

/// The latest completion that costs at most `level`; `earliest` must.
///
/// Unlike [`CostFn::latest`] it grants the tolerance with which completions are compared with steps and
/// jumps, so that a schedule that is late by less than that is not called infeasible.
pub(crate) fn latest(cost: &CostFn, level: f64, earliest: f64) -> f64 {
    let exact = cost.latest(level).unwrap_or(earliest);
    let tolerated = tolerance::latest(exact);
    let latest = if cost.eval(tolerated) <= level { tolerated } else { exact };
    latest.max(earliest)
}
