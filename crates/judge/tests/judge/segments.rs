//! Runs whose settings changed: each attempt is held to those of the segment in which it started.

use slackline_model::cluster::Slots;
use slackline_model::schedule::{Outcome, Schedule, Segment};
use slackline_model::{Instance, SlotRange, Time};

use crate::build::{Run, accepts, early, flow, instance, machines, refuses, run, uniform};

/// A job of four maps of 10 s and two reduces of 5 s on four slots.
fn one() -> Instance {
    let slots = vec![machines("node", 1, Slots::Generic(4))];
    instance(slots, vec![flow("f", uniform(4, 10.0), uniform(2, 5.0))])
}

/// From that second on, with the first slots.
fn segment(start: f64, slowstart: f64, slots: u32) -> Segment {
    let slots = Some([vec![SlotRange { first: 0, len: slots }], Vec::new()]);
    Segment { start: Time::from_seconds_nearest(start), policy: "p".to_owned(), slowstart, slots }
}

fn schedule(instance: &Instance, segments: Vec<Segment>, runs: &[Run]) -> Schedule {
    let slowstart = segments.last().map_or(1.0, |last| last.slowstart);
    Schedule { segments, ..early(instance, slowstart, runs) }
}

/// A reduce starts early at 10 s, is stopped at 12 s, and runs when the maps are done.
fn stopped() -> Vec<Run> {
    vec![
        run("f/f/map", 0, (0, 2), (0.0, 10.0)),
        run("f/f/reduce", 0, (0, 1), (10.0, 12.0)).attempt(0, Outcome::Killed),
        run("f/f/map", 2, (1, 1), (20.0, 30.0)),
        run("f/f/map", 3, (0, 1), (20.0, 30.0)),
        run("f/f/reduce", 0, (0, 1), (30.0, 35.0)).attempt(1, Outcome::Done),
        run("f/f/reduce", 1, (1, 1), (30.0, 35.0)),
    ]
}

#[test]
fn a_reduce_is_held_to_the_slow_start_of_its_segment() {
    let instance = one();
    let with =
        |a: f64, b: f64| schedule(&instance, vec![segment(0.0, a, 4), segment(20.0, b, 4)], &stopped());
    accepts(&instance, &with(0.5, 1.0));
    accepts(&instance, &with(0.5, 0.9));
    for (a, b) in [(1.0, 0.5), (0.9, 0.0), (1.0, 1.0)] {
        refuses(&instance, &with(a, b), "map-before-reduce");
    }
    // Without segments one rule holds for all.
    refuses(&instance, &schedule(&instance, Vec::new(), &stopped()), "map-before-reduce");
    accepts(&instance, &early(&instance, 0.5, &stopped()));
}

#[test]
fn early_reduces_leave_one_of_the_available_slots() {
    let instance = one();
    let runs = [
        run("f/f/map", 0, (0, 2), (0.0, 10.0)),
        run("f/f/reduce", 0, (0, 1), (20.0, 45.0)),
        run("f/f/reduce", 1, (2, 1), (20.0, 45.0)),
        run("f/f/map", 2, (1, 1), (20.0, 30.0)),
        run("f/f/map", 3, (1, 1), (30.0, 40.0)),
    ];
    let there = |slots| schedule(&instance, vec![segment(0.0, 0.5, 4), segment(20.0, 0.5, slots)], &runs);
    accepts(&instance, &there(3));
    // The maps run in a later segment: until then two of two slots wait.
    let runs = runs.clone().map(|mut run| {
        if run.start >= 20.0 && run.phase.ends_with("map") {
            (run.start, run.end) = (run.start + 30.0, run.end + 30.0);
            run.places = vec![(3, 1)];
        } else if run.start >= 20.0 {
            run.end = 75.0;
        }
        run
    });
    let mut all =
        schedule(&instance, vec![segment(0.0, 0.5, 4), segment(20.0, 0.5, 4), segment(40.0, 0.5, 4)], &runs);
    accepts(&instance, &all);
    let two = [0, 2].map(|first| SlotRange { first, len: 1 });
    all.segments[1].slots = Some([two.to_vec(), Vec::new()]);
    refuses(&instance, &all, "early-reduce");
}

#[test]
fn nothing_starts_on_a_slot_that_is_not_available() {
    let instance = one();
    let with = |first, second| {
        schedule(&instance, vec![segment(0.0, 0.5, first), segment(20.0, 1.0, second)], &stopped())
    };
    accepts(&instance, &with(2, 2));
    let message = refuses(&instance, &with(1, 2), "slot-absent");
    assert_eq!(
        message,
        "at 0 s: flow f, job f, map task 1 starts on node slot 1, which is not available in segment 0"
    );
    refuses(&instance, &with(4, 1), "slot-absent");
    let mut map_reduce = with(2, 2);
    map_reduce.segments[1].slots = None;
    accepts(&instance, &map_reduce);
}

#[test]
fn segments_are_in_order_and_name_slots_of_the_cluster() {
    let instance = one();
    let with = |segments: Vec<Segment>| schedule(&instance, segments, &stopped());
    let twice = |a, b| vec![segment(a, 0.5, 4), segment(b, 1.0, 4)];
    for (segments, words) in [
        (twice(1.0, 20.0), "segment 0: found start 1 s, expected 0"),
        (twice(0.0, 0.0), "segment 1: found start 0 s, expected one after 0 s"),
        (vec![segment(0.0, 0.5, 5), segment(20.0, 1.0, 4)], "found 5 slots from slot 0 on"),
        (vec![segment(0.0, 1.5, 4), segment(20.0, 1.0, 4)], "found slowstart 1.5"),
    ] {
        let message = refuses(&instance, &with(segments), "segment");
        assert!(message.contains(words), "{message}");
    }
    let mut named_twice = twice(0.0, 20.0);
    named_twice[0].slots =
        Some([vec![SlotRange { first: 0, len: 4 }, SlotRange { first: 3, len: 1 }], Vec::new()]);
    refuses(&instance, &with(named_twice), "segment");
}

#[test]
fn utilisation_is_over_the_available_slots() {
    let instance = one();
    let metrics = |segments| slackline_judge::metrics(&instance, &schedule(&instance, segments, &stopped()));
    // Four slots for 20 s, two for 15 s; four tasks of 10 s and two of 5 s, and no reduce that waits.
    let found = metrics(vec![segment(0.0, 0.5, 4), segment(20.0, 1.0, 2)]).utilisation;
    assert!((found - 50.0 / 110.0).abs() < 1e-9, "{found}");
    let found = metrics(vec![segment(0.0, 0.5, 4), segment(20.0, 1.0, 4)]).utilisation;
    assert!((found - 50.0 / 140.0).abs() < 1e-9, "{found}");
}
