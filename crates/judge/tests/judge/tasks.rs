//! Task rows without failures: structure, slots, caps, order, durations.

use slackline_judge::check;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, PerPhase, Repeat, TasksDraft};
use slackline_model::schedule::{Clock, NewRow, Outcome};
use slackline_model::{Instance, PhaseId, Schedule, SlotRange, Span, Time};

use crate::build::*;

/// A complete run of the pair.
fn honest() -> Vec<Run> {
    vec![
        run("b/b/map", 0, (0, 2), (0.0, 10.0)),
        run("a/a/map", 0, (2, 2), (0.0, 10.0)),
        run("b/b/reduce", 0, (0, 2), (10.0, 15.0)),
        run("a/a/map", 2, (2, 2), (10.0, 20.0)),
    ]
}

/// The pair with one row changed.
fn broken(row: usize, change: impl FnOnce(&mut Run)) -> (Instance, Schedule) {
    let mut runs = honest();
    change(&mut runs[row]);
    let instance = pair();
    let schedule = tasks(&instance, &runs);
    (instance, schedule)
}

#[test]
fn an_honest_run_is_accepted_with_its_figures() {
    let instance = pair();
    let report = check(&instance, &tasks(&instance, &honest())).unwrap();
    assert_eq!((report.cost, report.failed, report.rows, report.tasks), (50.0, 0, 4, 8));
    let m = report.metrics;
    assert_eq!((m.makespan, m.total_completion, m.weighted_completion), (20.0, 35.0, 50.0));
    assert_eq!((m.mean_response, m.p50_response, m.p95_response, m.p99_response), (17.5, 15.0, 20.0, 20.0));
    // Work 40 and 30; alone: 10 s in two waves' area 40/4 = 10, and 10 + 5.
    assert_eq!((m.max_stretch, m.mean_stretch), (0.5, 0.5));
    assert_eq!((m.max_slowdown, m.mean_slowdown), (2.0, 1.5));
    assert_eq!((m.utilisation, m.tasks, m.deadlines), (70.0 / 80.0, 8.0, 0.0));
}

#[test]
fn slot_overlap_names_both_tasks_and_the_slot() {
    let (instance, mut schedule) = broken(3, |r| r.start = 9.5);
    schedule.clock = Clock::Measured;
    let message = refuses(&instance, &schedule, "slot-overlap");
    assert_eq!(
        message,
        "at 9.5 s: flow a, job a, map task 2 on node-1 slot 0 overlaps flow a, job a, map task 0"
    );
}

#[test]
fn the_first_violation_is_the_earliest() {
    let instance = pair();
    let mut runs = honest();
    runs[2].start = 8.0; // before its maps, on slots that are taken
    runs[1].end = 11.0; // too long, seen at its end
    assert!(refuses(&instance, &tasks(&instance, &runs), "slot-overlap").starts_with("at 8 s"));
}

#[test]
fn a_row_that_names_a_slot_twice_overlaps_itself() {
    let (instance, schedule) = broken(0, |r| r.places = vec![(0, 1), (0, 1)]);
    let message = refuses(&instance, &schedule, "slot-overlap");
    assert!(message.contains("map task 1 on node-0 slot 0 overlaps flow b, job b, map task 0"), "{message}");
}

#[test]
fn ends_and_starts_that_touch_within_tolerance_do_not_overlap() {
    let (instance, schedule) = broken(1, |r| r.end = 10.000_002);
    accepts(&instance, &schedule);
    let (instance, schedule) = broken(1, |r| r.end = 10.000_003);
    refuses(&instance, &schedule, "slot-overlap");
}

#[test]
fn rows_that_mean_nothing() {
    for (change, what) in [
        ((|r| r.first = 3) as fn(&mut Run), "found tasks 3 to 4, expected task numbers below 4"),
        (|r| r.places = vec![(3, 2)], "found 2 slots from slot 3 on"),
        (|r| r.end = 9.0, "found start 10 s and end 9 s"),
    ] {
        let (instance, schedule) = broken(3, change);
        let message = refuses(&instance, &schedule, "row");
        assert!(message.starts_with("row 3 of tasks: ") && message.contains(what), "{message}");
    }
    let instance = pair();
    let push = |phase, count, end| {
        let mut schedule = tasks(&instance, &honest());
        let row = NewRow {
            phase: PhaseId(phase),
            first: 0,
            count,
            start: Time(0),
            end: Time(end),
            startup: Span::ZERO,
            attempt: 0,
            outcome: Outcome::Done,
        };
        let places = if count == 0 { vec![] } else { vec![SlotRange { first: 0, len: count }] };
        schedule.tasks.push(row, &places);
        refuses(&instance, &schedule, "row")
    };
    assert!(push(7, 1, 0).contains("found phase number 7"));
    assert!(push(0, 0, 0).contains("found a count of 0"));
    assert!(push(0, 1, u64::MAX).contains("found a time of"));
}

