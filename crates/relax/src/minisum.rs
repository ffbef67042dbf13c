//! Bounds on sums of costs that grow in proportion to completion times.
//!
//! For a set of slot kinds of capacity P, in which any slot may serve any phase, let V_j be the work of flow
//! j there and M_j the mean time at which it is done. Then for every schedule
//!
//! - Σ_S V_j M_j ≥ V(S)²/(2P): the slot kinds work at a rate of at most P;
//! - C_j ≥ l_j, the earliest completion of [`per_flow`](mod@crate::per_flow);
//! - C_j − M_j ≥ h_j, the mean tail of the flow's slices ([`tails::mean_tails`]), which is at least max( Σ_i
//!   s_i (tail_i + s_i/(2δ_i)) / V_j, min_i tail_i + V_j/(2P) ): phase i does its s_i at a rate of at most
//!   δ_i and ends tail_i before the flow, and all the work is done at a rate of at most P.
//!
//! [`pb()`] minimises under the first three, [`pb_convex`] does so for convex costs by their tangents,
//! [`mean_busy`] minimises Σ w_j M_j with release times under the second and third. Each is computed for every
//! slot kind and for all slot kinds together; their maximum is a bound. The sum over slot kinds is not: it
//! would count a flow twice.

use slackline_model::id::{TiSlice, TiVec};
use slackline_model::{Cluster, FlowId, Instance, SlotKind};

use crate::budget::Budget;
use crate::per_flow::FlowBound;
use crate::preemptive::{FastMachine, Item};
use crate::tails::{self, Slice};
use crate::{convex, pb, rounding_margin};

/// A linear lower bound on the cost of a flow, from its earliest completion on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearCost {
    /// Cost per second.
    pub slope: f64,
    /// Cost at time 0; may be negative.
    pub intercept: f64,
}

/// The linear costs of the flows that have them; for each other flow the cost of its earliest completion.
/// `None` if no flow has a rising linear cost: then `alone` is the same bound.
pub fn linear_part(
    instance: &Instance,
    flows: &TiSlice<FlowId, FlowBound>,
) -> Option<TiVec<FlowId, LinearCost>> {
    let costs: TiVec<FlowId, LinearCost> = instance
        .flows()
        .iter()
        .zip(flows)
        .map(|(flow, bound)| match flow.cost.as_linear() {
            Some((slope, intercept)) => LinearCost { slope, intercept },
            None => LinearCost { slope: 0.0, intercept: flow.cost.eval(bound.earliest) },
        })
        .collect();
    costs.iter().any(|cost| cost.slope > 0.0).then_some(costs)
}

/// The bound of [`pb::solve`] for each set of slot kinds, the largest of them. O(n log n).
pub fn pb(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    costs: &TiSlice<FlowId, LinearCost>,
) -> f64 {
    let of_slot_kinds = |slot_kinds: &[SlotKind]| {
        let capacity = capacity(instance.cluster(), slot_kinds);
        let shares = shares(instance, slices, slot_kinds);
        let job = |(flow, share): (FlowId, &Share)| pb::Job {
            work: share.work,
            weight: costs[flow].slope,
            floor: flows[flow].earliest,
            tail: share.tail,
        };
        let jobs: Vec<pb::Job> = shares.iter_enumerated().map(job).collect();
        total(pb::solve(&jobs, capacity).value, jobs.len(), costs)
    };
    of_slot_kind_sets(instance.cluster(), of_slot_kinds)
}

/// Σ slope · C plus the intercepts, lowered by the rounding of `terms` numbers of that magnitude.
fn total(sloped: f64, terms: usize, costs: &TiSlice<FlowId, LinearCost>) -> f64 {
    let intercepts: f64 = costs.iter().map(|cost| cost.intercept).sum();
    let magnitude = sloped + costs.iter().map(|cost| cost.intercept.abs()).sum::<f64>();
    sloped + intercepts - rounding_margin::margin(magnitude, terms + costs.len())
}

