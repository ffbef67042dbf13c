//! Derives the whole state of a run from its log and compares: nothing may be counted twice or forgotten. For
//! tests; O(rows of the log + tasks + slots) per instant.

use slackline_model::schedule::Outcome;
use slackline_model::{PhaseId, PhaseKind, SlotKind, SlotRange, Table};

use crate::ledger::{Ams, Ledger};
use crate::slots::SlotSet;

#[derive(Clone, Default)]
struct Counts {
    running: u32,
    done: u32,
    seen: Vec<bool>,
}

/// Panics if the state of the ledger differs from its log, and names the difference.
pub(crate) fn audit(ledger: &Ledger) {
    let instance = &ledger.instance;
    let mut busy = [0, 1].map(|slot_kind: usize| {
        let slot_kinds = instance.cluster().slot_kinds();
        SlotSet::empty(slot_kinds.get(slot_kind).map_or(0, |&l| instance.cluster().slot_numbers(l)))
    });
    let mut counts: Table<PhaseId, Counts> = Table::new();
    for (id, p) in instance.phases().iter_enumerated() {
        let seen = vec![false; p.tasks().map_or(0, |t| t.count() as usize)];
        counts.insert(id, Counts { seen, ..Counts::default() });
    }
    for (id, entry) in ledger.log.iter_enumerated() {
        let row = &entry.task;
        let counts = &mut counts[row.phase];
        let held: u32 = entry.places().iter().map(|p| p.len).sum();
        assert_eq!(held, row.count, "a row holds one slot per task");
        if !entry.is_running() && row.outcome != Outcome::Done {
            continue;
        }
        let is_speculative = ledger.is_speculative(id);
        for task in (row.first..row.first + row.count).filter(|_| !is_speculative) {
            let seen = &mut counts.seen[task as usize];
            assert!(
                !std::mem::replace(seen, true),
                "task {task} of {} runs or ran twice",
                instance.phase_name(row.phase)
            );
        }
        if entry.is_running() {
            counts.running += if is_speculative { 0 } else { row.count };
            for &range in entry.places() {
                let busy = &mut busy[instance.slot_kind_of(row.phase).index()];
                assert_eq!(busy.count_in(range), 0, "a slot runs two tasks");
                busy.insert(range);
            }
        } else {
            counts.done += row.count;
        }
    }
    for slot in ledger.ams.iter().flat_map(Ams::slots) {
        let (busy, range) = (&mut busy[SlotKind::Any.index()], SlotRange { first: slot, len: 1 });
        assert_eq!(busy.count_in(range), 0, "a slot runs an AM and a task");
        busy.insert(range);
    }
    audit_phases(ledger, &counts);
    audit_slots(ledger, &busy);
}

fn audit_phases(ledger: &Ledger, counts: &Table<PhaseId, Counts>) {
    let instance = &ledger.instance;
    let mut waiting = [0; 2];
    let mut wants_slots = [false; 2];
    for (phase, info) in instance.phases().iter_enumerated() {
        let name = instance.phase_name(phase);
        let (state, found) = (ledger.state.phase(phase), &counts[phase]);
        // No row shows the tasks of an instant phase.
        let passed = if ledger.state.is_instant(instance, phase) { passed(ledger, phase) } else { 0 };
        let done = found.done + passed;
        assert_eq!((state.running(), state.done()), (found.running, done), "{name}: running, done");
        assert_eq!(state.unstarted() + state.running() + state.done(), state.total(), "{name}: tasks add up");
        wants_slots[instance.slot_kind_of(phase).index()] |= state.wants_slots();
        assert!(state.running() <= info.cap, "{name} is above its cap");
        let pending: u32 = ledger.state.phase(phase).pending().map(|(_, count)| count).sum();
        assert_eq!(pending, state.unstarted(), "{name}: pending tasks");
        for (first, count) in ledger.state.phase(phase).pending() {
            assert!(
                (first..first + count).all(|t| !found.seen[t as usize]),
                "{name}: pending tasks have not run"
            );
        }
        let early = info.kind == PhaseKind::Reduce && ledger.state.is_early(instance, phase);
        assert_eq!(state.waiting(), if early { state.running() } else { 0 }, "{name}: waiting reduces");
        waiting[instance.slot_kind_of(phase).index()] += state.waiting();
        let job = instance.job(info.job);
        let may = job.after.iter().all(|&a| ledger.state.is_job_done(a));
        assert!(
            may || state.running() + state.done() == 0,
            "{name} started before its predecessors were done"
        );
        let listed = ledger.state.ready(instance.slot_kind_of(phase)).any(|p| p == phase);
        assert_eq!(listed, state.is_ready(), "{name}: list of ready phases");
    }
    assert_eq!(ledger.state.wants_slots(), wants_slots, "kinds of slots that phases want");
    for &slot_kind in instance.cluster().slot_kinds() {
        assert_eq!(
            ledger.state.waiting(slot_kind),
            waiting[slot_kind.index()],
            "reduces that wait for {} slots",
            slot_kind.name()
        );
    }
}

/// The number of done tasks of an instant phase: all if all its predecessors are done, else none.
fn passed(ledger: &Ledger, phase: PhaseId) -> u32 {
    let (instance, state) = (&ledger.instance, &ledger.state);
    let info = instance.phase(phase);
    let job = instance.job(info.job);
    // The maps were finished at that time, and no reduce needs their output again.
    let maps = job.map.filter(|_| info.kind == PhaseKind::Reduce);
    let is_submitted = ledger.ams.as_ref().is_none_or(|ams| !ams.is_submitting(info.job));
    let is_ready = is_submitted
        && !(state.has_failed(job.flow) && state.phase(phase).done() == 0)
        && job.after.iter().all(|&before| state.is_job_done(before))
        && maps.is_none_or(|map| state.phase(map).is_done());
    if is_ready { state.phase(phase).total() } else { 0 }
}

fn audit_slots(ledger: &Ledger, busy: &[SlotSet; 2]) {
    let cluster = ledger.instance.cluster();
    for &slot_kind in cluster.slot_kinds() {
        let mut alive = 0;
        for slot in 0..cluster.slot_numbers(slot_kind) {
            let (machine, _) = cluster.machine_of(slot_kind, slot);
            let up = !ledger.is_down(machine);
            alive += u32::from(up);
            let (free, busy) =
                (ledger.free[slot_kind.index()].contains(slot), busy[slot_kind.index()].contains(slot));
            assert_eq!(
                free,
                up && !busy,
                "{} slot {slot}: free {free}, busy {busy}, up {up}",
                slot_kind.name()
            );
        }
        let ams = ledger.ams.iter().flat_map(Ams::slots).count() as u32;
        let alive = alive - ams - ledger.speculative_attempts(slot_kind);
        assert_eq!(ledger.state.alive(slot_kind), alive, "{} slots that are up", slot_kind.name());
    }
}
