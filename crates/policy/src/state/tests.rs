//! Tests the rules of precedence, readiness and attempts, one at a time.

use super::*;
use crate::testing::{FLOW, flow, instance, job, machines, map_reduce, seconds, uniform};
use slackline_model::draft::{FlowDraft, PerPhase};

const MAP: PhaseId = PhaseId(0);
const REDUCE: PhaseId = PhaseId(1);

/// One job of four maps and two reduces on this number of generic slots.
fn job_on(slots: u32) -> Instance {
    instance(vec![machines("m", 1, slots)], vec![flow("f", uniform(4, 1.0), uniform(2, 1.0))])
}

/// The state after the first flow arrived, and its events.
fn arrived(instance: &Instance, slowstart: f64) -> (State, Vec<Event>) {
    let (mut state, mut events) = (State::new(instance.cluster(), slowstart), Vec::new());
    state.arrive(instance, FLOW, Time::ZERO, &mut events);
    (state, events)
}

/// Tasks of a phase start and finish at `at`; the reports arrive at the same time.
fn did(state: &mut State, instance: &Instance, phase: PhaseId, count: u32, at: Time) -> Vec<Event> {
    assert_eq!(state.take(instance, phase, count).count, count);
    end(state, instance, phase, count, at)
}

fn end(state: &mut State, instance: &Instance, phase: PhaseId, count: u32, at: Time) -> Vec<Event> {
    let mut events = Vec::new();
    state.finish(instance, Finished { phase, count, at, now: at }, &mut events);
    events
}

/// The phases that changed since the last call.
fn touched(state: &mut State) -> Vec<PhaseId> {
    let mut touched = Vec::new();
    state.drain_touched(&mut touched);
    touched
}

fn taken(first: u32, count: u32, attempt: u16) -> TaskRange {
    TaskRange { first, count, attempt }
}

fn pending(state: &State, phase: PhaseId) -> Vec<(u32, u32)> {
    state.phase(phase).pending().collect()
}

#[test]
fn nothing_can_run_before_its_flow_arrives() {
    let instance = job_on(3);
    let (mut state, mut events) = (State::new(instance.cluster(), 1.0), Vec::new());
    assert!(!state.knows(MAP));
    state.arrive(&instance, FLOW, seconds(2), &mut events);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(MAP)]);
    assert_eq!((state.runnable(&instance, MAP), state.knows(MAP)), (4, true));
    assert_eq!((state.phase(MAP).is_ready(), state.phase(MAP).ready_since()), (true, seconds(2)));
    assert_eq!(state.ready(SlotKind::Any).collect::<Vec<_>>(), [MAP]);
    assert_eq!((state.runnable(&instance, REDUCE), state.phase(REDUCE).is_ready()), (0, false));
}

#[test]
fn a_job_without_maps_starts_with_its_reduces() {
    let instance = instance(vec![machines("m", 1, 2)], vec![flow("f", None, uniform(2, 1.0))]);
    let (state, events) = arrived(&instance, 1.0);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(PhaseId(0))]);
    assert_eq!(state.runnable(&instance, PhaseId(0)), 2, "no map to wait for");
}

#[test]
fn a_phase_never_holds_more_than_its_cap() {
    let mut draft = flow("f", uniform(4, 1.0), None);
    draft.jobs[0].max_slots = PerPhase::both(2);
    let instance = instance(vec![machines("m", 1, 4)], vec![draft]);
    let (mut state, _) = arrived(&instance, 1.0);
    assert_eq!(state.runnable(&instance, MAP), 2);
    state.take(&instance, MAP, 1);
    assert_eq!(state.runnable(&instance, MAP), 1);
    state.take(&instance, MAP, 1);
    assert_eq!(state.runnable(&instance, MAP), 0);
    end(&mut state, &instance, MAP, 1, seconds(1));
    assert_eq!(state.runnable(&instance, MAP), 1);
}

#[test]
fn tasks_are_taken_from_the_lowest_on() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    assert_eq!(state.take(&instance, MAP, 3), taken(0, 3, 0));
    assert_eq!((state.phase(MAP).unstarted(), state.phase(MAP).running()), (1, 3));
    assert_eq!(state.take(&instance, MAP, 3), taken(3, 1, 0));
    assert_eq!((state.phase(MAP).unstarted(), state.phase(MAP).running()), (0, 4));
    assert_eq!(state.runnable(&instance, MAP), 0);
}

