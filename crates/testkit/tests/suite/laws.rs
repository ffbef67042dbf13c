//! Laws that hold for every instance, checked on random ones.

use crate::arb::arb_draft;
use proptest::prelude::*;
use slackline::{PolicySpec, Registry};
use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, FlowDraft, TasksDraft};
use slackline_model::{Combine, Instance, Metric, Schedule, Span};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances::{generic, job};

fn run(draft: &Draft, policy: &PolicySpec, setup: &Setup) -> Schedule {
    let instance = Instance::new(draft).unwrap().cut(Span(5_000_000));
    harness::simulate(&instance, policy.build(instance.cluster(), &instance.objective()).as_mut(), setup)
}

/// The strongest of the bounds that are solved exactly. The others cut time into slots, and the cuts move
/// with the instance, so they are valid but obey no law.
fn bound(draft: &Draft) -> f64 {
    const CUT: [&str; 4] = ["flow-tails", "levels", "mean-busy", "pb-convex"];
    let bounds = slackline_relax::bounds(&Instance::new(draft).unwrap());
    let exact = bounds.iter().filter(|bound| !CUT.contains(&bound.name));
    exact.map(|bound| bound.value).reduce(f64::max).unwrap_or(0.0)
}

/// The draft with all names changed, in the same order.
fn renamed(mut draft: Draft) -> Draft {
    let new = |name: &str| format!("x.{name}");
    for machine in &mut draft.machines {
        machine.name = new(&machine.name);
    }
    for pool in &mut draft.pools {
        pool.id = new(&pool.id);
    }
    for flow in &mut draft.flows {
        flow.id = new(&flow.id);
        flow.pool = flow.pool.as_deref().map(new);
        for job in &mut flow.jobs {
            job.id = new(&job.id);
            job.after = job.after.iter().map(|a| new(a)).collect();
            for phase in [&mut job.map, &mut job.reduce].into_iter().flatten() {
                if let TasksDraft::Splits(splits) = &mut phase.tasks {
                    for host in splits.iter_mut().flat_map(|s| &mut s.hosts) {
                        *host = new(host);
                    }
                }
            }
        }
    }
    draft
}

/// The draft with all times `k` times as long. Speeds become powers of two and work becomes tasks, so that
/// nothing is rounded.
fn scaled(mut draft: Draft, k: f64) -> Draft {
    for machine in &mut draft.machines {
        if machine.speed == 3.0 {
            machine.speed = 4.0;
        }
    }
    for flow in &mut draft.flows {
        flow.release *= k;
        flow.deadline = flow.deadline.map(|d| d * k);
        if let Some(repeat) = &mut flow.repeat {
            repeat.every *= k;
        }
        if let Some(CostDraft::Steps(points) | CostDraft::Piecewise { points, .. }) = &mut flow.cost {
            for (t, _) in points {
                *t *= k;
            }
        }
        for phase in flow.jobs.iter_mut().flat_map(|j| [&mut j.map, &mut j.reduce]).flatten() {
            // Milliseconds over a speed of 4 are whole microseconds.
            match &mut phase.tasks {
                TasksDraft::Uniform { seconds, .. } => *seconds *= k,
                TasksDraft::Each(list) => list.iter_mut().for_each(|s| *s *= k),
                TasksDraft::Splits(splits) => splits.iter_mut().for_each(|s| s.seconds *= k),
                TasksDraft::Work { work, tasks } => {
                    phase.tasks = TasksDraft::Uniform { tasks: tasks.unwrap_or(4), seconds: *work * k };
                }
            }
        }
    }
    draft
}

fn setups() -> impl Strategy<Value = Setup> {
    (prop::sample::select(vec![1.0, 0.5, 0.0]), any::<bool>()).prop_map(|(slowstart, heartbeat)| {
        let mut setup = Setup { slowstart, ..Setup::plain() };
        // Divided by up to six machines, it is still whole microseconds.
        setup.sim.heartbeat = if heartbeat { Span(3_600_000) } else { Span::ZERO };
        setup
    })
}

fn policies() -> impl Strategy<Value = PolicySpec> {
    prop::sample::select(harness::registered(&Registry::standard()))
}

