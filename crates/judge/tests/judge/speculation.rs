//! Speculative attempts: what a schedule under a profile that has them must show, and one without may not.

use slackline_judge::check;
use slackline_model::draft::{FlowDraft, SplitDraft, TasksDraft};
use slackline_model::profile::Profile;
use slackline_model::schedule::{AmRow, Clock, NewRow, Outcome, Schedule, TaskRows};
use slackline_model::{Instance, JobId, PhaseId, SlotRange, Span, Time};

use crate::build::{claim, empty, flow, instance, two_by_two};

/// A flow of three maps of 10 s and one of 60 s on four slots.
fn uneven() -> Instance {
    let split = |count, seconds| SplitDraft { count, seconds, hosts: Vec::new() };
    let maps = TasksDraft::Splits(vec![split(3, 10.0), split(1, 60.0)]);
    let flow: FlowDraft = flow("f", Some(maps.into()), None);
    instance(two_by_two(), vec![flow])
}

/// An AM without a slot, up at 5 s; containers start at once. It looks at 5 s, 9 s, 13 s, 17 s, …
const PROFILE: &str = "hadoop:submit=0:am-start=5:am-linger=0:am-share=0:heartbeat=0:container-start=0";

/// A task from `start` to `end` on a slot.
fn row(first: u32, slot: u32, (start, end): (f64, f64), (attempt, outcome): (u16, Outcome)) -> (NewRow, u32) {
    let [start, end] = [start, end].map(Time::from_seconds_nearest);
    (NewRow { phase: PhaseId(0), first, count: 1, start, end, startup: Span::ZERO, attempt, outcome }, slot)
}

/// Three maps end at 15 s, and the long one is tried again at 17 s: in vain, as it ends at 65 s and the other
/// at 77 s.
fn rows() -> Vec<(NewRow, u32)> {
    let done = |first| row(first, first, (5.0, 15.0), (0, Outcome::Done));
    let long = row(3, 3, (5.0, 65.0), (0, Outcome::Done));
    vec![done(0), done(1), done(2), long, row(3, 0, (17.0, 65.0), (1, Outcome::Killed))]
}

/// What the judge says of these rows under the profile with these settings.
fn found(rows: &[(NewRow, u32)], settings: &str) -> String {
    let instance = uneven();
    let mut tasks = TaskRows::new();
    for (row, slot) in rows {
        tasks.push(*row, &[SlotRange { first: *slot, len: row.count }]);
    }
    let end = rows.iter().filter(|(row, _)| row.outcome == Outcome::Done).map(|(row, _)| row.end).max();
    let am = AmRow {
        job: JobId(0),
        slot: None,
        start: Time::ZERO,
        up: Some(Time::from_seconds_nearest(5.0)),
        end: end.unwrap(),
        outcome: Outcome::Done,
    };
    let at_once = if settings.contains("am-heartbeat") { "" } else { ":am-heartbeat=0" };
    let profile = Profile::parse(&format!("{PROFILE}{at_once}{settings}")).unwrap();
    let measured = settings.contains("spread");
    let clock = if measured { Clock::Measured } else { Clock::Exact };
    let bare = Schedule { profile, clock, ams: vec![am], tasks, ..empty(&instance) };
    let schedule = claim(&instance, bare, &[]);
    match check(&instance, &schedule) {
        Ok(_) => "feasible".to_owned(),
        Err(violation) => format!("{}: {violation}", violation.kind()),
    }
}

/// The rows with one changed.
fn with(k: usize, change: impl Fn(&mut NewRow)) -> Vec<(NewRow, u32)> {
    let mut rows = rows();
    change(&mut rows[k].0);
    rows
}

const RULES: &str = ":speculate=4";

#[test]
fn a_slow_task_may_be_tried_again() {
    assert_eq!(found(&rows(), RULES), "feasible");
    assert_eq!(found(&rows(), ":speculate=4:spread=0.1"), "feasible");
}

#[test]
fn a_profile_without_them_has_none() {
    let said = found(&rows(), "");
    assert_eq!(
        said,
        "speculative-attempt: at 17 s: a speculative attempt of flow f, job f, map task 3: not allowed by the profile (speculate=0)"
    );
}

