//! The minimum-cost flow relaxation with heads and tails (docs/math/flowflex.md B7): every slice of every
//! phase is a separate supply, which cannot be done before its head and whose flow completes its tail later.
//!
//! One flow per slice makes it at least as strong as the plain relaxation ([`crate::flow`], one slice per
//! flow) in the limit of fine slots; the crate computes both.

use slackline_model::id::TiSlice;
use slackline_model::{FlowId, Instance, SlotKind};

use crate::budget::Budget;
use crate::flow::{Grid, finish_cuts, just_after, special_points};
use crate::minisum;
use crate::per_flow::FlowBound;
use crate::tails::Slice;
use crate::transport::{self, Problem};

/// Most pairs of slice and slot.
const PAIRS: usize = 400_000;
/// About how long the simplex method takes for one.
const PAIR_NANOS: usize = 3000;
/// Most slots, and fewest: with less, the bound says little.
const SLOTS: std::ops::RangeInclusive<usize> = 8..=400;

/// A lower bound on the sum of costs: the transportation problem of slices and at most 400 slots, for each
/// kind of slots and for all together, the largest of them. `None` if the budget allows too few slots.
pub fn bound(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    budget: &mut Budget,
) -> Option<f64> {
    let least = slices.len() * SLOTS.start();
    let pairs = budget.grant(PAIRS.max(least), PAIR_NANOS);
    if pairs < least {
        return None;
    }
    let pairs = pairs.min(PAIRS);
    let of_slot_kinds = |slot_kinds: &[SlotKind]| {
        let slices: Vec<&Slice> =
            slices.iter().filter(|slice| slot_kinds.contains(&slice.slot_kind)).collect();
        of_slices(instance, slices, flows, minisum::capacity(instance.cluster(), slot_kinds), pairs)
    };
    Some(minisum::of_slot_kind_sets(instance.cluster(), of_slot_kinds))
}

/// The problem of some slices on machines of this capacity, with about `pairs` pairs of slice and slot at most.
/// A flow without any of these slices costs as much as alone.
fn of_slices(
    instance: &Instance,
    mut slices: Vec<&Slice>,
    flows: &TiSlice<FlowId, FlowBound>,
    capacity: f64,
    pairs: usize,
) -> f64 {
    let mut totals = vec![0.0; flows.len()];
    for s in &slices {
        totals[s.flow.index()] += s.work;
    }
    let idle = instance.flows().iter_enumerated().filter(|(id, _)| totals[id.index()] == 0.0);
    let fixed: f64 = idle.map(|(id, flow)| flow.cost.eval(flows[id].earliest)).sum();
    if slices.is_empty() {
        return fixed;
    }
    let most = (pairs / slices.len()).clamp(*SLOTS.start(), *SLOTS.end());
    let cuts = cuts(instance, &slices, flows, capacity, most);
    let end = cuts[cuts.len() - 1];
    let loss = |s: &Slice| {
        let cost = &instance.flow(s.flow).cost;
        (cost.eval(end) - cost.eval(flows[s.flow].earliest)) / totals[s.flow.index()]
    };
    slices.sort_by(|a, b| loss(b).total_cmp(&loss(a)).then(b.tail.total_cmp(&a.tail)));
    let price = |s: &Slice, slot: &[f64]| {
        let first = flows[s.flow].release + s.head;
        if slot[1] <= first {
            return f64::INFINITY;
        }
        let done = just_after(slot[0]).max(first) + s.tail;
        instance.flow(s.flow).cost.eval(done.max(flows[s.flow].earliest)) / totals[s.flow.index()]
    };
    let problem = Problem {
        supply: slices.iter().map(|s| s.work).collect(),
        capacity: cuts.windows(2).map(|w| capacity * (w[1] - w[0])).collect(),
        cost: slices.iter().flat_map(|s| cuts.windows(2).map(move |slot| price(s, slot))).collect(),
    };
    fixed + transport::solve(&problem).bound
}

/// At most `most` slots: slots of equal length, and cuts at the changes of costs.
fn cuts(
    instance: &Instance,
    slices: &[&Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    capacity: f64,
    most: usize,
) -> Vec<f64> {
    let work: f64 = slices.iter().map(|s| s.work).sum();
    let head = slices.iter().map(|s| flows[s.flow].release + s.head).fold(0.0, f64::max);
    let end = (head + work / capacity) * (1.0 + 1e-9);
    let costs = instance.flows().iter_enumerated().map(|(id, flow)| (flows[id].earliest, &flow.cost));
    let mut cuts = special_points(costs, end, Grid { ratio: 0.0, slots_max: most });
    if cuts.len() > most / 2 {
        cuts = finish_cuts(cuts, end, most / 2);
    }
    let even = most - cuts.len().min(most);
    cuts.extend((1..even).map(|k| end * k as f64 / even as f64));
    finish_cuts(cuts, end, most)
}