#[test]
fn tasks_in_the_middle_leave_those_before_and_behind() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    state.take_exactly(&instance, MAP, taken(1, 2, 0));
    assert_eq!(pending(&state, MAP), [(0, 1), (3, 1)]);
    let is_pending = [0, 1, 2, 3, 4].map(|task| state.phase(MAP).is_pending(task));
    assert_eq!(is_pending, [true, false, false, true, false]);
}

#[test]
fn pending_tasks_are_found_from_a_task_and_within_a_range() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    state.take_exactly(&instance, MAP, taken(1, 1, 0));
    // Tasks 0, 2 and 3 are left.
    assert_eq!(state.pending_at(MAP, 2, 9), Some(taken(2, 2, 0)));
    assert_eq!(state.pending_at(MAP, 3, 9), Some(taken(3, 1, 0)));
    assert_eq!(state.pending_at(MAP, 2, 1), Some(taken(2, 1, 0)));
    assert_eq!(state.pending_at(MAP, 1, 9), None);
    assert_eq!(state.pending_within(MAP, 1, 3), Some(taken(2, 2, 0)));
    assert_eq!(state.pending_within(MAP, 1, 2), Some(taken(2, 1, 0)));
    assert_eq!(state.pending_within(MAP, 1, 1), None);
    assert_eq!(state.pending_within(MAP, 3, 1), Some(taken(3, 1, 0)));
}

#[test]
fn reduces_are_ready_when_all_maps_are_done() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    assert_eq!(did(&mut state, &instance, MAP, 3, seconds(1)), []);
    assert!(state.is_early(&instance, REDUCE));
    let events = did(&mut state, &instance, MAP, 1, seconds(2));
    assert_eq!(events, [Event::PhaseReady(REDUCE), Event::PhaseDone(MAP)]);
    assert_eq!(state.ready(SlotKind::Any).collect::<Vec<_>>(), [REDUCE]);
    assert_eq!((state.phase(REDUCE).ready_since(), state.is_early(&instance, REDUCE)), (seconds(2), false));
    assert_eq!(state.runnable(&instance, REDUCE), 2);
}

#[test]
fn slow_start_lets_reduces_in_when_its_fraction_of_the_maps_is_done() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 0.5);
    assert_eq!(did(&mut state, &instance, MAP, 1, seconds(1)), []);
    assert_eq!(did(&mut state, &instance, MAP, 1, seconds(2)), [Event::PhaseReady(REDUCE)]);
    assert!(state.is_early(&instance, REDUCE));
    assert_eq!(did(&mut state, &instance, MAP, 1, seconds(3)), [], "it is ready once");
    assert_eq!(did(&mut state, &instance, MAP, 1, seconds(4)), [Event::PhaseDone(MAP)]);
    assert_eq!(state.phase(REDUCE).ready_since(), seconds(2));
}

#[test]
fn slow_start_of_zero_lets_reduces_in_at_once_and_a_hundredth_rounds_up() {
    let hundred = vec![flow("f", uniform(100, 1.0), uniform(1, 1.0))];
    let instance = instance(vec![machines("m", 1, 9)], hundred);
    let (_, events) = arrived(&instance, 0.0);
    assert!(events.contains(&Event::PhaseReady(REDUCE)));
    // 0.07 · 100 is 7 although the product is above 7 in floating point; 0.065 · 100 needs 7 too.
    for slowstart in [0.07, 0.065] {
        let (mut state, _) = arrived(&instance, slowstart);
        assert_eq!(did(&mut state, &instance, MAP, 6, seconds(1)), [], "{slowstart}");
        assert_eq!(
            did(&mut state, &instance, MAP, 1, seconds(1)),
            [Event::PhaseReady(REDUCE)],
            "{slowstart}"
        );
    }
}

#[test]
fn early_reduces_leave_one_generic_slot_to_the_maps() {
    let instance = job_on(2);
    let (mut state, _) = arrived(&instance, 0.0);
    assert_eq!(state.runnable(&instance, REDUCE), 1);
    state.take(&instance, REDUCE, 1);
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (1, 1));
    assert_eq!(state.runnable(&instance, REDUCE), 0);
    state.set_alive(SlotKind::Any, 3);
    assert_eq!(state.runnable(&instance, REDUCE), 1);
}

