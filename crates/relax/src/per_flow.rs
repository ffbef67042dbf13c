//! The earliest completion of each flow alone on the cluster.

use slackline_model::id::TiVec;
use slackline_model::{FlowId, Instance, PhaseId};

use crate::paths::Paths;
use crate::preemptive::{FastMachine, Item};
use crate::rounding_margin;

/// Lower bounds on the times of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowBound {
    /// Its release, in seconds after the start of the workload.
    pub release: f64,
    /// Seconds of its longest chain of phases, each at its cap on the fastest slots, and on machines of mixed
    /// speed at least its longest task.
    pub critical_path: f64,
    /// Seconds of its squashed area: its work in each slot kind over the slot kind's capacity, by
    /// [`slackline_model::SlotKind::index`].
    pub areas: [f64; 2],
    /// Earliest completion (seconds after the start of the workload): its release plus the largest of the
    /// critical path, the areas, and for each slot kind Jackson's bound on heads, work and tails (Q2 of
    /// docs/math/flowflex.md B7). Lowered by the rounding margin of the crate.
    pub earliest: f64,
    /// Number of phases: the number of terms of the sums.
    terms: usize,
}

impl FlowBound {
    /// The larger of the areas, in seconds.
    pub fn area(&self) -> f64 {
        self.areas[0].max(self.areas[1])
    }

    /// The instant `span` seconds after the release, lowered by the rounding margin of the crate, but at
    /// least the release.
    pub fn completion_after(&self, span: f64) -> f64 {
        let at = self.release + span;
        // The addition may round up by half a unit of the sum, even for a short span.
        (at - rounding_margin::margin(span, self.terms) - 2.0 * f64::EPSILON * at).max(self.release)
    }
}

/// The bounds of every flow, in seconds. O(n log n) for n phases.
pub fn per_flow(instance: &Instance) -> TiVec<FlowId, FlowBound> {
    with_paths(instance, &Paths::of(instance))
}

/// The same from known paths.
pub(crate) fn with_paths(instance: &Instance, paths: &Paths) -> TiVec<FlowId, FlowBound> {
    instance.flows().keys().map(|flow| of_flow(instance, paths, flow)).collect()
}

fn of_flow(instance: &Instance, paths: &Paths, id: FlowId) -> FlowBound {
    let flow = instance.flow(id);
    let mut per_slot_kind: [Vec<PhaseId>; 2] = [Vec::new(), Vec::new()];
    let (mut critical_path, mut terms) = (0f64, 0);
    for job in flow.jobs() {
        for phase in instance.job(job).phases() {
            critical_path = critical_path.max(paths.head[phase] + paths.elapsed[phase] + paths.tail[phase]);
            per_slot_kind[instance.slot_kind_of(phase).index()].push(phase);
            terms += 1;
        }
    }
    let mut bound =
        FlowBound { release: flow.release.seconds(), critical_path, areas: [0.0; 2], earliest: 0.0, terms };
    let mut alone = critical_path;
    for &slot_kind in instance.cluster().slot_kinds() {
        let phases = &per_slot_kind[slot_kind.index()];
        if !phases.is_empty() {
            let capacity = instance.cluster().capacity(slot_kind);
            let work: f64 = phases.iter().map(|&p| paths.work[p]).sum();
            bound.areas[slot_kind.index()] = work / capacity;
            alone = alone.max(work / capacity).max(jackson(paths, phases, capacity));
        }
    }
    bound.earliest = bound.completion_after(alone);
    bound
}

/// Least time to pass all `phases` through one machine of speed `capacity`, each between its head and
/// its tail: Jackson's preemptive schedule, longest tail first.
fn jackson(paths: &Paths, phases: &[PhaseId], capacity: f64) -> f64 {
    let items =
        phases.iter().map(|&p| Item { release: paths.head[p], length: paths.work[p] / capacity }).collect();
    FastMachine::new(items).max_lateness(|i| -paths.tail[phases[i]])
}
