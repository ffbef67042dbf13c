//! Derives the amounts of work, critical paths, times alone and cost functions of an instance, once.

use super::check::Problems;
use super::{Amount, Flow, Instance, Phase};
use crate::cluster::Cluster;
use crate::cost::{CostFn, Metric};
use crate::draft::{CostDraft, TasksDraft, Weights};
use crate::error::Invalid;
use crate::id::{FlowId, JobId};
use crate::tasks::{Run, Split, Tasks};
use crate::time::{Span, Time, Work};

/// The tasks of a phase, or its work.
pub(super) fn amount(tasks: &TasksDraft, cluster: &Cluster) -> Amount {
    let span = Span::from_seconds_nearest;
    match tasks {
        TasksDraft::Uniform { tasks, seconds } => Amount::Tasks(Tasks::uniform(*tasks, span(*seconds))),
        TasksDraft::Each(list) => {
            Amount::Tasks(Tasks::from_runs(list.iter().map(|&s| Run { count: 1, span: span(s) })))
        }
        TasksDraft::Splits(list) => {
            let mut first = 0;
            let mut splits = Vec::with_capacity(list.len());
            for split in list {
                let hosts = split.hosts.iter().filter_map(|h| cluster.machine_named(h)).collect();
                splits.push(Split { first, count: split.count, hosts });
                first += split.count;
            }
            let runs = list.iter().map(|s| Run { count: s.count, span: span(s.seconds) });
            // Splits without any host do not place tasks.
            let placed = splits.iter().any(|s: &Split| !s.hosts.is_empty());
            Amount::Tasks(Tasks::from_runs(runs).with_splits(if placed { splits } else { Vec::new() }))
        }
        TasksDraft::Work { work, tasks: None } => Amount::Malleable(Work::from_slot_seconds_nearest(*work)),
        TasksDraft::Work { work, tasks: Some(n) } => {
            Amount::Tasks(Tasks::share(Work::from_slot_seconds_nearest(*work), *n))
        }
    }
}

/// Seconds of a phase at its cap on the fastest slots.
pub(super) fn phase_alone(cluster: &Cluster, phase: &Phase) -> f64 {
    phase.work().slot_seconds() / cluster.fastest(cluster.slot_kind_of(phase.kind), phase.cap)
}

/// Seconds of a phase that has the cluster to itself: at its cap on the fastest slots, and not less than its
/// longest task on the fastest slot. Without a cluster: with unlimited slots of speed 1. Work that is not cut
/// into tasks counts as tasks of at most `grain`, if given.
fn phase_time_alone(cluster: Option<&Cluster>, phase: &Phase, grain: Option<Span>) -> f64 {
    let work = phase.work().slot_seconds();
    if work == 0.0 {
        return 0.0;
    }
    let longest = match (&phase.amount, grain) {
        (Amount::Tasks(tasks), _) => tasks.longest().seconds(),
        (Amount::Malleable(_), Some(grain)) => work / phase.n_to_cut(grain) as f64,
        (Amount::Malleable(_), None) => 0.0,
    };
    let (speed, longest) = match cluster {
        Some(cluster) => {
            let slot_kind = cluster.slot_kind_of(phase.kind);
            (cluster.fastest(slot_kind, phase.cap), longest / cluster.fastest(slot_kind, 1))
        }
        None => (f64::from(phase.cap), longest),
    };
    longest.max(work / speed)
}

/// Seconds that a flow takes alone: the larger of its longest chain of phases and, for each slot kind, its work
/// over the capacity of the slot kind. See [`phase_time_alone`].
pub(super) fn time_alone(
    instance: &Instance,
    flow: FlowId,
    cluster: Option<&Cluster>,
    grain: Option<Span>,
) -> f64 {
    let first = instance.flows[flow].jobs.start;
    let mut ends = vec![0.0; instance.flows[flow].jobs.len()];
    let place = |job: JobId| (job.0 - first) as usize;
    let mut per_slot_kind = [Work::ZERO; 2];
    let mut alone = 0f64;
    for &id in instance.topological_of(flow) {
        let job = &instance.jobs[id];
        let mut end = job.after.iter().map(|&a| ends[place(a)]).fold(0.0, f64::max);
        for phase in job.phases() {
            let phase = &instance.phases[phase];
            end += phase_time_alone(cluster, phase, grain);
            if let Some(cluster) = cluster {
                per_slot_kind[cluster.slot_kind_of(phase.kind).index()] += phase.work();
            }
        }
        alone = alone.max(end);
        ends[place(id)] = end;
    }
    let Some(cluster) = cluster else { return alone };
    let area = cluster.slot_kinds().iter().map(|&slot_kind| match per_slot_kind[slot_kind.index()] {
        Work::ZERO => 0.0,
        work => work.slot_seconds() / cluster.capacity(slot_kind),
    });
    area.fold(alone, f64::max)
}

