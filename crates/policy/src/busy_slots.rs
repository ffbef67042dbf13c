//! What holds slots now and which slots are free, for policies that look ahead.

use slackline_model::{JobId, MachineId, PhaseId, SlotKind, SlotRange, Time};

use crate::ledger::{Ledger, Masters};
use crate::log::Row;
use crate::speed_order::SpeedClass;

/// The slots at one instant: what runs on them, and which are free.
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
    /// Since when they compute; `None` of reduces that wait for maps.
    pub since: Option<Time>,
    /// Their slots, of one speed.
    pub places: &'a [SlotRange],
}

impl<'a> BusySlots<'a> {
    /// The slots of a run.
    pub(crate) fn of(ledger: &'a Ledger) -> Self {
        Self(Some(ledger))
    }

    /// No slots at all: of a view that belongs to no run.
    pub fn none() -> Self {
        Self(None)
    }

    /// What holds slots, in the order in which it started; second attempts of tasks are left out. O(rows of
    /// the log).
    pub fn running(self) -> impl Iterator<Item = Holding<'a>> {
        let rows = self.0.into_iter().flat_map(|ledger| {
            let is_first = |(id, row): &(_, &Row)| row.is_running() && !ledger.is_second(*id);
            let running = ledger.log.iter_enumerated().filter(is_first);
            running.map(move |(id, row)| (ledger, id, row))
        });
        rows.map(|(ledger, id, row): (&Ledger, _, &Row)| {
            let task = row.task;
            let waits = ledger.state.is_early(&ledger.instance, task.phase);
            let began = ledger.went.get(&id).copied().unwrap_or(task.start).max(task.start + task.startup);
            let since = (!waits).then_some(began);
            Holding { phase: task.phase, first: task.first, count: task.count, since, places: row.places() }
        })
    }

    /// How many slots the masters of jobs hold, where jobs need them.
    pub fn masters(self) -> u32 {
        self.0.and_then(|ledger| ledger.masters.as_ref()).map_or(0, Masters::held)
    }

    /// Whether jobs need masters that hold slots.
    pub fn has_masters(self) -> bool {
        self.0.and_then(|ledger| ledger.masters.as_ref()).is_some_and(Masters::need_slots)
    }

    /// How many slots the master of a job holds that is not over: none or one.
    pub fn master_of(self, job: JobId) -> u32 {
        let masters = self.0.and_then(|ledger| ledger.masters.as_ref());
        u32::from(masters.is_some_and(|masters| masters.holds_slot(job)))
    }

    /// How many slots of a kind are free.
    pub fn free(self, slot_kind: SlotKind) -> u32 {
        self.0.map_or(0, |ledger| ledger.free[slot_kind.index()].len())
    }

    /// The machines that are away, and since when; whether they left for good.
    pub(crate) fn gone(self) -> impl Iterator<Item = (MachineId, Time, bool)> + 'a {
        let down = self.0.into_iter().flat_map(|ledger| ledger.down.iter().map(move |gone| (ledger, gone)));
        down.map(|(ledger, (&machine, &at))| (machine, at, ledger.left.contains(&machine)))
    }

    /// The slots of a kind by estimated speed, in the order in which free ones are taken.
    pub fn classes(self, slot_kind: SlotKind) -> &'a [SpeedClass] {
        self.0.map_or(&[], |ledger| ledger.fastest.classes(slot_kind))
    }

    /// How many slots of a class are free. O(words of its ranges).
    pub fn free_of(self, slot_kind: SlotKind, class: &SpeedClass) -> u32 {
        class.slots.iter().map(|&range| self.free_in(slot_kind, range)).sum()
    }

    /// How many slots of a range are free. O(words of the range).
    pub fn free_in(self, slot_kind: SlotKind, range: SlotRange) -> u32 {
        self.0.map_or(0, |ledger| ledger.free[slot_kind.index()].count_in(range))
    }
}
