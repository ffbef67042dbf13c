//! Attempts: failures, speculation, crashes with lost map output, failed flows.

use slackline_judge::{check, metrics};
use slackline_model::draft::{FlowDraft, PerPhase};
use slackline_model::schedule::{Clock, FlowResult, Outcome};
use slackline_model::{Instance, Schedule};

use crate::build::*;

/// One job of 2 maps of 10 s and a reduce of 20 s on two machines of two slots.
fn small() -> Instance {
    instance(two_by_two(), vec![flow("a", uniform(2, 10.0), uniform(1, 20.0))])
}

/// Map 1 runs on node-1, which crashes at 15 s under the reduce; the map is repeated from 16 to 26 s
/// and the reduce computes after it.
fn crash() -> Vec<Run> {
    vec![
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("a/a/map", 1, (2, 1), (0.0, 10.0)).attempt(0, Outcome::Lost),
        run("a/a/reduce", 0, (0, 1), (10.0, 46.0)),
        run("a/a/map", 1, (1, 1), (16.0, 26.0)).attempt(1, Outcome::Done),
    ]
}

#[test]
fn a_reduce_computes_again_after_the_last_rerun() {
    let instance = small();
    let report = check(&instance, &tasks(&instance, &crash())).unwrap();
    assert_eq!((report.cost, report.tasks), (46.0, 3));
    // 30 slot-seconds of maps and 20 of the reduce.
    assert!((report.metrics.utilisation - 50.0 / (4.0 * 46.0)).abs() < 1e-12);
    let mut runs = crash();
    runs[2].end = 30.0; // as if nothing had been lost
    refuses(&instance, &tasks(&instance, &runs), "duration");
    runs[2].end = 20.0; // done while the map was running again
    let message = refuses(&instance, &tasks(&instance, &runs), "map-before-reduce");
    assert!(message.contains("finishes before the end of the map phase, which is at 26 s"));
    let measured = Schedule { clock: Clock::Measured, ..tasks(&instance, &runs) };
    refuses(&instance, &measured, "map-before-reduce");
}

#[test]
fn a_reduce_that_ended_before_the_rerun_is_not_touched() {
    let two = instance(two_by_two(), vec![flow("a", uniform(2, 10.0), uniform(2, 20.0))]);
    let mut runs = crash();
    runs[2] = run("a/a/reduce", 0, (0, 1), (10.0, 30.0));
    (runs[3].start, runs[3].end) = (31.0, 41.0);
    // The second reduce started at 12 s and was due at 32 s when the output was lost.
    runs.push(run("a/a/reduce", 1, (3, 1), (12.0, 61.0)));
    accepts(&two, &tasks(&two, &runs));
    runs[4].end = 32.0;
    refuses(&two, &tasks(&two, &runs), "map-before-reduce");
}

#[test]
fn a_reduce_starts_during_a_rerun_only_with_slow_start() {
    let two = instance(two_by_two(), vec![flow("a", uniform(2, 10.0), uniform(2, 20.0))]);
    let mut runs = crash();
    runs.push(run("a/a/reduce", 1, (3, 1), (18.0, 46.0)));
    let message = refuses(&two, &tasks(&two, &runs), "map-before-reduce");
    assert!(message.starts_with("at 18 s"), "{message}");
    accepts(&two, &early(&two, 0.9, &runs));
}

#[test]
fn attempts_are_numbered_in_order_of_start() {
    let instance = small();
    for (attempts, kind) in [([0, 2], "attempt"), ([1, 0], "attempt"), ([0, 0], "attempt")] {
        let mut runs = crash();
        (runs[1].attempt, runs[3].attempt) = (attempts[0], attempts[1]);
        let message = refuses(&instance, &tasks(&instance, &runs), kind);
        assert!(message.starts_with("flow a, job a, map task 1: found number"), "{message}");
    }
    let mut first = crash();
    first[0].attempt = 1;
    refuses(&instance, &tasks(&instance, &first), "attempt");
}

#[test]
fn failed_and_killed_attempts_may_be_short_but_not_long() {
    let instance = small();
    let schedule = |end: f64, outcome: Outcome| {
        let runs = [
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/map", 1, (1, 1), (0.0, end)).attempt(0, outcome),
            run("a/a/map", 1, (2, 1), (12.0, 22.0)).attempt(1, Outcome::Done),
            run("a/a/reduce", 0, (0, 1), (22.0, 42.0)),
        ];
        tasks(&instance, &runs)
    };
    for outcome in [Outcome::Failed, Outcome::Killed] {
        accepts(&instance, &schedule(0.5, outcome));
        accepts(&instance, &schedule(10.0, outcome));
        let message = refuses(&instance, &schedule(10.5, outcome), "duration");
        assert!(message.contains("expected at most 10 s"), "{message}");
    }
    refuses(&instance, &schedule(5.0, Outcome::Lost), "duration");
}

#[test]
fn a_failed_reduce_is_held_to_its_length_with_slow_start_too() {
    let instance = small();
    let schedule = |start: f64, end: f64, outcome: Outcome| {
        let runs = [
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/map", 1, (1, 1), (0.0, 10.0)),
            run("a/a/reduce", 0, (0, 1), (start, end)).attempt(0, outcome),
            run("a/a/reduce", 0, (1, 1), (90.0, 110.0)).attempt(1, Outcome::Done),
        ];
        early(&instance, 0.5, &runs)
    };
    for outcome in [Outcome::Failed, Outcome::Killed] {
        for start in [10.0, 12.0] {
            accepts(&instance, &schedule(start, start + 20.0, outcome));
            let message = refuses(&instance, &schedule(start, start + 21.0, outcome), "duration");
            assert!(message.contains("expected at most 20 s"), "{message}");
        }
    }
}

