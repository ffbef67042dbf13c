//! Answers to commands.

use crate::state::tests::world::{World, minutes, sent, submit};
use crate::state::tests::*;

#[test]
fn a_deadline_that_has_passed_is_refused_but_not_in_a_repeated_request() {
    let mut world = World::new(Limits::default());
    let sent = |key: &str, late: Option<&str>| {
        let submit = api::Submit { key: Some(key.to_owned()), ..submit("night") };
        let mut command = sent(submit, "night");
        let Command::Submit { passed, .. } = &mut command else { unreachable!() };
        *passed = late.map(str::to_owned);
        command
    };
    world.execute(&anna(), sent("once", None)).unwrap();
    let again = world.execute(&anna(), sent("once", Some("it has passed"))).unwrap();
    let Answer::Accepted(again) = again else { panic!("{again:?}") };
    assert_eq!(again.number, Some(1));
    let refused = world.execute(&anna(), sent("twice", Some("it has passed"))).unwrap_err();
    assert_eq!((refused.kind, refused.message.as_str()), (RefusalKind::Invalid, "it has passed"));
}

#[test]
fn resumed_flows_are_named_and_so_is_the_rest_that_was_not_held() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    world.open(number, &[("f", 1, None), ("g", 1, None), ("h", 1, None)]);
    let mut hold = |flow: Option<&str>, held: bool| {
        let command = Command::Hold { number, flow: flow.map(str::to_owned), held };
        let Answer::Done(said) = world.execute(&anna(), command).unwrap() else { panic!("it is not done") };
        said
    };
    assert_eq!(hold(None, false), "1 was not held");
    hold(Some("f"), true);
    assert_eq!(hold(None, false), "f of 1 is resumed; its other flows were not held");
    hold(Some("f"), true);
    hold(Some("h"), true);
    assert_eq!(hold(Some("g"), false), "g of 1 was not held");
    assert_eq!(hold(None, false), "f, h of 1 are resumed; its other flows were not held");
    hold(None, true);
    assert_eq!(hold(Some("g"), false), "g of 1 is resumed");
    assert_eq!(hold(Some("f"), false), "f of 1 is resumed");
    hold(None, true);
    assert_eq!(hold(None, false), "1 is resumed");
}

/// The records do not have the names of flows.
#[test]
fn one_flow_of_several_is_resumed_and_the_others_stay_held_over_restarts() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("night"));
    let flows = [("f", 1, None), ("g", 1, None), ("h", 1, None)];
    world.open(number, &flows);
    let hold = |flow: Option<&str>, held: bool| Command::Hold { number, flow: flow.map(str::to_owned), held };
    world.execute(&anna(), hold(None, true)).unwrap();
    world.execute(&anna(), hold(Some("g"), false)).unwrap();
    let held = |world: &mut World| {
        let one = world.show(number);
        let held = one.flows.iter().filter(|flow| flow.state == api::FlowStatus::Held);
        held.map(|flow| flow.flow.clone()).collect::<Vec<_>>()
    };
    assert_eq!(held(&mut world), ["f", "h"]);
    for again in [World::restart, World::compact] {
        again(&mut world);
        world.open(number, &flows);
        assert_eq!(held(&mut world), ["f", "h"]);
    }
}

/// Several missed times are submitted together, and follow the overlap rule.
#[test]
fn of_times_that_are_made_up_for_the_first_runs_all_do_or_the_last() {
    let states = |overlap: Overlap| {
        let mut world = World::new(Limits::default());
        let schedule = Some(Schedule { cron: "0 * * * *".into(), zone: None, catch_up: CatchUp::All });
        let submit = api::Submit { overlap, schedule, ..submit("hourly") };
        world.execute(&anna(), sent(submit, "hourly")).unwrap();
        // The service is down for three hours.
        world.now = world.now + minutes(3 * 60 + 1);
        world.pass(1);
        world.list().iter().rev().map(|one| one.state).collect::<Vec<_>>()
    };
    assert_eq!(states(Overlap::Wait), [State::Opening, State::Queued, State::Queued]);
    assert_eq!(states(Overlap::Skip), [State::Opening]);
    assert_eq!(states(Overlap::Replace), [State::Opening]);
}