#[test]
fn a_task_left_out_is_missing() {
    let (instance, schedule) = broken(3, |r| {
        r.first = 3;
        r.places = vec![(2, 1)];
    });
    let mut schedule = Schedule { cost: Some(0.0), ..schedule };
    let message = refuses(&instance, &schedule, "task-missing");
    assert!(message.starts_with("flow a, job a, map task 2: "), "{message}");
    schedule.tasks = rows(&instance, &honest()[..3]);
    refuses(&instance, &schedule, "task-missing");
    schedule.tasks = rows(&instance, &[]);
    refuses(&instance, &schedule, "task-missing");
}

#[test]
fn a_task_that_only_failed_is_missing() {
    let (instance, schedule) = broken(2, |r| r.outcome = Outcome::Killed);
    refuses(&instance, &schedule, "task-missing");
}

#[test]
fn a_task_done_twice() {
    let instance = pair();
    let mut runs = honest();
    runs.push(run("a/a/map", 3, (0, 1), (20.0, 30.0)).attempt(1, Outcome::Done));
    let message = refuses(&instance, &tasks(&instance, &runs), "task-twice");
    assert!(message.starts_with("flow a, job a, map task 3: found 2"), "{message}");
    runs[3].first = 1;
    refuses(&instance, &tasks(&instance, &runs), "task-twice");
}

#[test]
fn purely_malleable_work_is_not_done_by_task_rows() {
    let work = TasksDraft::Work { work: 20.0, tasks: None };
    let instance = instance(two_by_two(), vec![flow("a", uniform(1, 10.0), Some(work.into()))]);
    let schedule = tasks(&instance, &[run("a/a/map", 0, (0, 1), (0.0, 10.0))]);
    refuses(&instance, &schedule, "work");
    let both = [run("a/a/map", 0, (0, 1), (0.0, 10.0)), run("a/a/reduce", 0, (0, 1), (10.0, 30.0))];
    let message = refuses(&instance, &tasks(&instance, &both), "row");
    assert!(message.contains("not cut into tasks"), "{message}");
    let cut = instance.cut(slackline_model::Span(10_000_000));
    let cut_runs = [run("a/a/map", 0, (0, 1), (0.0, 10.0)), run("a/a/reduce", 0, (0, 2), (10.0, 20.0))];
    accepts(&cut, &tasks(&cut, &cut_runs));
}

#[test]
fn a_phase_above_its_cap() {
    let mut a = flow("a", uniform(4, 10.0), None);
    a.jobs[0].max_slots = PerPhase::both(2);
    let instance = instance(two_by_two(), vec![a]);
    let schedule = |second: f64| {
        let runs =
            [run("a/a/map", 0, (0, 2), (0.0, 10.0)), run("a/a/map", 2, (2, 2), (second, second + 10.0))];
        tasks(&instance, &runs)
    };
    accepts(&instance, &schedule(10.0));
    assert_eq!(
        refuses(&instance, &schedule(9.0), "cap"),
        "at 9 s: flow a, job a, map phase holds 4 slots, expected at most 2"
    );
}

#[test]
fn a_release_kept_and_broken() {
    let a = FlowDraft { release: 5.0, ..flow("a", uniform(1, 10.0), None) };
    let instance = instance(two_by_two(), vec![a]);
    accepts(&instance, &tasks(&instance, &[run("a/a/map", 0, (0, 1), (5.0, 15.0))]));
    let message = refuses(&instance, &tasks(&instance, &[run("a/a/map", 0, (0, 1), (4.0, 14.0))]), "release");
    assert_eq!(message, "at 4 s: flow a, job a, map task 0 starts before its release at 5 s");
}

#[test]
fn a_job_after_another() {
    let jobs = vec![job("x", &[], uniform(1, 4.0), uniform(1, 2.0)), job("y", &["x"], uniform(1, 3.0), None)];
    let instance = instance(two_by_two(), vec![FlowDraft::new("f", jobs)]);
    let schedule = |y: f64| {
        let runs = [
            run("f/x/map", 0, (0, 1), (0.0, 4.0)),
            run("f/x/reduce", 0, (0, 1), (4.0, 6.0)),
            run("f/y/map", 0, (1, 1), (y, y + 3.0)),
        ];
        tasks(&instance, &runs)
    };
    accepts(&instance, &schedule(6.0));
    let message = refuses(&instance, &schedule(4.0), "precedence");
    assert!(message.contains("map task 0 starts before the end of job x, which is at 6 s"));
}

