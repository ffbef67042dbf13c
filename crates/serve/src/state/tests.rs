//! Tests of the state alone. A simulated world carries out its effects, now or later, and may stop and
//! restart at any moment with the records that were written.

mod clock;
mod commands;
mod wait_reasons;
mod world;
mod year;

use std::collections::BTreeMap;
use std::sync::Arc;

use slackline_model::WallTime;
use slackline_model::random::test_seeds;

use crate::api::{CatchUp, Change, FlowStatus, IfLate, Overlap, Schedule, State};
use crate::state::alerts::ALERTS;
use crate::state::auth::{Principal, Role};
use crate::state::commands::submit::PARSED;
use crate::state::record::{Rerun, SubmissionSpec};
use crate::state::*;
use crate::timestamp;
use world::{START, World, minutes, sent, sent_with, submit};

fn anna() -> Principal {
    Principal::new("anna", Role::Submit)
}

fn operator() -> Principal {
    Principal::new("otto", Role::Operate)
}

#[test]
fn a_submission_goes_through_its_life_and_all_of_it_is_written_down() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    assert_eq!(number, 1);
    assert_eq!(world.state(1), State::Opening);
    world.open(1, &[("f", 2, None)]);
    assert_eq!(world.state(1), State::Running);
    assert_eq!(world.flow(1, "f").state, FlowStatus::Waiting);
    world.start(1, 0);
    assert_eq!((world.flow(1, "f").state, world.flow(1, "f").running), (FlowStatus::Running, 1));
    world.finish(1, 0);
    world.start(1, 0);
    world.finish(1, 0);
    assert_eq!(world.flow(1, "f").state, FlowStatus::Finished);
    world.back(1);
    assert_eq!(world.state(1), State::Finished);
    let kinds: Vec<&str> = world.records.iter().map(world::kind).collect();
    assert_eq!(kinds, ["began", "submitted", "predicted", "ended"]);
    assert_eq!(world.events(), ["submitted", "opened", "predicted", "done", "ended"]);
    assert!(world.events.iter().all(|event| event.name.as_deref() == Some("night")), "{:?}", world.events);
}

#[test]
fn runs_of_one_schedule_wait_are_skipped_or_replace_the_running_one() {
    let mut world = World::new(Limits::default());
    let by = |overlap| api::Submit { overlap, ..submit("night") };
    let first = world.submit(&anna(), by(Overlap::Wait));
    world.open(first, &[("f", 1, None)]);
    let second = world.submit(&anna(), by(Overlap::Wait));
    assert_eq!(world.why(second), Some("waits for 1, which has the same name".to_owned()));
    let left_out = world.execute(&anna(), sent(by(Overlap::Skip), "night"));
    let Ok(Answer::Accepted(accepted)) = left_out else { panic!("{left_out:?}") };
    assert_eq!(accepted.number, None);
    assert!(accepted.message.contains("skipped, because 1 has the same name"), "{}", accepted.message);
    let third = world.submit(&anna(), by(Overlap::Replace));
    assert_eq!(world.state(second), State::Cancelled);
    assert_eq!(world.flow(first, "f").state, FlowStatus::Cancelled);
    assert_eq!(world.state(third), State::Queued);
    world.back(first);
    assert_eq!(world.show(first).why.as_deref(), Some("replaced by 3"));
    assert_eq!(world.state(third), State::Opening);
    // Another user cannot use the name of an unfinished submission.
    let bert = Principal::new("bert", Role::Submit);
    let refused = world.execute(&bert, sent(submit("night"), "night"));
    assert_eq!(refused.unwrap_err().kind, RefusalKind::Forbidden);
}

#[test]
fn submissions_start_by_priority_within_limits_for_each_user() {
    let limits = Limits { live: 3, live_by_user: 2, ..Limits::default() };
    let mut world = World::new(limits);
    let bert = Principal::new("bert", Role::Submit);
    for k in 0..4 {
        world.submit(&anna(), submit(&format!("a{k}")));
    }
    world.submit(&bert, submit("b"));
    assert_eq!(
        [1, 2, 3, 4, 5].map(|n| world.state(n)),
        [State::Opening, State::Opening, State::Queued, State::Queued, State::Opening]
    );
    world.execute(&anna(), Command::Change { number: 4, change: priority(7), deadline: None }).unwrap();
    world.open(1, &[("f", 0, None)]);
    world.back(1);
    assert_eq!([3, 4].map(|n| world.state(n)), [State::Queued, State::Opening]);
    world.execute(&operator(), Command::Drain(true)).unwrap();
    world.open(4, &[("f", 0, None)]);
    world.back(4);
    assert_eq!(world.state(3), State::Queued, "nothing new begins");
    world.restart();
    assert_eq!(world.state(3), State::Queued);
    world.execute(&operator(), Command::Drain(false)).unwrap();
    assert_eq!(world.state(3), State::Opening);
}

/// A long queue would fill the memory with parsed files.
#[test]
fn the_files_of_a_long_queue_are_not_kept_parsed() {
    let mut world = World::new(Limits { live: 1, ..Limits::default() });
    for k in 0..=PARSED {
        let parse = |wanted: &mut SubmissionSpec| drop(wanted.draft.set(Arc::default()));
        world.execute(&anna(), sent_with(submit(&format!("a{k}")), "a", parse)).unwrap();
    }
    assert_eq!(
        [2, PARSED as u64, PARSED as u64 + 1].map(|number| world.is_parsed(number)),
        [true, true, false]
    );
}

fn priority(priority: u32) -> Change {
    Change { priority: Some(priority), ..Change::default() }
}

