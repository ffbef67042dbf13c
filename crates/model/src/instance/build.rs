//! Converts a draft to an instance: checks it (`check`), then builds it flow by flow.

use super::check::{cluster_of, limits, recurrences};
use super::derive::{amount, derive, resolve_costs};
use super::order::topological;
use super::{Amount, Arrival, Flow, Instance, Job, Phase, Pool};
use crate::cost::{CostFn, Objective};
use crate::draft::{Draft, FlowDraft, PhaseDraft, PoolDraft};
use crate::error::Invalid;
use crate::id::{FlowId, JobId, PhaseId, PhaseKind};
use crate::job_positions::JobPositions;
use crate::table::Table;
use crate::time::{Time, Work};

pub(super) fn build(draft: &Draft) -> Result<Instance, Invalid> {
    let mut instance = Instance {
        start: draft.start.clone(),
        cluster: cluster_of(draft)?,
        objective: Objective::new(draft.objective.metric, draft.objective.combine),
        weights: draft.weights,
        flows: Table::new(),
        jobs: Table::new(),
        phases: Table::new(),
        pools: draft.pools.iter().map(pool).collect(),
        n_cut: 0,
    };
    for (i, flow) in draft.flows.iter().enumerate() {
        let mut all = recurrences(flow).peekable();
        while let Some((name, shift)) = all.next() {
            let mut arrival = arrival(&instance, i, flow, shift, name);
            arrival.announce(all.peek().map(|(_, next)| Time::from_seconds_nearest(flow.release + next)));
            let id = instance.admit(arrival);
            derive(&mut instance, id);
        }
    }
    resolve_costs(&mut instance)?;
    Ok(instance)
}

fn pool(pool: &PoolDraft) -> Pool {
    Pool {
        id: pool.id.clone(),
        min_map: pool.min_slots.map.unwrap_or(0),
        min_reduce: pool.min_slots.reduce.unwrap_or(0),
    }
}

/// The recurrence of a checked flow, `shift` seconds after the first, for an instance of that cluster and
/// those pools.
pub(super) fn arrival(
    instance: &Instance,
    given_as: usize,
    draft: &FlowDraft,
    shift: f64,
    name: String,
) -> Arrival {
    let mut positions = JobPositions::new(&draft.jobs);
    let mut after: Vec<Vec<usize>> = Vec::with_capacity(draft.jobs.len());
    for job in &draft.jobs {
        let mut list: Vec<usize> = job.after.iter().filter_map(|name| positions.find(name)).collect();
        list.sort_unstable();
        list.dedup();
        after.push(list);
    }
    let (mut jobs, mut phases) = (Vec::with_capacity(draft.jobs.len()), Vec::new());
    for (k, job) in draft.jobs.iter().enumerate() {
        let mut phase = |kind: PhaseKind, draft: &Option<PhaseDraft>| {
            let draft = draft.as_ref()?;
            let (min_slots, max_slots) = limits(job, kind);
            let amount = amount(&draft.tasks, &instance.cluster);
            let tasks = if let Amount::Tasks(tasks) = &amount { tasks.count() } else { u32::MAX };
            let cap = max_slots.unwrap_or(u32::MAX).min(tasks);
            phases.push(Phase { flow: FlowId(0), job: JobId::from(k), kind, amount, min_slots, cap });
            Some(PhaseId::from(phases.len() - 1))
        };
        let (map, reduce) = (phase(PhaseKind::Map, &job.map), phase(PhaseKind::Reduce, &job.reduce));
        let after = after[k].iter().map(|&a| JobId::from(a)).collect();
        jobs.push(Job { id: job.id.clone(), flow: FlowId(0), after, before: Vec::new(), map, reduce });
    }
    for (k, list) in after.iter().enumerate() {
        for &a in list {
            jobs[a].before.push(JobId::from(k));
        }
    }
    let time = |seconds| Time::from_seconds_nearest(seconds + shift);
    let order = topological(&after).expect("invariant: cycles were refused");
    let flow = Flow {
        id: name,
        release: Time::from_seconds_nearest(draft.release + shift),
        weight: draft.weight,
        deadline: draft.deadline.map(|d| Time::from_seconds_nearest(d + shift)),
        cost: CostFn::zero(),
        pool: draft.pool.as_ref().and_then(|name| instance.pools.position(|p| p.id == *name)),
        user: draft.user.clone(),
        priority: draft.priority,
        quota: draft.quota.clone(),
        work: Work::ZERO,
        critical_path: 0.0,
        alone: 0.0,
        place: FlowId::from(instance.flows.len()),
        recorded_end: draft.jobs.iter().filter_map(|job| job.recorded_end).reduce(f64::max).map(time),
        next_release: None,
        jobs: 0..jobs.len() as u32,
        phases: 0..phases.len() as u32,
        topological: order.into_iter().map(JobId::from).collect(),
        given_as,
        given_weight: draft.weight,
        given_cost: draft.cost.clone().map(|cost| cost.later(shift)),
    };
    Arrival::new(flow, jobs, phases)
}