#[test]
fn a_reduce_before_the_maps() {
    let (instance, schedule) = broken(2, |r| {
        (r.start, r.end) = (9.0, 14.0);
        r.places = vec![(2, 2)];
    });
    // On separate slots only the order is wrong.
    let mut schedule = schedule;
    schedule.tasks = rows(
        &instance,
        &[
            run("b/b/map", 0, (0, 2), (0.0, 10.0)),
            run("b/b/reduce", 0, (2, 2), (9.0, 14.0)),
            run("a/a/map", 0, (2, 2), (14.0, 24.0)),
            run("a/a/map", 2, (2, 2), (24.0, 34.0)),
        ],
    );
    let message = refuses(&instance, &schedule, "map-before-reduce");
    assert!(message.contains("reduce task 0 starts before the end of the map phase"), "{message}");
}

#[test]
fn durations_too_long_and_too_short() {
    for end in [14.9, 15.1] {
        let (instance, schedule) = broken(2, |r| r.end = end);
        let message = refuses(&instance, &schedule, "duration");
        assert!(message.contains("reduce task 0 on node-0 slot 0 ends after"), "{message}");
        accepts(&instance, &Schedule { clock: Clock::Measured, ..schedule });
    }
    let (instance, schedule) = broken(2, |r| r.end = 15.000_005);
    accepts(&instance, &schedule);
    let (instance, schedule) = broken(2, |r| r.end = 15.000_01);
    refuses(&instance, &schedule, "duration");
}

#[test]
fn mixed_speeds_and_single_durations_are_distinguished_within_a_row() {
    let fast = MachineDraft { speed: 4.0, ..machines("fast", 1, Slots::Generic(2)) };
    let slow = MachineDraft { speed: 2.0, ..machines("slow", 1, Slots::Generic(2)) };
    let each = TasksDraft::Each(vec![8.0, 8.0, 4.0, 4.0]);
    let instance = instance(vec![fast, slow], vec![flow("a", Some(each.into()), None)]);
    accepts(&instance, &tasks(&instance, &[run("a/a/map", 0, (0, 4), (0.0, 2.0))]));
    let turned = Run { places: vec![(2, 2), (0, 2)], ..run("a/a/map", 0, (0, 1), (0.0, 2.0)) };
    let message = refuses(&instance, &tasks(&instance, &[turned]), "duration");
    assert!(message.contains("map task 0 on slow slot 0 ends after 2 s, expected 4 s"), "{message}");
}

#[test]
fn typed_slots_are_slot_kinds_of_their_own() {
    let instance = instance(map_reduce(2, 1), vec![flow("a", uniform(2, 10.0), uniform(2, 5.0))]);
    let schedule = |second: (u32, u32)| {
        let runs = [
            run("a/a/map", 0, (0, 2), (0.0, 10.0)),
            run("a/a/reduce", 0, (0, 1), (10.0, 15.0)),
            run("a/a/reduce", 1, second, (15.0, 20.0)),
        ];
        tasks(&instance, &runs)
    };
    accepts(&instance, &schedule((0, 1)));
    let message = refuses(&instance, &schedule((1, 1)), "row");
    assert!(message.contains("numbers below 1"), "{message}");
}

