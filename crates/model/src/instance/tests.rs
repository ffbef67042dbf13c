//! Tests the values that an instance derives from a draft, and the problems of invalid drafts, each with its
//! path.

use super::*;
use crate::cluster::Slots;
use crate::cost::{Combine, Metric};
use crate::draft::*;

fn machines(count: u32, slots: Slots) -> MachineDraft {
    MachineDraft { name: "node".into(), count, speed: 1.0, slots, rack: None }
}

fn uniform(tasks: u32, seconds: f64) -> PhaseDraft {
    TasksDraft::Uniform { tasks, seconds }.into()
}

fn job(id: &str, after: &[&str]) -> JobDraft {
    JobDraft {
        id: id.into(),
        after: after.iter().map(|&a| a.into()).collect(),
        map: Some(uniform(4, 10.0)),
        reduce: Some(uniform(2, 5.0)),
        ..JobDraft::default()
    }
}

fn draft(jobs: Vec<JobDraft>) -> Draft {
    Draft {
        machines: vec![machines(2, Slots::MapReduce { map: 2, reduce: 1 })],
        flows: vec![FlowDraft::new("f", jobs)],
        ..Draft::default()
    }
}

/// The one problem of a broken draft, as `path: what`.
fn problem(draft: &Draft) -> String {
    let invalid = Instance::new(draft).expect_err("the draft is broken");
    assert_eq!(invalid.problems.len(), 1, "{invalid}");
    invalid.to_string()
}

fn refused(change: impl FnOnce(&mut Draft), path: &str) {
    let mut draft = draft(vec![job("a", &[]), job("b", &["a"])]);
    Instance::new(&draft).expect("the draft is valid before the change");
    change(&mut draft);
    let found = problem(&draft);
    assert!(found.starts_with(&format!("{path}: ")), "{found}");
}

#[test]
fn derived_numbers_follow_the_definitions() {
    let instance = Instance::new(&draft(vec![job("b", &["a"]), job("a", &[])])).unwrap();
    let flow = &instance.flows()[FlowId(0)];
    assert_eq!(flow.work, Work(100_000_000));
    // Each job: 4 maps on 4 slots in 10 s, 2 reduces on 2 slots in 5 s.
    assert_eq!((flow.critical_path, flow.alone), (30.0, 30.0));
    assert!(instance.topological().eq([JobId(1), JobId(0)]));
    assert_eq!(instance.job(JobId(0)).after, [JobId(1)]);
    assert_eq!(instance.job(JobId(1)).before, [JobId(0)]);
    assert_eq!(instance.phase_name(PhaseId(3)), "f/a/reduce");
}

#[test]
fn areas_bound_wide_flows() {
    let jobs = (0..5).map(|k| job(&format!("j{k}"), &[])).collect();
    let instance = Instance::new(&draft(jobs)).unwrap();
    // 200 slot-seconds of maps on 4 slots.
    assert_eq!(instance.flows()[FlowId(0)].alone, 50.0);
}

#[test]
fn the_longest_task_bounds_the_time_alone() {
    let mut d = draft(vec![job("a", &[])]);
    d.machines =
        vec![MachineDraft { slots: Slots::Generic(30), count: 1, speed: 2.0, ..d.machines[0].clone() }];
    let tasks = std::iter::once(100.0).chain([1.0; 29]).collect();
    d.flows[0].jobs[0].map = Some(TasksDraft::Each(tasks).into());
    d.flows[0].jobs[0].reduce = None;
    let instance = Instance::new(&d).unwrap();
    assert_eq!(instance.flows()[FlowId(0)].alone, 50.0);
    let rule = DeadlineRule { factor: 3.0, cluster: None, grain: None };
    let unlimited = instance.clone().with_deadlines(&rule).unwrap();
    assert_eq!(unlimited.flows()[FlowId(0)].deadline.map(Time::seconds), Some(300.0));
    let own = instance.deadline_rule(3.0, None);
    let other = instance.clone().at_speed(0.5).with_deadlines(&own).unwrap();
    assert_eq!(other.flows()[FlowId(0)].deadline.map(Time::seconds), Some(150.0));
    let (flow, deadline) = instance.with_deadlines(&DeadlineRule { factor: 1e300, ..own }).unwrap_err();
    assert!(flow == "f" && deadline > 1e300, "{flow} {deadline}");
}