#[test]
fn held_cancelled_and_changed_submissions_stay_so_after_a_restart() {
    let mut world = World::new(Limits::default());
    let held = world.submit(&anna(), api::Submit { held: true, ..submit("held") });
    let live = world.submit(&anna(), submit("live"));
    assert_eq!((world.state(held), world.why(held)), (State::Queued, Some("held".to_owned())));
    world.open(live, &[("f", 3, None), ("g", 3, None)]);
    let hold = |flow: Option<&str>, held| Command::Hold { number: live, flow: flow.map(str::to_owned), held };
    world.execute(&anna(), hold(Some("f"), true)).unwrap();
    assert!(world.standings[&(live, "f".to_owned())].held && !world.standings[&(live, "g".to_owned())].held);
    let deadline = START + minutes(90);
    let change = Change { flow: Some("g".into()), weight: Some(5.0), ..Change::default() };
    world.execute(&anna(), Command::Change { number: live, change, deadline: Some(deadline) }).unwrap();
    world.restart();
    world.open(live, &[("f", 3, None), ("g", 3, None)]);
    let overrides = world.standings[&(live, "g".to_owned())];
    assert_eq!((overrides.deadline, overrides.weight), (Some(90.0 * 60.0), Some(5.0)));
    assert_eq!(world.flow(live, "g").deadline, Some(timestamp(deadline)));
    assert_eq!(world.flow(live, "f").state, FlowStatus::Held);
    world.execute(&anna(), hold(None, false)).unwrap();
    assert_eq!(world.flow(live, "f").state, FlowStatus::Waiting);
    world.execute(&anna(), Command::Cancel { number: live, flow: Some("f".into()) }).unwrap();
    world.restart();
    world.open(live, &[("f", 3, None), ("g", 0, None)]);
    assert_eq!(world.flow(live, "f").state, FlowStatus::Cancelled);
    world.back(live);
    assert_eq!(world.state(live), State::Cancelled);
    world.execute(&anna(), Command::Cancel { number: held, flow: None }).unwrap();
    assert_eq!(world.state(held), State::Cancelled);
    let over = world.execute(&anna(), Command::Hold { number: held, flow: None, held: true });
    assert_eq!(over.unwrap_err().message, "1 has already ended (cancelled)");
}

#[test]
fn a_submission_that_is_not_to_run_late_is_predicted_before_anything_of_it_starts() {
    let mut world = World::new(Limits::default());
    let strict = |name: &str| api::Submit { if_late: IfLate::Reject, ..submit(name) };
    let due = Some(minutes(10));
    let [early, late] = ["early", "late"].map(|name| world.submit(&anna(), strict(name)));
    world.expected.insert((early, "f".into()), minutes(9));
    world.expected.insert((late, "f".into()), minutes(11));
    world.hold_predictions = true;
    world.open(early, &[("f", 1, due)]);
    world.open(late, &[("f", 1, due)]);
    assert!(world.standings.values().all(|overrides| overrides.held));
    // After a crash before the decision, the prediction is requested again.
    world.restart();
    world.open(early, &[("f", 1, due)]);
    world.open(late, &[("f", 1, due)]);
    assert!(world.standings.values().all(|overrides| overrides.held));
    world.hold_predictions = false;
    world.predict();
    assert!(!world.standings[&(early, "f".to_owned())].held);
    assert_eq!(world.flow(late, "f").state, FlowStatus::Cancelled);
    world.back(late);
    assert_eq!(world.state(late), State::Rejected);
    world.restart();
    world.open(early, &[("f", 1, due)]);
    assert!(!world.standings[&(early, "f".to_owned())].held, "it was let in");
}

#[test]
fn strict_submissions_with_deadlines_are_rejected_without_a_forecast() {
    let mut world = World::new(Limits::default());
    world.forecast_error = true;
    let strict = |name: &str| api::Submit { if_late: IfLate::Reject, ..submit(name) };
    let [due, free] = ["due", "free"].map(|name| world.submit(&anna(), strict(name)));
    world.open(due, &[("f", 1, Some(minutes(10)))]);
    world.open(free, &[("f", 1, None)]);
    assert_eq!(world.flow(due, "f").state, FlowStatus::Cancelled);
    world.back(due);
    assert_eq!(world.state(due), State::Rejected);
    let why = world.show(due).why;
    assert_eq!(
        why.as_deref(),
        Some("the forecast failed, so its deadlines cannot be checked: it is made so")
    );
    assert!(!world.standings[&(free, "f".to_owned())].held, "what has no deadline is let in");
    let unpredicted = world.show(free).unpredicted;
    assert_eq!(unpredicted.as_deref(), Some("the forecast failed: it is made so"));
}

#[test]
fn a_submission_that_starts_during_a_forecast_gets_another_one() {
    let mut world = World::new(Limits::default());
    world.hold_predictions = true;
    let first = world.submit(&anna(), submit("first"));
    world.open(first, &[("f", 1, None)]);
    let strict = api::Submit { if_late: IfLate::Reject, ..submit("second") };
    let second = world.submit(&anna(), strict);
    world.expected.insert((second, "f".into()), minutes(30));
    world.open(second, &[("f", 1, Some(minutes(10)))]);
    assert_eq!(std::mem::take(&mut world.predicting), [Some(first)]);
    let expected = FlowEstimate { completion: Some(START + minutes(5)), between: None, chance: None };
    let flows = BTreeMap::from([((first, "f".to_owned()), expected)]);
    let of = Some(Impact { number: first, makes_late: Vec::new(), remedies: Vec::new() });
    world.apply_event(StateEvent::Predicted(ForecastResult { took: 1_000, flows, of, problem: None }));
    assert!(world.show(first).prediction.is_some());
    assert!(world.show(second).prediction.is_none(), "no forecast has it");
    assert!(world.standings[&(second, "f".to_owned())].held, "it is not let in yet");
    assert_eq!(world.predicting, [Some(second)]);
    world.hold_predictions = false;
    world.predict();
    world.back(second);
    assert_eq!(world.state(second), State::Rejected);
    assert!(world.alerts().is_empty(), "its client has the answer: {:?}", world.alerts());
}

/// Without a delay, the first of several simultaneous submissions would be promised slots that the others
/// take.
#[test]
fn submissions_that_open_together_are_predicted_together() {
    let mut world = World::new(Limits::default());
    world.hold_predictions = true;
    let [a, b, c] = ["a", "b", "c"].map(|name| world.submit(&anna(), submit(name)));
    world.open(a, &[("f", 1, None)]);
    world.open(b, &[("f", 1, None)]);
    assert_eq!(world.predicting, [], "c is being opened");
    world.not_opened(c, "flows[0]: found no input", true);
    assert_eq!(std::mem::take(&mut world.predicting), [Some(a)]);
    // The forecast includes both. The impact of the second on others comes with its own forecast.
    let answer = |number: u64| {
        let at = FlowEstimate { completion: Some(START + minutes(5)), between: None, chance: None };
        let flows = [a, b].map(|number| ((number, "f".to_owned()), at)).into();
        let of = Some(Impact { number, makes_late: Vec::new(), remedies: Vec::new() });
        StateEvent::Predicted(ForecastResult { took: 1, flows, of, problem: None })
    };
    world.apply_event(answer(a));
    assert!(world.show(a).prediction.is_some() && world.show(b).prediction.is_none());
    assert_eq!(std::mem::take(&mut world.predicting), [Some(b)]);
    world.apply_event(answer(b));
    assert!(world.show(b).prediction.is_some());
    // The wait does not depend on the time since the last forecast, and is short.
    world.pass(minutes(1));
    world.predicting.clear();
    world.apply_event(answer(a));
    world.pass(minutes(1));
    let [d, _e] = ["d", "e"].map(|name| world.submit(&anna(), submit(name)));
    world.predicting.clear();
    world.apply_event(answer(a));
    world.open(d, &[("f", 1, None)]);
    world.pass(SECOND / 8);
    assert_eq!(world.predicting, []);
    world.pass(SECOND / 4);
    assert_eq!(world.predicting, [Some(d)]);
}

