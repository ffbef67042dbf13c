//! AMs of jobs and starts of tasks: what a schedule under a profile must show, and none other may.

use slackline_judge::{Violation, check};
use slackline_model::profile::Profile;
use slackline_model::schedule::{AmRow, Outcome, Schedule};
use slackline_model::{Instance, JobId, Span, Time};

use crate::build::{claim, empty, flow, instance, rows, run, two_by_two, uniform};

/// Two flows of two maps of 10 s on four slots.
fn two() -> Instance {
    instance(two_by_two(), vec![flow("a", uniform(2, 10.0), None), flow("b", uniform(2, 10.0), None)])
}

fn profile() -> Profile {
    let settings = "hadoop:submit=1:am-start=5..7:am-linger=4:am-share=0.5:heartbeat=0:am-heartbeat=0:container-start=2..3";
    Profile::parse(settings).unwrap().unwrap()
}

fn micros(seconds: f64) -> Time {
    Time::from_seconds_nearest(seconds)
}

fn am(job: u32, slot: u32, [start, up, end]: [f64; 3]) -> AmRow {
    let [start, up, end] = [start, up, end].map(micros);
    AmRow { job: JobId(job), slot: Some(slot), start, up: Some(up), end, outcome: Outcome::Done }
}

/// Each AM is submitted at 1 s, up at 6 s; each map takes its slot then and runs 10 s from 8 s on.
fn ams() -> Vec<AmRow> {
    vec![am(0, 0, [1.0, 6.0, 22.0]), am(1, 1, [1.0, 6.0, 34.0])]
}

fn schedule(ams: Vec<AmRow>, startup: f64) -> (Instance, Schedule) {
    let instance = two();
    let end = 16.0 + startup;
    let runs =
        [run("a/a/map", 0, (2, 2), (6.0, end)), run("b/b/map", 0, (2, 2), (end, end + 10.0 + startup))];
    let mut tasks = slackline_model::schedule::TaskRows::new();
    let plain = rows(&instance, &runs);
    for row in plain.rows() {
        let mut new = slackline_model::schedule::NewRow::from(row);
        new.startup = Span::from_seconds_nearest(startup);
        tasks.push(new, plain.places(row));
    }
    let bare = Schedule { profile: Some(profile()), ams, tasks, ..empty(&instance) };
    let schedule = claim(&instance, bare, &[]);
    (instance, schedule)
}

fn found((instance, schedule): (Instance, Schedule)) -> String {
    check(&instance, &schedule).map_or_else(|violation| violation.to_string(), |_| "feasible".to_owned())
}

/// The schedule with its first AM changed.
fn with_first(change: impl Fn(&mut AmRow)) -> String {
    let mut all = ams();
    change(&mut all[0]);
    found(schedule(all, 2.0))
}

#[test]
fn starts_that_follow_the_profile_are_feasible() {
    let (instance, schedule) = schedule(ams(), 2.0);
    let report = check(&instance, &schedule).unwrap();
    // Neither AMs nor what comes before a task's own code is work: 40 of 4 x 30 slot-seconds.
    assert_eq!(report.metrics.utilisation, 40.0 / (4.0 * 30.0));
}

#[test]
fn a_start_that_the_profile_does_not_know_is_refused() {
    for startup in [1.0, 3.5] {
        let said = found(schedule(ams(), startup));
        assert!(said.contains("expected 2 to 3 s (container-start and am-heartbeat"), "{said}");
    }
}

#[test]
fn without_a_profile_there_are_no_ams_and_nothing_begins_later() {
    let (instance, with) = schedule(ams(), 2.0);
    let without = Schedule { profile: None, ..with.clone() };
    assert!(found((instance.clone(), without)).contains("or no `profile` with AMs"));
    let without = Schedule { profile: None, ams: Vec::new(), ..with };
    assert!(found((instance, without)).contains("expected 0 to 0 s, as there is no profile"));
}

#[test]
fn each_job_has_one_am() {
    let one = ams()[..1].to_vec();
    assert!(found(schedule(one, 2.0)).contains("job b: found tasks without an AM"));
    let three = [ams(), ams()[..1].to_vec()].concat();
    assert!(found(schedule(three, 2.0)).contains("job a: found a second AM"));
}

#[test]
fn a_am_keeps_its_times() {
    assert!(with_first(|row| row.start = micros(0.5)).contains("expected a start at 1 s or later"));
    assert!(with_first(|row| row.up = Some(micros(5.0))).contains("expected 5 to 7 s (am-start)"));
    assert!(with_first(|row| row.end = micros(23.0)).contains("expected an end at 22 s"));
    assert!(with_first(|row| row.outcome = Outcome::Killed).contains("killed, expected done"));
    assert!(with_first(|row| row.up = None).contains("while the AM of its job is not up"));
    assert!(with_first(|row| row.up = Some(micros(23.0))).contains("between its start and its end"));
}

#[test]
fn a_am_has_a_slot_to_itself() {
    let said = with_first(|row| row.slot = Some(2));
    assert!(said.contains("its AM on node-1 slot 0 overlaps flow a, job a, map task 0"), "{said}");
    let said = with_first(|row| row.slot = Some(1));
    assert!(said.contains("on node-0 slot 1 overlaps the AM of another job"), "{said}");
    assert!(with_first(|row| row.slot = None).contains("found no slot, expected one"));
    assert!(with_first(|row| row.slot = Some(4)).contains("numbers below 4"));
}

#[test]
fn ams_hold_no_more_than_their_share() {
    let (instance, mut schedule) = schedule(ams(), 2.0);
    let one = profile().to_string().replace("am-share=0.5", "am-share=0.49");
    schedule.profile = Profile::parse(&one).unwrap();
    let said = found((instance, schedule));
    assert!(said.contains("AMs hold 2 slots, expected at most 1"), "{said}");
}

#[test]
fn violations_of_ams_have_a_kind() {
    let (instance, schedule) = schedule(ams()[..1].to_vec(), 2.0);
    let violation = check(&instance, &schedule).unwrap_err();
    assert!(matches!(violation, Violation::Am { .. }) && violation.kind() == "am");
}
