//! Tasks and their input: what a schedule must show under a profile with delays and factors.

use slackline_judge::check;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, SplitDraft, TasksDraft};
use slackline_model::profile::Profile;
use slackline_model::schedule::{AmRow, NewRow, Outcome, Schedule, TaskRows};
use slackline_model::{Instance, JobId, PhaseId, SlotRange, Span, Time};

use crate::build::{claim, empty, flow, instance, machines};

/// Machines of a slot: two in one rack and one in another; three maps of 10 s with their input on the first
/// machine, and a fourth with input nowhere.
fn racks() -> Instance {
    let machine = |name, count, rack: &str| MachineDraft {
        rack: Some(rack.into()),
        ..machines(name, count, Slots::Generic(1))
    };
    let split = |count, hosts: &[&str]| SplitDraft {
        count,
        seconds: 10.0,
        hosts: hosts.iter().map(|&host| host.into()).collect(),
    };
    let maps = TasksDraft::Splits(vec![split(3, &["m-0"]), split(1, &[])]);
    let flow: FlowDraft = flow("f", Some(maps.into()), None);
    instance(vec![machine("m", 2, "a"), machine("n", 1, "b")], vec![flow])
}

/// An AM without a slot, up at 5 s; containers start at once.
const PROFILE: &str =
    "hadoop:submit=0:am-start=5:am-linger=0:am-share=0:heartbeat=0:am-heartbeat=0:container-start=0";

/// Task, slot, start and end of an attempt, and how it ended.
type Row = (u32, u32, f64, f64, (u16, Outcome));

/// What the judge says of these attempts under the profile with these settings.
fn found(rows: &[Row], settings: &str) -> String {
    let instance = racks();
    let mut tasks = TaskRows::new();
    for &(first, slot, start, end, (attempt, outcome)) in rows {
        let [start, end] = [start, end].map(Time::from_seconds_nearest);
        let row =
            NewRow { phase: PhaseId(0), first, count: 1, start, end, startup: Span::ZERO, attempt, outcome };
        tasks.push(row, &[SlotRange { first: slot, len: 1 }]);
    }
    let last = rows.iter().map(|row| row.3).fold(0.0, f64::max);
    let am = AmRow {
        job: JobId(0),
        slot: None,
        start: Time::ZERO,
        up: Some(Time::from_seconds_nearest(5.0)),
        end: Time::from_seconds_nearest(last),
        outcome: Outcome::Done,
    };
    let profile = Profile::parse(&format!("{PROFILE}{settings}")).unwrap();
    let bare = Schedule { profile, ams: vec![am], tasks, ..empty(&instance) };
    match check(&instance, &claim(&instance, bare, &[])) {
        Ok(_) => "feasible".to_owned(),
        Err(violation) => format!("{}: {violation}", violation.kind()),
    }
}

const DONE: (u16, Outcome) = (0, Outcome::Done);

/// Tasks 0, 1 and 2 start then, on the machine of their input, beside it and in the other rack; each computes
/// so long.
fn starts(starts: [f64; 3], long: [f64; 3]) -> Vec<Row> {
    let row = |k: usize| (k as u32, k as u32, starts[k], starts[k] + long[k], DONE);
    // The one without input anywhere, when the other rack is free.
    let free = starts[2] + long[2];
    vec![row(0), row(1), row(2), (3, 2, free, free + 10.0, DONE)]
}

const DELAYS: &str = ":node-delay=3:rack-delay=2";

#[test]
fn tasks_may_start_anywhere_when_they_have_waited() {
    let said = |at| found(&starts(at, [10.0; 3]), DELAYS);
    assert_eq!(said([5.0, 8.0, 10.0]), "feasible");
    assert_eq!(said([5.0, 8.5, 10.5]), "feasible");
    // Without one near its input the phase waits from when its AM is up.
    assert_eq!(said([20.0, 8.0, 10.0]), "feasible");
    assert_eq!(found(&starts([5.0; 3], [10.0; 3]), ""), "feasible");
}

#[test]
fn a_task_that_did_not_wait_for_its_machine_is_found() {
    let said = |at| found(&starts(at, [10.0; 3]), DELAYS);
    assert_eq!(
        said([5.0, 7.9, 10.0]),
        "delay: at 7.9 s: flow f, job f, map task 1 starts on m-1 slot 0, in a rack of its input, expected a start at 8 s or later (node-delay and rack-delay of the profile)"
    );
    assert!(said([20.0, 7.9, 10.0]).contains("expected a start at 8 s or later"));
    // The wait begins again with each task that starts near its input.
    assert!(said([6.0, 8.0, 12.0]).contains("map task 1"));
    assert!(found(&starts([5.0, 8.0, 7.9], [10.0; 3]), ":node-delay=3").contains("in none of the racks"));
}

#[test]
fn a_task_that_did_not_wait_for_its_rack_is_found() {
    let said = |at| found(&starts(at, [10.0; 3]), DELAYS);
    assert!(said([5.0, 8.0, 9.9]).contains("in none of the racks of its input, expected a start at 10 s"));
    // And again with each task in its rack.
    assert!(said([5.0, 9.0, 10.5]).contains("expected a start at 11 s or later"));
    assert_eq!(said([5.0, 9.0, 11.0]), "feasible");
    assert!(found(&starts([5.0, 5.0, 6.0], [10.0; 3]), ":rack-delay=2").contains("expected a start at 7 s"));
}

#[test]
fn speculative_attempts_do_not_wait() {
    let speculates = ":node-delay=60:speculate=1:straggler-share=0.1:straggler-factor=5";
    let stopped = (1, Outcome::Killed);
    let rows = [
        (0, 0, 5.0, 15.0, DONE),
        (1, 0, 15.0, 65.0, DONE),
        (2, 0, 65.0, 75.0, DONE),
        (3, 1, 5.0, 15.0, DONE),
        (1, 1, 16.0, 65.0, stopped),
    ];
    assert_eq!(found(&rows, speculates), "feasible");
}

#[test]
fn tasks_compute_longer_away_from_their_input() {
    let factors = ":rack-factor=2:off-rack-factor=3";
    let said = |long| found(&starts([5.0; 3], long), factors);
    assert_eq!(said([10.0, 20.0, 30.0]), "feasible");
    for long in [[20.0, 20.0, 30.0], [10.0, 10.0, 30.0], [10.0, 20.0, 20.0], [10.0, 30.0, 30.0]] {
        assert!(said(long).starts_with("duration: "), "{}", said(long));
    }
    let stragglers = format!("{factors}:straggler-share=0.5:straggler-factor=4");
    assert_eq!(found(&starts([5.0; 3], [40.0, 20.0, 120.0]), &stragglers), "feasible");
    assert!(found(&starts([5.0; 3], [40.0, 40.0, 120.0]), &stragglers).starts_with("duration: "));
}

#[test]
fn the_full_duration_of_a_stopped_attempt_has_its_factor() {
    // Task 1 beside its input would have been done at 25 s, where a new attempt would at 26 s; with a factor
    // of 3 at 35 s.
    let rows = [
        (0, 0, 5.0, 15.0, DONE),
        (3, 2, 5.0, 15.0, DONE),
        (1, 1, 5.0, 26.0, (0, Outcome::Killed)),
        (1, 0, 16.0, 26.0, (1, Outcome::Done)),
        (2, 0, 26.0, 36.0, DONE),
    ];
    assert_eq!(found(&rows, ":speculate=1:rack-factor=3"), "feasible");
    let said = found(&rows, ":speculate=1:rack-factor=2");
    assert!(said.contains("ends at 25 s at the latest"), "{said}");
}