#[test]
fn many_submissions_are_opened_before_the_next_forecast_of_all() {
    for (took, wait) in [(1, SECOND / 4), (SECOND, 4 * SECOND), (minutes(1), 10 * SECOND)] {
        let mut world = World::new(Limits::default());
        let numbers: Vec<u64> = (0..50).map(|k| world.submit(&anna(), submit(&format!("s{k}")))).collect();
        world.hold_predictions = true;
        let answer = |world: &mut World| {
            world.predicting.clear();
            let (flows, of) = (BTreeMap::new(), None);
            world.apply_event(StateEvent::Predicted(ForecastResult { took, flows, of, problem: None }));
        };
        numbers[..25].iter().for_each(|&number| world.open(number, &[("f", 1, None)]));
        world.pass(SECOND / 2);
        assert_eq!(world.predicting, [None], "more than twenty wait");
        numbers[25..49].iter().for_each(|&number| world.open(number, &[("f", 1, None)]));
        answer(&mut world);
        world.pass(wait - SECOND / 8);
        assert_eq!(world.predicting, [], "{took}: the last is being opened");
        world.pass(SECOND / 4);
        assert_eq!(world.predicting, [None], "{took}");
        answer(&mut world);
        world.open(numbers[49], &[("f", 1, None)]);
        assert_eq!(world.predicting.len(), 1, "{took}: all are open");
    }
}

#[test]
fn a_held_flow_has_no_prediction_and_could_start_when_it_is_resumed() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.expected.insert((number, "f".into()), minutes(30));
    world.open(number, &[("f", 2, Some(minutes(60)))]);
    let shown = world.show(number);
    assert_eq!((shown.began, shown.flows[0].late), (Some(timestamp(START)), Some(false)));
    let change = api::Change { deadline: Some("40m".into()), ..api::Change::default() };
    world.execute(&anna(), Command::Change { number, change, deadline: Some(START + minutes(40)) }).unwrap();
    let hold = |held| Command::Hold { number, flow: None, held };
    world.execute(&anna(), hold(true)).unwrap();
    world.pass(minutes(2));
    let flow = world.show(number).flows[0].clone();
    assert_eq!((flow.predicted, flow.late, flow.unknown), (None, None, false));
    world.expected.insert((number, "f".into()), minutes(33));
    world.execute(&anna(), hold(false)).unwrap();
    assert_eq!(world.show(number).flows[0].predicted, None, "what was expected before counts no more");
    world.pass(SECOND);
    let shown = world.show(number);
    assert_eq!(shown.flows[0].predicted, Some(timestamp(START + minutes(33))));
    assert_eq!(shown.began, Some(timestamp(START)), "it could start before it was held");
    let early = world.submit(&anna(), api::Submit { held: true, ..submit("early") });
    world.pass(SECOND);
    world.execute(&anna(), Command::Hold { number: early, flow: None, held: false }).unwrap();
    world.pass(SECOND);
    world.open(early, &[("f", 2, None)]);
    assert_eq!(world.show(early).began, Some(timestamp(START + minutes(2) + 3 * SECOND)));
}

#[test]
fn each_cause_is_reported_once_and_predictions_are_scored() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.expected.insert((number, "f".into()), minutes(30));
    world.open(number, &[("f", 2, Some(minutes(20)))]);
    assert_eq!(world.alerts(), ["likely_late"]);
    world.restart();
    world.open(number, &[("f", 2, Some(minutes(20)))]);
    world.pass(minutes(5));
    assert_eq!(world.alerts(), ["likely_late"], "once for each cause");
    world.expected.insert((number, "f".into()), minutes(15));
    world.pass(minutes(1));
    assert!(world.events().contains(&"likely_in_time".to_owned()));
    world.pass(minutes(20));
    assert_eq!(world.alerts(), ["likely_late", "late"]);
    let message = &world.kept_alerts()[0].message;
    assert!(message.ends_with("has passed, 2 tasks are unfinished"), "{message}");
    world.start(number, 0);
    world.fail(number, 0, true);
    assert_eq!(world.alerts(), ["likely_late", "late", "failed"]);
    world.back(number);
    assert_eq!(world.show(number).why.as_deref(), Some("f: job j: map 0: it does not work"));
    assert_eq!(world.service().calibration.flows, 0, "what failed says nothing of predictions");
    let other = world.submit(&anna(), submit("other"));
    let done = world.now.since(START) + minutes(10);
    world.expected.insert((other, "f".into()), done);
    world.open(other, &[("f", 1, Some(done + minutes(1)))]);
    world.pass(minutes(15));
    world.start(other, 0);
    world.finish(other, 0);
    world.back(other);
    let calibration = world.service().calibration;
    assert_eq!((calibration.flows, calibration.deadlines), (1, Some(0.0)));
    assert!((calibration.bias - 5.0 / 15.0).abs() < 1e-9, "{calibration:?}");
    let before = world.service().calibration;
    world.restart();
    assert_eq!(world.service().calibration, before);
    world.compact();
    assert_eq!(world.service().calibration, before);
}

#[test]
fn flows_that_cannot_be_predicted_are_counted_and_their_deadlines_never_hold() {
    let mut world = World::new(Limits::default());
    let done = |world: &mut World, name: &str, is_unknown: bool, after: u64| {
        world.unknown = is_unknown;
        let number = world.submit(&anna(), submit(name));
        world.expected.insert((number, "f".into()), world.now.since(START) + minutes(10));
        world.open(number, &[("f", 1, Some(minutes(60 * 24)))]);
        let shown = world.show(number);
        let prediction = shown.prediction.unwrap().flows.remove(0);
        assert_eq!((prediction.completion.is_none(), shown.flows[0].unknown), (is_unknown, is_unknown));
        assert_eq!((prediction.holds.is_none(), shown.flows[0].late.is_none()), (is_unknown, is_unknown));
        world.pass(minutes(after));
        world.start(number, 0);
        world.finish(number, 0);
        world.back(number);
    };
    done(&mut world, "new", true, 40);
    let calibration = world.service().calibration;
    assert_eq!((calibration.flows, calibration.unknown), (0, 1));
    done(&mut world, "predicted", false, 11);
    let calibration = world.service().calibration;
    assert_eq!((calibration.flows, calibration.inside, calibration.unknown), (1, 1.0, 1));
    assert!((calibration.error - 1.0 / 11.0).abs() < 1e-6, "{calibration:?}");
    // A failed simulation of the samples leaves out the interval, but the completion is still predicted.
    world.unspread = true;
    done(&mut world, "unspread", false, 11);
    assert_eq!(world.service().calibration, calibration);
    let unpredicted: Vec<&str> = world
        .events
        .iter()
        .filter(|event| event.kind == "unpredicted")
        .map(|event| event.message.as_str())
        .collect();
    assert_eq!(unpredicted, ["the forecast failed: it is made so"], "once");
    world.restart();
    assert_eq!(world.service().calibration, calibration);
    world.compact();
    assert_eq!(world.service().calibration, calibration);
}

