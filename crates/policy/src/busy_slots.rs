//! The busy and the free slots at an instant, for policies that look ahead.

use slackline_model::{JobId, MachineId, PhaseId, SlotKind, SlotRange, Time};

use crate::engine::RowId;
use crate::ledger::{Ams, Ledger};
use crate::log::Row;
use crate::speed_order::SpeedClass;

/// The slots at one instant: which tasks hold them, and which are free.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusySlots<'a>(Option<&'a Ledger>);

/// Tasks of a phase that started together and hold slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding<'a> {
    /// Their phase.
    pub phase: PhaseId,
    /// The first of them.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Since when they compute; `None` for reduces that wait for maps.
    pub since: Option<Time>,
    /// Their slots, of one speed.
    pub places: &'a [SlotRange],
}

impl<'a> BusySlots<'a> {
    /// The slots of a run.
    pub(crate) fn of(ledger: &'a Ledger) -> Self {
        Self(Some(ledger))
    }

    /// No slots: for a view without a run.
    pub fn none() -> Self {
        Self(None)
    }

    /// The batches that hold slots, in the order of their starts, without speculative attempts. O(rows of the
    /// log).
    pub fn running(self) -> impl Iterator<Item = Holding<'a>> {
        self.running_from(RowId(0)).map(|(_, holding)| holding)
    }

    /// The batches that hold slots, from this row on, with their rows, in the order of their starts, without
    /// speculative attempts. O(rows of the log from there on).
    pub fn running_from(self, from: RowId) -> impl Iterator<Item = (RowId, Holding<'a>)> {
        let rows = self.0.into_iter().flat_map(move |ledger| {
            let is_first = |(id, row): &(_, &Row)| row.is_running() && !ledger.is_speculative(*id);
            let running = ledger.log.iter_from(from).filter(is_first);
            running.map(move |(id, row)| (ledger, id, row))
        });
        rows.map(|(ledger, id, row): (&Ledger, _, &Row)| {
            let task = row.task;
            let waits = ledger.state.is_early(&ledger.instance, task.phase);
            let began =
                ledger.rows.went.get(&id).copied().unwrap_or(task.start).max(task.start + task.startup);
            let since = (!waits).then_some(began);
            let (phase, first, count) = (task.phase, task.first, task.count);
            (id, Holding { phase, first, count, since, places: row.places() })
        })
    }

    /// The row of the next batch that starts.
    pub fn next_row(self) -> RowId {
        RowId::from(self.0.map_or(0, |ledger| ledger.log.len()))
    }

    /// Whether a batch still holds its slots.
    pub fn is_running(self, row: RowId) -> bool {
        self.0.and_then(|ledger| ledger.log.get(row)).is_some_and(Row::is_running)
    }

    /// How often running batches have changed otherwise than by starting or ending: their tasks began to
    /// compute later than they started, or wait again.
    pub fn changes(self) -> u64 {
        self.0.map_or(0, |ledger| ledger.row_changes)
    }

    /// The number of slots that ApplicationMasters hold, if jobs need them.
    pub fn ams(self) -> u32 {
        self.0.and_then(|ledger| ledger.ams.as_ref()).map_or(0, Ams::held)
    }

    /// Whether jobs need ApplicationMasters that hold slots.
    pub fn has_ams(self) -> bool {
        self.0.and_then(|ledger| ledger.ams.as_ref()).is_some_and(Ams::need_slots)
    }

    /// The number of slots that the ApplicationMaster of an unfinished job holds: 0 or 1.
    pub fn am_of(self, job: JobId) -> u32 {
        let ams = self.0.and_then(|ledger| ledger.ams.as_ref());
        u32::from(ams.is_some_and(|ams| ams.holds_slot(job)))
    }

    /// The number of free slots of a kind.
    pub fn free(self, slot_kind: SlotKind) -> u32 {
        self.0.map_or(0, |ledger| ledger.free[slot_kind.index()].len())
    }

    /// The machines that are away, since when, and whether they left for good.
    pub(crate) fn gone(self) -> impl Iterator<Item = (MachineId, Time, bool)> + 'a {
        let down =
            self.0.into_iter().flat_map(|ledger| ledger.machines.down.iter().map(move |gone| (ledger, gone)));
        down.map(|(ledger, (&machine, &at))| (machine, at, ledger.machines.left.contains(&machine)))
    }

    /// The slots of a kind by estimated speed, in the order in which free slots are taken.
    pub fn classes(self, slot_kind: SlotKind) -> &'a [SpeedClass] {
        self.0.map_or(&[], |ledger| ledger.fastest.classes(slot_kind))
    }

    /// The number of free slots of a class. O(words of its ranges).
    pub fn free_of(self, slot_kind: SlotKind, class: &SpeedClass) -> u32 {
        class.slots.iter().map(|&range| self.free_in(slot_kind, range)).sum()
    }

    /// The number of free slots in a range. O(words of the range).
    pub fn free_in(self, slot_kind: SlotKind, range: SlotRange) -> u32 {
        self.0.map_or(0, |ledger| ledger.free[slot_kind.index()].count_in(range))
    }
}
