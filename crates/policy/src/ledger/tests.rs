//! The ledger against a scripted engine: batches, ends, failures, machines; every step audited.

use super::*;
use crate::engine::SpeculativeAttempt;
use crate::testing::{
    FLOW, Scripted, Started, absorb, failed, finished, flow, instance, job, launch, ledger, machines,
    map_reduce, range, seconds, uniform,
};
use slackline_model::draft::{FlowDraft, MachineDraft, TasksDraft};
use slackline_model::{JobId, Span};

const MAP: PhaseId = PhaseId(0);
const REDUCE: PhaseId = PhaseId(1);

/// Four maps and two reduces on two machines of two slots.
fn two_machines() -> Instance {
    instance(vec![machines("m", 2, 2)], vec![flow("f", uniform(4, 1.0), uniform(2, 1.0))])
}

fn maps_done(count: u32, machine: u32, took: u64) -> Event {
    Event::TasksDone { phase: MAP, count, machine: MachineId(machine), took: Span(took * 1_000_000) }
}

fn outcomes(ledger: &Ledger) -> Vec<Outcome> {
    ledger.log.iter().map(|row| row.task.outcome).collect()
}

fn free(ledger: &Ledger) -> u32 {
    ledger.free[SlotKind::Any.index()].len()
}

/// The batches of (first task, ranges) when all maps start on all slots.
fn batches(instance: &Instance, batch: Batch, faults: bool) -> Vec<(u32, Vec<SlotRange>)> {
    let mut engine = Scripted::new(batch, faults);
    let mut ledger = ledger(instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 4);
    engine.starts.into_iter().map(|start| (start.first, start.places)).collect()
}

#[test]
fn equal_tasks_on_machines_of_one_speed_are_one_batch() {
    assert_eq!(batches(&two_machines(), Batch::Speed, false), [(0, vec![range(0, 4)])]);
}

#[test]
fn an_engine_that_starts_a_machine_at_a_time_gets_a_batch_a_machine() {
    let expected = [(0, vec![range(0, 2)]), (2, vec![range(2, 2)])];
    assert_eq!(batches(&two_machines(), Batch::Machine, false), expected);
    assert_eq!(batches(&two_machines(), Batch::Speed, true), expected, "a batch dies with its machine");
}

#[test]
fn an_engine_that_starts_a_task_at_a_time_gets_a_batch_a_task() {
    let expected = [0, 1, 2, 3].map(|k| (k, vec![range(k, 1)]));
    assert_eq!(batches(&two_machines(), Batch::Task, false), expected);
}

#[test]
fn batches_end_where_the_speed_changes() {
    let fast = MachineDraft { speed: 2.0, ..machines("fast", 1, 1) };
    let maps = vec![flow("f", uniform(4, 1.0), None)];
    let instance = instance(vec![fast, machines("slow", 2, 2)], maps);
    let expected = [(0, vec![range(0, 1)]), (1, vec![range(1, 3)])];
    assert_eq!(batches(&instance, Batch::Speed, false), expected);
}

#[test]
fn batches_end_where_the_length_of_the_tasks_changes() {
    let lists = TasksDraft::Each(vec![1.0, 2.0, 2.0, 1.0]);
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", Some(lists.into()), None)]);
    let expected = [(0, vec![range(0, 1)]), (1, vec![range(1, 2)]), (3, vec![range(3, 1)])];
    assert_eq!(batches(&instance, Batch::Speed, false), expected);
}

#[test]
fn a_batch_may_lie_on_slots_that_are_apart() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Speed, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    let taken = ledger.state.take(&instance, MAP, 3);
    for slots in [range(0, 1), range(2, 2)] {
        ledger.free[0].remove(slots);
    }
    ledger.launch(&mut engine, MAP, taken, &[range(0, 1), range(2, 2)]);
    ledger.start_opened(&mut engine);
    let places = vec![range(0, 1), range(2, 2)];
    let start = Started { row: 0, phase: 0, first: 0, count: 3, attempt: 0, places, held: false };
    assert_eq!(engine.starts, [start]);
}