/// A running night flow that the next predicted submission makes late.
fn late_night() -> World {
    let mut world = World::new(Limits::default());
    let night = world.submit(&anna(), submit("night"));
    world.expected.insert((night, "f".into()), minutes(10));
    world.open(night, &[("f", 1, Some(minutes(20)))]);
    world.expected.insert((night, "f".into()), minutes(30));
    world.makes_late = Some((night, "f"));
    world
}

#[test]
fn an_alert_names_a_submission_that_was_admitted_after_a_separate_forecast() {
    let mut world = late_night();
    let strict = api::Submit { if_late: IfLate::Reject, ..submit("urgent") };
    let urgent = world.submit(&anna(), strict);
    world.open(urgent, &[("f", 1, None)]);
    world.makes_late = None;
    world.pass(2 * SECOND);
    let message = &world.kept_alerts()[0].message;
    assert!(message.ends_with("; without 2 urgent it would meet it"), "{message}");
}

#[test]
fn a_deadline_that_is_offered_leaves_room() {
    let offered = |between| {
        let expected = FlowEstimate { completion: Some(START + 7), between, chance: None };
        let remedy = api::Remedy::Deadline { flow: "f".into(), deadline: timestamp(START + 7) };
        let meaning = Impact { number: 3, makes_late: Vec::new(), remedies: vec![remedy] };
        let mut meaning = meaning.with_room(&[((3, "f".to_owned()), expected)].into());
        let Some(api::Remedy::Deadline { deadline, .. }) = meaning.remedies.pop() else { panic!() };
        crate::wall_time(deadline)
    };
    let whole = |seconds: u64| WallTime((START.0 / SECOND + seconds) * SECOND);
    assert_eq!(offered(None), whole(1));
    assert_eq!(offered(Some([START, START + 2 * SECOND + 1])), whole(3));
}

#[test]
fn an_alert_says_which_submission_makes_a_flow_late_and_when_it_is_expected() {
    let mut world = late_night();
    let urgent = world.submit(&anna(), submit("urgent"));
    world.open(urgent, &[("f", 1, None)]);
    let message = &world.kept_alerts()[0].message;
    assert!(message.ends_with(" by 600.0 s; without 2 urgent it would meet it"), "{message}");
    world.pass(minutes(21));
    let message = &world.kept_alerts()[0].message;
    let then = timestamp(START + minutes(30));
    assert!(
        message.ends_with(&format!("1 task is unfinished; it is predicted to finish at {then}")),
        "{message}"
    );
}

#[test]
fn another_deadline_is_another_cause() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.expected.insert((number, "f".into()), minutes(30));
    world.open(number, &[("f", 2, Some(minutes(20)))]);
    let change = Change { flow: Some("f".into()), ..Change::default() };
    world
        .execute(
            &anna(),
            Command::Change { number, change: change.clone(), deadline: Some(START + minutes(60)) },
        )
        .unwrap();
    world.pass(minutes(1));
    assert_eq!(world.flow(number, "f").late, Some(false));
    world.execute(&anna(), Command::Change { number, change, deadline: Some(START + minutes(25)) }).unwrap();
    world.pass(minutes(1));
    assert_eq!(world.alerts(), ["likely_late", "likely_late"]);
}

#[test]
fn a_submission_that_cannot_be_opened_is_retried_or_fails() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.not_opened(number, "the disk is full", false);
    assert_eq!(world.state(number), State::Queued);
    assert!(world.why(number).unwrap().contains("retry 1 in 5 s: the disk is full"));
    world.pass(6 * SECOND);
    assert_eq!(world.state(number), State::Opening);
    world.not_opened(number, "the disk is full", false);
    world.pass(6 * SECOND);
    assert_eq!(world.state(number), State::Queued, "it waits longer each time");
    world.pass(6 * SECOND);
    world.open(number, &[("f", 1, None)]);
    world.stopped(number, "its journal cannot be written");
    assert_eq!(world.state(number), State::Queued);
    world.pass(minutes(1));
    world.not_opened(number, "flows[0]: found no input", true);
    assert_eq!((world.state(number), world.alerts()), (State::Failed, vec!["failed".to_owned()]));
}

#[test]
fn a_submission_that_waits_for_files_starts_when_they_exist() {
    let mut world = World::new(Limits::default());
    let number = world.submit_waiting(&anna(), submit("night"));
    assert_eq!((world.state(number), world.why(number)), (State::Queued, Some("waits for files".to_owned())));
    world.pass(minutes(1));
    let why = "waits for /in/a*, which does not exist";
    assert_eq!((world.state(number), world.why(number)), (State::Queued, Some(why.to_owned())));
    assert_eq!(world.show(number).missing.as_deref(), Some("/in/a*"));
    // Behind another submission of its name, files are not the reason to wait.
    let behind = world.submit_waiting(&anna(), submit("night"));
    assert_eq!(world.show(behind).missing, None);
    world.execute(&anna(), Command::Cancel { number: behind, flow: None }).unwrap();
    let waits = world.events.iter().filter(|event| event.kind == "waits");
    assert_eq!(waits.map(|event| event.message.as_str()).collect::<Vec<_>>(), [why], "it is reported once");
    world.files = Some(1);
    world.pass(5 * SECOND);
    assert_eq!((world.state(number), world.show(number).missing), (State::Opening, None));
}

#[test]
fn a_submission_waits_until_its_files_have_stopped_changing() {
    let mut world = World::new(Limits::default());
    let number = world.submit_waiting(&anna(), submit("night"));
    for size in 1..20 {
        world.files = Some(size);
        world.pass(SECOND);
        assert_eq!(world.state(number), State::Queued, "{size}");
    }
    assert_eq!(world.why(number).as_deref(), Some("waits until its files have stopped changing"));
    world.pass(3 * SECOND);
    assert_eq!(world.state(number), State::Opening);
    let longer = api::Submit { when_still: Some(60.0), ..submit("longer") };
    let number = world.submit_waiting(&anna(), longer);
    world.pass(50 * SECOND);
    assert_eq!(world.state(number), State::Queued);
    world.pass(15 * SECOND);
    assert_eq!(world.state(number), State::Opening);
}

