//! Random instances with all features of workload documents, as a proptest strategy.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use slackline_model::cluster::Slots;
use slackline_model::draft::{
    CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, PoolDraft, Repeat, SplitDraft,
    TasksDraft, Weights,
};
use slackline_model::{Combine, Metric, Objective, Seed};

use slackline_testkit::instances::machines;

/// Drafts of valid instances: one to five flows of one to five jobs on up to about a dozen slots.
///
/// Each feature occurs in some of them: releases and ties among them, weights (including 0), deadlines
/// (including missed ones), costs of single flows, chains and wide DAGs, tasks without length, map-only and
/// reduce-only jobs, lists of durations, splits with hosts, work with and without tasks, caps, minima, pools,
/// map and reduce slots and generic slots, mixed speeds, recurrences.
pub(crate) fn arb_draft() -> impl Strategy<Value = Draft> {
    let objective = (prop::sample::select(&Metric::ALL), prop::bool::ANY);
    let pools = prop::collection::vec((0..3u32, 0..3u32), 0..3);
    let weights = prop_oneof![3 => Just(Weights::Use), 1 => Just(Weights::Ignore)];
    (arb_machines(), objective, pools, weights, prop::collection::vec(arb_flow(), 1..6)).prop_map(
        |(machines, (metric, sum), pools, weights, flows)| {
            let objective = Objective::new(metric, if sum { Combine::Sum } else { Combine::Max });
            let pools = pools.into_iter().enumerate().map(|(k, (map, reduce))| PoolDraft {
                id: format!("p{k}"),
                min_slots: PerPhase { map: Some(map), reduce: Some(reduce) },
            });
            assemble(Draft { start: None, machines, objective, weights, pools: pools.collect(), flows })
        },
    )
}

/// A draft of [`arb_draft`], the same for the same seed.
pub(crate) fn draft_of(seed: Seed) -> Draft {
    sample(&arb_draft(), seed)
}

/// A value of any strategy, the same for the same seed.
pub(crate) fn sample<S: Strategy>(strategy: &S, seed: Seed) -> S::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.stream("arb", 0).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).expect("invariant: nothing is filtered out").current()
}

/// Makes the parts consistent: names, hosts, pools, costs that the metric needs.
fn assemble(mut draft: Draft) -> Draft {
    let names: Vec<String> = (draft.machines.iter())
        .flat_map(|m| {
            (0..m.count).map(move |k| if m.count == 1 { m.name.clone() } else { format!("{}-{k}", m.name) })
        })
        .collect();
    let needs = matches!(draft.objective.metric, Metric::Sla | Metric::Piecewise);
    let n_pools = draft.pools.len();
    for (k, flow) in draft.flows.iter_mut().enumerate() {
        flow.id = format!("f{k}");
        // The strategy drew a number; only existing pools can be named.
        flow.pool = flow
            .pool
            .take()
            .and_then(|p| p.parse().ok())
            .filter(|&p: &usize| p < n_pools)
            .map(|p| format!("p{p}"));
        if needs && !matches!(flow.cost, Some(CostDraft::Steps(_) | CostDraft::Piecewise { .. })) {
            flow.cost = Some(CostDraft::Steps(vec![(5.0, 1.0), (20.0, 4.0)]));
        }
        for job in &mut flow.jobs {
            for phase in [&mut job.map, &mut job.reduce].into_iter().flatten() {
                if let TasksDraft::Splits(splits) = &mut phase.tasks {
                    for host in splits.iter_mut().flat_map(|split| &mut split.hosts) {
                        let at: usize = host.parse().unwrap_or(0);
                        host.clone_from(&names[at % names.len()]);
                    }
                }
            }
        }
    }
    draft
}

fn arb_machines() -> impl Strategy<Value = Vec<MachineDraft>> {
    let speeds = prop_oneof![2 => Just(vec![1.0, 1.0, 1.0]), 1 => Just(vec![2.0, 1.0, 0.5]), 1 => Just(vec![3.0, 3.0, 3.0])];
    let groups = prop::collection::vec((1..3u32, 1..3u32, 0..3u32), 1..4);
    (prop::bool::ANY, speeds, groups).prop_map(|(map_reduce, speeds, groups)| {
        let group = |(k, (count, a, b)): (usize, (u32, u32, u32))| {
            let slots = match (map_reduce, k) {
                // The first group has slots of both kinds, so that every phase can run somewhere.
                (true, 0) => Slots::MapReduce { map: a, reduce: b.max(1) },
                (true, _) => Slots::MapReduce { map: a, reduce: b },
                (false, _) => Slots::Generic(a + b / 2),
            };
            let rack = (k != 1).then(|| "r".to_owned());
            MachineDraft { rack, ..machines(&format!("m{k}"), count, speeds[k], slots) }
        };
        groups.into_iter().enumerate().map(group).collect()
    })
}