#[test]
fn a_flow_starts_with_its_first_task() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Speed, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    assert_eq!(ledger.state.started(FLOW), None);
    for at in [3, 4] {
        ledger.now = seconds(at);
        launch(&mut ledger, &mut engine, 0, 1);
    }
    assert_eq!(ledger.state.started(FLOW), Some(seconds(3)));
    assert_eq!(ledger.log[RowId(1)].task.start, seconds(4));
}

#[test]
fn a_batch_that_ends_frees_its_slots_and_tells_how_long_it_took() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    ledger.now = seconds(1);
    launch(&mut ledger, &mut engine, 0, 4);
    assert_eq!(free(&ledger), 0);
    ledger.now = seconds(9);
    assert_eq!(absorb(&mut ledger, &mut engine, finished(1, seconds(6))), [maps_done(2, 1, 5)]);
    assert_eq!((free(&ledger), ledger.log[RowId(1)].task.end), (2, seconds(6)));
    assert_eq!((ledger.log[RowId(0)].task.end, ledger.state.phase(MAP).done()), (RUNNING, 2));
}

#[test]
fn the_last_map_lets_the_waiting_reduces_go_from_its_end_on() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Speed, false);
    let mut ledger = ledger(&instance, 0.0, &mut engine);
    launch(&mut ledger, &mut engine, 1, 2);
    assert!(engine.starts[0].held);
    launch(&mut ledger, &mut engine, 0, 2);
    absorb(&mut ledger, &mut engine, finished(1, seconds(2)));
    launch(&mut ledger, &mut engine, 0, 2);
    assert_eq!(engine.orders, []);
    ledger.now = seconds(9);
    absorb(&mut ledger, &mut engine, finished(2, seconds(7)));
    assert_eq!(engine.orders, [Order::Go { row: RowId(0), since: seconds(7) }]);
    assert_eq!(ledger.state.waiting(SlotKind::Any), 0);
    // Waiting for maps does not count as computing.
    ledger.now = seconds(12);
    let events = absorb(&mut ledger, &mut engine, finished(0, seconds(12)));
    let took = Span(5_000_000);
    assert_eq!(events[0], Event::TasksDone { phase: REDUCE, count: 2, machine: MachineId(0), took });
}

#[test]
fn a_reduce_that_took_its_slot_after_the_last_map_ended_computes_from_then_on() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Speed, false);
    let mut ledger = ledger(&instance, 0.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 3);
    absorb(&mut ledger, &mut engine, finished(0, seconds(1)));
    launch(&mut ledger, &mut engine, 0, 1);
    ledger.now = seconds(5);
    // The last map ended at 3, which was unknown when the reduces got their slots.
    launch(&mut ledger, &mut engine, 1, 2);
    ledger.now = seconds(6);
    absorb(&mut ledger, &mut engine, finished(1, seconds(3)));
    ledger.now = seconds(7);
    let events = absorb(&mut ledger, &mut engine, finished(2, seconds(7)));
    let took = Span(2_000_000);
    assert_eq!(events[0], Event::TasksDone { phase: REDUCE, count: 2, machine: MachineId(0), took });
}

#[test]
fn a_failed_batch_runs_again() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Speed, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 2);
    let events = absorb(&mut ledger, &mut engine, failed(0, seconds(1)));
    assert_eq!(events, [Event::TasksLost { phase: MAP, count: 2 }]);
    assert_eq!((free(&ledger), outcomes(&ledger)), (4, vec![Outcome::Failed]));
    launch(&mut ledger, &mut engine, 0, 4);
    assert_eq!((engine.starts[1].first, engine.starts[1].attempt), (0, 1));
    assert_eq!(engine.orders, []);
}