#[test]
fn a_submission_gives_up_if_its_files_do_not_come() {
    let mut world = World::new(Limits::default());
    let first = world.submit_waiting(&anna(), submit("night"));
    let behind = world.submit_waiting(&anna(), submit("night"));
    let soon = world.submit_waiting(&anna(), api::Submit { when_for: Some(90.0), ..submit("soon") });
    world.pass(minutes(2));
    assert_eq!((world.state(soon), world.alerts()), (State::Failed, vec!["failed".to_owned()]));
    assert_eq!(world.why(soon).as_deref(), Some("gave up after 1m 30s: /in/a* does not exist"));
    // The limit continues through restarts; that of the next one begins when it is the first.
    for _ in 0..23 {
        world.pass(minutes(60));
        world.restart();
    }
    assert_eq!((world.state(first), world.state(behind)), (State::Queued, State::Queued));
    world.pass(minutes(60));
    assert_eq!((world.state(first), world.state(behind)), (State::Failed, State::Queued));
    world.pass(minutes(23 * 60));
    assert_eq!(world.state(behind), State::Queued);
    world.pass(minutes(61));
    assert_eq!(world.state(behind), State::Failed);
}

#[test]
fn times_of_a_schedule_with_separate_paths_do_not_wait_for_each_other() {
    for (own_by, states) in [
        (vec!["night".to_owned()], [State::Opening, State::Opening]),
        (Vec::new(), [State::Opening, State::Queued]),
    ] {
        let mut world = World::new(Limits::default());
        let waits = api::Submit { when: vec!["in/%d".into()], when_for: Some(1e6), ..nightly(CatchUp::All) };
        let command = sent_with(waits, "nightly", |wanted| wanted.own_by.clone_from(&own_by));
        world.execute(&anna(), command).unwrap();
        world.pass(minutes(24 * 60));
        world.restart();
        world.pass(minutes(24 * 60));
        assert_eq!(world.show(2).missing.is_some(), !own_by.is_empty(), "each waits for its own files");
        world.files = Some(1);
        world.pass(5 * SECOND);
        assert_eq!([1, 2].map(|number| world.state(number)), states);
        // The same night again shares the state directory of that night.
        let keys: Vec<RunKey> = world.submitted().iter().map(RunKey::of).collect();
        assert_eq!(keys[0] == keys[1], own_by.is_empty());
    }
}

fn nightly(catch_up: CatchUp) -> api::Submit {
    let schedule = Schedule { cron: "0 2 * * *".into(), zone: Some("Europe/Berlin".into()), catch_up };
    let parameters = BTreeMap::from([("night".to_owned(), "%Y-%m-%d".to_owned())]);
    api::Submit { schedule: Some(schedule), parameters, ..submit("nightly") }
}

#[test]
fn a_schedule_submits_once_at_each_of_its_times() {
    let mut world = World::new(Limits::default());
    world.play = true;
    world.execute(&anna(), sent(nightly(CatchUp::Latest), "nightly")).unwrap();
    for _ in 0..10 {
        world.pass(minutes(24 * 60));
        world.restart();
    }
    let nights: Vec<String> =
        world.submitted().iter().map(|w| w.submit.parameters["night"].clone()).collect();
    // The service started on Tuesday 24 November 2026 at noon.
    assert_eq!(nights.len(), 10);
    assert_eq!((nights[0].as_str(), nights[9].as_str()), ("2026-11-25", "2026-12-04"));
    let recurrence = world.recurrences().remove(0);
    assert_eq!(recurrence.last.unwrap().to_string(), "2026-12-04T01:00:00Z");
    assert_eq!(recurrence.next.unwrap().to_string(), "2026-12-05T01:00:00Z");
}

#[test]
fn times_that_were_missed_are_made_up_for_as_it_is_wanted() {
    for (catch_up, expected) in [(CatchUp::All, 5), (CatchUp::Latest, 1), (CatchUp::None, 0)] {
        let mut world = World::new(Limits::default());
        world.play = true;
        world.execute(&anna(), sent(nightly(catch_up), "nightly")).unwrap();
        // The service is down for five nights.
        world.now = world.now + minutes(5 * 24 * 60);
        world.restart();
        world.pass(minutes(1));
        assert_eq!(world.submitted().len(), expected, "{catch_up:?}");
        world.restart();
        world.pass(minutes(1));
        assert_eq!(world.submitted().len(), expected, "{catch_up:?}");
    }
}

#[test]
fn schedules_are_paused_changed_and_removed() {
    let mut world = World::new(Limits::default());
    world.play = true;
    let all = || nightly(CatchUp::All);
    world.execute(&anna(), sent(all(), "nightly")).unwrap();
    let pause = |paused| Command::Pause { name: "nightly".into(), paused };
    world.execute(&anna(), pause(true)).unwrap();
    world.pass(minutes(3 * 24 * 60));
    assert_eq!(world.submitted().len(), 0);
    world.restart();
    world.execute(&anna(), pause(false)).unwrap();
    world.pass(minutes(2 * 24 * 60));
    assert_eq!(world.submitted().len(), 2, "what was paused was not wanted");
    let bert = Principal::new("bert", Role::Submit);
    assert_eq!(
        world.execute(&bert, Command::Remove("nightly".into())).unwrap_err().kind,
        RefusalKind::Forbidden
    );
    assert!(
        world.execute(&anna(), Command::Remove("nightli".into())).unwrap_err().message.contains("nightly")
    );
    world.execute(&anna(), Command::Remove("nightly".into())).unwrap();
    world.restart();
    world.pass(minutes(2 * 24 * 60));
    assert_eq!(world.submitted().len(), 2);
    assert!(world.recurrences().is_empty());
}

#[test]
fn a_schedule_that_is_run_by_hand_keeps_its_times() {
    let mut world = World::new(Limits::default());
    world.play = true;
    world.execute(&anna(), sent(nightly(CatchUp::All), "nightly")).unwrap();
    let run = || Command::Run { name: "nightly".into(), past: None };
    let bert = Principal::new("bert", Role::Submit);
    assert_eq!(world.execute(&bert, run()).unwrap_err().kind, RefusalKind::Forbidden);
    let Ok(Answer::Accepted(accepted)) = world.execute(&anna(), run()) else { panic!("it is accepted") };
    assert_eq!(accepted.message, "nightly is submitted as 1");
    let before = world.recurrences();
    assert_eq!(before[0].last, None, "a run by hand is not a time of the schedule");
    world.restart();
    assert_eq!(world.recurrences(), before);
    let by_hand = world.submitted().remove(0);
    assert_eq!((by_hand.submit.parameters["night"].as_str(), by_hand.recurrence), ("2026-11-24", None));
    // The night comes all the same, and a paused schedule can be run.
    world.pass(minutes(24 * 60));
    assert_eq!(world.submitted().len(), 2);
    world.execute(&anna(), Command::Pause { name: "nightly".into(), paused: true }).unwrap();
    world.execute(&anna(), run()).unwrap();
    assert_eq!(world.submitted().len(), 3);
}

