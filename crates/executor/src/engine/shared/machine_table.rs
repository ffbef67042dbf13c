//! The machines of a shared engine, each with a permanent number. Runs record slots by these numbers, which
//! stay valid when machines leave and return and when the engine restarts.

use std::collections::BTreeMap;
use std::path::Path;

use slackline_model::MachineId;
use slackline_model::draft::MachineDraft;

use crate::run::error::EngineError;
use crate::store::journal::JoinedMachine;
use crate::store::log::{Kind, Log, LogError};
use crate::store::machine_names::{suffix, whole};

/// The kind of a log of machines.
const LOG: Kind = Kind {
    name: "list of machines",
    line: "slackline machines 1\n",
    advice: "remove it when no run is unfinished; slackline makes a new one",
    tries: 20,
    reserve: 0,
};

/// The machines that are known, by their numbers.
pub(crate) struct MachineTable {
    machines: Vec<MachineDraft>,
    /// By number on the fleet: its number here. A machine that the fleet has not is away.
    ids: BTreeMap<MachineId, MachineId>,
    /// Where those are written down that join; none where none does.
    log: Option<Log>,
}

impl MachineTable {
    /// Machines that never change, in the order of their fleet, each in its own group.
    pub(crate) fn fixed(machines: Vec<MachineDraft>) -> Self {
        let all = (0..machines.len()).map(MachineId::from);
        Self { ids: all.map(|id| (id, id)).collect(), machines, log: None }
    }

    /// The machines of a fleet, in its order, each alone in its group; those that a file knows of keep their
    /// numbers.
    ///
    /// # Errors
    /// A file that is damaged or cannot be written.
    pub(crate) fn kept(path: &Path, fleet: Vec<MachineDraft>) -> Result<Self, EngineError> {
        let log = Log::open(LOG, path)?;
        let mut table = Self { machines: Vec::new(), ids: BTreeMap::new(), log: None };
        for text in log.texts()? {
            let known: JoinedMachine = serde_json::from_slice(&text).map_err(|e| log.unreadable(&e))?;
            table.push(known.draft());
        }
        table.log = Some(log);
        for (machine, k) in fleet.into_iter().zip(0..) {
            table.add(MachineId(k), machine)?;
        }
        Ok(table)
    }

    /// All of them, by their numbers.
    pub(crate) fn machines(&self) -> &[MachineDraft] {
        &self.machines
    }

    /// The number of a machine of the fleet.
    pub(crate) fn id(&self, of_fleet: MachineId) -> Option<MachineId> {
        self.ids.get(&of_fleet).copied()
    }

    /// The fleet's number of a machine, if the fleet has it.
    pub(crate) fn of_fleet(&self, id: MachineId) -> Option<MachineId> {
        self.ids.iter().find(|(_, known)| **known == id).map(|(&of_fleet, _)| of_fleet)
    }

    /// Whether the fleet has never had a machine since the engine was started.
    pub(crate) fn is_missing(&self, id: MachineId) -> bool {
        !self.ids.values().any(|known| *known == id)
    }

    /// A machine of the fleet; one that is known keeps its number. True if it was not known. It is on disk
    /// before anything is done with its number.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(crate) fn add(&mut self, of_fleet: MachineId, machine: MachineDraft) -> Result<bool, LogError> {
        let same = |known: &MachineDraft| {
            known.name == machine.name && (known.count, known.slots) == (machine.count, machine.slots)
        };
        if let Some(k) = self.machines.iter().position(same) {
            self.machines[k].speed = machine.speed;
            self.ids.insert(of_fleet, MachineId::from(k));
            return Ok(false);
        }
        if let Some(log) = &self.log {
            let text = serde_json::to_vec(&JoinedMachine::of(&machine)).map_err(|e| log.unreadable(&e))?;
            log.append([text.as_slice()])?;
        }
        self.ids.insert(of_fleet, MachineId::from(self.machines.len()));
        self.push(machine);
        Ok(true)
    }

    /// One more. One of its name had another number of slots, and is called so from now on.
    fn push(&mut self, machine: MachineDraft) {
        for known in self.machines.iter_mut().filter(|known| known.name == machine.name) {
            known.name.push_str(&suffix(whole(known)));
        }
        self.machines.push(machine);
    }
}

/// The machines of a file, and the present machines, in their permanent order.
///
/// # Errors
/// A file that is damaged or cannot be written.
pub fn known_machines(path: &Path, now: Vec<MachineDraft>) -> Result<Vec<MachineDraft>, EngineError> {
    Ok(MachineTable::kept(path, now)?.machines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, slots: u32) -> MachineDraft {
        JoinedMachine { name: name.to_owned(), slots, speed: 1.0, apart: false }.draft()
    }

    fn names(table: &MachineTable) -> Vec<&str> {
        table.machines().iter().map(|machine| machine.name.as_str()).collect()
    }

    #[test]
    fn machines_keep_their_numbers_when_others_are_there_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machines");
        let mut table = MachineTable::kept(&path, vec![machine("a", 2), machine("b", 1)]).unwrap();
        assert!(table.add(MachineId(2), machine("c", 4)).unwrap());
        assert!(!table.add(MachineId(2), machine("c", 4)).unwrap());
        drop(table);
        let table =
            MachineTable::kept(&path, vec![machine("c", 4), machine("d", 1), machine("a", 2)]).unwrap();
        assert_eq!(names(&table), ["a", "b", "c", "d"]);
        let ids: Vec<_> = (0..3).map(|k| table.id(MachineId(k)).unwrap().0).collect();
        assert_eq!(ids, [2, 3, 0]);
        assert_eq!((table.of_fleet(MachineId(3)), table.of_fleet(MachineId(1))), (Some(MachineId(1)), None));
        assert!(table.is_missing(MachineId(1)) && !table.is_missing(MachineId(0)));
    }

    #[test]
    fn a_machine_with_another_number_of_slots_is_another_machine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machines");
        for (slots, expected) in [
            (4, &["a"][..]),
            (3, &["a (4 slots)", "a"]),
            (3, &["a (4 slots)", "a"]),
            (4, &["a (4 slots)", "a (3 slots)", "a"]),
        ] {
            let table = MachineTable::kept(&path, vec![machine("a", slots)]).unwrap();
            assert_eq!(names(&table), expected);
            assert_eq!(table.id(MachineId(0)), Some(MachineId::from(expected.len() - 1)));
        }
    }
}