#[test]
fn slot_kinds_number_slots_machine_by_machine() {
    let mut d = draft(vec![job("a", &[])]);
    d.machines.push(MachineDraft {
        name: "big".into(),
        count: 1,
        speed: 4.0,
        slots: Slots::MapReduce { map: 3, reduce: 0 },
        rack: None,
    });
    let instance = Instance::new(&d).unwrap();
    let cluster = instance.cluster();
    assert_eq!((cluster.slots(SlotKind::Map), cluster.slots(SlotKind::Reduce)), (7, 2));
    assert_eq!(cluster.capacity(SlotKind::Map), 16.0);
    assert_eq!(cluster.fastest(SlotKind::Map, 4), 13.0);
    assert_eq!(cluster.machine_of(SlotKind::Map, 3), (crate::MachineId(1), 1));
    assert_eq!(cluster.machine_of(SlotKind::Reduce, 1), (crate::MachineId(1), 2));
    assert_eq!(cluster.machine_of(SlotKind::Map, 6), (crate::MachineId(2), 2));
    assert_eq!(cluster.slot_at(PhaseKind::Reduce, crate::MachineId(1), 2), Some(1));
    assert_eq!(cluster.slot_at(PhaseKind::Reduce, crate::MachineId(1), 1), None);
    assert_eq!(cluster.machine_named("node-1"), Some(crate::MachineId(1)));
    assert_eq!(cluster.machine_named("node-01"), None);
    assert_eq!(cluster.machine_named("big"), Some(crate::MachineId(2)));
    assert_eq!(cluster.speed_of(SlotKind::Map, 3), (1.0, 4));
    assert_eq!(cluster.speed_of(SlotKind::Map, 4), (4.0, 7));
}

#[test]
fn recurrences_shift_everything() {
    let mut d = draft(vec![job("a", &[])]);
    d.flows[0].deadline = Some(100.0);
    d.flows[0].release = 1.0;
    d.flows[0].repeat = Some(Repeat { every: 50.0, times: 3 });
    let instance = Instance::new(&d).unwrap();
    let last = &instance.flows()[FlowId(2)];
    assert_eq!(last.id, "f#2");
    assert_eq!((last.release.seconds(), last.deadline.unwrap().seconds()), (101.0, 200.0));
}

#[test]
fn objectives_become_cost_functions() {
    let mut d = draft(vec![job("a", &[])]);
    d.flows[0].deadline = Some(20.0);
    d.flows[0].release = 5.0;
    d.flows[0].weight = 2.0;
    let instance = Instance::new(&d).unwrap();
    let cost = |metric: Metric, weights: Weights| {
        let objective = Objective { metric, combine: Combine::Sum };
        instance.clone().with_objective(objective, weights).unwrap().cost_of(&[30.0])
    };
    let use_weights = |metric| cost(metric, Weights::Use);
    assert_eq!(use_weights(Metric::Completion), 60.0);
    assert_eq!(use_weights(Metric::Response), 50.0);
    assert_eq!(use_weights(Metric::Makespan), 30.0);
    assert_eq!(use_weights(Metric::Stretch), 1.0);
    assert_eq!(use_weights(Metric::Slowdown), 2.0 * 25.0 / 15.0);
    assert_eq!(use_weights(Metric::Tardy), 2.0);
    assert_eq!(use_weights(Metric::Tardiness), 20.0);
    assert_eq!(cost(Metric::Tardiness, Weights::Ignore), 10.0);
    let sla = Objective { metric: Metric::Sla, combine: Combine::Sum };
    let error = instance.clone().with_objective(sla, Weights::Use).unwrap_err();
    assert_eq!(error.problems[0].path, "flows[0].cost");
}