#[test]
fn it_starts_when_its_am_looks() {
    let at = |seconds: f64| with(4, |row| row.start = Time::from_seconds_nearest(seconds));
    assert_eq!(found(&at(21.0), RULES), "feasible");
    for seconds in [16.0, 18.0, 20.999] {
        let said = found(&at(seconds), RULES);
        assert!(
            said.contains("its ApplicationMaster starts speculative attempts only at 5 s and every 4 s"),
            "{said}"
        );
    }
}

#[test]
fn a_am_looks_away_after_it_found_one() {
    // Two long tasks: the second of them a straggler of six times its time.
    let both = |start: f64| {
        let mut rows = rows();
        rows[2].0.end = Time::from_seconds_nearest(65.0);
        rows.push(row(2, 1, (start, 65.0), (1, Outcome::Killed)));
        found(&rows, ":speculate=4:speculate-pause=6:straggler-share=0.1:straggler-factor=6")
    };
    assert_eq!([both(23.0), both(27.0)], ["feasible", "feasible"]);
    for start in [17.0, 21.0, 25.0] {
        assert!(
            both(start)
                .contains("its ApplicationMaster starts speculative attempts only at 23 s and every 4 s"),
            "{}",
            both(start)
        );
    }
}

#[test]
fn the_number_of_tasks_with_two_attempts_is_limited() {
    let said = found(&rows(), ":speculate=4:speculate-least=0");
    assert!(said.contains("found 1 at a time in its phase, expected at most 0"), "{said}");
    for share in ["speculate-total=0.25", "speculate-running=1"] {
        assert_eq!(found(&rows(), &format!(":speculate=4:speculate-least=0:{share}")), "feasible");
    }
    let said = found(&rows(), ":speculate=4:speculate-least=0:speculate-running=0.9:speculate-total=0.24");
    assert!(said.contains("expected at most 0"), "{said}");
}

#[test]
fn the_first_attempt_is_slow() {
    // Before any task is done, and with a task that ends as soon as a new one would.
    let early = with(4, |row| row.start = Time::from_seconds_nearest(13.0));
    let mut early = early;
    early[4].1 = 0;
    early[0].1 = 1;
    early[0].0.start = Time::from_seconds_nearest(15.0);
    early[0].0.end = Time::from_seconds_nearest(25.0);
    let said = found(&early, RULES);
    assert!(said.contains("no task of the phase has finished yet"), "{said}");
    let late = with(4, |row| row.start = Time::from_seconds_nearest(57.0));
    let said = found(&late, RULES);
    assert!(said.contains("ends at 65 s at the latest, and a new attempt would end at 67 s"), "{said}");
}

#[test]
fn the_first_attempt_computes_when_the_second_starts() {
    let mut rows = rows();
    (rows[3].0.startup, rows[3].0.end) = (Span(13_000_000), Time::from_seconds_nearest(78.0));
    rows[4].0.end = Time::from_seconds_nearest(77.0);
    (rows[3].0.outcome, rows[4].0.outcome) = (Outcome::Killed, Outcome::Done);
    rows[3].0.end = rows[4].0.end;
    let said = found(&rows, ":speculate=4:am-heartbeat=13");
    assert!(said.contains("the first attempt does not run its own code"), "{said}");
}

#[test]
fn one_attempt_is_stopped_when_the_other_is_done() {
    let shorter = with(4, |row| row.end = Time::from_seconds_nearest(64.0));
    let said = found(&shorter, RULES);
    assert!(
        said.contains("the other has the outcome killed at 64 s, expected it to be killed at 65 s"),
        "{said}"
    );
    let failed = with(4, |row| row.outcome = Outcome::Failed);
    assert!(
        found(&failed, RULES).contains("the other has the outcome failed at 65 s"),
        "{}",
        found(&failed, RULES)
    );
}

#[test]
fn a_task_has_at_most_two_attempts() {
    let mut rows = rows();
    rows.push(row(3, 1, (33.0, 65.0), (2, Outcome::Killed)));
    assert!(found(&rows, RULES).contains("the task has a third attempt"), "{}", found(&rows, RULES));
}

#[test]
fn each_attempt_has_a_row() {
    let mut rows = rows();
    rows[2] = (NewRow { count: 2, end: Time::from_seconds_nearest(65.0), ..rows[2].0 }, 2);
    rows.remove(3);
    let said = found(&rows, ":speculate=4:spread=0.1");
    assert!(said.contains("its row has several tasks"), "{said}");
}