#[test]
fn early_reduces_wait_for_the_last_map() {
    let instance = instance(map_reduce(2, 2), vec![flow("a", uniform(4, 10.0), uniform(2, 5.0))]);
    let schedule = |slowstart: f64, start: f64, end: f64| {
        let runs = [
            run("a/a/map", 0, (0, 2), (0.0, 10.0)),
            run("a/a/map", 2, (0, 2), (10.0, 20.0)),
            run("a/a/reduce", 0, (0, 2), (start, end)),
        ];
        early(&instance, slowstart, &runs)
    };
    accepts(&instance, &schedule(0.5, 10.0, 25.0));
    accepts(&instance, &schedule(0.0, 0.0, 25.0));
    accepts(&instance, &schedule(0.5, 21.0, 26.0));
    // Half of the maps are not done at 9 s; three quarters are only at 20 s.
    let message = refuses(&instance, &schedule(0.5, 9.0, 25.0), "map-before-reduce");
    assert!(message.contains("before the end of 2 map tasks, which is at 10 s"), "{message}");
    refuses(&instance, &schedule(0.75, 10.0, 25.0), "map-before-reduce");
    refuses(&instance, &schedule(1.0, 10.0, 25.0), "map-before-reduce");
    // Seconds / speed count from the last map, not from the start.
    let message = refuses(&instance, &schedule(0.5, 10.0, 15.0), "map-before-reduce");
    assert!(message.contains("reduce task 0 finishes before the end of the map phase"), "{message}");
    refuses(&instance, &schedule(0.5, 10.0, 24.0), "duration");
    refuses(&instance, &schedule(1.5, 20.0, 25.0), "slowstart");
    // Waiting is not busy: 40 + 2 * 5 slot-seconds on 4 slots over 25 s.
    let report = check(&instance, &schedule(0.5, 10.0, 25.0)).unwrap();
    assert_eq!(report.metrics.utilisation, 0.5);
}

#[test]
fn early_reduces_leave_a_generic_slot_to_the_maps() {
    let one = vec![machines("node", 1, Slots::Generic(2))];
    let instance = instance(one, vec![flow("a", uniform(2, 10.0), uniform(2, 5.0))]);
    let runs = |second: f64| {
        vec![
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/reduce", 0, (1, 1), (0.0, 25.0)),
            run("a/a/map", 1, (0, 1), (10.0, 20.0)),
            run("a/a/reduce", 1, (0, 1), (second, second + 5.0)),
        ]
    };
    accepts(&instance, &early(&instance, 0.0, &runs(20.0)));
    let mut all = runs(10.0);
    all[2] = run("a/a/map", 1, (0, 1), (35.0, 45.0));
    all[1].end = 50.0;
    all[3].end = 35.0;
    let message = refuses(&instance, &early(&instance, 0.0, &all), "early-reduce");
    assert_eq!(
        message,
        "at 10 s: flow a, job a, reduce task 1 takes a slot early, and waiting reduces hold 2 slots, expected fewer than all 2"
    );
}

#[test]
fn tasks_of_no_length_overlap_nothing() {
    let flows = vec![flow("a", uniform(3, 0.0), uniform(1, 0.0)), flow("b", uniform(1, 10.0), None)];
    let instance = instance(vec![machines("m", 1, Slots::Generic(1))], flows);
    let zero = |first| run("a/a/map", first, (0, 1), (5.0, 5.0));
    let runs = [
        run("b/b/map", 0, (0, 1), (0.0, 10.0)),
        zero(0),
        zero(1),
        zero(2),
        run("a/a/reduce", 0, (0, 1), (5.0, 5.0)),
    ];
    let schedule = tasks(&instance, &runs);
    accepts(&instance, &schedule);
    let m = slackline_judge::metrics(&instance, &schedule);
    assert_eq!((m.max_stretch, m.max_slowdown), (1.0, 1.0)); // flow a has no work and counts 0
    assert_eq!(m.tasks, 5.0);
}

#[test]
fn recurring_flows_are_flows_of_their_own() {
    let a = FlowDraft {
        repeat: Some(Repeat { every: 20.0, times: 2 }),
        deadline: Some(15.0),
        ..flow("a", uniform(1, 10.0), None)
    };
    let instance = instance(two_by_two(), vec![a]);
    let schedule = |second: f64| {
        let runs =
            [run("a#0/a/map", 0, (0, 1), (0.0, 10.0)), run("a#1/a/map", 0, (0, 1), (second, second + 10.0))];
        tasks(&instance, &runs)
    };
    accepts(&instance, &schedule(20.0));
    let m = check(&instance, &schedule(28.0)).unwrap().metrics;
    assert_eq!((m.deadlines, m.missed, m.total_tardiness, m.max_tardiness), (2.0, 1.0, 3.0, 3.0));
    let message = refuses(&instance, &schedule(10.0), "release");
    assert!(message.contains("flow a#1"), "{message}");
}

#[test]
fn a_cluster_of_two_billion_slots_costs_what_its_rows_do() {
    let huge = vec![machines("m", 1_000_000, Slots::Generic(2_000))];
    let instance = instance(huge, vec![flow("a", uniform(2_000_000_000, 1.0), None)]);
    let half = 1_000_000_000;
    let runs = [run("a/a/map", 0, (0, half), (0.0, 1.0)), run("a/a/map", half, (half - 1, half), (1.0, 2.0))];
    accepts(&instance, &tasks(&instance, &runs));
    let mut early = runs;
    (early[1].start, early[1].end) = (0.5, 1.5);
    let message = refuses(&instance, &tasks(&instance, &early), "slot-overlap");
    assert!(message.contains("map task 1000000000 on m-499999 slot 1999"), "{message}");
}

