//! Phases cut into slices, and their uses: later completions of single flows, mean tails, and the test of
//! deadlines with tails (docs/math/flowflex.md B7).
//!
//! A phase of shortest duration D never works faster than its work over D. So the part of its work between
//! the shares u and u + du, in order of time, has a head of at least head + u·D after the release and a tail
//! of at least tail + (1 − u)·D before the completion. A slice is such a part of some width, with the weaker
//! limit on each side. More slices are stronger: one slice is the test of
//! [`prefix_area`](mod@crate::prefix_area), infinitely many are the work that *must* be done by an instant.

use slackline_model::id::{TiSlice, TiVec};
use slackline_model::{FlowId, Instance, SlotKind};

use crate::paths::{Paths, mean_task};
use crate::per_flow::FlowBound;
use crate::preemptive::{FastMachine, Item};
use crate::rounding_margin;

/// Most slices of all phases together; each phase gets its share, from one to eight.
const SLICES: usize = 4000;

/// A part of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The flow of the phase.
    pub flow: FlowId,
    /// The slot kind of the phase.
    pub slot_kind: SlotKind,
    /// Seconds from the release of the flow to the earliest start.
    pub head: f64,
    /// Seconds from the latest end to the completion of the flow.
    pub tail: f64,
    /// Shortest possible time, in seconds.
    pub seconds: f64,
    /// Slot-seconds of work; positive.
    pub work: f64,
    /// Mean seconds by which the work of the phase is done earlier, before the phase ends, than its slices
    /// imply; above 0 only on machines of mixed speed, whose tasks are not divided (`paths::mean_task`).
    pub early: f64,
}

/// Every phase that has work, in as many slices as the size of the instance allows; `most` is the limit.
pub fn slices(instance: &Instance, paths: &Paths, most: usize) -> Vec<Slice> {
    let n = (SLICES / instance.phases().len().max(1)).clamp(1, most.clamp(1, 8));
    let mut slices = Vec::with_capacity(n * instance.phases().len());
    // On machines of one speed there are also plans, which divide work arbitrarily.
    let mixed = instance.cluster().uniform_speed().is_none();
    for (id, phase) in instance.phases().iter_enumerated() {
        if paths.work[id] <= 0.0 {
            continue;
        }
        let task = if mixed { mean_task(instance.cluster(), phase) } else { 0.0 };
        for k in 0..n {
            let share = |k: usize| k as f64 / n as f64 * paths.duration[id];
            slices.push(Slice {
                flow: instance.flow_of(id),
                slot_kind: instance.slot_kind_of(id),
                head: paths.head[id] + share(k),
                tail: paths.tail[id] + share(n - k - 1),
                seconds: paths.duration[id] / n as f64,
                work: paths.work[id] / n as f64,
                early: ((task - paths.duration[id]) / 2.0).max(0.0),
            });
        }
    }
    slices
}

/// The same bounds with earliest completions raised to those of the slices: Jackson's preemptive schedule
/// of each flow on each slot kind. O(n log n) for n slices.
pub fn strengthened(
    instance: &Instance,
    slices: &[Slice],
    flows: &TiSlice<FlowId, FlowBound>,
) -> TiVec<FlowId, FlowBound> {
    let mut flows = flows.to_vec();
    for &slot_kind in instance.cluster().slot_kinds() {
        let capacity = instance.cluster().capacity(slot_kind);
        for own in slices.chunk_by(|a, b| a.flow == b.flow) {
            let own: Vec<&Slice> = own.iter().filter(|s| s.slot_kind == slot_kind).collect();
            if own.is_empty() {
                continue;
            }
            let item = |s: &&Slice| Item { release: s.head, length: s.work / capacity };
            let span = FastMachine::new(own.iter().map(item).collect()).max_lateness(|k| -own[k].tail);
            let flow = &mut flows[own[0].flow];
            let at = flow.release + span;
            let lowered = at - rounding_margin::margin(span, own.len()) - 2.0 * f64::EPSILON * at;
            flow.earliest = flow.earliest.max(lowered);
        }
    }
    flows
}

/// The least mean time from the work of each flow in `slot_kinds` to the flow's completion; 0 without work.
///
/// Seen backwards from the completion, a slice comes at its tail or later, and the slot kinds work at most at
/// their capacity: no schedule beats a machine that begins every slice as soon as possible. Nor does one beat
/// the mean of the slices alone, each at its own rate, or of tasks that each run on the fastest slot; the
/// larger of the two holds.
pub fn mean_tails(instance: &Instance, slices: &[Slice], slot_kinds: &[SlotKind]) -> TiVec<FlowId, f64> {
    let mut means: TiVec<FlowId, f64> = vec![0.0; instance.flows().len()].into();
    let capacity: f64 = slot_kinds.iter().map(|&slot_kind| instance.cluster().capacity(slot_kind)).sum();
    for own in slices.chunk_by(|a, b| a.flow == b.flow) {
        let own: Vec<&Slice> = own.iter().filter(|s| slot_kinds.contains(&s.slot_kind)).collect();
        let item = |s: &&Slice| Item { release: s.tail, length: s.work / capacity };
        let (mut weighted, mut length) = (0.0, 0.0);
        let mut machine = FastMachine::new(own.iter().map(item).collect());
        machine.run(
            |_| 0.0,
            |piece| {
                weighted += piece.length * (piece.start + piece.length / 2.0);
                length += piece.length;
            },
        );
        if length > 0.0 {
            let alone: f64 = own.iter().map(|s| s.work * (s.tail + s.seconds / 2.0 + s.early)).sum();
            let mean = (weighted / length).max(alone / own.iter().map(|s| s.work).sum::<f64>());
            means[own[0].flow] = (mean - rounding_margin::margin(mean, 2 * own.len())).max(0.0);
        }
    }
    means
}
