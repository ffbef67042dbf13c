//! From draft to instance: checked first (`check`), then written out flow by flow.

use std::collections::BTreeMap;

use super::check::{cluster_of, limits, recurrences};
use super::derive::{amount, derive, resolve_costs, shifted};
use super::order::topological;
use super::{Amount, Flow, Instance, Job, Phase, Pool};
use crate::cost::{CostFn, Objective};
use crate::draft::{Draft, FlowDraft, PhaseDraft, PoolDraft};
use crate::error::Invalid;
use crate::id::{FlowId, JobId, PhaseId, PhaseKind, TiVec};
use crate::time::{Time, Work};

pub(super) fn build(draft: &Draft) -> Result<Instance, Invalid> {
    let mut instance = Instance {
        start: draft.start.clone(),
        cluster: cluster_of(draft)?,
        objective: Objective::new(draft.objective.metric, draft.objective.combine),
        weights: draft.weights,
        flows: TiVec::new(),
        jobs: TiVec::new(),
        phases: TiVec::new(),
        pools: draft.pools.iter().map(pool).collect(),
        topological: Vec::new(),
        n_cut: 0,
    };
    for (i, flow) in draft.flows.iter().enumerate() {
        for (name, shift) in recurrences(flow) {
            add_flow(&mut instance, i, flow, shift, name);
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

/// Adds the recurrence of a checked flow that comes `shift` seconds after the first.
fn add_flow(instance: &mut Instance, given_as: usize, draft: &FlowDraft, shift: f64, name: String) {
    let flow = FlowId::from(instance.flows.len());
    let base = instance.jobs.len();
    let index: BTreeMap<_, _> = draft.jobs.iter().enumerate().map(|(k, j)| (j.id.as_str(), k)).collect();
    let mut after: Vec<Vec<usize>> = Vec::with_capacity(draft.jobs.len());
    for job in &draft.jobs {
        let mut list: Vec<usize> = job.after.iter().map(|a| index[a.as_str()]).collect();
        list.sort_unstable();
        list.dedup();
        after.push(list);
    }
    for (k, job) in draft.jobs.iter().enumerate() {
        let id = JobId::from(base + k);
        let mut phase = |kind: PhaseKind, draft: &Option<PhaseDraft>| {
            let draft = draft.as_ref()?;
            let (min_slots, max_slots) = limits(job, kind);
            let amount = amount(&draft.tasks, &instance.cluster);
            let tasks = if let Amount::Tasks(tasks) = &amount { tasks.count() } else { u32::MAX };
            let cap = max_slots.unwrap_or(u32::MAX).min(tasks);
            instance.phases.push(Phase { job: id, kind, amount, min_slots, cap });
            Some(PhaseId::from(instance.phases.len() - 1))
        };
        let (map, reduce) = (phase(PhaseKind::Map, &job.map), phase(PhaseKind::Reduce, &job.reduce));
        let after = after[k].iter().map(|&a| JobId::from(base + a)).collect();
        instance.jobs.push(Job { id: job.id.clone(), flow, after, before: Vec::new(), map, reduce });
    }
    for (k, list) in after.iter().enumerate() {
        for &a in list {
            instance.jobs[JobId::from(base + a)].before.push(JobId::from(base + k));
        }
    }
    let order = topological(&after).expect("invariant: cycles were refused");
    instance.topological.extend(order.into_iter().map(|k| JobId::from(base + k)));
    instance.flows.push(Flow {
        id: name,
        release: Time::from_seconds_nearest(draft.release + shift),
        weight: draft.weight,
        deadline: draft.deadline.map(|d| Time::from_seconds_nearest(d + shift)),
        cost: CostFn::zero(),
        pool: draft.pool.as_ref().and_then(|name| instance.pools.position(|p| p.id == *name)),
        user: draft.user.clone(),
        work: Work::ZERO,
        critical_path: 0.0,
        alone: 0.0,
        jobs: base as u32..instance.jobs.len() as u32,
        given_as,
        given_weight: draft.weight,
        given_cost: draft.cost.as_ref().map(|cost| shifted(cost, shift)),
    });
    derive(instance, flow);
}