/// On one slot: f is maps of 2 s, reduces without length, and a job after it that has none at all; g is 1 s.
fn pauses() -> Instance {
    let jobs = vec![
        job("a", &[], uniform(2, 2.0), uniform(3, 0.0)),
        job("b", &["a"], uniform(2, 0.0), uniform(1, 0.0)),
        job("c", &["b"], uniform(2, 0.0), uniform(1, 3.0)),
    ];
    let f = FlowDraft { release: 1.0, ..FlowDraft::new("f", jobs) };
    let g = FlowDraft { release: 4.0, ..flow("g", uniform(4, 0.0), None) };
    instance(vec![machines("m", 1, Slots::Generic(2))], vec![f, g])
}

fn pauses_run() -> Vec<Run> {
    vec![
        run("f/a/map", 0, (0, 1), (1.0, 3.0)),
        run("f/a/map", 1, (1, 1), (2.0, 4.0)),
        run("f/c/reduce", 0, (0, 1), (4.0, 7.0)),
    ]
}

#[test]
fn a_phase_without_length_needs_no_row_and_is_done_when_it_becomes_ready() {
    let instance = pauses();
    let schedule = tasks(&instance, &pauses_run());
    assert_eq!(slackline_judge::completions(&instance, &schedule), [Some(7.0), Some(4.0)]);
    accepts(&instance, &schedule);
    accepts(&instance, &Schedule { minima: true, slowstart: 0.0, ..schedule.clone() });
    let m = slackline_judge::metrics(&instance, &schedule);
    assert_eq!((m.tasks, m.mean_wait, m.p95_wait), (3.0, 0.0, 0.0), "g waited for nothing");
    // A flow without rows starts at its release, or does not say.
    for (start, right) in [(Some(4.0), true), (None, true), (Some(4.5), false)] {
        let mut claimed = schedule.clone();
        flow_row(&mut claimed, 1).start = start;
        assert_eq!(check(&instance, &claimed).is_ok(), right, "{start:?}");
    }
}

#[test]
fn successors_of_a_phase_of_length_zero_wait_for_its_predecessors() {
    let instance = pauses();
    let mut runs = pauses_run();
    (runs[2].start, runs[2].end) = (3.5, 6.5);
    refuses(&instance, &tasks(&instance, &runs), "precedence");
}

#[test]
fn a_phase_without_length_that_has_rows_is_held_to_them() {
    let instance = pauses();
    let mut runs = pauses_run();
    // As documents were before: the reduces of a after the maps, two of them late.
    runs[2] = run("f/c/reduce", 0, (0, 1), (5.0, 8.0));
    runs.extend([(0, 4.0), (1, 5.0), (2, 5.0)].map(|(task, at)| run("f/a/reduce", task, (1, 1), (at, at))));
    accepts(&instance, &tasks(&instance, &runs));
    assert_eq!(slackline_judge::completions(&instance, &tasks(&instance, &runs))[0], Some(8.0));
    let missing = tasks(&instance, &runs[..5]);
    refuses(&instance, &missing, "task-missing");
    let mut early = runs.clone();
    (early[2].start, early[2].end) = (4.5, 7.5);
    refuses(&instance, &tasks(&instance, &early), "precedence");
}

#[test]
fn without_work_nothing_need_run_at_any_speeds() {
    let fast = MachineDraft { speed: 2.0, ..machines("fast", 1, Slots::Generic(1)) };
    let flows = vec![FlowDraft { release: 3.0, ..flow("a", uniform(1, 0.0), None) }];
    let instance = instance(vec![machines("m", 1, Slots::Generic(1)), fast], flows);
    accepts(&instance, &tasks(&instance, &[]));
}

#[test]
fn work_that_was_not_cut_needs_no_row_if_there_is_none() {
    let nothing = Some(TasksDraft::Work { work: 0.0, tasks: None }.into());
    let flows = vec![flow("a", uniform(1, 2.0), nothing)];
    let instance = instance(vec![machines("m", 1, Slots::Generic(1))], flows);
    let schedule = tasks(&instance, &[run("a/a/map", 0, (0, 1), (0.0, 2.0))]);
    assert_eq!(slackline_judge::completions(&instance, &schedule), [Some(2.0)]);
    accepts(&instance, &schedule);
}
