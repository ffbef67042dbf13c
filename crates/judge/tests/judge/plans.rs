//! Allocations: capacity, caps, work, order, minima; the contract's example.

use slackline_judge::{Violation, check};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, PerPhase, PoolDraft, TasksDraft};
use slackline_model::{Draft, Instance, Schedule};

use crate::build::*;

type Row = (&'static str, f64, f64, u32);

const EXAMPLE: [Row; 4] = [
    ("b/b/map", 0.0, 10.0, 2),
    ("a/a/map", 0.0, 15.0, 2),
    ("b/b/reduce", 10.0, 15.0, 2),
    ("a/a/map", 15.0, 17.5, 4),
];

/// The example with one row replaced.
fn broken(row: usize, with: Row) -> (Instance, Schedule) {
    let mut rows = EXAMPLE;
    rows[row] = with;
    let instance = pair();
    let schedule = plan(&instance, &rows);
    (instance, schedule)
}

#[test]
fn the_example_of_the_contract() {
    let instance = pair();
    let mut schedule = plan(&instance, &EXAMPLE);
    schedule.minima = true;
    (schedule.lower_bound, schedule.gap) = (Some(40.0), Some(0.1875));
    assert_eq!((schedule.flows[0].completion, schedule.flows[0].cost), (Some(17.5), Some(17.5)));
    assert_eq!((schedule.flows[1].completion, schedule.flows[1].cost), (Some(15.0), Some(30.0)));
    let report = check(&instance, &schedule).unwrap();
    assert_eq!((report.cost, report.tasks, report.rows), (47.5, 0, 4));
    assert_eq!((report.metrics.utilisation, report.metrics.makespan), (1.0, 17.5));
}

#[test]
fn capacity_at_every_instant() {
    let (instance, schedule) = broken(1, ("a/a/map", 0.0, 10.0, 3));
    let message = refuses(&instance, &schedule, "capacity");
    assert!(message.starts_with("at 0 s: ") && message.contains("5 generic slots are in use"), "{message}");
}

#[test]
fn rows_of_one_phase_add_up_against_its_cap() {
    let mut a = flow("a", uniform(4, 10.0), None);
    a.jobs[0].max_slots = PerPhase::both(2);
    let instance = instance(two_by_two(), vec![a]);
    accepts(&instance, &plan(&instance, &[("a/a/map", 0.0, 20.0, 1), ("a/a/map", 0.0, 20.0, 1)]));
    let message =
        refuses(&instance, &plan(&instance, &[("a/a/map", 0.0, 20.0, 1), ("a/a/map", 5.0, 15.0, 2)]), "cap");
    assert_eq!(message, "at 5 s: flow a, job a, map phase holds 3 slots, expected at most 2");
    // A phase never holds more slots than it has tasks.
    let (pair, schedule) = broken(0, ("b/b/map", 0.0, 20.0 / 3.0, 3));
    refuses(&pair, &Schedule { allocations: schedule.allocations[..1].to_vec(), ..schedule.clone() }, "work");
    let rows = [("b/b/map", 0.0, 20.0 / 3.0, 3), ("b/b/reduce", 10.0, 15.0, 2), ("a/a/map", 15.0, 25.0, 4)];
    refuses(&pair, &plan(&pair, &rows), "cap");
}

#[test]
fn work_done_exactly() {
    for end in [17.4, 17.6] {
        let (instance, schedule) = broken(3, ("a/a/map", 15.0, end, 4));
        let message = refuses(&instance, &schedule, "work");
        assert!(message.starts_with("flow a, job a, map phase: found"), "{message}");
    }
    let (instance, schedule) = broken(3, ("a/a/map", 15.0, 17.5 + 9e-6, 4));
    accepts(&instance, &schedule);
}

#[test]
fn one_speed_for_all_machines() {
    let fast = MachineDraft { speed: 2.0, ..machines("fast", 1, Slots::Generic(2)) };
    let one = |list| instance(list, vec![flow("a", uniform(2, 10.0), None)]);
    let single = one(vec![fast.clone()]);
    accepts(&single, &plan(&single, &[("a/a/map", 0.0, 5.0, 2)]));
    refuses(&single, &plan(&single, &[("a/a/map", 0.0, 10.0, 2)]), "work");
    let mixed = one(vec![fast, machines("slow", 1, Slots::Generic(2))]);
    refuses(&mixed, &plan(&mixed, &[("a/a/map", 0.0, 5.0, 2)]), "speed");
}

#[test]
fn rows_that_mean_nothing() {
    for row in [("a/a/map", 17.5, 15.0, 4), ("a/a/map", 15.0, 17.5, 0), ("a/a/map", 15.0, f64::INFINITY, 4)] {
        let (instance, schedule) = broken(3, row);
        let message = refuses(&instance, &schedule, "row");
        assert!(message.starts_with("row 3 of allocations: found"), "{message}");
    }
}

#[test]
fn order_of_release_jobs_and_phases() {
    let (pair, schedule) = broken(2, ("b/b/reduce", 9.0, 14.0, 2));
    let rows = [EXAMPLE[0], ("b/b/reduce", 9.0, 14.0, 2), ("a/a/map", 14.0, 24.0, 4)];
    refuses(&pair, &plan(&pair, &rows), "map-before-reduce");
    refuses(&pair, &schedule, "capacity"); // also at 9 s, but of a lower phase
    let jobs = vec![job("x", &[], uniform(1, 4.0), uniform(1, 2.0)), job("y", &["x"], uniform(1, 3.0), None)];
    let f = FlowDraft { release: 1.0, ..FlowDraft::new("f", jobs) };
    let instance = instance(two_by_two(), vec![f]);
    let rows = |x: f64, y: f64| {
        [("f/x/map", x, x + 4.0, 1), ("f/x/reduce", 5.0, 7.0, 1), ("f/y/map", y, y + 3.0, 1)]
    };
    accepts(&instance, &plan(&instance, &rows(1.0, 7.0)));
    refuses(&instance, &plan(&instance, &rows(0.5, 7.0)), "release");
    refuses(&instance, &plan(&instance, &rows(1.0, 6.5)), "precedence");
}

#[test]
fn work_of_no_length_needs_no_row() {
    let jobs = vec![
        job("x", &[], uniform(2, 0.0), uniform(1, 0.0)),
        job("y", &["x"], uniform(1, 3.0), uniform(1, 0.0)),
    ];
    let f = FlowDraft { release: 2.0, ..FlowDraft::new("f", jobs) };
    let idle = FlowDraft { release: 7.0, ..flow("idle", uniform(1, 0.0), None) };
    let instance = instance(two_by_two(), vec![f, idle]);
    let mut schedule = plan(&instance, &[("f/y/map", 2.0, 5.0, 1)]);
    assert_eq!(slackline_judge::completions(&instance, &schedule), [Some(5.0), Some(7.0)]);
    accepts(&instance, &schedule);
    flow_row(&mut schedule, 1).start = Some(7.0);
    accepts(&instance, &schedule);
    flow_row(&mut schedule, 1).start = Some(6.0);
    refuses(&instance, &schedule, "start");
}

#[test]
fn task_rows_decide_where_there_are_both() {
    let instance = pair();
    let runs = [
        run("b/b/map", 0, (0, 2), (0.0, 10.0)),
        run("a/a/map", 0, (2, 2), (0.0, 10.0)),
        run("b/b/reduce", 0, (0, 2), (10.0, 15.0)),
        run("a/a/map", 2, (2, 2), (10.0, 20.0)),
    ];
    let mut schedule = tasks(&instance, &runs);
    schedule.allocations = plan(&instance, &[("a/a/map", 0.0, 99.0, 77)]).allocations;
    accepts(&instance, &schedule);
}

/// Malleable flows with map minima and pools on four slots.
fn guaranteed(flows: &[(f64, u32, Option<&str>)], pool: u32) -> Instance {
    let flows = flows.iter().enumerate().map(|(i, &(work, min, pool))| {
        let name = ["a", "b", "c", "d"][i];
        let mut f = flow(name, Some(TasksDraft::Work { work, tasks: None }.into()), None);
        f.jobs[0].min_slots.map = Some(min);
        f.pool = pool.map(str::to_owned);
        f
    });
    let draft = Draft {
        machines: two_by_two(),
        flows: flows.collect(),
        pools: vec![PoolDraft { id: "p".into(), min_slots: PerPhase { map: Some(pool), reduce: None } }],
        ..Draft::default()
    };
    Instance::new(&draft).unwrap()
}

/// The plan with `minima` promised.
fn promised(instance: &Instance, rows: &[Row]) -> Schedule {
    Schedule { minima: true, ..plan(instance, rows) }
}

#[test]
fn a_plan_that_breaks_a_minimum() {
    let instance = guaranteed(&[(20.0, 2, None), (20.0, 0, None)], 0);
    let rows = [("b/b/map", 0.0, 5.0, 4), ("a/a/map", 5.0, 10.0, 4)];
    accepts(&instance, &plan(&instance, &rows));
    let message = refuses(&instance, &promised(&instance, &rows), "minimum");
    assert_eq!(message, "at 0 s: flow a, job a, map phase holds 0 slots, expected its minimum of 2");
    let rows = [("b/b/map", 0.0, 10.0, 2), ("a/a/map", 0.0, 10.0, 2)];
    accepts(&instance, &promised(&instance, &rows));
    let rows = [
        ("a/a/map", 0.0, 4.0, 2),
        ("b/b/map", 0.0, 4.0, 2),
        ("b/b/map", 4.0, 7.0, 4),
        ("a/a/map", 7.0, 10.0, 4),
    ];
    assert!(refuses(&instance, &promised(&instance, &rows), "minimum").starts_with("at 4 s"));
}

#[test]
fn a_minimum_is_bounded_by_the_tasks_left() {
    let mut a = flow("a", uniform(3, 10.0), None);
    a.jobs[0].min_slots = PerPhase::both(2);
    let instance = instance(two_by_two(), vec![a]);
    let last_alone = [("a/a/map", 0.0, 10.0, 2), ("a/a/map", 10.0, 20.0, 1)];
    accepts(&instance, &promised(&instance, &last_alone));
    refuses(&instance, &promised(&instance, &[("a/a/map", 0.0, 30.0, 1)]), "minimum");
}

#[test]
fn minima_beyond_the_capacity_shrink_in_proportion() {
    // 3 + 3 + 2 on four slots: 1.5, 1.5, 1.0; the rest goes to the first.
    let instance = guaranteed(&[(20.0, 3, None), (10.0, 3, None), (10.0, 2, None)], 0);
    let rows = |a, b| [("a/a/map", 0.0, 10.0, a), ("b/b/map", 0.0, 10.0, b), ("c/c/map", 0.0, 10.0, 1)];
    accepts(&instance, &promised(&instance, &rows(2, 1)));
    let other = guaranteed(&[(10.0, 3, None), (20.0, 3, None), (10.0, 2, None)], 0);
    let message = refuses(&other, &promised(&other, &rows(1, 2)), "minimum");
    assert!(
        message.contains("flow a, job a, map phase holds 1 slots, expected its minimum of 2"),
        "{message}"
    );
}

#[test]
fn a_pool_shares_its_minimum_among_its_ready_phases() {
    let instance = guaranteed(&[(20.0, 0, Some("p")), (10.0, 0, Some("p")), (10.0, 0, None)], 3);
    let rows = |a, b| {
        [
            ("a/a/map", 0.0, 20.0 / f64::from(a), a),
            ("b/b/map", 0.0, 10.0 / f64::from(b), b),
            ("c/c/map", 10.0, 20.0, 1),
        ]
    };
    // 3 for two phases: 2 for the lower id, 1 for the other.
    accepts(&instance, &promised(&instance, &rows(2, 1)));
    let message = refuses(&instance, &promised(&instance, &rows(1, 2)), "minimum");
    assert!(message.contains("flow a") && message.contains("minimum of 2"), "{message}");
    // Once b is done, a has all 3 of the pool.
    let late = [
        ("a/a/map", 0.0, 10.0, 2),
        ("b/b/map", 0.0, 8.0, 1),
        ("b/b/map", 0.0, 2.0, 1),
        ("c/c/map", 10.0, 20.0, 1),
    ];
    assert!(refuses(&instance, &promised(&instance, &late), "minimum").starts_with("at 8 s"));
}

#[test]
fn violations_carry_their_data() {
    let (instance, schedule) = broken(1, ("a/a/map", 0.0, 10.0, 3));
    let Err(Violation::Capacity { at, found, slots, .. }) = check(&instance, &schedule) else {
        panic!("expected a capacity violation")
    };
    assert_eq!((at, found, slots), (0.0, 5, 4));
}