/// Policies that use no clock, deadline or duration except to order flows.
fn baselines() -> impl Strategy<Value = PolicySpec> {
    let known = harness::registered(&Registry::standard())
        .into_iter()
        .filter(|p| ["fifo", "fair", "edf"].contains(&p.name()));
    prop::sample::select(known.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_twice(draft in arb_draft(), policy in policies(), setup in setups()) {
        prop_assert_eq!(run(&draft, &policy, &setup), run(&draft, &policy, &setup));
    }

    #[test]
    fn names_do_not_matter(draft in arb_draft(), policy in policies(), setup in setups()) {
        // Hadoop's schedulers order queues that are otherwise equal by their names.
        prop_assume!(!policy.name().starts_with("yarn-"));
        prop_assert_eq!(run(&draft, &policy, &setup).tasks, run(&renamed(draft), &policy, &setup).tasks);
    }

    #[test]
    fn times_scale(draft in arb_draft(), policy in baselines(), setup in setups(), k in 2..5u32) {
        let short = run(&scaled(draft.clone(), 1.0), &policy, &setup);
        let mut slow = setup;
        slow.sim.heartbeat = Span(slow.sim.heartbeat.0 * u64::from(k));
        let long = run(&scaled(draft, f64::from(k)), &policy, &slow);
        let times = |schedule: &Schedule, k: u32| -> Vec<(u64, u64)> {
            let rows = schedule.tasks.rows().iter();
            rows.map(|row| (row.start.0 * u64::from(k), row.end.0 * u64::from(k))).collect()
        };
        prop_assert_eq!(times(&short, k), times(&long, 1));
    }

    #[test]
    fn a_flow_more_never_lowers_a_bound(draft in arb_draft()) {
        // A lateness may be negative, and then lowers a sum.
        let lateness = draft.objective.metric == Metric::Lateness && draft.objective.combine == Combine::Sum;
        prop_assume!(!lateness && draft.flows.len() > 1);
        let mut fewer = draft.clone();
        fewer.flows.pop();
        let (fewer, all) = (bound(&fewer), bound(&draft));
        prop_assert!(harness::at_most(fewer, all), "{} falls to {}", fewer, all);
    }

    #[test]
    fn a_slot_more_never_raises_a_bound(draft in arb_draft(), at in 0..3usize) {
        // A slowdown is over the time alone, which falls with every slot.
        prop_assume!(draft.objective.metric != Metric::Slowdown);
        let mut larger = draft.clone();
        let at = at % larger.machines.len();
        match &mut larger.machines[at].slots {
            Slots::Generic(n) => *n += 1,
            Slots::MapReduce { map, reduce } => {
                *map += 1;
                *reduce += 1;
            }
        }
        let (more, fewer) = (bound(&larger), bound(&draft));
        prop_assert!(harness::at_most(more, fewer), "{} rises to {}", fewer, more);
    }

    #[test]
    fn no_policy_beats_a_bound(draft in arb_draft(), policy in policies(), setup in setups()) {
        let instance = Instance::new(&draft).unwrap().cut(Span(5_000_000));
        let judged = harness::judged(&instance, policy.build(instance.cluster(), &instance.objective()).as_mut(), &setup);
        prop_assert!(judged.is_ok(), "{:?}", judged.err());
    }

    #[test]
    fn first_come_first_served_on_one_slot(
        flows in prop::collection::vec((0..20u32, 0..4u32, 0..3u32, 1..5u32), 1..7),
        policy in prop::sample::select(vec!["fifo", "fifo:by=flow"]),
    ) {
        let tasks = |n: u32, seconds: u32| TasksDraft::Uniform { tasks: n, seconds: f64::from(seconds) };
        let flow = |(k, &(release, maps, reduces, seconds)): (usize, &(u32, u32, u32, u32))| FlowDraft {
            release: f64::from(release),
            ..FlowDraft::new(format!("f{k}"), vec![job("j", &[], Some(tasks(maps + 1, seconds)), (reduces > 0).then(|| tasks(reduces, 1)))])
        };
        let draft = Draft { machines: generic(1), flows: flows.iter().enumerate().map(flow).collect(), ..Draft::default() };
        let schedule = run(&draft, &Registry::standard().parse(policy).unwrap(), &Setup::plain());
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|&k| (flows[k].0, k));
        // C_j = max(C_{j-1}, r_j) + p_j in the order of release.
        let mut end = 0;
        for k in order {
            let (release, maps, reduces, seconds) = flows[k];
            end = end.max(release) + (maps + 1) * seconds + reduces;
            prop_assert_eq!(schedule.flows[k].completion, Some(f64::from(end)));
        }
    }

    #[test]
    fn a_faster_cluster_of_one_slot_is_as_much_faster(draft in arb_draft(), policy in baselines()) {
        // One slot and no releases: list schedules on one machine keep their order at any speed.
        let mut draft = scaled(draft, 1.0);
        draft.flows.iter_mut().for_each(|f| { f.release = 0.0; f.repeat = None; });
        for phase in draft.flows.iter_mut().flat_map(|f| &mut f.jobs).flat_map(|j| [&mut j.map, &mut j.reduce]).flatten() {
            if let TasksDraft::Splits(splits) = &mut phase.tasks {
                for split in splits {
                    split.hosts.clear();
                }
            }
        }
        let at = |speed: f64| {
            let mut draft = draft.clone();
            draft.machines = generic(1);
            draft.machines[0].speed = speed;
            assert!(matches!(draft.machines[0].slots, Slots::Generic(1)));
            run(&draft, &policy, &Setup::plain())
        };
        let (slow, fast) = (at(1.0), at(2.0));
        for (slow, fast) in slow.flows.iter().zip(&fast.flows) {
            let (slow, fast) = (slow.completion.unwrap(), fast.completion.unwrap());
            // Half of an odd microsecond is rounded, once a task.
            prop_assert!((slow / 2.0 - fast).abs() < 1e-3, "{} and {}", slow, fast);
        }
    }
}
