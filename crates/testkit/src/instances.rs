//! All small instances: 1 to 3 tasks of 1 or 2 s per phase, every DAG on up to 4 jobs, up to 3 slots.
//!
//! One and two jobs are enumerated with every combination of phases; three and four jobs with every DAG,
//! every cluster and a sample of phases drawn from the index of the instance. A DAG with several components
//! becomes several flows, with releases, weights and deadlines. The objective changes from one instance to
//! the next, so that every metric meets every shape.

use std::convert::Infallible;

use slackline::parallel;
use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::random::test_seeds;
use slackline_model::{Combine, Metric, Objective, Seed};

/// One machine group: `count` machines of `slots` each.
pub fn machines(name: &str, count: u32, speed: f64, slots: Slots) -> MachineDraft {
    MachineDraft { name: name.to_owned(), count, speed, slots, rack: None }
}

/// A machine with `n` generic slots.
pub fn generic(n: u32) -> Vec<MachineDraft> {
    vec![machines("m", 1, 1.0, Slots::Generic(n))]
}

/// A job from its phases.
pub fn job(id: &str, after: &[&str], map: Option<TasksDraft>, reduce: Option<TasksDraft>) -> JobDraft {
    JobDraft {
        id: id.to_owned(),
        after: after.iter().map(|&a| a.to_owned()).collect(),
        map: map.map(Into::into),
        reduce: reduce.map(Into::into),
        ..JobDraft::default()
    }
}

/// The clusters: up to 3 slots, on one machine or on several, generic slots or map and reduce slots.
fn clusters() -> Vec<Vec<MachineDraft>> {
    let map_reduce = |map, reduce| vec![machines("m", 1, 1.0, Slots::MapReduce { map, reduce })];
    vec![
        generic(1),
        vec![machines("m", 2, 1.0, Slots::Generic(1))],
        generic(3),
        map_reduce(1, 1),
        map_reduce(2, 1),
        map_reduce(1, 2),
    ]
}

/// 1 to 3 equal tasks of 1 or 2 s, or no phase at all.
fn uniform_phases() -> Vec<Option<TasksDraft>> {
    let all = (1..=3).flat_map(|tasks| [1.0, 2.0].map(|seconds| TasksDraft::Uniform { tasks, seconds }));
    std::iter::once(None).chain(all.map(Some)).collect()
}

/// 1 to 3 tasks of 1 or 2 s each in any order, or no phase at all.
fn all_phases() -> Vec<Option<TasksDraft>> {
    let lists = (1..=3).flat_map(|n: u32| {
        (0..1u32 << n)
            .map(move |bits| TasksDraft::Each((0..n).map(|k| 1.0 + f64::from(bits >> k & 1)).collect()))
    });
    std::iter::once(None).chain(lists.map(Some)).collect()
}

type Phases = (Option<TasksDraft>, Option<TasksDraft>);

/// Every job with at least one of these phases.
fn jobs_of(phases: &[Option<TasksDraft>]) -> Vec<Phases> {
    let pairs = phases.iter().flat_map(|map| phases.iter().map(move |reduce| (map.clone(), reduce.clone())));
    pairs.filter(|(map, reduce)| map.is_some() || reduce.is_some()).collect()
}

/// Every DAG of `n` jobs in which no job comes after a later one: bit by bit over the pairs. These
/// are all DAGs up to the names of the jobs.
pub fn dags(n: usize) -> impl Iterator<Item = Vec<Vec<usize>>> {
    (0..1u32 << (n * (n - 1) / 2)).map(move |bits| {
        let mut bit = 0;
        let mut after = vec![Vec::new(); n];
        for (later, list) in after.iter_mut().enumerate() {
            for earlier in 0..later {
                if bits >> bit & 1 == 1 {
                    list.push(earlier);
                }
                bit += 1;
            }
        }
        after
    })
}

/// All instances of one job: every list of durations.
pub fn one_job() -> impl Iterator<Item = Draft> {
    let jobs = jobs_of(&all_phases());
    let all = clusters()
        .into_iter()
        .flat_map(move |cluster| jobs.clone().into_iter().map(move |phases| (cluster.clone(), phases)));
    all.enumerate().map(|(k, (cluster, phases))| build(k as u64, cluster, &[vec![]], &[phases]))
}

/// All instances of two jobs with equal tasks in each phase.
pub fn two_jobs() -> impl Iterator<Item = Draft> {
    let jobs = jobs_of(&uniform_phases());
    let n = jobs.len();
    let all = clusters().into_iter().flat_map(move |cluster| {
        let jobs = jobs.clone();
        dags(2).flat_map(move |dag| {
            let (jobs, cluster) = (jobs.clone(), cluster.clone());
            (0..n * n)
                .map(move |k| (cluster.clone(), dag.clone(), vec![jobs[k / n].clone(), jobs[k % n].clone()]))
        })
    });
    all.enumerate().map(|(k, (cluster, dag, phases))| build(k as u64, cluster, &dag, &phases))
}

/// Instances of `n` jobs: every DAG on every cluster, each with `sample` draws of phases.
pub fn sampled_jobs(n: usize, sample: u64) -> impl Iterator<Item = Draft> {
    let jobs = jobs_of(&all_phases());
    let all = clusters().into_iter().flat_map(move |cluster| {
        dags(n).flat_map(move |dag| {
            let cluster = cluster.clone();
            (0..sample).map(move |_| (cluster.clone(), dag.clone()))
        })
    });
    all.enumerate().map(move |(k, (cluster, dag))| {
        let draw = |part: u64| Seed(n as u64).stream("phases", k as u64 * 8 + part) as usize % jobs.len();
        let phases: Vec<Phases> = (0..n as u64).map(|part| jobs[draw(part)].clone()).collect();
        build(k as u64, cluster, &dag, &phases)
    })
}

