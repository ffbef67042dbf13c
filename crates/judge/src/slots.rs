//! Checks the slots of task rows: no slot runs two attempts at once, and no phase holds more slots than its
//! cap.

use std::ops::Range;

use slackline_model::{PhaseId, SlotRange, Time};

use crate::excess::{Hold, first_excess};
use crate::ledger::Ledger;
use crate::tolerance;
use crate::violation::{First, Place, Subject, Violation};

/// Slot kinds up to this size have a table entry for each slot; larger ones for each stretch of slots that
/// some row names, so that a small document about a huge cluster uses little memory.
pub(crate) const DENSE_SLOTS: u32 = 1 << 22;

/// Until when each slot of a kind is held.
struct BusyUntil {
    /// First slots of stretches that every row takes whole or not at all; `None` if each slot has an entry.
    cuts: Option<Vec<u32>>,
    until: Vec<Time>,
}

impl BusyUntil {
    fn new(slots: u32, places: impl Iterator<Item = SlotRange>) -> Self {
        if slots <= DENSE_SLOTS {
            return Self { cuts: None, until: vec![Time::ZERO; slots as usize] };
        }
        let mut cuts: Vec<u32> = places.flat_map(|p| [p.first, p.end()]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let until = vec![Time::ZERO; cuts.len()];
        Self { cuts: Some(cuts), until }
    }

    fn entries(&self, place: SlotRange) -> Range<usize> {
        match &self.cuts {
            None => place.first as usize..place.end() as usize,
            Some(cuts) => {
                cuts.partition_point(|&c| c < place.first)..cuts.partition_point(|&c| c < place.end())
            }
        }
    }

    fn slot(&self, entry: usize) -> u32 {
        self.cuts.as_ref().map_or(entry as u32, |cuts| cuts[entry])
    }
}

/// Offers the first overlaps on a slot. Every attempt uses its slot from start to end, with any outcome.
/// O(attempts) after sorting.
pub(crate) fn check_overlaps(ledger: &Ledger<'_>, first: &mut First) {
    let cluster = ledger.instance.cluster();
    let slot_kind_of = |i: u32| ledger.instance.slot_kind_of(ledger.row(i).phase);
    let mut taken = [None, None];
    for &slot_kind in cluster.slot_kinds() {
        let rows = ledger.by_start().iter().filter(|&&i| slot_kind_of(i) == slot_kind);
        let places = rows.flat_map(|&i| ledger.rows.places(ledger.row(i))).copied();
        taken[slot_kind.index()] = Some(BusyUntil::new(cluster.slots(slot_kind), places));
    }
    let mut found_at = None;
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        if found_at.is_some_and(|at| row.start > at) {
            return;
        }
        let end = tolerance::shrunk(row.end);
        let Some(taken) = &mut taken[slot_kind_of(i).index()] else { continue };
        if end <= row.start {
            continue;
        }
        let mut task = row.first;
        for &place in ledger.rows.places(row) {
            for entry in taken.entries(place) {
                let until = taken.until[entry];
                if until > row.start {
                    let slot = taken.slot(entry);
                    first.offer(row.start.seconds(), row.phase, || {
                        overlap(ledger, i, task + (slot - place.first), slot)
                    });
                    found_at = Some(row.start);
                }
                taken.until[entry] = until.max(end);
            }
            task += place.len;
        }
    }
}

/// Names both sides of an overlap. Only this error path searches for the other side.
fn overlap(ledger: &Ledger<'_>, index: u32, task: u32, slot: u32) -> Violation {
    let row = ledger.row(index);
    let slot_kind = ledger.instance.slot_kind_of(row.phase);
    let before = ledger.by_start().iter().take_while(|&&i| i != index);
    let other = before.map(|&i| ledger.row(i)).find_map(|other| {
        let running = ledger.instance.slot_kind_of(other.phase) == slot_kind
            && tolerance::shrunk(other.end) > row.start;
        let at = if running { task_on(ledger.rows.places(other), slot) } else { None };
        at.map(|k| Subject::task(ledger.instance, other.phase, other.first + k))
    });
    // Without another row, this row names the slot twice.
    let own = || {
        let k = task_on(ledger.rows.places(row), slot).expect("invariant: the row is on the slot");
        Subject::task(ledger.instance, row.phase, row.first + k)
    };
    Violation::SlotOverlap {
        at: row.start.seconds(),
        task: Subject::task(ledger.instance, row.phase, task),
        other: Box::new(other.unwrap_or_else(own)),
        place: Place::new(ledger.instance.cluster(), slot_kind, slot),
    }
}

/// The number, within a row, of its task on `slot`.
fn task_on(places: &[SlotRange], slot: u32) -> Option<u32> {
    let mut before = 0;
    for place in places {
        if (place.first..place.end()).contains(&slot) {
            return Some(before + (slot - place.first));
        }
        before += place.len;
    }
    None
}

/// Offers the first instant of each phase at which it holds more slots than its cap.
///
/// The number of tasks with a running attempt counts. A further attempt of a task that still runs is
/// speculative and does not count.
pub(crate) fn check_caps(ledger: &Ledger<'_>, first: &mut First) {
    for (id, phase) in ledger.instance.phases().iter_enumerated() {
        // A phase never has more running tasks than tasks.
        if phase.tasks().is_none_or(|tasks| phase.cap >= tasks.count()) {
            continue;
        }
        let holds = if ledger.has_retries(id) { distinct_holds(ledger, id) } else { row_holds(ledger, id) };
        if let Some(excess) = first_excess(holds, u64::from(phase.cap)) {
            first.offer(excess.at, id, || Violation::Cap {
                at: excess.at,
                phase: Subject::phase(ledger.instance, id),
                found: excess.held,
                cap: phase.cap,
            });
        }
    }
}

fn row_holds(ledger: &Ledger<'_>, phase: PhaseId) -> Vec<Hold> {
    let rows = ledger.indices(phase).iter().map(|&i| (i, ledger.row(i)));
    rows.map(|(i, row)| Hold { start: row.start.seconds(), end: row.end.seconds(), slots: row.count, row: i })
        .collect()
}

/// One hold for each stretch of time in which some attempt of the same tasks runs.
fn distinct_holds(ledger: &Ledger<'_>, phase: PhaseId) -> Vec<Hold> {
    let mut holds = Vec::new();
    for attempts in ledger.pieces(phase).chunk_by(|a, b| a.first == b.first) {
        let mut by_start: Vec<_> = attempts.iter().map(|p| (ledger.row(p.row).start, p)).collect();
        by_start.sort_by_key(|&(start, piece)| (start, piece.row));
        let mut covered = Time::ZERO;
        for (start, piece) in by_start {
            let (start, end) = (start.max(covered), ledger.row(piece.row).end);
            if end > start {
                let (start, end) = (start.seconds(), end.seconds());
                holds.push(Hold { start, end, slots: piece.count, row: piece.row });
            }
            covered = covered.max(end);
        }
    }
    holds
}