/// A speculative attempt for that row, on that slot.
fn second(row: u32, slot: u32) -> Report {
    Report::Speculative(SpeculativeAttempt { row: RowId(row), name: 7, slot, since: seconds(2) })
}

/// Two maps run on the first two slots of four, and a speculative attempt of the first on the last; now is 2
/// s.
fn with_second(instance: &Instance, engine: &mut Scripted) -> Ledger {
    let mut ledger = ledger(instance, 1.0, engine);
    launch(&mut ledger, engine, 0, 2);
    ledger.now = seconds(2);
    assert_eq!(absorb(&mut ledger, engine, second(0, 3)), [], "no policy hears of it");
    ledger
}

#[test]
fn a_speculative_attempt_is_a_row_beside_the_first() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Task, false);
    let ledger = with_second(&instance, &mut engine);
    let Started { row, first, attempt, places, .. } = engine.starts.last().unwrap();
    assert_eq!((*row, *first, *attempt, &places[..]), (2, 0, 1, &[range(3, 1)][..]));
    let state = &ledger.state;
    assert_eq!((state.phase(MAP).running(), state.alive(SlotKind::Any), free(&ledger)), (2, 3, 1));
    let seen: Vec<u32> = crate::busy_slots::BusySlots::of(&ledger).running().map(|held| held.first).collect();
    assert_eq!(seen, [0, 1], "who looks ahead counts each task once");
}

#[test]
fn a_speculative_attempt_that_may_not_run_is_refused() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Task, false);
    let mut ledger = with_second(&instance, &mut engine);
    // A third attempt, a busy slot, an invalid slot, an invalid row.
    for (row, slot) in [(0, 2), (1, 0), (1, 4), (9, 2)] {
        absorb(&mut ledger, &mut engine, second(row, slot));
    }
    assert_eq!(engine.orders, [Order::Refuse(7); 4]);
    let mut dying = Scripted::new(Batch::Task, true);
    let mut other = crate::testing::ledger(&instance, 1.0, &mut dying);
    launch(&mut other, &mut dying, 0, 2);
    absorb(&mut other, &mut dying, second(0, 3));
    assert_eq!(dying.orders, [Order::Refuse(7)], "its machine may go");
}

#[test]
fn the_attempt_that_ends_first_stops_the_other_in_that_instant() {
    for (winner, other) in [(0, 2), (2, 0)] {
        let instance = two_machines();
        let mut engine = Scripted::new(Batch::Task, false);
        let mut ledger = with_second(&instance, &mut engine);
        ledger.now = seconds(5);
        let events = absorb(&mut ledger, &mut engine, finished(winner, seconds(4)));
        assert_eq!(events.len(), 1, "the task is done once: {events:?}");
        assert_eq!(engine.orders, [Order::Kill(RowId(other))]);
        let row = ledger.log[RowId(other)].task;
        assert_eq!((row.outcome, row.end), (Outcome::Killed, seconds(4)));
        assert_eq!(
            (ledger.state.phase(MAP).done(), ledger.state.alive(SlotKind::Any), free(&ledger)),
            (1, 4, 3)
        );
        assert_eq!(absorb(&mut ledger, &mut engine, finished(other, seconds(5))), [], "it was stopped");
    }
}

#[test]
fn a_task_with_two_attempts_runs_again_once_if_one_fails() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Task, false);
    let mut ledger = with_second(&instance, &mut engine);
    let events = absorb(&mut ledger, &mut engine, failed(0, seconds(2)));
    assert_eq!(events, [Event::TasksLost { phase: MAP, count: 1 }]);
    launch(&mut ledger, &mut engine, 0, 1);
    let again = engine.starts.last().unwrap();
    assert_eq!((again.first, again.attempt), (0, 2));
    let report = Report::Failed { row: RowId(1), at: seconds(2), is_final: true };
    let events = absorb(&mut ledger, &mut engine, report);
    assert_eq!(events.last(), Some(&Event::FlowFailed(FLOW)));
    assert_eq!((free(&ledger), ledger.state.alive(SlotKind::Any)), (4, 4));
}