#[test]
fn early_reduces_may_hold_all_slots_of_their_own_kind() {
    let job = vec![flow("f", uniform(4, 1.0), uniform(2, 1.0))];
    let instance = instance(vec![map_reduce(1, 2)], job);
    let (mut state, _) = arrived(&instance, 0.0);
    assert_eq!((state.alive(SlotKind::Map), state.alive(SlotKind::Reduce)), (1, 2));
    state.take(&instance, REDUCE, 1);
    assert_eq!(state.runnable(&instance, REDUCE), 1);
    assert_eq!((state.waiting(SlotKind::Map), state.waiting(SlotKind::Reduce)), (0, 1));
}

#[test]
fn waiting_reduces_compute_when_they_are_released_and_wait_when_they_are_held() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 0.0);
    state.take(&instance, REDUCE, 2);
    state.release(&instance, REDUCE);
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (0, 0));
    state.hold(&instance, REDUCE);
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (2, 2));
    state.hold(&instance, REDUCE);
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (2, 2), "they wait once");
}

#[test]
fn a_waiting_reduce_with_an_unreported_end_waits_no_more() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 0.0);
    state.take(&instance, REDUCE, 2);
    end(&mut state, &instance, REDUCE, 1, seconds(1));
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (1, 1));
}

#[test]
fn a_job_starts_when_all_jobs_it_comes_after_are_done() {
    let map = || uniform(1, 1.0);
    let jobs =
        vec![job("a", &[], map(), None), job("b", &[], map(), None), job("c", &["a", "b"], map(), None)];
    let instance = instance(vec![machines("m", 1, 4)], vec![FlowDraft::new("f", jobs)]);
    let (mut state, events) = arrived(&instance, 1.0);
    let [a, b, c] = [0, 1, 2].map(PhaseId);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(a), Event::PhaseReady(b)]);
    let events = did(&mut state, &instance, b, 1, seconds(1));
    assert_eq!(events, [Event::PhaseDone(b), Event::JobDone(JobId(1))]);
    let events = did(&mut state, &instance, a, 1, seconds(2));
    assert_eq!(events, [Event::PhaseDone(a), Event::JobDone(JobId(0)), Event::PhaseReady(c)]);
    assert_eq!((state.is_job_done(JobId(0)), state.is_job_done(JobId(2))), (true, false));
    let events = did(&mut state, &instance, c, 1, seconds(3));
    assert_eq!(events, [Event::PhaseDone(c), Event::JobDone(JobId(2)), Event::FlowDone(FLOW)]);
}

#[test]
fn a_job_is_done_with_its_reduces() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 4, seconds(1));
    assert!(!state.is_job_done(JobId(0)));
    assert_eq!((state.completion(FLOW), state.flows_left()), (None, 1));
    let events = did(&mut state, &instance, REDUCE, 2, seconds(2));
    assert_eq!(events, [Event::PhaseDone(REDUCE), Event::JobDone(JobId(0)), Event::FlowDone(FLOW)]);
    assert_eq!((state.completion(FLOW), state.flows_left()), (Some(seconds(2)), 0));
    assert_eq!(state.ready(SlotKind::Any).count(), 0);
    assert_eq!(state.tasks_done(), 6);
}

#[test]
fn a_flow_completes_with_the_last_end_not_with_the_last_report() {
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(2, 1.0), None)]);
    let (mut state, mut events) = arrived(&instance, 1.0);
    state.take(&instance, MAP, 2);
    for (at, now) in [(5, 6), (4, 9)] {
        let finished = Finished { phase: MAP, count: 1, at: seconds(at), now: seconds(now) };
        state.finish(&instance, finished, &mut events);
    }
    assert_eq!((state.completion(FLOW), state.phase(MAP).last_end()), (Some(seconds(5)), seconds(5)));
}

#[test]
fn killed_tasks_run_again_as_the_next_attempt() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    let (mut events, all) = (Vec::new(), state.take(&instance, MAP, 4));
    state.kill(&instance, MAP, TaskRange { count: 2, ..all }, &mut events);
    assert_eq!(events, [Event::TasksLost { phase: MAP, count: 2 }]);
    assert_eq!((state.phase(MAP).unstarted(), state.phase(MAP).running()), (2, 2));
    assert_eq!(state.take(&instance, MAP, 9), taken(0, 2, 1));
}

