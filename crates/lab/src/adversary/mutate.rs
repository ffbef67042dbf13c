//! Small workloads: random ones, random changes, and removed parts.

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::random::{ChaCha8Rng, chance, integer};
use slackline_model::{Metric, Objective};

/// Most tasks of a workload: beyond it, exhaustive search takes long.
pub(super) const TASKS: u32 = 8;
/// Most flows, and jobs of a flow.
const FLOWS: usize = 4;
const JOBS: usize = 3;
/// Most tasks of a phase, and seconds of a task.
const TASKS_OF_PHASE: u64 = 4;
const SECONDS: u64 = 6;
/// Most steps or points of a cost, seconds between two of them, and what each adds.
const STEPS: u64 = 3;
const BETWEEN: u64 = 6;
const RISE: u64 = 9;

/// A random workload: two flows of a job each.
pub(super) fn drawn(objective: Objective, rng: &mut ChaCha8Rng) -> Draft {
    let flows = (0..2).map(|k| flow(k, objective.metric, rng)).collect();
    let mut draft = Draft { objective, flows, ..Draft::default() };
    draft.machines = machines(rng);
    draft
}

/// Tasks of a workload.
pub(super) fn tasks(draft: &Draft) -> u32 {
    let jobs = draft.flows.iter().flat_map(|flow| &flow.jobs);
    jobs.flat_map(|job| [&job.map, &job.reduce]).flatten().map(|phase| uniform(phase).0).sum()
}

pub(super) fn change(draft: &mut Draft, rng: &mut ChaCha8Rng) {
    let f = below(draft.flows.len(), rng);
    match integer(rng, 0, 11) {
        0..=2 => {
            change_phase(&mut draft.flows[f], rng, |(tasks, _), rng| {
                (tasks, integer(rng, 1, SECONDS) as f64)
            });
        }
        3..=4 => change_phase(&mut draft.flows[f], rng, |(_, seconds), rng| {
            (integer(rng, 1, TASKS_OF_PHASE) as u32, seconds)
        }),
        5 => toggle_reduce(&mut draft.flows[f], rng),
        6 => change_jobs(&mut draft.flows[f], rng),
        7 => toggle_after(&mut draft.flows[f], rng),
        8 => change_flows(draft, f, rng),
        9 => {
            let flow = &mut draft.flows[f];
            let span = flow.deadline.map_or(1.0, |deadline| deadline - flow.release);
            let release = integer(rng, 0, 6) as f64;
            flow.cost = flow.cost.take().map(|cost| cost.later(release - flow.release));
            flow.release = release;
            flow.deadline = Some(flow.release + span);
        }
        10 => {
            let flow = &mut draft.flows[f];
            flow.deadline = Some(flow.release + integer(rng, 1, 12) as f64);
            flow.weight = integer(rng, 1, 4) as f64;
            flow.cost = cost(draft.objective.metric, flow.release, rng);
        }
        _ => draft.machines = machines(rng),
    }
}

/// The workload with one part removed: a flow, a job, a reduce, a task, a weight, a release, a step of a
/// cost.
pub(super) fn parts(draft: &Draft) -> Vec<Draft> {
    let mut parts = Vec::new();
    let mut part = |less: &dyn Fn(&mut Draft)| {
        let mut smaller = draft.clone();
        less(&mut smaller);
        parts.push(smaller);
    };
    for (f, flow) in draft.flows.iter().enumerate() {
        if draft.flows.len() > 1 {
            part(&|draft| drop(draft.flows.remove(f)));
        }
        for (j, job) in flow.jobs.iter().enumerate() {
            if flow.jobs.len() > 1 {
                part(&|draft| remove_job(&mut draft.flows[f], j));
            }
            if job.reduce.is_some() {
                part(&|draft| draft.flows[f].jobs[j].reduce = None);
            }
            if !job.after.is_empty() {
                part(&|draft| draft.flows[f].jobs[j].after.clear());
            }
            for is_map in [true, false] {
                let phase = if is_map { &job.map } else { &job.reduce };
                let Some((tasks @ 2.., seconds)) = phase.as_ref().map(uniform) else { continue };
                part(&|draft| {
                    let job = &mut draft.flows[f].jobs[j];
                    let phase = if is_map { &mut job.map } else { &mut job.reduce };
                    *phase = Some(phase_of(tasks - 1, seconds));
                });
            }
        }
        if flow.weight != 1.0 {
            part(&|draft| draft.flows[f].weight = 1.0);
        }
        if flow.release > 0.0 {
            part(&|draft| {
                let flow = &mut draft.flows[f];
                flow.deadline = flow.deadline.map(|deadline| deadline - flow.release);
                flow.cost = flow.cost.take().map(|cost| cost.later(-flow.release));
                flow.release = 0.0;
            });
        }
        for k in 0..flow.cost.as_ref().map_or(0, steps) {
            part(&|draft| draft.flows[f].cost.iter_mut().for_each(|cost| remove_step(cost, k)));
        }
    }
    parts
}

