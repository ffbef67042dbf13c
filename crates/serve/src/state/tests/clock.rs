//! The wall clock jumps: dates follow it, ages and durations do not.

use slackline_model::WallTime;

use crate::state::tests::*;

const HOUR: i64 = 3600 * SECOND.cast_signed();
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

fn every_minute(name: &str, catch_up: CatchUp) -> Command {
    let schedule = Schedule { cron: "* * * * *".into(), zone: None, catch_up };
    let again = api::Submit { schedule: Some(schedule), overlap: Overlap::Wait, ..submit(name) };
    sent(again, name)
}

/// A world in which every submission finishes at once, with a schedule for each minute.
fn minutely(catch_up: CatchUp) -> World {
    let mut world = World::new(Limits::default());
    world.play = true;
    world.execute(&anna(), every_minute("m", catch_up)).unwrap();
    world.pass(minutes(3));
    assert_eq!(world.submitted().len(), 3);
    world
}

/// Sets the offset of the wall clock, and lets the service notice the jump.
fn jump(world: &mut World, to: i64) {
    world.shift = to;
    world.tick();
    world.pass(SECOND);
}

fn next(world: &World) -> i64 {
    let next = crate::wall_time(world.recurrences()[0].next.unwrap());
    next.0.cast_signed() - world.wall().0.cast_signed()
}

#[test]
fn a_schedule_continues_at_its_next_time_after_any_jump() {
    for shifts in [vec![8 * HOUR], vec![-8 * HOUR], vec![YEAR, 0], vec![-8 * HOUR, 0], vec![61 * DAY, -DAY]] {
        for is_restarted in [false, true] {
            let mut world = minutely(CatchUp::Latest);
            for shift in shifts.clone() {
                let before = world.submitted().len();
                world.shift = shift;
                if is_restarted {
                    world.restart();
                }
                world.tick();
                world.pass(SECOND);
                assert!((1..=60 * SECOND.cast_signed()).contains(&next(&world)), "{shifts:?}");
                assert!(world.submitted().len() <= before + 1, "{shifts:?}");
                world.pass(minutes(2));
                assert!(world.submitted().len() >= before + 2, "{shifts:?}");
            }
        }
    }
}

#[test]
fn times_that_were_done_with_do_not_come_again_when_a_clock_that_was_set_back_is_right() {
    for is_restarted in [false, true] {
        let mut world = minutely(CatchUp::All);
        let done = world.wall();
        jump(&mut world, -8 * HOUR);
        if is_restarted {
            world.restart();
        }
        world.pass(minutes(2));
        let before = world.submitted().len();
        jump(&mut world, 0);
        if is_restarted {
            world.restart();
        }
        world.pass(minutes(3));
        let later: Vec<WallTime> = world.submitted()[before..].iter().map(|wanted| wanted.since).collect();
        assert!(later.len() <= 6 && later.iter().all(|&at| at > done), "{later:?}");
    }
}

#[test]
fn all_missed_times_wait_where_the_clock_has_jumped_so_far_that_it_may_be_wrong() {
    let mut world = minutely(CatchUp::All);
    jump(&mut world, YEAR);
    world.pass(10 * SECOND);
    jump(&mut world, 0);
    world.pass(minutes(3));
    assert!(world.submitted().len() <= 7, "{}", world.submitted().len());
    // The service follows a jump of eight hours at once.
    jump(&mut world, 8 * HOUR);
    world.pass(minutes(2));
    assert!(world.submitted().len() > 480, "{}", world.submitted().len());
}

#[test]
fn a_jump_is_an_event_and_a_trouble_for_a_while() {
    let mut world = World::new(Limits::default());
    jump(&mut world, 8 * HOUR);
    assert!(
        world.service().trouble.unwrap().starts_with("the clock jumped forward by 8"),
        "{:?}",
        world.events
    );
    assert_eq!(world.events(), ["clock"]);
    world.pass(minutes(1));
    assert_eq!(world.service().trouble, None);
    // A time server corrects a clock by less than a second, which is not a jump.
    world.shift += SECOND.cast_signed() / 2;
    world.pass(minutes(1));
    assert_eq!(world.events(), ["clock"]);
    // A service that was down reports a jump too.
    world.shift = -8 * HOUR;
    world.restart();
    assert!(world.service().trouble.unwrap().contains("before"), "{:?}", world.events);
}

