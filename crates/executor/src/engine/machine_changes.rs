//! Machines that leave, return and join during a run.
//!
//! Tasks of a machine that left start on other machines. Their old attempts no longer count: only the attempt
//! with the number in the journal does. Their files stay until the machine returns without them.

use std::collections::BTreeMap;

use slackline_model::MachineId;
use slackline_model::cluster::{Group, Slots};
use slackline_policy::engine::RowId;
use slackline_task::base::task_id::TaskId;

use crate::engine::event::RunEvent;
use crate::engine::{ProcessEngine, Running, Stage};
use crate::fleet::{FleetEvent, NewMachine};
use crate::store::journal::JoinedMachine;

impl ProcessEngine {
    /// Handles an event of the fleet about a machine.
    pub(super) fn take_in_machine(&mut self, event: FleetEvent) {
        let id = |machine: MachineId| self.machines.ids.get(&machine).copied();
        match event {
            FleetEvent::Down { machine, why } => {
                if let Some(machine) = id(machine) {
                    self.lose_machine(machine, &why);
                }
            }
            FleetEvent::Up(machine) => {
                if let Some(machine) = id(machine) {
                    self.machine_is_back(machine);
                }
            }
            FleetEvent::Joined(new) => self.join(new),
            FleetEvent::Notice(what) => (self.on_event)(self.now, &RunEvent::Warning(what)),
            // The driver learns of times from the loop alone.
            FleetEvent::Until { .. } | FleetEvent::Ended { .. } => {}
        }
    }

    /// Whether a machine is not there.
    pub(super) fn is_away(&self, id: TaskId, slot: u32) -> bool {
        !self.machines.away.is_empty() && self.machines.away.contains(&self.machine_of(id, slot))
    }

    /// A machine left, with the attempts on it.
    fn lose_machine(&mut self, machine: MachineId, why: &str) {
        if !self.machines.away.insert(machine) {
            return;
        }
        let name = self.machines.cluster.machine_name(machine);
        (self.on_event)(self.now, &RunEvent::MachineDown { machine: name, reason: why.to_owned() });
        let is_there = |local: &Self, running: &Running| {
            running.is_at_work() && local.machine_of(running.id, running.slot) == machine
        };
        let rows: Vec<RowId> = self.attempts.running.keys().copied().collect();
        for row in rows {
            let Some(mut running) = self.attempts.running.remove(&row) else { continue };
            if let Some(mut second) = running.second.take() {
                if is_there(self, &second) {
                    second.stage = Stage::Gone;
                    self.drop_attempt(&second);
                } else {
                    running.second = Some(second);
                }
            }
            // The driver stops it when it learns of the machine.
            if is_there(self, &running) {
                running.stage = Stage::Gone;
            }
            self.attempts.running.insert(row, running);
        }
        let again: Vec<u64> = self.lost.attempts().filter(|r| is_there(self, r)).map(|r| r.number).collect();
        for number in again {
            if let Some(mut running) = self.lost.take(number) {
                running.stage = Stage::Gone;
                self.drop_attempt(&running);
            }
        }
        let leaving = std::mem::take(&mut self.attempts.leaving);
        for (number, (id, slot)) in leaving {
            if self.machine_of(id, slot) == machine {
                self.leave_behind(machine, id, number);
            } else {
                self.attempts.leaving.insert(number, (id, slot));
            }
        }
    }

    /// The files of an attempt on a machine that left stay for now.
    pub(super) fn leave_behind(&mut self, machine: MachineId, id: TaskId, number: u64) {
        self.machines.left_behind.entry(machine).or_default().push((id, number));
    }

    /// Removes the files of attempts on machines that left; a process that still writes there belongs to no
    /// run.
    pub(super) fn clear_left_behind(&mut self) {
        for (_, left) in std::mem::take(&mut self.machines.left_behind) {
            for (id, number) in left {
                self.clear(id, number);
            }
        }
    }

    /// A machine is back, without its earlier attempts.
    fn machine_is_back(&mut self, machine: MachineId) {
        if !self.machines.away.remove(&machine) {
            return;
        }
        for (id, number) in self.machines.left_behind.remove(&machine).unwrap_or_default() {
            self.clear(id, number);
        }
        let name = self.machines.cluster.machine_name(machine);
        (self.on_event)(self.now, &RunEvent::MachineUp { machine: name, new_slots: None });
    }

    /// A machine joins that was not known before. It is in the journal before anything starts on it.
    fn join(&mut self, new: NewMachine) {
        let NewMachine { number, name, slots, speed, capacity } = new;
        let joined = JoinedMachine { name: name.clone(), slots, speed, apart: false };
        if let Err(error) = self.work.session.journal.joined(&joined, self.now.0) {
            return self.lose_journal(&error);
        }
        self.work.segment += 1;
        let group =
            Group { name, count: 1, speed, slots: Slots::Generic(slots), rack: None, first: MachineId(0) };
        for machine in self.machines.cluster.join(group.clone()).map(MachineId) {
            self.machines.ids.insert(number, machine);
            self.machines.capacities.insert(machine, capacity);
        }
        let event = RunEvent::MachineUp { machine: group.name, new_slots: Some(slots) };
        (self.on_event)(self.now, &event);
    }
}

/// Attempts whose files stay until their machine is back, by machine.
pub(super) type LeftBehind = BTreeMap<MachineId, Vec<(TaskId, u64)>>;
