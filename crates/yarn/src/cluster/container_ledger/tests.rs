//! Small cases of the ledger.

use crate::cluster::container_ledger::*;
use crate::rest::id::{AppAttemptId, AppId};

const MAPS: PhaseId = PhaseId(0);

/// Two slots, and a job of two maps.
fn ledger() -> ContainerLedger {
    let mut ledger = ContainerLedger::new([("a".to_owned(), 1), ("b".to_owned(), 1)]);
    ledger.add_phase(MAPS, 7, PhaseKind::Map, 2);
    ledger
}

fn container(number: u64) -> ContainerId {
    let app = AppId { cluster: 1, number: 1 };
    ContainerId { attempt: AppAttemptId { app, number: 1 }, epoch: 0, number }
}

fn reports(ledger: &mut ContainerLedger) -> Vec<Report> {
    let mut reports = Vec::new();
    ledger.report(&mut reports);
    reports
}

fn finished(row: u32) -> Report {
    Report::Finished { row: RowId(row), at: Time::ZERO }
}

#[test]
fn a_row_gets_the_container_on_its_host_and_ends_with_it() {
    let mut ledger = ledger();
    ledger.add_row(RowId(0), MAPS, 0, 0, None);
    ledger.add_row(RowId(1), MAPS, 1, 1, None);
    ledger.add_container(container(2), "b", Time::ZERO, Some((7, Some(PhaseKind::Map))));
    assert_eq!((ledger.live(MAPS), ledger.unbound(MAPS)), (1, 1));
    ledger.remove_container(container(2), ContainerOutcome::Finished);
    assert_eq!(reports(&mut ledger), [finished(1)]);
    assert_eq!((ledger.live(MAPS), ledger.first_unbound(MAPS)), (0, Some(RowId(0))));
}

#[test]
fn a_am_takes_the_slot_of_a_row_that_has_no_container() {
    let mut ledger = ledger();
    ledger.add_row(RowId(0), MAPS, 0, 0, None);
    ledger.add_row(RowId(1), MAPS, 1, 1, None);
    ledger.add_container(container(1), "a", Time::ZERO, Some((7, None)));
    let (down, up) = (Report::Down(MachineId(1)), Report::Up(MachineId(1)));
    assert_eq!(reports(&mut ledger), [down.clone(), up.clone(), down]);
    assert_eq!((ledger.unbound(MAPS), ledger.pending(MAPS)), (1, 1));
    ledger.remove_container(container(1), ContainerOutcome::Failed);
    assert_eq!(reports(&mut ledger), [up]);
}

#[test]
fn finished_tasks_are_reported_on_a_slot_of_others_where_there_is_no_other() {
    let mut ledger = ledger();
    ledger.set_others(2);
    assert!(ledger.is_full_of_others());
    reports(&mut ledger);
    ledger.add_finished(MAPS, 1);
    let [Report::Up(up), Report::Running(Running { name, phase, task, slot, .. })] = reports(&mut ledger)[..]
    else {
        panic!("the slot is there, and then its task runs");
    };
    assert_eq!(up, MachineId(slot));
    ledger.add_row(RowId(0), phase, task, slot, Some(name));
    ledger.set_others(2);
    assert_eq!(reports(&mut ledger), [finished(0), Report::Down(up)]);
}

#[test]
fn a_job_that_fails_before_it_is_started_is_reported_so_that_its_flow_can_fail() {
    let mut ledger = ledger();
    ledger.fail_flow(&[7]);
    let [Report::Running(Running { name, phase, task, slot, .. })] = reports(&mut ledger)[..] else {
        panic!("one task is reported as running");
    };
    ledger.add_row(RowId(0), phase, task, slot, Some(name));
    let failed = Report::Failed { row: RowId(0), at: Time::ZERO, is_final: true };
    assert_eq!(reports(&mut ledger), [failed]);
}

#[test]
fn earlier_results_are_reported_as_slots_allow() {
    let mut ledger = ledger();
    ledger.set_hosts(|name| name != "b");
    ledger.add_finished(MAPS, 2);
    let waiting = reports(&mut ledger);
    let [Report::Down(MachineId(1)), Report::Running(Running { name, phase, task, slot, .. })] = waiting[..]
    else {
        panic!("a host is away, and one task fits: {waiting:?}");
    };
    assert_eq!(ledger.done(MAPS), 2);
    ledger.add_row(RowId(0), phase, task, slot, Some(name));
    let [Report::Finished { .. }, Report::Running(Running { name, phase, task, slot, .. })] =
        reports(&mut ledger)[..]
    else {
        panic!("one has ended, and the other is reported");
    };
    ledger.add_row(RowId(1), phase, task, slot, Some(name));
    assert_eq!(reports(&mut ledger), [finished(1)]);
    assert!(ledger.is_done(MAPS));
}