#[test]
fn a_failed_flow_stops_both_attempts() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Task, false);
    let mut ledger = with_second(&instance, &mut engine);
    let report = Report::Failed { row: RowId(1), at: seconds(2), is_final: true };
    let events = absorb(&mut ledger, &mut engine, report);
    let lost = Event::TasksLost { phase: MAP, count: 1 };
    assert_eq!(events, [lost, lost, Event::FlowFailed(FLOW)]);
    assert_eq!(engine.orders, [Order::Kill(RowId(0)), Order::Kill(RowId(2))]);
    assert_eq!((free(&ledger), ledger.state.alive(SlotKind::Any)), (4, 4));
}

#[test]
fn a_task_that_fails_too_often_fails_its_flow_and_no_other() {
    let maps = |id: &str| flow(id, uniform(2, 1.0), None);
    let instance = instance(vec![machines("m", 1, 4)], vec![maps("f"), maps("g")]);
    let mut engine = Scripted::new(Batch::Task, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 2);
    launch(&mut ledger, &mut engine, 1, 2);
    // One failure of each of two tasks does not count as two failures of one task.
    absorb(&mut ledger, &mut engine, failed(0, seconds(1)));
    let events = absorb(&mut ledger, &mut engine, failed(1, seconds(1)));
    assert_eq!(events, [Event::TasksLost { phase: MAP, count: 1 }]);
    launch(&mut ledger, &mut engine, 0, 1);
    launch(&mut ledger, &mut engine, 0, 1);
    let events = absorb(&mut ledger, &mut engine, failed(4, seconds(2)));
    let lost = Event::TasksLost { phase: MAP, count: 1 };
    assert_eq!(events, [lost, lost, Event::FlowFailed(FLOW)]);
    assert_eq!(engine.orders, [Order::Kill(RowId(5))], "what else runs of the flow is stopped");
    assert_eq!((free(&ledger), ledger.state.has_failed(FlowId(1))), (2, false));
    assert_eq!(ledger.log[RowId(5)].task.outcome, Outcome::Killed);
    assert_eq!(ledger.log[RowId(2)].task.end, RUNNING);
}

#[test]
fn a_failure_that_is_final_fails_its_flow_at_once() {
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(2, 1.0), None)]);
    let mut engine = Scripted::new(Batch::Task, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 2);
    let report = Report::Failed { row: RowId(0), at: seconds(1), is_final: true };
    let events = absorb(&mut ledger, &mut engine, report);
    let lost = Event::TasksLost { phase: MAP, count: 1 };
    assert_eq!(events, [lost, lost, Event::FlowFailed(FLOW)]);
    assert_eq!(engine.orders, [Order::Kill(RowId(1))], "what else runs of the flow is stopped");
}

#[test]
fn a_report_of_a_stopped_batch_is_ignored() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 2);
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    for late in [finished(0, seconds(1)), failed(0, seconds(1))] {
        assert_eq!(absorb(&mut ledger, &mut engine, late), []);
    }
    assert_eq!(outcomes(&ledger), [Outcome::Killed]);
    assert_eq!(ledger.state.phase(MAP).unstarted(), 4);
}

#[test]
fn a_machine_dies_with_what_runs_on_it() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 3);
    ledger.now = seconds(2);
    let events = absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    assert_eq!(events, [Event::MachineDown(MachineId(0)), Event::TasksLost { phase: MAP, count: 2 }]);
    assert_eq!(engine.orders, [Order::Kill(RowId(0))]);
    assert_eq!((ledger.log[RowId(0)].task.end, ledger.log[RowId(1)].task.end), (seconds(2), RUNNING));
    assert_eq!((free(&ledger), ledger.state.alive(SlotKind::Any)), (1, 2));
    assert_eq!((ledger.is_down(MachineId(0)), ledger.is_down(MachineId(1))), (true, false));
    assert_eq!(absorb(&mut ledger, &mut engine, Report::Down(MachineId(0))), [], "it dies once");
    assert_eq!(ledger.state.alive(SlotKind::Any), 2);
}