#[test]
fn past_times_of_a_schedule_are_submitted_by_hand_and_only_those() {
    let mut world = World::new(Limits::default());
    let waits = api::Submit { when: vec!["in/%d".into()], ..nightly(CatchUp::All) };
    world.execute(&anna(), sent(waits, "nightly")).unwrap();
    let times = |from: &str, to: &str| {
        let times = world.state.times_of("nightly", from, to);
        times.map(|times| times.into_iter().map(|at| timestamp(at).to_string()).collect::<Vec<_>>())
    };
    assert_eq!(times("2026-03-28", "2026-03-29").unwrap(), ["2026-03-28T01:00:00Z", "2026-03-29T01:00:00Z"]);
    assert_eq!(times("2026-11-23", "2030-01-01").unwrap().len(), 2, "no time that has not come");
    assert!(
        times("soon", "2026-03-29").unwrap_err().message.starts_with("from: found \"soon\", expected a date")
    );
    assert!(
        times("0001-01-01", "2026-03-29").is_err_and(|refusal| refusal.message.contains("more than 1000"))
    );
    let at = |text: &str| {
        let at: jiff::Timestamp = text.parse().unwrap();
        Command::Run { name: "nightly".into(), past: Some(crate::wall_time(at)) }
    };
    for wrong in ["2026-03-28T01:00:01Z", "2026-11-25T01:00:00Z"] {
        assert!(
            world.execute(&anna(), at(wrong)).unwrap_err().message.contains("expected a past time"),
            "{wrong}"
        );
    }
    world.execute(&anna(), at("2026-03-28T01:00:00Z")).unwrap();
    let wanted = world.submitted().remove(0);
    assert_eq!((wanted.submit.parameters["night"].as_str(), wanted.runs_all), ("2026-03-28", true));
    assert_eq!(world.show(1).occurrence.unwrap().at.to_string(), "2026-03-28T01:00:00Z");
    // A past time does not wait for its files.
    world.pass(2 * SECOND);
    assert_eq!(world.why(1).as_deref(), Some("gave up after 0s: /in/a* does not exist"));
    let before = world.recurrences();
    world.restart();
    assert_eq!(world.recurrences(), before);
}

#[test]
fn a_submission_that_has_ended_is_run_again_under_a_new_number() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    let rerun = |number| Command::Rerun { number, choice: Rerun::From("j".into()) };
    let refused = |world: &mut World, who: &Principal, number| world.execute(who, rerun(number)).unwrap_err();
    assert_eq!(refused(&mut world, &anna(), number).message, "1 has not ended");
    world.not_opened(number, "found no input", true);
    for _ in 0..2 {
        let bert = Principal::new("bert", Role::Submit);
        assert_eq!(refused(&mut world, &bert, number).kind, RefusalKind::Forbidden);
        assert_eq!(refused(&mut world, &anna(), 77).kind, RefusalKind::NotFound);
        world.execute(&anna(), rerun(number)).unwrap();
        let again = world.submitted().pop().unwrap();
        let last = world.list()[0].number;
        assert_eq!((again.rerun, again.name.as_str()), (Some((number, Rerun::From("j".into()))), "night"));
        assert_eq!(world.show(last).rerun_of, Some(number));
        // After a restart, also one that reads a shortened log, it is still kept.
        world.compact();
    }
}

#[test]
fn a_schedule_that_skips_overlaps_is_not_run_beside_itself() {
    let mut world = World::new(Limits::default());
    let skipping = crate::api::Submit { overlap: Overlap::Skip, ..nightly(CatchUp::All) };
    world.execute(&anna(), sent(skipping, "nightly")).unwrap();
    let run = || Command::Run { name: "nightly".into(), past: None };
    world.execute(&anna(), run()).unwrap();
    let refusal = world.execute(&anna(), run()).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    assert_eq!(refusal.message, "submission 1 of nightly has not finished, and this schedule skips overlaps");
    assert_eq!(world.submitted().len(), 1);
}

#[test]
fn flows_of_a_schedule_have_its_next_time_while_there_is_one() {
    let mut world = World::new(Limits::default());
    world.execute(&anna(), sent(nightly(CatchUp::All), "nightly")).unwrap();
    while world.opening.is_empty() {
        world.pass(minutes(60));
    }
    let number = *world.opening.first().unwrap();
    world.open(number, &[("f", 2, None)]);
    let next = |world: &World| world.standings[&(number, "f".to_owned())].next;
    let of = |world: &World| {
        let next = crate::wall_time(world.recurrences().first()?.next?);
        // The run started at the start of the world.
        Some(next.seconds_since(START))
    };
    assert!(of(&world).is_some_and(|next| START.after_seconds(next) > world.now + minutes(22 * 60)));
    assert_eq!(next(&world), of(&world));
    let pause = |paused| Command::Pause { name: "nightly".into(), paused };
    world.execute(&anna(), pause(true)).unwrap();
    assert_eq!(next(&world), None);
    world.execute(&anna(), pause(false)).unwrap();
    assert_eq!(next(&world), of(&world));
    let mut later = nightly(CatchUp::All);
    later.schedule.as_mut().unwrap().cron = "0 5 * * *".into();
    let before = next(&world);
    world.execute(&anna(), sent(later, "nightly")).unwrap();
    assert!(next(&world) != before && next(&world) == of(&world));
    // The flows of an operator who replaces a schedule run in the operator's name.
    world.execute(&operator(), sent(nightly(CatchUp::All), "nightly")).unwrap();
    assert_eq!(world.recurrences()[0].user, "otto");
    world.execute(&operator(), Command::Remove("nightly".into())).unwrap();
    assert_eq!(next(&world), None);
    // A submission without a schedule has no next time.
    let alone = world.submit(&anna(), submit("alone"));
    world.open(alone, &[("f", 2, None)]);
    assert_eq!(world.standings[&(alone, "f".to_owned())].next, None);
}

