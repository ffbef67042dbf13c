//! Slots that the driver cannot use: those of other applications, and those of hosts that are down.

use std::ops::Range;

use slackline_model::MachineId;
use slackline_policy::engine::Report;

use crate::cluster::container_ledger::{ContainerLedger, Host, Slot};

impl ContainerLedger {
    /// Takes `count` slots away for containers of unknown hosts, free slots first.
    pub(crate) fn set_others(&mut self, count: u32) {
        let held = self.slots.iter().filter(|&&slot| slot == Slot::Others).count() as u32;
        let back = held.saturating_sub(count) as usize;
        let others = (0..).zip(&self.slots).filter(|(_, slot)| **slot == Slot::Others).map(|(slot, _)| slot);
        let others: Vec<u32> = others.collect();
        for &slot in others.iter().rev().take(back) {
            self.release_slot(slot);
        }
        for _ in held..count {
            let Some(slot) = self.free_slot("", None) else { return };
            self.set(slot, Slot::Others);
            self.machines.push(Report::Down(MachineId(slot)));
        }
    }

    /// Marks hosts as up or down. Their containers are reported separately. O(slots).
    pub(crate) fn set_hosts(&mut self, is_up: impl Fn(&str) -> bool) {
        for host in 0..self.hosts.len() {
            let Host { first, count, .. } = self.hosts[host];
            let is_up = is_up(&self.hosts[host].name);
            self.set_slots(first..first + count, is_up);
        }
    }

    fn set_slots(&mut self, slots: Range<u32>, is_up: bool) {
        for slot in slots {
            match (self.slots[slot as usize], is_up) {
                (Slot::Away, true) => self.release_slot(slot),
                // The answer of the driver settles the offer.
                (Slot::Away | Slot::Offered(_), _) | (_, true) => {}
                (holds, false) => self.lose_slot(slot, holds),
            }
        }
    }

    fn lose_slot(&mut self, slot: u32, holds: Slot) {
        let displaced = match holds {
            Slot::Taken(container) => Some(container),
            Slot::Row(id) => {
                let row = self.remove_row(id);
                if let Some(row) = row
                    && let Some(known) = self.phases.get_mut(&row.phase)
                {
                    known.pending.insert(row.task);
                }
                row.and_then(|row| row.container)
            }
            _ => None,
        };
        self.set(slot, Slot::Away);
        if !matches!(holds, Slot::Taken(_) | Slot::Others) {
            self.machines.push(Report::Down(MachineId(slot)));
        }
        if let Some(container) = displaced {
            if let Some(live) = self.live.get_mut(&container) {
                live.slot = None;
            }
            self.uncounted.insert(container);
        }
    }
}