/// The largest bound over the slot kinds with slots, and over those of a typed cluster together.
pub(crate) fn of_slot_kind_sets(cluster: &Cluster, of_slot_kinds: impl FnMut(&[SlotKind]) -> f64) -> f64 {
    let slot_kinds = cluster.slot_kinds();
    let single = slot_kinds.chunks(1).filter(|slot_kind| cluster.slots(slot_kind[0]) > 0);
    single
        .chain((slot_kinds.len() > 1).then_some(slot_kinds))
        .map(of_slot_kinds)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Seconds of work at speed 1 that some slot kinds do in a second.
pub(crate) fn capacity(cluster: &Cluster, slot_kinds: &[SlotKind]) -> f64 {
    slot_kinds.iter().map(|&slot_kind| cluster.capacity(slot_kind)).sum()
}

/// Most evaluations of one flow or slice by the ascents of [`pb_convex`] and [`mean_busy`].
const EVALUATIONS: usize = 300_000;
/// About how long one takes.
const EVALUATION_NANOS: usize = 40;
/// Steps of the ascent of [`mean_busy`], which begins near its end.
const MEAN_BUSY_STEPS: usize = 100;

/// The bound of [`convex::bound`] with the closed-form program for each set of slot kinds, the largest of
/// them. O(n log n) per step.
pub fn pb_convex(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    budget: &mut Budget,
) -> f64 {
    let of_slot_kinds = |slot_kinds: &[SlotKind]| {
        let shares = shares(instance, slices, slot_kinds);
        let capacity = capacity(instance.cluster(), slot_kinds);
        let job = |(id, share): (FlowId, &Share)| pb::Job {
            work: share.work,
            weight: 0.0,
            floor: flows[id].earliest,
            tail: share.tail,
        };
        let mut jobs: Vec<pb::Job> = shares.iter_enumerated().map(job).collect();
        let wanted = EVALUATIONS.min(jobs.len() * convex::STEPS);
        let steps = budget.grant(wanted, EVALUATION_NANOS) / jobs.len().max(1);
        convex::bound(&costs(instance, flows), horizon(flows, &shares, capacity), steps, |slopes| {
            for (job, &slope) in jobs.iter_mut().zip(slopes) {
                job.weight = slope;
            }
            pb::solve(&jobs, capacity)
        })
    };
    of_slot_kind_sets(instance.cluster(), of_slot_kinds)
}

/// The bound of [`convex::bound`] with preemptive WSPT under heads (docs/math/dmrs.md A7 (b)) for each set of
/// slot kinds, the largest of them: heads, mean tails and earliest completions together, for linear and other
/// convex costs. O(n log n) per step for n slices.
///
/// Preemptive WSPT on one machine of speed P minimises Σ w_j M_j. As w_j M_j is the sum of
/// (w_j/V_j) · work · time over the work of the flow, each phase may have its own release r_j + head_i. In the
/// limit of the ascent it is at least [`pb()`].
pub fn mean_busy(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
    budget: &mut Budget,
) -> f64 {
    let of_slot_kinds = |slot_kinds: &[SlotKind]| {
        let shares = shares(instance, slices, slot_kinds);
        let capacity = capacity(instance.cluster(), slot_kinds);
        let own: Vec<&Slice> = slices.iter().filter(|slice| slot_kinds.contains(&slice.slot_kind)).collect();
        let item = |s: &&Slice| Item { release: flows[s.flow].release + s.head, length: s.work / capacity };
        let mut machine = FastMachine::new(own.iter().map(item).collect());
        let wanted = EVALUATIONS.min(own.len() * MEAN_BUSY_STEPS);
        let steps = budget.grant(wanted, EVALUATION_NANOS) / own.len().max(1);
        convex::bound(&costs(instance, flows), horizon(flows, &shares, capacity), steps, |slopes| {
            let busy = |(id, share): (FlowId, &Share)| {
                if share.work > 0.0 { share.tail } else { flows[id].earliest }
            };
            let mut completion: Vec<f64> = shares.iter_enumerated().map(busy).collect();
            machine.run(
                |i| -slopes[own[i].flow.index()] / shares[own[i].flow].work,
                |piece| {
                    let flow = own[piece.item].flow;
                    let part = capacity * piece.length / shares[flow].work;
                    completion[flow.index()] += part * (piece.start + piece.length / 2.0);
                },
            );
            let value: f64 = slopes.iter().zip(&completion).map(|(slope, c)| slope * c).sum();
            // The sum has as many terms as there are slices.
            let value = value - rounding_margin::margin(value, 2 * own.len());
            pb::Solution { completion, value }
        })
    };
    of_slot_kind_sets(instance.cluster(), of_slot_kinds)
}

fn costs<'a>(instance: &'a Instance, flows: &TiSlice<FlowId, FlowBound>) -> Vec<convex::Flow<'a>> {
    let all = instance.flows().iter().zip(flows);
    all.map(|(flow, bound)| convex::Flow { floor: bound.earliest, cost: &flow.cost }).collect()
}

/// A time by which about all work is done.
fn horizon(flows: &TiSlice<FlowId, FlowBound>, shares: &TiSlice<FlowId, Share>, capacity: f64) -> f64 {
    flows.iter().map(|f| f.earliest).fold(0.0, f64::max)
        + shares.iter().map(|s| s.work).sum::<f64>() / capacity
}

/// The work of a flow in a set of slot kinds.
#[derive(Clone, Copy)]
struct Share {
    /// V: work in slot-seconds.
    work: f64,
    /// h: least time from the mean time of the work to the completion of the flow.
    tail: f64,
}

fn shares(instance: &Instance, slices: &[Slice], slot_kinds: &[SlotKind]) -> TiVec<FlowId, Share> {
    let tails = tails::mean_tails(instance, slices, slot_kinds);
    let mut shares: TiVec<FlowId, Share> = tails.into_iter().map(|tail| Share { work: 0.0, tail }).collect();
    for slice in slices.iter().filter(|slice| slot_kinds.contains(&slice.slot_kind)) {
        shares[slice.flow].work += slice.work;
    }
    shares
}