#[test]
fn roles_and_quotas_are_kept() {
    let mut world = World::new(Limits { queued_by_user: 2, rate_by_user: 5, live: 1, ..Limits::default() });
    let looker = Principal::new("lo", Role::Look);
    let number = world.submit(&anna(), submit("a"));
    let denied = |world: &mut World, principal: &Principal, command: Command| {
        world.execute(principal, command).unwrap_err().kind
    };
    assert_eq!(denied(&mut world, &looker, Command::Cancel { number, flow: None }), RefusalKind::Forbidden);
    assert_eq!(denied(&mut world, &anna(), Command::Drain(true)), RefusalKind::Forbidden);
    let bert = Principal::new("bert", Role::Submit);
    assert_eq!(denied(&mut world, &bert, Command::Cancel { number, flow: None }), RefusalKind::Forbidden);
    world.submit(&anna(), submit("b"));
    world.submit(&anna(), submit("c"));
    let full = world.execute(&anna(), sent(submit("d"), "d")).unwrap_err();
    assert_eq!(
        (full.kind, full.message.as_str()),
        (
            RefusalKind::TooMany(60),
            "2 submissions of anna wait in the queue, the limit of a user is 2; retry later"
        )
    );
    for name in ["b", "c"] {
        let number = world.number_of(name);
        world.execute(&anna(), Command::Cancel { number, flow: None }).unwrap();
    }
    world.submit(&anna(), submit("e"));
    world.submit(&anna(), submit("f"));
    world.execute(&anna(), Command::Cancel { number: 4, flow: None }).unwrap();
    let fast = world.execute(&anna(), sent(submit("g"), "g")).unwrap_err();
    assert!(matches!(fast.kind, RefusalKind::TooMany(1..=60)), "{fast:?}");
    world.pass(minutes(2));
    world.submit(&anna(), submit("g"));
    for name in ["", ".x", "a/b", "x\ny"] {
        let wrong = world.execute(&anna(), sent(submit("h"), name));
        let named = api::Submit { name: Some(name.to_owned()), ..submit("h") };
        assert!(wrong.is_ok() || name.is_empty() || wrong.is_err());
        assert!(world.execute(&anna(), sent(named, "h")).is_err(), "{name:?}");
    }
}

#[test]
fn scheduled_submissions_keep_to_quotas() {
    let limits = Limits { queued_by_user: 2, live: 1, ..Limits::default() };
    let mut world = World::new(limits);
    let daily = |name: &str| {
        let submit = api::Submit { name: Some(name.to_owned()), ..nightly(CatchUp::Latest) };
        sent(submit, name)
    };
    let numbers = ["a", "b", "c"].map(|name| world.submit(&anna(), submit(name)));
    // A user may replace a schedule while the queue is full.
    world.execute(&anna(), daily("one")).unwrap();
    world.execute(&anna(), daily("one")).unwrap();
    world.execute(&anna(), Command::Cancel { number: numbers[1], flow: None }).unwrap();
    world.execute(&anna(), daily("two")).unwrap();
    let most = world.execute(&anna(), daily("three")).unwrap_err();
    assert_eq!(most.message, "anna already has 2 schedules, the limit of a user is 2");
    // One submission may wait beside the third. A skipped one is not caught up later.
    world.pass(minutes(24 * 60));
    let names = |world: &World| world.submitted().iter().map(|w| w.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&world), ["a", "b", "c", "one"]);
    assert!(world.recurrences().iter().all(|one| one.next.unwrap().to_string() == "2026-11-26T01:00:00Z"));
    let lasts = |world: &mut World| world.recurrences().iter().map(|one| one.last).collect::<Vec<_>>();
    let before = lasts(&mut world);
    assert_eq!(before.iter().filter(|last| last.is_some()).count(), 1, "{before:?}");
    world.restart();
    world.pass(minutes(1));
    assert_eq!((names(&world).len(), lasts(&mut world)), (4, before.clone()));
    world.compact();
    assert_eq!(lasts(&mut world), before);
}

#[test]
fn a_repeated_idempotency_key_does_not_submit_again() {
    let limits = Limits { remembered: 10, remembered_for: minutes(60), ..Limits::default() };
    let mut world = World::new(limits);
    world.play = true;
    let keyed = |name: &str| api::Submit { key: Some("k1".into()), ..submit(name) };
    let first = world.submit(&anna(), keyed("a"));
    assert_eq!(world.submit(&anna(), keyed("a")), first);
    assert_eq!(world.submit(&operator(), keyed("b")), first + 1, "everybody has words of their own");
    let refused = |world: &mut World, again: api::Submit| {
        let name = again.document.clone();
        let refused = world.execute(&anna(), sent(again, &name)).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Conflict);
        refused.message
    };
    let expected = format!(
        "key: submission {first} has the same key but another name (a); submit it unchanged, or use another key"
    );
    assert_eq!(refused(&mut world, keyed("b")), expected);
    world.play = false;
    let live = world.submit(&anna(), api::Submit { key: Some("k2".into()), ..submit("live") });
    let other = api::Submit { key: Some("k2".into()), name: Some("live".into()), ..submit("other") };
    let problem = refused(&mut world, other);
    let expected = format!(
        "submission {live} has the same key but another document, other parameters or other deadlines; submit"
    );
    assert!(problem.contains(&expected), "{problem}");
    world.execute(&anna(), Command::Cancel { number: live, flow: None }).unwrap();
    world.play = true;
    world.restart();
    assert_eq!(world.submit(&anna(), keyed("a")), first);
    world.compact();
    assert_eq!(world.submit(&anna(), keyed("a")), first);
    // A forgotten submission stays forgotten.
    world.pass(minutes(120));
    assert_eq!(world.submit(&anna(), keyed("a")), first + 3);
    let long = api::Submit { key: Some("k".repeat(201)), ..submit("a") };
    let answer = world.execute(&anna(), sent(long, "a"));
    assert_eq!(answer.unwrap_err().message, "key: found 201 bytes, expected 1 to 200");
}

#[test]
fn finished_submissions_are_forgotten_and_the_state_stays_small() {
    let limits = Limits { remembered: 10, remembered_for: minutes(60), ..Limits::default() };
    let mut world = World::new(limits);
    world.play = true;
    for k in 0..50 {
        world.submit(&anna(), submit(&format!("n{k}")));
        world.pass(minutes(1));
    }
    assert_eq!(world.list().len(), 10);
    assert_eq!(world.forgotten, (0..40).map(|k| format!("n{k}")).collect::<Vec<_>>());
    world.compact();
    assert!(world.records.len() <= 14, "{:?}", world.records);
    world.pass(minutes(120));
    assert_eq!(world.list().len(), 0);
    assert_eq!(world.submit(&anna(), submit("next")), 51, "no number is given twice");
    world.compact();
    world.restart();
    assert_eq!(world.submit(&anna(), submit("next2")), 52);
}

