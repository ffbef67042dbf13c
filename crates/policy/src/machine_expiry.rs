//! Machines that leave at a known time, such as the end of an allocation: no task starts there that is
//! estimated to end later.

use slackline_model::{MachineId, PhaseId, SlotRange};

use crate::ledger::Ledger;
use crate::view::Estimates;

impl Ledger {
    /// Whether a task of a phase that starts now on a machine is estimated to end before the machine leaves.
    pub(crate) fn ends_in_time(&self, phase: PhaseId, machine: MachineId, estimates: &Estimates) -> bool {
        let Some(&at) = self.machines.horizons.get(&machine) else { return true };
        let speed = estimates.speed[self.instance.cluster().group_id_of(machine)];
        self.now.seconds() + estimates.task[phase].seconds() / speed <= at.seconds()
    }

    /// Removes the free slots on which a task of a phase would not end in time, and returns them. O(machines
    /// that leave · words).
    pub(crate) fn hide_short(&mut self, phase: PhaseId, estimates: &Estimates) -> Vec<SlotRange> {
        let mut hidden = Vec::new();
        let slot_kind = self.instance.slot_kind_of(phase);
        let short =
            self.machines.horizons.keys().filter(|&&machine| !self.ends_in_time(phase, machine, estimates));
        let ranges: Vec<SlotRange> =
            short.filter_map(|&machine| self.instance.cluster().machine_slots(slot_kind, machine)).collect();
        for range in ranges {
            self.free[slot_kind.index()].take_in(range, range.len, &mut hidden);
        }
        hidden
    }

    /// Adds the slots again that [`Ledger::hide_short`] removed for a phase.
    pub(crate) fn show(&mut self, phase: PhaseId, hidden: Vec<SlotRange>) {
        let slot_kind = self.instance.slot_kind_of(phase);
        for range in hidden {
            self.free[slot_kind.index()].insert(range);
        }
    }
}