#[test]
fn attempts_of_different_numbers_start_apart() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    let first = state.take(&instance, MAP, 2);
    state.kill(&instance, MAP, first, &mut Vec::new());
    assert_eq!(state.next_pending(MAP, 9), taken(0, 2, 1));
    assert_eq!(state.pending_at(MAP, 2, 9), Some(taken(2, 2, 0)));
    assert_eq!(
        [state.take(&instance, MAP, 9), state.take(&instance, MAP, 9)],
        [taken(0, 2, 1), taken(2, 2, 0)]
    );
}

#[test]
fn a_killed_early_reduce_waits_no_more() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 0.0);
    let both = state.take(&instance, REDUCE, 2);
    state.kill(&instance, REDUCE, TaskRange { count: 1, ..both }, &mut Vec::new());
    assert_eq!((state.phase(REDUCE).waiting(), state.waiting(SlotKind::Any)), (1, 1));
    assert_eq!(state.phase(REDUCE).running(), 1);
}

#[test]
fn a_task_at_the_limit_on_attempt_numbers_is_hopeless() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    state.take(&instance, MAP, 2);
    state.kill(&instance, MAP, taken(0, 1, u16::MAX - 1), &mut Vec::new());
    assert!(!state.is_hopeless());
    state.kill(&instance, MAP, taken(1, 1, u16::MAX), &mut Vec::new());
    assert!(state.is_hopeless());
}

#[test]
fn lost_map_output_is_recomputed_and_stops_the_reduces() {
    let instance = job_on(4);
    let (mut state, mut events) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 4, seconds(1));
    events.clear();
    state.lose(&instance, MAP, taken(1, 2, 0), seconds(3), &mut events);
    assert_eq!(events, [Event::PhaseReady(MAP), Event::TasksLost { phase: MAP, count: 2 }]);
    assert_eq!((state.phase(MAP).done(), state.phase(MAP).ready_since()), (2, seconds(3)));
    assert_eq!(state.ready(SlotKind::Any).collect::<Vec<_>>(), [MAP]);
    assert_eq!((state.phase(REDUCE).is_ready(), state.runnable(&instance, REDUCE)), (false, 0));
    assert_eq!(state.take(&instance, MAP, 9), taken(1, 2, 1));
    let events = end(&mut state, &instance, MAP, 2, seconds(4));
    assert_eq!(events, [Event::PhaseReady(REDUCE), Event::PhaseDone(MAP)]);
}

#[test]
fn lost_map_output_leaves_reduces_in_that_slow_start_lets_in_anyway() {
    let instance = job_on(4);
    let (mut state, mut events) = arrived(&instance, 0.5);
    did(&mut state, &instance, MAP, 4, seconds(1));
    state.lose(&instance, MAP, taken(0, 2, 0), seconds(2), &mut events);
    assert!(state.phase(REDUCE).is_ready());
    touched(&mut state);
    state.set_alive(SlotKind::Any, 3);
    assert_eq!(touched(&mut state), [REDUCE], "it is early again");
    state.lose(&instance, MAP, taken(2, 1, 0), seconds(2), &mut events);
    assert!(!state.phase(REDUCE).is_ready(), "one of four is less than half");
}

#[test]
fn reduces_with_unreported_ends_need_no_maps_again() {
    let instance = job_on(8);
    let (mut state, mut events) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 4, seconds(1));
    state.take(&instance, REDUCE, 2);
    state.lose(&instance, MAP, taken(0, 1, 0), seconds(2), &mut events);
    state.hold(&instance, REDUCE);
    assert_eq!(end(&mut state, &instance, REDUCE, 2, seconds(2)), [Event::PhaseDone(REDUCE)]);
    let events = did(&mut state, &instance, MAP, 1, seconds(3));
    assert_eq!(events, [Event::PhaseDone(MAP), Event::JobDone(JobId(0)), Event::FlowDone(FLOW)]);
}

#[test]
fn a_phase_that_is_still_running_is_not_ready_a_second_time() {
    let instance = job_on(4);
    let (mut state, mut events) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 2, seconds(1));
    events.clear();
    state.lose(&instance, MAP, taken(0, 1, 0), seconds(2), &mut events);
    assert_eq!(events, [Event::TasksLost { phase: MAP, count: 1 }]);
    assert_eq!(state.phase(MAP).ready_since(), Time::ZERO);
}

