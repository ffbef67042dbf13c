//! Every reason to wait is reported.

use crate::state::tests::*;

fn hold(number: u64, held: bool) -> Command {
    Command::Hold { number, flow: None, held }
}

#[test]
fn a_submission_behind_the_limit_of_active_ones_says_so_and_when_it_is_predicted_to_start() {
    let mut world = World::new(Limits { live: 2, ..Limits::default() });
    let [a, b] = ["a", "b"].map(|name| world.submit(&anna(), submit(name)));
    world.hold_predictions = true;
    world.open(a, &[("f", 1, None)]);
    world.open(b, &[("f", 1, None), ("g", 1, None)]);
    let waits = world.submit(&anna(), submit("c"));
    let why = Some("2 submissions are active, the limit of --live".to_owned());
    assert_eq!((world.state(waits), world.why(waits)), (State::Queued, why.clone()));
    assert_eq!((world.list()[0].why.clone(), world.list()[0].unpredicted.clone()), (why, None));
    let unpredicted = |world: &mut World| world.show(waits).unpredicted.unwrap();
    assert_eq!(unpredicted(&mut world), "its completion is predicted when it starts");
    world.expected.insert((a, "f".into()), minutes(40));
    world.expected.insert((b, "f".into()), minutes(10));
    world.expected.insert((b, "g".into()), minutes(30));
    world.hold_predictions = false;
    world.predict();
    let at = timestamp(START + minutes(30));
    let expected = format!(
        "its completion is predicted when it starts; the first active submission is predicted to finish at {at}"
    );
    assert_eq!(unpredicted(&mut world), expected, "the second is over with its later flow");
    assert_eq!(world.show(a).unpredicted, None);
    world.start(a, 0);
    world.finish(a, 0);
    world.back(a);
    assert_eq!((world.state(waits), world.why(waits)), (State::Opening, None));
}

#[test]
fn a_submission_behind_the_limit_of_its_user_says_so() {
    let mut world = World::new(Limits { live: 2, live_by_user: 1, ..Limits::default() });
    let bert = Principal::new("bert", Role::Submit);
    world.submit(&anna(), submit("a"));
    let second = world.submit(&anna(), submit("b"));
    let why = Some("anna has 1 active, the limit of --live-by-user".to_owned());
    assert_eq!(world.why(second), why);
    world.submit(&bert, submit("c"));
    let third = world.submit(&Principal::new("carl", Role::Submit), submit("d"));
    assert_eq!(world.why(second), why, "those of others are of no use to it");
    assert_eq!(world.why(third), Some("2 submissions are active, the limit of --live".to_owned()));
    world.restart();
    assert_eq!(world.why(second), why);
    // If one user may have all live submissions, the reason names the general limit.
    let mut world = World::new(Limits { live: 1, live_by_user: 1, ..Limits::default() });
    world.submit(&anna(), submit("a"));
    let second = world.submit(&anna(), submit("b"));
    let why = Some("1 submission is active, the limit of --live".to_owned());
    assert_eq!(world.why(second), why);
}

#[test]
fn a_drain_is_the_reason_of_submissions_that_could_start_and_of_late_ones() {
    let mut world = World::new(Limits::default());
    world.execute(&operator(), Command::Drain(true)).unwrap();
    let held = world.submit(&anna(), api::Submit { held: true, ..submit("held") });
    let due = Some(START + minutes(10));
    world.execute(&anna(), sent_with(submit("night"), "night", |wanted| wanted.due = due)).unwrap();
    let why = "the service drains and starts no new submissions (resume with slackline serve drain --undo)";
    assert_eq!([world.why(held).as_deref(), world.why(2).as_deref()], [Some("held"), Some(why)]);
    assert_eq!(world.show(2).unpredicted.as_deref(), Some("its completion is predicted when it starts"));
    world.pass(minutes(11));
    assert!(world.kept_alerts()[0].message.ends_with(why), "{:?}", world.kept_alerts());
    world.restart();
    assert_eq!(world.why(2).as_deref(), Some(why));
    world.execute(&operator(), Command::Drain(false)).unwrap();
    assert_eq!((world.state(2), world.why(2)), (State::Opening, None));
}

#[test]
fn a_held_flow_names_the_hold() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("a"));
    world.open(number, &[("f", 1, None)]);
    world.execute(&anna(), hold(number, true)).unwrap();
    let why = "it is held (slackline submission resume 1)";
    assert_eq!(world.flow(number, "f").why.as_deref(), Some(why));
    world.execute(&anna(), hold(number, false)).unwrap();
    assert_eq!(world.flow(number, "f").why, None);
    world.hold_predictions = true;
    let strict = world.submit(&anna(), api::Submit { if_late: IfLate::Reject, ..submit("strict") });
    world.open(strict, &[("f", 1, Some(minutes(10)))]);
    assert_eq!(world.flow(strict, "f").why.as_deref(), Some("its deadlines are checked first"));
}

#[test]
fn a_flow_that_reads_what_another_has_not_made_waits_for_that() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.open_as(number, &[("load", 1, None), ("ship", 1, None)], |flow| {
        if flow.flow == "ship" {
            flow.reads = vec![("load".into(), "j".into())];
        }
    });
    world.start(number, 0);
    let why = "the output of load/j is not available yet";
    assert_eq!(world.flow(number, "ship").why.as_deref(), Some(why), "ship");
    assert_eq!(world.list()[0].flows[1].why.as_deref(), Some(why), "lists say it too");
    assert_eq!(world.flow(number, "load").why, None);
    world.finish(number, 0);
    assert_eq!(world.flow(number, "ship").why, None);
}

#[test]
fn a_flow_that_comes_later_and_one_without_machines_say_so() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.open_as(number, &[("f", 1, None)], |flow| flow.release = START + minutes(10));
    let at = timestamp(START + minutes(10));
    assert_eq!(world.flow(number, "f").why, Some(format!("it is released at {at}")));
    world.pass(minutes(10));
    assert_eq!(world.flow(number, "f").why, None);
    let machine = |up| vec![api::Machine { machine: "n1".into(), slots: 2, up }];
    world.apply_event(StateEvent::Machines(machine(false)));
    assert_eq!(world.flow(number, "f").why.as_deref(), Some("no machine is available"));
    world.apply_event(StateEvent::Machines(machine(true)));
    assert_eq!(world.flow(number, "f").why, None);
}