#[test]
fn a_machine_that_comes_back_is_empty() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    assert_eq!(absorb(&mut ledger, &mut engine, Report::Up(MachineId(0))), [], "it was never away");
    launch(&mut ledger, &mut engine, 0, 1);
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    let events = absorb(&mut ledger, &mut engine, Report::Up(MachineId(0)));
    assert_eq!(events, [Event::MachineUp(MachineId(0))]);
    assert_eq!((free(&ledger), ledger.state.alive(SlotKind::Any)), (4, 4));
}

#[test]
fn output_of_maps_is_lost_with_its_machine_while_a_reduce_needs_it() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 4);
    for row in [0, 1] {
        absorb(&mut ledger, &mut engine, finished(row, seconds(1)));
    }
    launch(&mut ledger, &mut engine, 1, 1);
    launch(&mut ledger, &mut engine, 1, 1);
    assert_eq!(engine.starts[3].places, [range(1, 1)]);
    ledger.now = seconds(3);
    let events = absorb(&mut ledger, &mut engine, Report::Down(MachineId(1)));
    let lost = Event::TasksLost { phase: MAP, count: 2 };
    assert_eq!(
        events,
        [
            Event::MachineDown(MachineId(1)),
            Event::PhaseReady(MAP),
            lost,
            Event::TasksLost { phase: REDUCE, count: 1 }
        ]
    );
    assert_eq!(ledger.log[RowId(1)].task.outcome, Outcome::Lost);
    assert_eq!(ledger.log[RowId(1)].task.end, seconds(1), "it ended when it did");
    // Both reduces wait again, and the younger one makes room for the maps.
    assert_eq!(engine.orders, [Order::Hold(RowId(2)), Order::Hold(RowId(3)), Order::Kill(RowId(3))]);
    assert_eq!((free(&ledger), ledger.state.waiting(SlotKind::Any)), (1, 1));
}

/// Two machines with one map slot each and one machine with two reduce slots, and a job that fills them.
fn apart() -> Instance {
    let machine = |name: &str, map, reduce| MachineDraft { name: name.into(), ..map_reduce(map, reduce) };
    let machines = vec![machine("a", 1, 0), machine("b", 1, 0), machine("c", 0, 2)];
    instance(machines, vec![flow("f", uniform(2, 1.0), uniform(2, 1.0))])
}

/// All maps are done, and the reduces run as rows 2 and 3.
fn reducing(instance: &Instance, engine: &mut Scripted) -> Ledger {
    let mut ledger = ledger(instance, 1.0, engine);
    launch(&mut ledger, engine, 0, 2);
    for row in [0, 1] {
        absorb(&mut ledger, engine, finished(row, seconds(1)));
    }
    launch(&mut ledger, engine, 1, 1);
    launch(&mut ledger, engine, 1, 1);
    ledger
}

#[test]
fn reduces_are_held_once() {
    let instance = apart();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = reducing(&instance, &mut engine);
    for machine in [0, 1] {
        absorb(&mut ledger, &mut engine, Report::Down(MachineId(machine)));
    }
    assert_eq!(outcomes(&ledger)[..2], [Outcome::Lost; 2]);
    assert_eq!(engine.orders, [Order::Hold(RowId(2)), Order::Hold(RowId(3))]);
}

#[test]
fn a_reduce_that_ended_is_not_held() {
    let instance = apart();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = reducing(&instance, &mut engine);
    absorb(&mut ledger, &mut engine, finished(2, seconds(2)));
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    assert_eq!(engine.orders, [Order::Hold(RowId(3))]);
}