/// Computes the values that follow from a flow's jobs: work, critical path, time alone.
pub(super) fn derive(instance: &mut Instance, flow: FlowId) {
    let first = instance.flows[flow].jobs.start;
    let mut ends = vec![0.0; instance.flows[flow].jobs.len()];
    let place = |job: JobId| (job.0 - first) as usize;
    let (mut work, mut critical_path) = (Work::ZERO, 0f64);
    for &id in instance.topological_of(flow) {
        let job = &instance.jobs[id];
        let mut end = job.after.iter().map(|&a| ends[place(a)]).fold(0.0, f64::max);
        for phase in job.phases() {
            let phase = &instance.phases[phase];
            end += phase_alone(&instance.cluster, phase);
            work += phase.work();
        }
        critical_path = critical_path.max(end);
        ends[place(id)] = end;
    }
    let alone = time_alone(instance, flow, Some(&instance.cluster), None);
    let flow = &mut instance.flows[flow];
    (flow.work, flow.critical_path, flow.alone) = (work, critical_path, alone);
}

/// Sets every flow's weight and cost function from the objective.
pub(super) fn resolve_costs(instance: &mut Instance) -> Result<(), Invalid> {
    let mut problems = Problems::default();
    let Instance { flows, objective, weights, .. } = instance;
    for flow in flows.iter_mut() {
        flow.weight = if *weights == Weights::Ignore { 1.0 } else { flow.given_weight };
        let own = match (&flow.given_cost, objective.metric) {
            (Some(CostDraft::Metric(metric)), _) => by_metric(flow, *metric),
            (Some(CostDraft::Steps(steps)), _) => Some(CostFn::steps(steps.clone()).scaled(flow.weight)),
            (Some(CostDraft::Piecewise { points, slope }), _) => {
                let slope = slope.unwrap_or_else(|| last_slope(points));
                Some(CostFn::piecewise(points.clone(), slope).scaled(flow.weight))
            }
            (None, metric) => by_metric(flow, metric),
        };
        if let Some(cost) = own {
            flow.cost = cost;
        } else {
            let needs = if objective.metric == Metric::Sla { "steps" } else { "points" };
            problems.add(
                format!("flows[{}].cost", flow.given_as),
                format!(
                    "found no cost for flow {:?}; the metric {} needs `{needs}` on every flow",
                    flow.id, objective.metric
                ),
            );
        }
    }
    problems.none()
}

fn last_slope(points: &[(f64, f64)]) -> f64 {
    match points {
        [.., a, b] if b.0 > a.0 => (b.1 - a.1) / (b.0 - a.0),
        _ => 0.0,
    }
}

fn by_metric(flow: &Flow, metric: Metric) -> Option<CostFn> {
    let (w, r) = (flow.weight, flow.release.seconds());
    let deadline = flow.deadline.map(Time::seconds);
    let over = |size: f64| if size > 0.0 { CostFn::linear(w / size, r) } else { CostFn::zero() };
    Some(match metric {
        Metric::Completion => CostFn::linear(w, 0.0),
        Metric::Response => CostFn::linear(w, r),
        Metric::Makespan => CostFn::linear(1.0, 0.0),
        Metric::Stretch => over(flow.work.slot_seconds()),
        Metric::Slowdown => over(flow.alone),
        Metric::Tardy => deadline.map_or_else(CostFn::zero, |d| CostFn::steps(vec![(d, w)])),
        Metric::Tardiness => deadline.map_or_else(CostFn::zero, |d| CostFn::tardiness(w, d)),
        Metric::Lateness => deadline.map_or_else(CostFn::zero, |d| CostFn::linear(w, d)),
        Metric::Sla | Metric::Piecewise => return None,
    })
}