#[test]
fn malleable_work_is_cut_by_the_grain() {
    let mut d = draft(vec![job("a", &[])]);
    d.flows[0].jobs[0].map = Some(TasksDraft::Work { work: 25.0, tasks: None }.into());
    let instance = Instance::new(&d).unwrap().cut(Span::from_seconds_nearest(10.0));
    let phase = instance.phase(PhaseId(0));
    assert_eq!((phase.tasks().unwrap().count(), phase.cap, phase.work()), (3, 3, Work(25_000_000)));
}

#[test]
fn broken_drafts_are_refused_with_a_path() {
    refused(|d| d.flows[0].jobs[0].after = vec!["b".into()], "flows[0].jobs[0].after");
    refused(|d| d.flows[0].jobs[0].after = vec!["x".into()], "flows[0].jobs[0].after[0]");
    refused(|d| d.flows[0].jobs[1].id = "a".into(), "flows[0].jobs[1].id");
    refused(|d| d.flows[0].jobs[1].map = Some(uniform(0, 1.0)), "flows[0].jobs[1].map.tasks");
    refused(|d| d.flows[0].jobs[1].map = Some(uniform(1, -1.0)), "flows[0].jobs[1].map.seconds");
    refused(|d| d.flows[0].jobs[1].map = Some(uniform(1, f64::NAN)), "flows[0].jobs[1].map.seconds");
    refused(|d| d.flows[0].release = f64::INFINITY, "flows[0].release");
    refused(|d| d.flows[0].weight = -1.0, "flows[0].weight");
    refused(|d| d.flows[0].jobs.clear(), "flows[0].jobs");
    refused(|d| d.flows[0].pool = Some("x".into()), "flows[0].pool");
    refused(|d| d.flows.push(d.flows[0].clone()), "flows[1].id");
    refused(|d| d.flows[0].id = " f".into(), "flows[0].id");
    refused(|d| d.machines[0].count = 0, "cluster.machines[0].count");
    refused(|d| d.machines[0].speed = 0.0, "cluster.machines[0].speed");
    refused(|d| d.machines[0].slots = Slots::MapReduce { map: 0, reduce: 0 }, "cluster.machines[0].slots");
    refused(|d| d.machines.push(machines(1, Slots::Generic(2))), "cluster.machines[1].slots");
    refused(|d| d.machines.clear(), "cluster.machines");
    refused(
        |d| {
            d.machines.push(d.machines[0].clone());
            d.machines[1].name = "node-1".into();
            d.machines[1].count = 1;
        },
        "cluster.machines[1].name",
    );
    refused(
        |d| {
            let job = &mut d.flows[0].jobs[0];
            job.min_slots.map = Some(3);
            job.max_slots.map = Some(2);
        },
        "flows[0].jobs[0].min_slots",
    );
    refused(
        |d| d.flows[0].cost = Some(CostDraft::Steps(vec![(1.0, 5.0), (2.0, 3.0)])),
        "flows[0].cost.steps[1][1]",
    );
    refused(
        |d| {
            let job = &mut d.flows[0].jobs[0];
            job.map = None;
            job.reduce = None;
        },
        "flows[0].jobs[0]",
    );
}

#[test]
fn a_phase_that_no_machine_can_run_is_refused() {
    let mut d = draft(vec![job("a", &[])]);
    d.machines[0].slots = Slots::MapReduce { map: 2, reduce: 0 };
    assert!(problem(&d).starts_with("flows[0].jobs[0].reduce: "));
}