fn arb_seconds() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(0.0),
        6 => prop::sample::select(vec![1.0, 2.0, 3.0, 10.0]),
        3 => (1..8000u32).prop_map(|ms| f64::from(ms) / 1000.0),
    ]
}

fn arb_tasks() -> impl Strategy<Value = TasksDraft> {
    let host = (0..6usize).prop_map(|k| k.to_string());
    let split = (1..4u32, arb_seconds(), prop::collection::vec(host, 0..3))
        .prop_map(|(count, seconds, hosts)| SplitDraft { count, seconds, hosts });
    prop_oneof![
        5 => (1..9u32, arb_seconds()).prop_map(|(tasks, seconds)| TasksDraft::Uniform { tasks, seconds }),
        2 => prop::collection::vec(arb_seconds(), 1..6).prop_map(TasksDraft::Each),
        1 => prop::collection::vec(split, 1..4).prop_map(TasksDraft::Splits),
        1 => (0..40u32, 1..6u32)
            .prop_map(|(work, n)| TasksDraft::Work { work: f64::from(work), tasks: Some(n) }),
        1 => (0..40u32).prop_map(|work| TasksDraft::Work { work: f64::from(work), tasks: None }),
    ]
}

fn arb_phase() -> impl Strategy<Value = PhaseDraft> {
    let limits = prop_oneof![
        3 => Just((None, None)),
        1 => (1..4u32).prop_map(|max| (None, Some(max))),
        1 => (1..4u32).prop_map(|min| (Some(min), None)),
        1 => (1..3u32, 0..3u32).prop_map(|(min, more)| (Some(min), Some(min + more))),
    ];
    (arb_tasks(), limits).prop_map(|(tasks, (min_slots, max_slots))| PhaseDraft {
        tasks,
        min_slots,
        max_slots,
        unknown: false,
    })
}

/// How the jobs of a flow follow each other.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Chain,
    Wide,
    Apart,
    Random(u32),
}

fn arb_jobs() -> impl Strategy<Value = Vec<JobDraft>> {
    let phases = prop_oneof![
        3 => (arb_phase(), arb_phase()).prop_map(|(map, reduce)| (Some(map), Some(reduce))),
        1 => arb_phase().prop_map(|map| (Some(map), None)),
        1 => arb_phase().prop_map(|reduce| (None, Some(reduce))),
    ];
    let shape = prop_oneof![
        Just(Shape::Chain),
        Just(Shape::Wide),
        Just(Shape::Apart),
        (0..1u32 << 10).prop_map(Shape::Random),
    ];
    (prop::collection::vec(phases, 1..6), shape).prop_map(|(phases, shape)| {
        let after = |k: usize| -> Vec<String> {
            let is_after = |a: usize| match shape {
                Shape::Chain => a + 1 == k,
                Shape::Wide => a == 0 && k > 0,
                Shape::Apart => false,
                Shape::Random(bits) => bits >> (k * (k.max(1) - 1) / 2 + a) & 1 == 1,
            };
            (0..k).filter(|&a| is_after(a)).map(|a| format!("j{a}")).collect()
        };
        let job = |(k, (map, reduce))| JobDraft {
            id: format!("j{k}"),
            after: after(k),
            map,
            reduce,
            ..JobDraft::default()
        };
        phases.into_iter().enumerate().map(job).collect()
    })
}

fn arb_flow() -> impl Strategy<Value = FlowDraft> {
    let release = prop_oneof![2 => Just(0.0), 2 => Just(5.0), 3 => (0..20_000u32).prop_map(|ms| f64::from(ms) / 1000.0)];
    let weight = prop_oneof![4 => Just(1.0), 2 => Just(2.5), 1 => Just(0.0)];
    // Seconds after the release; a negative deadline is missed from the start.
    let slack =
        prop::option::of(prop_oneof![1 => Just(-1.0), 1 => Just(0.0), 4 => (1..60u32).prop_map(f64::from)]);
    let cost = prop_oneof![
        6 => Just(None),
        1 => Just(Some(CostDraft::Steps(vec![(3.0, 1.0), (3.0, 2.0), (30.0, 7.5)]))),
        1 => Just(Some(CostDraft::Piecewise { points: vec![(1.0, 0.0), (9.0, 4.0)], slope: None })),
        1 => Just(Some(CostDraft::Metric(Metric::Tardiness))),
    ];
    let pool = prop::option::of((0..2usize).prop_map(|k| k.to_string()));
    let repeat = prop_oneof![5 => Just(None), 1 => (0..9u32, 1..4u32).prop_map(|(every, times)| Some(Repeat { every: f64::from(every), times }))];
    (release, weight, slack, cost, pool, repeat, arb_jobs()).prop_map(
        |(release, weight, slack, cost, pool, repeat, jobs)| FlowDraft {
            release,
            weight,
            deadline: slack.map(|s: f64| (release + s).max(0.0)),
            cost,
            pool,
            repeat,
            ..FlowDraft::new("f", jobs)
        },
    )
}