#[test]
fn a_reduce_killed_while_output_may_be_missing_may_have_waited() {
    // The output is lost at 15 s; the reduce waits until it makes room for the map at 50 s.
    let instance = small();
    let runs = |start: f64, killed: f64| {
        vec![
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/map", 1, (2, 1), (0.0, 10.0)).attempt(0, Outcome::Lost),
            run("a/a/reduce", 0, (0, 1), (start, killed)).attempt(0, Outcome::Killed),
            run("a/a/map", 1, (1, 1), (50.0, 60.0)).attempt(1, Outcome::Done),
            run("a/a/reduce", 0, (0, 1), (90.0, 110.0)).attempt(1, Outcome::Done),
        ]
    };
    accepts(&instance, &tasks(&instance, &runs(10.0, 50.0)));
    // One that started after the re-run never waited.
    accepts(&instance, &tasks(&instance, &runs(60.0, 79.0)));
    refuses(&instance, &tasks(&instance, &runs(60.0, 81.0)), "duration");
}

#[test]
fn a_rerun_and_a_reduce_of_no_length_may_share_an_instant() {
    let instance = instance(two_by_two(), vec![flow("a", uniform(1, 0.0), uniform(1, 0.0))]);
    let runs = |rerun: f64| {
        vec![
            run("a/a/map", 0, (0, 1), (0.0, 0.0)).attempt(0, Outcome::Lost),
            run("a/a/reduce", 0, (2, 1), (0.0, 5.0)),
            run("a/a/map", 0, (0, 1), (rerun, rerun)).attempt(1, Outcome::Done),
        ]
    };
    accepts(&instance, &tasks(&instance, &runs(5.0)));
    refuses(&instance, &tasks(&instance, &runs(6.0)), "duration");
}

#[test]
fn a_killed_attempt_still_holds_its_slot() {
    let instance = small();
    let runs = [
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("a/a/map", 1, (0, 1), (9.0, 9.5)).attempt(0, Outcome::Killed),
        run("a/a/map", 1, (1, 1), (9.5, 19.5)).attempt(1, Outcome::Done),
        run("a/a/reduce", 0, (0, 1), (19.5, 39.5)),
    ];
    refuses(&instance, &tasks(&instance, &runs), "slot-overlap");
}

#[test]
fn a_speculative_attempt_does_not_count_against_the_cap() {
    let mut a = flow("a", uniform(2, 10.0), None);
    a.jobs[0].max_slots = PerPhase::both(1);
    let instance = instance(two_by_two(), vec![a]);
    let schedule = |second: f64| {
        let runs = [
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/map", 0, (1, 1), (5.0, 10.0)).attempt(1, Outcome::Killed),
            run("a/a/map", 1, (2, 1), (second, second + 10.0)),
        ];
        tasks(&instance, &runs)
    };
    accepts(&instance, &schedule(10.0));
    refuses(&instance, &schedule(8.0), "cap");
    // Once the first attempt has failed, the other one counts.
    let runs = [
        run("a/a/map", 0, (0, 1), (0.0, 6.0)).attempt(0, Outcome::Failed),
        run("a/a/map", 0, (1, 1), (5.0, 15.0)).attempt(1, Outcome::Done),
        run("a/a/map", 1, (2, 1), (7.0, 17.0)),
    ];
    refuses(&instance, &tasks(&instance, &runs), "cap");
}

#[test]
fn a_failed_flow_may_be_incomplete_and_costs_nothing() {
    let b = FlowDraft { deadline: Some(100.0), ..flow("b", uniform(2, 10.0), uniform(1, 1.0)) };
    let instance = instance(two_by_two(), vec![flow("a", uniform(1, 10.0), None), b]);
    let runs = [
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("b/b/map", 1, (1, 1), (0.0, 4.0)).attempt(0, Outcome::Failed),
    ];
    let schedule = failing(&instance, &[1], &runs);
    let report = check(&instance, &schedule).unwrap();
    assert_eq!((report.cost, report.failed, report.tasks), (10.0, 1, 1));
    assert_eq!((report.metrics.deadlines, report.metrics.missed), (1.0, 1.0));
    assert_eq!(report.metrics.mean_response, 10.0);
    accepts(&instance, &Schedule { cost: None, ..schedule.clone() });
    // What it took is part of the time of the whole.
    let late = run("b/b/map", 1, (1, 1), (20.0, 24.0)).attempt(0, Outcome::Failed);
    let both = failing(&instance, &[1], &[runs[0].clone(), late]);
    assert_eq!(check(&instance, &both).unwrap().metrics.utilisation, 14.0 / (4.0 * 24.0));
    // What it has is held to the rules.
    let mut reduce = runs.to_vec();
    reduce.push(run("b/b/reduce", 0, (2, 1), (4.0, 5.0)).attempt(0, Outcome::Killed));
    refuses(&instance, &failing(&instance, &[1], &reduce), "map-before-reduce");
    // Only a flow that says it failed may be incomplete.
    let mut lie = schedule.clone();
    flow_row(&mut lie, 1).status = FlowResult::Done;
    refuses(&instance, &lie, "task-missing");
    let mut costly = schedule;
    flow_row(&mut costly, 1).cost = Some(0.0);
    refuses(&instance, &costly, "flow-cost");
}

#[test]
fn metrics_of_rubbish_do_not_panic() {
    let instance = small();
    let mut schedule = tasks(&instance, &crash());
    schedule.slowstart = f64::NAN;
    schedule.tasks = rows(&pair(), &[run("b/b/reduce", 1, (3, 1), (9.0, 1.0))]);
    assert_eq!(metrics(&instance, &schedule).tasks, 0.0);
    assert_eq!(slackline_judge::completions(&instance, &schedule), [None]);
}