/// Instances of `n` jobs on machines of two speeds: every DAG, each with `sample` draws of phases, whose
/// tasks are of whole seconds on each slot.
pub fn mixed_speeds(n: usize, sample: u64) -> impl Iterator<Item = Draft> {
    let phases: Vec<Option<TasksDraft>> =
        [&[][..], &[2.0], &[4.0], &[2.0, 2.0], &[2.0, 4.0], &[4.0, 4.0], &[2.0, 6.0]]
            .map(|list| (!list.is_empty()).then(|| TasksDraft::Each(list.to_vec())))
            .into();
    let jobs = jobs_of(&phases);
    let group = |name: &str, speed: f64, slots: Slots| machines(name, 1, speed, slots);
    let map_reduce = |map: u32, reduce: u32| Slots::MapReduce { map, reduce };
    let clusters = vec![
        vec![group("fast", 2.0, Slots::Generic(1)), group("slow", 1.0, Slots::Generic(1))],
        vec![group("slow", 1.0, Slots::Generic(2)), group("fast", 2.0, Slots::Generic(1))],
        vec![group("fast", 2.0, map_reduce(1, 1)), group("slow", 1.0, map_reduce(1, 0))],
        vec![group("fast", 2.0, map_reduce(1, 0)), group("slow", 1.0, map_reduce(0, 1))],
    ];
    let all = clusters.into_iter().flat_map(move |cluster| {
        dags(n).flat_map(move |dag| {
            let cluster = cluster.clone();
            (0..sample).map(move |_| (cluster.clone(), dag.clone()))
        })
    });
    all.enumerate().map(move |(k, (cluster, dag))| {
        let draw = |part: u64| Seed(n as u64).stream("mixed", k as u64 * 8 + part) as usize % jobs.len();
        let phases: Vec<Phases> = (0..n as u64).map(|part| jobs[draw(part)].clone()).collect();
        build(k as u64, cluster, &dag, &phases)
    })
}

/// The objectives in turn.
fn objective(index: u64) -> Objective {
    let metrics = Metric::ALL.len() as u64;
    let combine = if (index / metrics).is_multiple_of(2) { Combine::Sum } else { Combine::Max };
    Objective::new(Metric::ALL[(index % metrics) as usize], combine)
}

/// One flow for each component of the DAG.
fn build(index: u64, machines: Vec<MachineDraft>, dag: &[Vec<usize>], phases: &[Phases]) -> Draft {
    let draw = |what: &str, part: usize, below: u64| Seed(index).stream(what, part as u64) % below;
    let objective = objective(draw("objective", 0, 20));
    let mut part: Vec<usize> = (0..dag.len()).collect();
    for _ in dag {
        for (later, list) in dag.iter().enumerate() {
            for &earlier in list {
                let least = part[later].min(part[earlier]);
                (part[later], part[earlier]) = (least, least);
            }
        }
    }
    let mut flows: Vec<FlowDraft> = Vec::new();
    for root in (0..dag.len()).filter(|&k| part[k] == k) {
        let members = (0..dag.len()).filter(|&k| part[k] == root);
        let jobs = members.map(|k| {
            let after: Vec<String> = dag[k].iter().map(|a| format!("j{a}")).collect();
            let after: Vec<&str> = after.iter().map(String::as_str).collect();
            let (map, reduce) = phases[k].clone();
            job(&format!("j{k}"), &after, map, reduce)
        });
        let mut flow = FlowDraft::new(format!("f{root}"), jobs.collect());
        flow.release = draw("release", root, 3) as f64;
        flow.weight = draw("weight", root, 4) as f64;
        flow.deadline = Some(draw("deadline", root, 8) as f64).filter(|&d| d > 0.0);
        flow.cost = match objective.metric {
            Metric::Sla => Some(CostDraft::Steps(vec![(2.0, 1.0), (4.0, 5.0), (7.0, 6.0)])),
            Metric::Piecewise => Some(CostDraft::Piecewise {
                points: vec![(1.0, 1.0), (4.0, 3.0), (4.0, 5.0)],
                slope: Some(2.0),
            }),
            _ => None,
        };
        flows.push(flow);
    }
    Draft { machines, objective, flows, ..Draft::default() }
}

/// The errors on each of [`test_seeds`], on all processors.
pub fn on_each_seed(usually: u64, broken: impl Fn(u64) -> Vec<String> + Sync) -> Vec<String> {
    let seeds = test_seeds(usually);
    let checked = parallel::map((seeds.end - seeds.start) as usize, parallel::processors(), |k| {
        Ok::<_, Infallible>(broken(seeds.start + k as u64))
    });
    checked.expect("invariant: what cannot fail has not").concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_should_be() {
        assert_eq!([1, 2, 3, 4].map(|n| dags(n).count()), [1, 2, 8, 64]);
        assert_eq!(one_job().count(), 6 * (15 * 15 - 1));
        assert_eq!(two_jobs().count(), 6 * 2 * 48 * 48);
        assert_eq!(sampled_jobs(4, 2).count(), 6 * 64 * 2);
    }
}