#[test]
fn no_task_of_a_failed_flow_can_run() {
    let two = || flow("f", uniform(4, 1.0), uniform(2, 1.0));
    let flows = vec![two(), FlowDraft { id: "g".into(), ..two() }];
    let instance = instance(vec![machines("m", 1, 4)], flows);
    let (mut state, mut events) = (State::new(instance.cluster(), 0.0), Vec::new());
    for flow in [FlowId(0), FlowId(1)] {
        state.arrive(&instance, flow, Time::ZERO, &mut events);
    }
    events.clear();
    state.give_up(&instance, FLOW, &mut events);
    assert_eq!(events, [Event::FlowFailed(FLOW)]);
    assert_eq!((state.has_failed(FLOW), state.has_failed(FlowId(1)), state.flows_left()), (true, false, 1));
    assert_eq!(state.ready(SlotKind::Any).collect::<Vec<_>>(), [PhaseId(2), PhaseId(3)]);
    assert_eq!([0, 1, 2].map(|p| state.runnable(&instance, PhaseId(p))), [0, 0, 4]);
    state.give_up(&instance, FLOW, &mut events);
    assert_eq!((events.len(), state.flows_left()), (1, 1), "once is enough");
}

#[test]
fn lost_output_of_a_failed_flow_is_not_recomputed() {
    let instance = job_on(4);
    let (mut state, mut events) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 2, seconds(1));
    state.give_up(&instance, FLOW, &mut events);
    events.clear();
    state.lose(&instance, MAP, taken(0, 1, 0), seconds(2), &mut events);
    assert_eq!(
        (events, state.ready(SlotKind::Any).count()),
        (vec![Event::TasksLost { phase: MAP, count: 1 }], 0)
    );
}

#[test]
fn a_flow_that_is_done_cannot_fail() {
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(1, 1.0), None)]);
    let (mut state, mut events) = arrived(&instance, 1.0);
    did(&mut state, &instance, MAP, 1, seconds(1));
    events.clear();
    state.give_up(&instance, FLOW, &mut events);
    assert_eq!((events.len(), state.has_failed(FLOW), state.flows_left()), (0, false, 0));
}

#[test]
fn each_change_is_reported_once() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 1.0);
    assert_eq!(touched(&mut state), [MAP]);
    assert_eq!(touched(&mut state), []);
    state.take(&instance, MAP, 1);
    assert_eq!(touched(&mut state), [MAP]);
    state.take(&instance, MAP, 1);
    state.clear_touched();
    assert_eq!(touched(&mut state), []);
}

#[test]
fn early_reduces_change_when_the_slots_they_must_leave_do() {
    let instance = job_on(4);
    let (mut state, _) = arrived(&instance, 0.0);
    touched(&mut state);
    assert_eq!(touched(&mut state), []);
    state.set_alive(SlotKind::Any, 3);
    assert_eq!(touched(&mut state), [REDUCE]);
    assert_eq!(touched(&mut state), []);
    did(&mut state, &instance, MAP, 4, seconds(1));
    state.clear_touched();
    state.set_alive(SlotKind::Any, 2);
    assert_eq!(touched(&mut state), [], "they are early no more");
}

/// A phase without length with this number of tasks.
fn nothing(tasks: u32) -> Option<slackline_model::draft::PhaseDraft> {
    uniform(tasks, 0.0)
}

#[test]
fn a_phase_without_length_is_done_when_it_becomes_ready() {
    let jobs =
        vec![job("a", &[], uniform(1, 1.0), nothing(3)), job("b", &["a"], nothing(2), uniform(1, 1.0))];
    let instance = instance(vec![machines("m", 1, 1)], vec![FlowDraft::new("f", jobs)]);
    let (mut state, events) = arrived(&instance, 1.0);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(MAP)]);
    assert!(!state.phase(REDUCE).is_done(), "not before its maps");
    let events = did(&mut state, &instance, MAP, 1, seconds(1));
    let [b_map, b_reduce] = [2, 3].map(PhaseId);
    assert_eq!(
        events,
        [
            Event::PhaseDone(MAP),
            Event::PhaseDone(REDUCE),
            Event::JobDone(JobId(0)),
            Event::PhaseReady(b_reduce),
            Event::PhaseDone(b_map),
        ]
    );
    let passed = state.phase(REDUCE);
    assert_eq!((passed.done(), passed.unstarted(), passed.last_end()), (3, 0, seconds(1)));
    assert_eq!((passed.is_ready(), passed.pending().count()), (false, 0));
    assert_eq!(state.ready(SlotKind::Any).collect::<Vec<_>>(), [b_reduce]);
    assert_eq!(state.tasks_done(), 1, "nothing was attempted");
}