#[test]
fn a_cycle_is_spelt_out() {
    let d = draft(vec![job("a", &["c"]), job("b", &["a"]), job("c", &["b"])]);
    assert_eq!(problem(&d), "flows[0].jobs[0].after: found a dependency cycle: a -> b -> c -> a");
}

#[test]
fn names_that_do_not_show_are_refused() {
    for name in ["a\u{2028}b", "a\u{200b}b", "\u{feff}a", "\u{202e}abc", "\u{e0001}", "\u{378}", "a\u{e000}"]
    {
        refused(|d| d.flows[0].id = name.into(), "flows[0].id");
        refused(|d| d.flows[0].jobs[1].id = name.into(), "flows[0].jobs[1].id");
        refused(|d| d.machines[0].name = name.into(), "cluster.machines[0].name");
    }
    let mut d = draft(vec![job("Übergröße", &[]), job("夜間 バッチ", &[]), job("a\u{308} 🐘", &[])]);
    d.flows[0].id = "ночной #1".into();
    Instance::new(&d).expect("letters, marks, symbols and inner spaces show");
}

#[test]
fn work_that_microseconds_cannot_hold_is_refused() {
    for (tasks, seconds) in [(1_000_000, 4e-7), (1_000_000, 6e-7), (3, 1.5e-6)] {
        refused(|d| d.flows[0].jobs[0].map = Some(uniform(tasks, seconds)), "flows[0].jobs[0].map");
    }
    let each = |list: Vec<f64>| Some(PhaseDraft::from(TasksDraft::Each(list)));
    refused(|d| d.flows[0].jobs[0].map = each(vec![1e-7; 5]), "flows[0].jobs[0].map");
    // A list of ten seconds loses a tenth of a microsecond, and a list without work stays as it is.
    for list in [vec![10.0, 1e-7], vec![0.0, 0.0], vec![1e-6, 2e-6]] {
        let mut d = draft(vec![job("a", &[])]);
        d.flows[0].jobs[0].map = each(list);
        Instance::new(&d).expect("rounding changes less than 0.1 %");
    }
}

#[test]
fn an_infinite_number_is_named_once_and_where_it_stands() {
    refused(|d| d.flows[0].jobs[0].map = Some(uniform(1, f64::INFINITY)), "flows[0].jobs[0].map.seconds");
    let infinite = PhaseDraft::from(TasksDraft::Work { work: f64::INFINITY, tasks: None });
    refused(|d| d.flows[0].jobs[0].map = Some(infinite.clone()), "flows[0].jobs[0].map.work");
}

/// A regression from damaged inputs: infinite costs differ from each other.
#[test]
fn weights_and_costs_whose_products_overflow_are_refused() {
    refused(|d| d.flows[0].weight = 1e308, "flows[0].weight");
    let steps = CostDraft::Steps(vec![(1.0, 1.0), (2.0, 1e101)]);
    refused(|d| d.flows[0].cost = Some(steps.clone()), "flows[0].cost.steps[1][1]");
    let mut d = draft(vec![job("a", &[])]);
    (d.flows[0].weight, d.flows[0].jobs[0].map) = (1e100, Some(uniform(1, 1e10)));
    d.flows[0].cost = Some(CostDraft::Piecewise { points: vec![(0.0, 1e100)], slope: Some(1e100) });
    let instance = Instance::new(&d).unwrap();
    assert!(instance.cost_of(&[9e10]).is_finite());
}

#[test]
fn too_much_work_is_refused_before_it_is_added_up() {
    let mut d = draft(vec![job("a", &[])]);
    d.flows[0].jobs[0].map = Some(uniform(2_000_000_000, 9e10));
    assert!(problem(&d).starts_with("flows[0]: found more than"));
    let mut d = draft(vec![job("a", &[])]);
    d.flows[0].jobs[0].map = Some(uniform(10, 1e9));
    d.flows[0].repeat = Some(Repeat { every: 1.0, times: 5_000_000 });
    assert!(problem(&d).starts_with("flows[0]: found more than"));
}
