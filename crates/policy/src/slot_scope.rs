//! The scope of a search for free slots, for the assignment layer and delay scheduling.

use slackline_model::{MachineId, SlotKind, SlotRange};

use crate::ledger::Ledger;

/// Which free slots may be used now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    All,
    /// Those of machines that sent a heartbeat.
    Machines(&'a [MachineId]),
}

/// The place of a search for slots: anywhere, or on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) slot_kind: SlotKind,
    pub(crate) machine: Option<(MachineId, SlotRange)>,
}

impl Spot {
    /// The spot of `machine`, if it is up and has slots in `slot_kind`.
    pub(crate) fn of_machine(ledger: &Ledger, slot_kind: SlotKind, machine: MachineId) -> Option<Self> {
        if ledger.is_down(machine) {
            return None;
        }
        let range = ledger.instance.cluster().machine_slots(slot_kind, machine)?;
        Some(Self { slot_kind, machine: Some((machine, range)) })
    }

    /// The number of free slots there.
    pub(crate) fn free(&self, ledger: &Ledger) -> u32 {
        let free = &ledger.free[self.slot_kind.index()];
        self.machine.map_or(free.len(), |(_, range)| free.count_in(range))
    }

    /// Takes `n` free slots there, the fastest first.
    pub(crate) fn take(&self, ledger: &mut Ledger, n: u32, out: &mut Vec<SlotRange>) {
        out.clear();
        let free = &mut ledger.free[self.slot_kind.index()];
        match self.machine {
            None => ledger.fastest.take(self.slot_kind, free, n, out),
            Some((_, range)) => {
                free.take_in(range, n, out);
            }
        }
    }
}