#[test]
fn a_phase_without_length_ends_with_its_predecessor_even_if_the_report_is_late() {
    let jobs = vec![job("a", &[], uniform(1, 1.0), None), job("b", &["a"], nothing(1), None)];
    let instance = instance(vec![machines("m", 1, 1)], vec![FlowDraft::new("f", jobs)]);
    let (mut state, _) = arrived(&instance, 1.0);
    state.take(&instance, MAP, 1);
    let finished = Finished { phase: MAP, count: 1, at: seconds(1), now: seconds(4) };
    state.finish(&instance, finished, &mut Vec::new());
    assert_eq!(state.completion(FLOW), Some(seconds(1)));
}

#[test]
fn a_flow_without_length_is_done_at_its_release() {
    let mut late = flow("f", nothing(1), nothing(1));
    late.release = 3.0;
    let instance = instance(vec![machines("m", 1, 1)], vec![late]);
    let (mut state, mut events) = (State::new(instance.cluster(), 1.0), Vec::new());
    state.arrive(&instance, FLOW, seconds(3), &mut events);
    assert_eq!(
        events,
        [
            Event::FlowArrived(FLOW),
            Event::PhaseDone(MAP),
            Event::PhaseDone(REDUCE),
            Event::JobDone(JobId(0)),
            Event::FlowDone(FLOW),
        ]
    );
    assert_eq!((state.completion(FLOW), state.flows_left()), (Some(seconds(3)), 0));
}

#[test]
fn slow_start_lets_no_reduce_without_length_in_before_the_last_map() {
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(4, 1.0), nothing(2))]);
    let (mut state, events) = arrived(&instance, 0.0);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(MAP)]);
    assert_eq!(did(&mut state, &instance, MAP, 3, seconds(1)), []);
    assert_eq!(did(&mut state, &instance, MAP, 1, seconds(2)).len(), 4);
    assert_eq!(state.completion(FLOW), Some(seconds(2)));
}

#[test]
fn reduces_after_maps_without_length_are_never_early() {
    let instance = instance(vec![machines("m", 1, 1)], vec![flow("f", nothing(4), uniform(1, 1.0))]);
    let (state, events) = arrived(&instance, 0.0);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(REDUCE), Event::PhaseDone(MAP)]);
    assert_eq!((state.is_early(&instance, REDUCE), state.runnable(&instance, REDUCE)), (false, 1));
}

#[test]
fn phases_that_are_only_estimated_to_have_no_length_run() {
    let instance = instance(vec![machines("m", 1, 1)], vec![flow("f", nothing(1), nothing(1))]);
    let (mut state, mut events) =
        (State::new(instance.cluster(), 1.0).with_lengths(crate::engine::Lengths::Guessed), Vec::new());
    state.arrive(&instance, FLOW, Time::ZERO, &mut events);
    assert_eq!(events, [Event::FlowArrived(FLOW), Event::PhaseReady(MAP)]);
    let events = did(&mut state, &instance, MAP, 1, seconds(5));
    assert_eq!(events, [Event::PhaseReady(REDUCE), Event::PhaseDone(MAP)]);
    assert_eq!(state.runnable(&instance, REDUCE), 1);
}

#[test]
fn a_chain_without_length_may_be_as_long_as_it_likes() {
    let n = 100_000;
    let link = |k: usize| {
        let after = k.checked_sub(1).map(|before| format!("j{before}"));
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        job(&format!("j{k}"), &after, nothing(1), if k.is_multiple_of(2) { nothing(1) } else { None })
    };
    let flow = FlowDraft::new("f", (0..n).map(link).collect());
    let instance = instance(vec![machines("m", 1, 1)], vec![flow]);
    let (state, events) = arrived(&instance, 1.0);
    assert_eq!(state.completion(FLOW), Some(Time::ZERO));
    // One event for each phase and each job, two for the flow.
    assert_eq!(events.len(), n + n / 2 + n + 2);
}