#[test]
fn nothing_is_forgotten_by_a_clock_that_is_wrong_and_everything_by_its_age() {
    let limits = Limits { remembered_for: 30 * 24 * 3600 * SECOND, ..Limits::default() };
    for is_restarted in [false, true] {
        let mut world = World::new(limits.clone());
        world.play = true;
        world.submit(&anna(), submit("first"));
        for shift in [61 * DAY, 0, -61 * DAY, 0, YEAR, -START.0.cast_signed(), 0] {
            world.shift = shift;
            if is_restarted {
                world.restart();
            }
            world.submit(&anna(), submit(&format!("at {shift}")));
            world.pass(minutes(5));
            world.compact();
        }
        assert_eq!(world.forgotten, [""; 0], "{is_restarted}");
        assert_eq!(world.list().len(), 8);
        world.pass(minutes(33 * 24 * 60));
        assert_eq!(world.list().len(), 0, "a month has passed: {:?}", world.list());
    }
}

#[test]
fn the_age_goes_with_days_at_which_the_machine_was_off_a_day_for_each_start() {
    let limits = Limits { remembered_for: 3 * 24 * 3600 * SECOND + minutes(60), ..Limits::default() };
    let mut world = World::new(limits);
    world.play = true;
    world.submit(&anna(), submit("first"));
    for night in 1..=5 {
        world.shift += DAY;
        world.restart();
        world.pass(minutes(2));
        assert_eq!(world.list().is_empty(), night > 3, "{night}");
    }
}

#[test]
fn rates_and_retries_go_by_elapsed_time() {
    let limits = Limits { rate_by_user: 1, ..Limits::default() };
    let mut world = World::new(limits);
    let first = world.submit(&anna(), submit("a"));
    jump(&mut world, YEAR);
    let command = |name: &str| sent(submit(name), name);
    let refused = world.execute(&anna(), command("b")).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::TooMany(59), "a year has not passed: {refused}");
    jump(&mut world, -YEAR);
    world.not_opened(first, "no room", false);
    world.pass(4 * SECOND);
    assert_eq!(world.state(first), State::Queued);
    jump(&mut world, 0);
    world.pass(SECOND);
    assert_eq!(world.state(first), State::Opening, "it is tried again after 5 s");
    world.pass(minutes(1));
    world.execute(&anna(), command("b")).unwrap();
}

#[test]
fn submissions_dated_in_the_future_open_now_and_keep_their_keys() {
    let mut world = World::new(Limits::default());
    let keyed = || api::Submit { key: Some("k".into()), held: true, ..submit("a") };
    jump(&mut world, YEAR);
    let number = world.submit(&anna(), keyed());
    jump(&mut world, 0);
    assert!(world.state.wanted(number).unwrap().since <= world.wall());
    assert!(
        world.events.iter().any(|event| event.message.contains("count from now on: 1")),
        "{:?}",
        world.events
    );
    assert_eq!(world.submit(&anna(), keyed()), number);
    world.restart();
    assert!(world.state.wanted(number).unwrap().since <= world.wall());
}

#[test]
fn a_deadline_that_seemed_to_have_passed_can_be_missed_later() {
    let mut world = World::new(Limits::default());
    let number = world.submit(&anna(), submit("a"));
    world.open(number, &[("f", 1, Some(minutes(60)))]);
    jump(&mut world, 8 * HOUR);
    assert_eq!(world.alerts(), ["late"]);
    jump(&mut world, 0);
    assert_ne!(world.flow(number, "f").late, Some(true), "its deadline keeps its date");
    world.pass(minutes(61));
    assert_eq!(world.alerts(), ["late", "late"]);
}

#[test]
fn a_month_of_minutes_of_a_hundred_schedules_is_handled_at_once() {
    for (catch_up, most) in [(CatchUp::Latest, 1), (CatchUp::None, 2), (CatchUp::All, 20)] {
        let mut world = World::new(Limits::default());
        for k in 0..100 {
            world.execute(&anna(), every_minute(&format!("m{k}"), catch_up)).unwrap();
        }
        world.now = world.now + minutes(31 * 24 * 60);
        world.restart();
        world.predicting.clear();
        let searches = crate::state::cron::searches();
        let mut out = Transition::default();
        world.state.tick(world.clock(), &mut out);
        assert!(
            crate::state::cron::searches() - searches < 100 * 70,
            "{}",
            crate::state::cron::searches() - searches
        );
        let submitted =
            out.records.iter().filter(|record| matches!(record, Record::Submitted { .. })).count();
        assert!(submitted <= 100 * most, "{submitted} {catch_up:?}");
        assert_eq!(world.state.due(world.clock()) == 0, catch_up == CatchUp::All);
    }
}