fn below(n: usize, rng: &mut ChaCha8Rng) -> usize {
    integer(rng, 0, n as u64 - 1) as usize
}

fn machines(rng: &mut ChaCha8Rng) -> Vec<MachineDraft> {
    let slots = if chance(rng, 0.5) {
        Slots::Generic(integer(rng, 1, 4) as u32)
    } else {
        Slots::MapReduce { map: integer(rng, 1, 2) as u32, reduce: integer(rng, 1, 2) as u32 }
    };
    vec![MachineDraft { name: "m".to_owned(), count: 1, speed: 1.0, slots, rack: None }]
}

fn flow(k: usize, metric: Metric, rng: &mut ChaCha8Rng) -> FlowDraft {
    let release = integer(rng, 0, 3) as f64;
    let deadline = Some(release + integer(rng, 1, 12) as f64);
    let cost = cost(metric, release, rng);
    FlowDraft { release, deadline, cost, ..FlowDraft::new(format!("f{k}"), vec![job(0, rng)]) }
}

/// A random cost of a flow, which never falls, if the metric does not define it; otherwise nothing is drawn.
fn cost(metric: Metric, release: f64, rng: &mut ChaCha8Rng) -> Option<CostDraft> {
    match metric {
        Metric::Sla => Some(CostDraft::Steps(rising(release, rng))),
        Metric::Piecewise => {
            let points = [vec![(release, 0.0)], rising(release, rng)].concat();
            Some(CostDraft::Piecewise { points, slope: Some(integer(rng, 0, 2) as f64) })
        }
        _ => None,
    }
}

/// Whole seconds after the release, and a cost that is larger at each.
fn rising(release: f64, rng: &mut ChaCha8Rng) -> Vec<(f64, f64)> {
    let (mut at, mut level) = (release, 0.0);
    let n = integer(rng, 1, STEPS);
    let next = |_| {
        at += integer(rng, 1, BETWEEN) as f64;
        level += integer(rng, 1, RISE) as f64;
        (at, level)
    };
    (0..n).map(next).collect()
}

/// The number of steps or points of a cost that could be removed: all of them if at least one remains.
fn steps(cost: &CostDraft) -> usize {
    match cost {
        CostDraft::Steps(points) | CostDraft::Piecewise { points, .. } if points.len() > 1 => points.len(),
        _ => 0,
    }
}

fn remove_step(cost: &mut CostDraft, k: usize) {
    if let CostDraft::Steps(points) | CostDraft::Piecewise { points, .. } = cost {
        points.remove(k);
    }
}

fn job(k: usize, rng: &mut ChaCha8Rng) -> JobDraft {
    JobDraft { id: format!("j{k}"), map: Some(phase(rng)), ..JobDraft::default() }
}

fn phase(rng: &mut ChaCha8Rng) -> PhaseDraft {
    phase_of(integer(rng, 1, TASKS_OF_PHASE) as u32, integer(rng, 1, SECONDS) as f64)
}

fn phase_of(tasks: u32, seconds: f64) -> PhaseDraft {
    TasksDraft::Uniform { tasks, seconds }.into()
}

/// Tasks and seconds of a phase made here.
fn uniform(phase: &PhaseDraft) -> (u32, f64) {
    match phase.tasks {
        TasksDraft::Uniform { tasks, seconds } => (tasks, seconds),
        _ => (0, 0.0),
    }
}

