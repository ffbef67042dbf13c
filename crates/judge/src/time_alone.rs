//! The time that a flow takes alone on the cluster, from its tasks. Makers of schedules have their own.

use std::collections::BTreeMap;

use slackline_model::{Cluster, FlowId, Instance, JobId, PhaseId};

/// Seconds that a flow takes alone: its longest chain of phases, or its work in slots of one kind over all these
/// slots, if that is longer (docs/metrics.md).
pub(crate) fn time_alone(instance: &Instance, flow: FlowId) -> f64 {
    let mut ready: BTreeMap<JobId, f64> = BTreeMap::new();
    let mut longest = 0f64;
    for &id in instance.topological_of(flow) {
        let job = instance.job(id);
        let start = ready.remove(&id).unwrap_or(0.0);
        let end = job.phases().fold(start, |end, phase| end + phase_alone(instance, phase));
        longest = longest.max(end);
        for &next in &job.before {
            let at = ready.entry(next).or_default();
            *at = at.max(end);
        }
    }
    let cluster = instance.cluster();
    let over_all = cluster.slot_kinds().iter().map(|&slot_kind| {
        let of_kind = |phase: &PhaseId| instance.slot_kind_of(*phase) == slot_kind;
        let phases = instance.flow(flow).phases().filter(of_kind);
        let work: f64 = phases.map(|phase| instance.phase(phase).work().slot_seconds()).sum();
        if work > 0.0 { work / cluster.capacity(slot_kind) } else { 0.0 }
    });
    over_all.fold(longest, f64::max)
}

/// Seconds of a phase on as many of the fastest slots as it may hold, and at least those of its longest task.
/// Plans of work that has no tasks are only limited by the slots.
fn phase_alone(instance: &Instance, id: PhaseId) -> f64 {
    let (phase, cluster): (_, &Cluster) = (instance.phase(id), instance.cluster());
    let work = phase.work().slot_seconds();
    if work <= 0.0 {
        return 0.0;
    }
    let slot_kind = instance.slot_kind_of(id);
    let on_slots = work / cluster.fastest(slot_kind, phase.cap);
    let Some(tasks) = phase.tasks() else { return on_slots };
    let longest = tasks.runs().iter().map(|run| run.span.seconds()).fold(0.0, f64::max);
    on_slots.max(longest / cluster.fastest(slot_kind, 1))
}