#[test]
fn reduces_on_slots_of_their_own_kind_need_not_make_room() {
    let job = vec![flow("f", uniform(1, 1.0), uniform(1, 1.0))];
    let machines = vec![map_reduce(1, 0), MachineDraft { name: "b".into(), ..map_reduce(1, 1) }];
    let instance = instance(machines, job);
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 1);
    absorb(&mut ledger, &mut engine, finished(0, seconds(1)));
    launch(&mut ledger, &mut engine, 1, 1);
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    assert_eq!(engine.orders, [Order::Hold(RowId(1))]);
}

#[test]
fn a_reduce_computes_from_the_last_time_it_was_released() {
    let job = vec![flow("f", uniform(1, 1.0), uniform(1, 1.0))];
    let machines = vec![map_reduce(1, 0), MachineDraft { name: "b".into(), ..map_reduce(1, 1) }];
    let instance = instance(machines, job);
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 1);
    absorb(&mut ledger, &mut engine, finished(0, seconds(1)));
    ledger.now = seconds(1);
    launch(&mut ledger, &mut engine, 1, 1);
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    launch(&mut ledger, &mut engine, 0, 1);
    ledger.now = seconds(5);
    absorb(&mut ledger, &mut engine, finished(2, seconds(4)));
    assert_eq!(engine.orders[1], Order::Go { row: RowId(1), since: seconds(4) });
    ledger.now = seconds(6);
    let events = absorb(&mut ledger, &mut engine, finished(1, seconds(6)));
    let took = Span(2_000_000);
    assert_eq!(events[0], Event::TasksDone { phase: REDUCE, count: 1, machine: MachineId(1), took });
}

#[test]
fn output_that_no_task_needs_is_not_recomputed() {
    let jobs = vec![job("a", &[], uniform(1, 1.0), None), job("b", &[], uniform(1, 1.0), uniform(1, 1.0))];
    let instance = instance(vec![machines("m", 1, 4)], vec![FlowDraft::new("f", jobs)]);
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    for (row, phase) in [0, 1, 2].into_iter().enumerate() {
        launch(&mut ledger, &mut engine, phase, 1);
        absorb(&mut ledger, &mut engine, finished(row as u32, seconds(1)));
    }
    assert!(ledger.state.is_job_done(JobId(1)));
    let events = absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    assert_eq!(events, [Event::MachineDown(MachineId(0))]);
    assert_eq!(outcomes(&ledger), [Outcome::Done; 3]);
}

#[test]
fn freed_slots_are_recorded_for_placements_only() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, true);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    ledger.freed = Some(Vec::new());
    launch(&mut ledger, &mut engine, 0, 4);
    absorb(&mut ledger, &mut engine, finished(1, seconds(1)));
    assert_eq!(ledger.freed, Some(vec![MachineId(1)]));
    absorb(&mut ledger, &mut engine, Report::Down(MachineId(0)));
    absorb(&mut ledger, &mut engine, Report::Up(MachineId(0)));
    assert_eq!(ledger.freed, Some(vec![MachineId(1), MachineId(0)]));
}

#[test]
fn tasks_that_run_when_a_run_ends_early_are_stopped_then() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    launch(&mut ledger, &mut engine, 0, 4);
    absorb(&mut ledger, &mut engine, finished(0, seconds(1)));
    ledger.now = seconds(2);
    ledger.abandon();
    let ends: Vec<_> = ledger.log.iter().map(|row| (row.task.end, row.task.outcome)).collect();
    assert_eq!(ends, [(seconds(1), Outcome::Done), (seconds(2), Outcome::Killed)]);
}

#[test]
fn a_wake_is_an_event_and_an_offer_is_none() {
    let instance = two_machines();
    let mut engine = Scripted::new(Batch::Machine, false);
    let mut ledger = ledger(&instance, 1.0, &mut engine);
    assert_eq!(absorb(&mut ledger, &mut engine, Report::Woken), [Event::Wake]);
    assert_eq!(absorb(&mut ledger, &mut engine, Report::Offer(MachineId(0))), []);
}
