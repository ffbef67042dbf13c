//! Schedules by hand, and searches that find schedules which no order of flows gives.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::schedule::{NewRow, Outcome};
use slackline_model::{Combine, Draft, Metric, Objective, SlotRange};

use super::*;

fn seconds(s: u64) -> Time {
    Time(s * 1_000_000)
}

fn flow(id: &str, release: f64, weight: f64, tasks: PhaseDraft) -> FlowDraft {
    let job = JobDraft { id: "j".into(), map: Some(tasks), ..JobDraft::default() };
    FlowDraft { release, weight, ..FlowDraft::new(id, vec![job]) }
}

fn instance(slots: u32, flows: Vec<FlowDraft>) -> Instance {
    let slots = Slots::Generic(slots);
    let machines = vec![MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None }];
    let objective = Objective::new(Metric::Response, Combine::Sum);
    Instance::new(&Draft { machines, flows, objective, ..Draft::default() }).unwrap()
}

/// Rows of single tasks on slot 0, one after the other: phase, start and end.
fn rows_of(list: &[(u32, u64, u64)]) -> TaskRows {
    let mut rows = TaskRows::new();
    for &(phase, start, end) in list {
        let row = NewRow {
            phase: PhaseId(phase),
            first: 0,
            count: 1,
            start: seconds(start),
            end: seconds(end),
            startup: Span::ZERO,
            attempt: 0,
            outcome: Outcome::Done,
        };
        rows.push(row, &[SlotRange { first: 0, len: 1 }]);
    }
    rows
}

#[test]
fn a_slot_is_left_idle_for_what_comes_soon() {
    // A task of ten seconds from 0 on, or a task with a hundred times its weight from 1 on: 10 + 1,000 if the
    // first goes first, else 12 + 100.
    let one = |s: f64| TasksDraft::Uniform { tasks: 1, seconds: s }.into();
    let instance = instance(1, vec![flow("long", 0.0, 1.0, one(10.0)), flow("short", 1.0, 100.0, one(1.0))]);
    let mut search = Insertion::new(&instance, TASKS_MAX).unwrap();
    let found = search.run(&rows_of(&[(0, 0, 10), (1, 10, 11)]), 20, 0, || false);
    let found: Vec<_> = found.rows().iter().map(|row| (row.phase.0, row.start, row.end)).collect();
    assert_eq!(found, [(0, seconds(2), seconds(12)), (1, seconds(1), seconds(2))]);
}

#[test]
fn without_tries_the_schedule_is_as_it_was_or_earlier() {
    // The second could have started at 4.
    let one = |s: f64| TasksDraft::Uniform { tasks: 1, seconds: s }.into();
    let instance = instance(1, vec![flow("a", 0.0, 1.0, one(4.0)), flow("b", 0.0, 1.0, one(1.0))]);
    let found =
        Insertion::new(&instance, TASKS_MAX).unwrap().run(&rows_of(&[(0, 0, 4), (1, 6, 7)]), 0, 0, || false);
    let found: Vec<_> = found.rows().iter().map(|row| (row.start, row.end)).collect();
    assert_eq!(found, [(Time::ZERO, seconds(4)), (seconds(4), seconds(5))]);
}

#[test]
fn caps_and_slots_are_kept_and_gaps_filled() {
    let capped = PhaseDraft { max_slots: Some(1), ..TasksDraft::Each(vec![2.0, 2.0]).into() };
    let three = TasksDraft::Uniform { tasks: 3, seconds: 1.0 }.into();
    let instance = instance(2, vec![flow("capped", 0.0, 1.0, capped), flow("b", 0.0, 1.0, three)]);
    let mut search = Insertion::new(&instance, TASKS_MAX).unwrap();
    search.place(&[0, 1, 2, 3, 4]);
    let starts: Vec<Time> = search.places.iter().map(|&(_, start, _)| start).collect();
    assert_eq!(starts, [0, 2, 0, 1, 2].map(seconds));
    // Two tasks of the second in front: the first starts at 1, one slot being free from then on, and the gap
    // beside it takes the last.
    search.place(&[2, 3, 0, 1, 4]);
    let starts: Vec<Time> = search.places.iter().map(|&(_, start, _)| start).collect();
    assert_eq!(starts, [1, 3, 0, 0, 1].map(seconds));
}

#[test]
fn a_profile_finds_gaps() {
    let mut profile = Profile::new(2);
    for (from, to) in [(0, 4), (1, 3), (6, 9), (6, 7)] {
        profile.take(seconds(from), seconds(to));
    }
    let earliest =
        |ready, length: u64| profile.earliest(seconds(ready), Span(length * 1_000_000)).0 / 1_000_000;
    assert_eq!(earliest(0, 1), 0);
    assert_eq!(earliest(0, 2), 3);
    assert_eq!(earliest(0, 4), 7, "from 3 on only until 6");
    assert_eq!([earliest(1, 0), earliest(2, 0), earliest(3, 0)], [3, 3, 3]);
    assert_eq!([earliest(6, 0), earliest(20, 5)], [7, 20]);
}

/// What annealing finds in a number of steps.
fn annealed(instance: &Instance, from: &TaskRows, seed: u64, steps: u64) -> TaskRows {
    let made = std::cell::Cell::new(0);
    let stop = |_: f64| made.replace(made.get() + 1) >= steps;
    Insertion::new(instance, TASKS_MAX).unwrap().anneal(from, seed, &stop)
}

#[test]
fn as_many_steps_find_the_same_schedule_and_more_steps_none_that_costs_more() {
    let tasks = |tasks: u32, seconds: f64| TasksDraft::Uniform { tasks, seconds }.into();
    let flow = |k: u32| {
        let k = f64::from(k);
        flow(&format!("f{k}"), k, 1.0 + k % 3.0, tasks(3 + k as u32 % 4, 2.0 + 3.0 * k % 7.0))
    };
    let instance = instance(3, (0..8).map(flow).collect());
    let none = TaskRows::new();
    let cost = |rows: &TaskRows| {
        let mut completions = vec![0.0; 8];
        for row in rows.rows() {
            let at = &mut completions[instance.flow_of(row.phase).index()];
            *at = row.end.seconds().max(*at);
        }
        instance.cost_of(&completions)
    };
    let starts = |rows: &TaskRows| -> Vec<_> {
        rows.rows().iter().map(|row| (row.phase, row.first, row.count, row.start)).collect()
    };
    let mut least = f64::INFINITY;
    for steps in [0, 100, 3_000, 12_000] {
        let found = annealed(&instance, &none, 7, steps);
        assert_eq!(starts(&found), starts(&annealed(&instance, &none, 7, steps)));
        assert!(cost(&found) <= least);
        least = cost(&found);
    }
    assert!(least < cost(&annealed(&instance, &none, 7, 0)), "nothing is found");
}