fn change_phase(
    flow: &mut FlowDraft,
    rng: &mut ChaCha8Rng,
    other: impl Fn((u32, f64), &mut ChaCha8Rng) -> (u32, f64),
) {
    let j = below(flow.jobs.len(), rng);
    let job = &mut flow.jobs[j];
    let of_map = job.reduce.is_none() || chance(rng, 0.5);
    if let Some(phase) = if of_map { &mut job.map } else { &mut job.reduce } {
        let (tasks, seconds) = other(uniform(phase), rng);
        *phase = phase_of(tasks, seconds);
    }
}

fn toggle_reduce(flow: &mut FlowDraft, rng: &mut ChaCha8Rng) {
    let j = below(flow.jobs.len(), rng);
    let reduce = &mut flow.jobs[j].reduce;
    *reduce = if reduce.is_some() { None } else { Some(phase(rng)) };
}

fn change_jobs(flow: &mut FlowDraft, rng: &mut ChaCha8Rng) {
    let n = flow.jobs.len();
    if n == JOBS || n > 1 && chance(rng, 0.5) {
        remove_job(flow, below(n, rng));
    } else {
        let name = (0..=n).find(|k| flow.jobs.iter().all(|job| job.id != format!("j{k}"))).unwrap_or(n);
        let before = flow.jobs[below(n, rng)].id.clone();
        flow.jobs.push(JobDraft { after: vec![before], ..job(name, rng) });
    }
}

fn remove_job(flow: &mut FlowDraft, j: usize) {
    let gone = flow.jobs.remove(j).id;
    flow.jobs.iter_mut().for_each(|job| job.after.retain(|before| *before != gone));
}

/// A job starts or stops waiting for a job before it in the document.
fn toggle_after(flow: &mut FlowDraft, rng: &mut ChaCha8Rng) {
    let j = below(flow.jobs.len(), rng);
    if j == 0 {
        return;
    }
    let before = flow.jobs[below(j, rng)].id.clone();
    let after = &mut flow.jobs[j].after;
    match after.iter().position(|known| *known == before) {
        Some(at) => drop(after.remove(at)),
        None => after.push(before),
    }
}

fn change_flows(draft: &mut Draft, f: usize, rng: &mut ChaCha8Rng) {
    let n = draft.flows.len();
    if n == FLOWS || n > 1 && chance(rng, 0.5) {
        draft.flows.remove(f);
    } else {
        let name = (0..=n).find(|k| draft.flows.iter().all(|flow| flow.id != format!("f{k}"))).unwrap_or(n);
        draft.flows.push(flow(name, draft.objective.metric, rng));
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::random::rng;
    use slackline_model::{Combine, Instance, Seed};

    use super::*;

    #[test]
    fn flows_have_costs_where_the_metric_needs_them_and_every_mutation_is_a_workload() {
        for metric in &Metric::ALL {
            let needs = matches!(metric, Metric::Sla | Metric::Piecewise);
            let rng = &mut rng(Seed(1), "mutate", 0);
            let mut draft = drawn(Objective::new(*metric, Combine::Sum), rng);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..300 {
                for draft in parts(&draft).iter().chain([&draft]) {
                    Instance::new(draft).unwrap_or_else(|error| panic!("{error}\n{draft:#?}"));
                    assert!(draft.flows.iter().all(|flow| flow.cost.is_some() == needs), "{draft:#?}");
                }
                seen.extend(draft.flows.iter().filter_map(|flow| flow.cost.as_ref()).map(steps));
                change(&mut draft, rng);
            }
            assert_eq!(seen.len() > 2, needs, "{metric}: {seen:?}");
        }
    }

    #[test]
    fn a_cost_comes_later_with_its_flow() {
        let cost = Some(CostDraft::Steps(vec![(5.0, 1.0), (9.0, 4.0)]));
        let flow = FlowDraft {
            release: 3.0,
            cost,
            ..FlowDraft::new("f", vec![job(0, &mut rng(Seed(1), "job", 0))])
        };
        let at_once = parts(&Draft { flows: vec![flow], ..Draft::default() });
        let costs: Vec<_> = at_once.into_iter().map(|mut draft| draft.flows.remove(0).cost).collect();
        for steps in [[(2.0, 1.0), (6.0, 4.0)].as_slice(), &[(9.0, 4.0)], &[(5.0, 1.0)]] {
            assert!(costs.contains(&Some(CostDraft::Steps(steps.to_vec()))), "{steps:?}: {costs:?}");
        }
    }
}