mod tests {
    use std::collections::BTreeSet;

    use slackline_model::Instance;

    use super::*;

    /// The features of a draft.
    fn features(draft: &Draft) -> BTreeSet<&'static str> {
        let mut has = BTreeSet::new();
        let mut note = |name, there: bool| {
            if there {
                has.insert(name);
            }
        };
        let flows = &draft.flows;
        note("several flows", flows.len() > 1);
        note("releases", flows.iter().any(|f| f.release > 0.0));
        let same = |f: &FlowDraft| flows.iter().filter(|g| g.release == f.release).count() > 1;
        note("ties", flows.iter().any(same));
        note("weights", flows.iter().any(|f| f.weight != 1.0));
        note("weight 0", flows.iter().any(|f| f.weight == 0.0));
        note("deadlines", flows.iter().any(|f| f.deadline.is_some_and(|d| d > f.release)));
        note("missed deadlines", flows.iter().any(|f| f.deadline.is_some_and(|d| d < f.release)));
        note("own costs", flows.iter().any(|f| f.cost.is_some()));
        note("recurrences", flows.iter().any(|f| f.repeat.is_some_and(|r| r.times > 1)));
        note("pools", flows.iter().any(|f| f.pool.is_some()));
        let map_reduce = matches!(draft.machines[0].slots, Slots::MapReduce { .. });
        note(if map_reduce { "map and reduce slots" } else { "generic slots" }, true);
        note("mixed speeds", draft.machines.iter().any(|m| m.speed != draft.machines[0].speed));
        for flow in flows {
            let n = flow.jobs.len();
            let before = |id: &String| flow.jobs.iter().filter(|j| j.after.contains(id)).count();
            note("wide DAGs", flow.jobs.iter().any(|j| before(&j.id) >= 3));
            note("chains", n >= 3 && (1..n).all(|k| flow.jobs[k].after == [format!("j{}", k - 1)]));
            for job in &flow.jobs {
                note("map-only jobs", job.reduce.is_none());
                note("reduce-only jobs", job.map.is_none());
                for phase in [&job.map, &job.reduce].into_iter().flatten() {
                    note("minima", phase.min_slots.is_some());
                    note("caps", phase.max_slots.is_some());
                    match &phase.tasks {
                        TasksDraft::Uniform { seconds, .. } => note("tasks of no length", *seconds == 0.0),
                        TasksDraft::Each(list) => note("lists", list.len() > 1),
                        TasksDraft::Splits(list) => note("hosts", list.iter().any(|s| s.hosts.len() > 1)),
                        TasksDraft::Work { tasks: Some(_), .. } => note("work with tasks", true),
                        TasksDraft::Work { tasks: None, .. } => note("work only", true),
                    }
                }
            }
        }
        has
    }

    #[test]
    fn drafts_are_valid_and_have_everything() {
        let mut seen = BTreeSet::new();
        let mut metrics = BTreeSet::new();
        for seed in 0..300 {
            let draft = draft_of(Seed(seed));
            if let Err(e) = Instance::new(&draft) {
                panic!("seed {seed}: {e}");
            }
            seen.extend(features(&draft));
            metrics.insert(draft.objective.metric);
        }
        assert_eq!(metrics.len(), Metric::ALL.len());
        let expected = [
            "caps",
            "chains",
            "deadlines",
            "generic slots",
            "hosts",
            "lists",
            "map and reduce slots",
            "map-only jobs",
            "minima",
            "missed deadlines",
            "mixed speeds",
            "own costs",
            "pools",
            "recurrences",
            "reduce-only jobs",
            "releases",
            "several flows",
            "tasks of no length",
            "ties",
            "weight 0",
            "weights",
            "wide DAGs",
            "work only",
            "work with tasks",
        ];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }

    /// The seed of all property tests is fixed in `.cargo/config.toml`.
    #[test]
    fn property_tests_draw_the_same_every_time() {
        let draw = || arb_draft().new_tree(&mut TestRunner::new(Config::default())).unwrap().current();
        assert_eq!(draw(), draw());
    }

    #[test]
    fn a_seed_is_a_draft() {
        assert_eq!(draft_of(Seed(7)), draft_of(Seed(7)));
        assert_ne!(draft_of(Seed(7)), draft_of(Seed(8)));
    }
}