fn due(name: &str, at: WallTime) -> Command {
    sent_with(api::Submit { held: true, ..submit(name) }, name, |wanted| wanted.due = Some(at))
}

#[test]
fn a_submission_that_has_not_started_by_its_first_deadline_is_reported_once() {
    let mut world = World::new(Limits::default());
    world.execute(&anna(), due("night", START + minutes(10))).unwrap();
    world.execute(&anna(), due("later", START + minutes(60))).unwrap();
    assert_eq!(world.show(1).deadline, Some(timestamp(START + minutes(10))));
    let deadline = Some(START + minutes(20));
    world.execute(&anna(), Command::Change { number: 1, change: Change::default(), deadline }).unwrap();
    assert_eq!(world.list()[1].deadline, deadline.map(timestamp));
    world.pass(minutes(15));
    assert_eq!(world.alerts(), [""; 0]);
    world.restart();
    world.pass(minutes(10));
    assert_eq!(world.alerts(), ["late"]);
    let message = &world.kept_alerts()[0].message;
    assert!(message.contains("has passed, and it has not started: held"), "{message}");
    world.restart();
    world.pass(minutes(5));
    // The missed deadline was reported before the start, so it is not reported again for the flow.
    world.execute(&anna(), Command::Hold { number: 1, flow: None, held: false }).unwrap();
    world.open(1, &[("f", 1, Some(minutes(20)))]);
    world.pass(minutes(5));
    assert_eq!(world.alerts(), ["late"]);
    assert_eq!(world.show(1).deadline, None, "its flows say theirs");
}

#[test]
fn a_flow_that_becomes_late_while_the_service_is_away_is_reported_after_another_late_one() {
    let mut world = World::new(Limits::default());
    world.execute(&anna(), due("night", START + minutes(10))).unwrap();
    world.pass(minutes(15));
    world.execute(&anna(), Command::Hold { number: 1, flow: None, held: false }).unwrap();
    let flows = [("a", 1, Some(minutes(10))), ("b", 1, Some(minutes(30)))];
    world.open(1, &flows);
    world.pass(minutes(5));
    assert_eq!(world.alerts(), ["late"]);
    world.now = world.now + minutes(20);
    world.restart();
    world.open(1, &flows);
    world.pass(minutes(1));
    assert_eq!(world.alerts(), ["late", "late"]);
    assert_eq!(world.kept_alerts()[0].flow, "b");
}

#[test]
fn health_problems_end_when_their_cause_ends() {
    let mut world = World::new(Limits::default());
    let state = &mut world.state;
    state.set_trouble(HealthProblem::Log, Some("no room".into()));
    state.set_trouble(HealthProblem::History, Some("no room for what jobs took".into()));
    assert_eq!(state.trial(), Some(Record::Draining(false)), "whether it can be written is tried");
    state.set_trouble(HealthProblem::Log, None);
    assert_eq!(state.trial(), None);
    assert_eq!(state.service(START).trouble.as_deref(), Some("no room for what jobs took"));
    state.set_trouble(HealthProblem::History, None);
    assert_eq!(state.service(START).trouble, None);
}

#[test]
fn when_something_should_be_done_that_recurs_is_read_where_it_has_to_wait() {
    let mut world = World::new(Limits { live: 1, ..Limits::default() });
    world.due = Some(minutes(24 * 60));
    world.submit(&anna(), submit("busy"));
    world.execute(&anna(), sent(nightly(CatchUp::Latest), "nightly")).unwrap();
    world.pass(minutes(14 * 60));
    assert_eq!(world.show(2).deadline, Some(timestamp(START + minutes(24 * 60))));
    world.restart();
    assert_eq!(world.show(2).deadline, Some(timestamp(START + minutes(24 * 60))));
    world.pass(minutes(11 * 60));
    assert_eq!(world.alerts(), ["late"]);
}

#[test]
fn one_that_is_over_keeps_its_jobs_and_what_was_said_of_it_first() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.expected.insert((number, "f".into()), minutes(30));
    world.open(number, &[("f", 2, Some(minutes(60)))]);
    world.expected.insert((number, "f".into()), minutes(40));
    world.pass(minutes(1));
    world.start(number, 0);
    world.fail(number, 0, false);
    world.start(number, 0);
    world.finish(number, 0);
    world.start(number, 0);
    world.fail(number, 0, true);
    world.back(number);
    let over = world.show(number);
    let job = &over.flows[0].jobs[0];
    assert_eq!((job.maps.tasks, job.maps.done, job.failed_attempts), (2, 1, 2));
    let said = over.prediction.clone().unwrap();
    assert_eq!((said.made, said.flows.len()), (timestamp(START), 1));
    assert_eq!(said.flows[0].completion, Some(timestamp(START + minutes(30))));
    assert_eq!(said.flows[0].holds, Some(true));
    assert!(world.list()[0].flows[0].jobs.is_empty() && world.list()[0].prediction.is_none());
    world.restart();
    assert_eq!(world.show(number), over);
    world.compact();
    assert_eq!(world.show(number), over);
}

#[test]
fn past_events_are_shown_after_a_restart() {
    let mut world = World::new(Limits { remembered_for: minutes(60), ..Limits::default() });
    for name in ["a", "b"] {
        let number = world.submit(&anna(), submit(name));
        world.not_opened(number, "flows[0]: found no input", true);
        world.pass(minutes(1));
    }
    let alerts = world.kept_alerts();
    assert_eq!(alerts.iter().map(|alert| alert.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(alerts[1].at, timestamp(START));
    assert!(alerts[0].message.contains("found no input"), "{alerts:?}");
    world.restart();
    assert_eq!(world.kept_alerts(), alerts);
    world.compact();
    assert_eq!(world.kept_alerts(), alerts);
    for k in 0..ALERTS {
        let number = world.submit(&anna(), submit(&format!("n{k}")));
        world.not_opened(number, "no", true);
    }
    world.compact();
    assert_eq!((world.kept_alerts().len(), world.kept_alerts()[ALERTS - 1].name.as_str()), (ALERTS, "n0"));
    world.pass(minutes(120));
    assert_eq!(world.kept_alerts(), []);
}

#[test]
fn running_tasks_are_reported_from_a_moment_on() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.open(number, &[("f", 1, None)]);
    world.pass(minutes(2));
    let points = |since| world.state.loads(since).points;
    let all = points(WallTime(0));
    assert!(all.len() > 5, "{all:?}");
    assert_eq!(points(crate::wall_time(all[3].at)), all[3..]);
    assert_eq!(points(START + minutes(60)), []);
}

#[test]
fn under_any_events_and_crashes_nothing_is_lost_or_done_twice() {
    for seed in test_seeds(100) {
        world::chaos(seed);
    }
}
