//! The machines of a run that goes on where its cluster is another than before.

use slackline_model::PhaseKind;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// The machines of a run, and where the slots are that were recorded.
#[derive(Debug, Default)]
pub(super) struct Machines {
    /// The machines that there are, then those that there were: these are away.
    pub(super) all: Vec<MachineDraft>,
    /// The names of machines that are away as a whole.
    pub(super) away: Vec<String>,
    /// By slot of the run so far that a map had: the slot it is now.
    maps: Vec<u32>,
    /// The same of reduces.
    reduces: Vec<u32>,
}

impl Machines {
    /// Those of a run whose machines are `now`, and were `before`, if it goes on. O(slots + machines^2).
    pub(super) fn of(now: &[MachineDraft], before: Option<&Vec<MachineDraft>>) -> Self {
        let mut this = Self { all: now.to_vec(), ..Self::default() };
        let Some(before) = before else { return this };
        let is_typed = now.iter().any(|machine| matches!(machine.slots, Slots::Typed { .. }));
        let places: Vec<usize> = before.iter().map(|machine| this.place(machine, is_typed)).collect();
        this.away = this.all[now.len()..].iter().map(|machine| machine.name.clone()).collect();
        for kind in PhaseKind::ALL {
            let slots = before.iter().zip(&places).flat_map(|(machine, &at)| this.slots(kind, machine, at));
            let slots: Vec<u32> = slots.collect();
            match kind {
                PhaseKind::Map => this.maps = slots,
                PhaseKind::Reduce => this.reduces = slots,
            }
        }
        this
    }

    /// Where a slot is now that a task of a kind had.
    pub(super) fn slot(&self, kind: PhaseKind, slot: u32) -> u32 {
        let slots = match kind {
            PhaseKind::Map => &self.maps,
            PhaseKind::Reduce => &self.reduces,
        };
        slots.get(slot as usize).copied().unwrap_or(slot)
    }

    /// Where a machine is that there was; one that is not there, or not as it was, is one more.
    fn place(&mut self, machine: &MachineDraft, is_typed: bool) -> usize {
        let known = self.all.iter().position(|known| known.name == machine.name);
        if let Some(at) = known.filter(|&at| self.all[at].slots == machine.slots) {
            self.all[at].count = self.all[at].count.max(machine.count);
            return at;
        }
        let name = match known {
            None => machine.name.clone(),
            Some(_) => renamed(&machine.name, machine.slots),
        };
        let slots = match (machine.slots, is_typed) {
            (Slots::Typed { map, reduce }, false) => Slots::Universal(map + reduce),
            (Slots::Universal(slots), true) => Slots::Typed { map: slots, reduce: slots },
            (slots, _) => slots,
        };
        let named = self.all.iter().position(|known| known.name == name);
        let at = named.unwrap_or(self.all.len());
        if named.is_none() {
            self.all.push(MachineDraft { name, slots, ..machine.clone() });
        }
        at
    }

    /// Where the slots are now that tasks of a kind had on a machine, which has this place now.
    fn slots(&self, kind: PhaseKind, machine: &MachineDraft, at: usize) -> impl Iterator<Item = u32> {
        let first: u32 = self.all[..at].iter().map(|other| other.count * serving(kind, other.slots)).sum();
        let each = serving(kind, self.all[at].slots);
        // Slots for reduces come after those for maps where they become slots for both.
        let offset = match (machine.slots, self.all[at].slots, kind) {
            (Slots::Typed { map, .. }, Slots::Universal(_), PhaseKind::Reduce) => map,
            _ => 0,
        };
        let had = serving(kind, machine.slots);
        (0..machine.count).flat_map(move |nth| (0..had).map(move |slot| first + nth * each + offset + slot))
    }
}

/// How many slots of a machine serve a kind of tasks.
fn serving(kind: PhaseKind, slots: Slots) -> u32 {
    match (slots, kind) {
        (Slots::Universal(slots), _) => slots,
        (Slots::Typed { map, .. }, PhaseKind::Map) => map,
        (Slots::Typed { reduce, .. }, PhaseKind::Reduce) => reduce,
    }
}

/// What a machine is called that had so many slots, where one of its name has another number of them now.
pub(crate) fn renamed(name: &str, slots: Slots) -> String {
    match slots {
        Slots::Universal(slots) => format!("{name} ({slots} slots)"),
        Slots::Typed { map, reduce } => format!("{name} ({map} map and {reduce} reduce slots)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [PhaseKind; 2] = PhaseKind::ALL;

    fn machine(name: &str, count: u32, slots: u32) -> MachineDraft {
        MachineDraft { name: name.to_owned(), count, speed: 1.0, slots: Slots::Universal(slots), rack: None }
    }

    fn typed(map: u32, reduce: u32) -> MachineDraft {
        MachineDraft { slots: Slots::Typed { map, reduce }, ..machine("local", 1, 0) }
    }

    fn slots(machines: &Machines, kind: PhaseKind, n: u32) -> Vec<u32> {
        (0..n).map(|slot| machines.slot(kind, slot)).collect()
    }

    #[test]
    fn recorded_slots_stay_those_of_their_hosts_when_other_hosts_are_there() {
        let before = vec![machine("b", 2, 1), machine("c", 3, 1), machine("d", 1, 1)];
        let now = [machine("a", 1, 1), machine("c", 2, 1), machine("d", 2, 1)];
        let machines = Machines::of(&now, Some(&before));
        let counts: Vec<(&str, u32)> =
            machines.all.iter().map(|machine| (&*machine.name, machine.count)).collect();
        assert_eq!(counts, [("a", 1), ("c", 3), ("d", 2), ("b", 2)]);
        assert_eq!(machines.away, ["b"]);
        for kind in BOTH {
            assert_eq!(slots(&machines, kind, 6), [6, 7, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_machine_with_another_number_of_slots_is_another_machine() {
        let before = vec![machine("n1", 1, 4), machine("n2", 1, 2)];
        let machines = Machines::of(&[machine("n2", 1, 2), machine("n1", 1, 3)], Some(&before));
        assert_eq!(machines.all, [machine("n2", 1, 2), machine("n1", 1, 3), machine("n1 (4 slots)", 1, 4)]);
        assert_eq!(machines.away, ["n1 (4 slots)"]);
        for kind in BOTH {
            assert_eq!(slots(&machines, kind, 6), [5, 6, 7, 8, 0, 1]);
        }
        // And so it stays.
        let again = Machines::of(&[machine("n1", 1, 3)], Some(&machines.all));
        assert_eq!((again.away, again.all.len()), (vec!["n2".to_owned(), "n1 (4 slots)".to_owned()], 3));
        assert_eq!(slots(&Machines::of(&before, None), PhaseKind::Map, 3), [0, 1, 2]);
    }

    #[test]
    fn slots_of_a_kind_become_slots_for_both_and_the_other_way_round() {
        let machines = Machines::of(&[machine("local", 1, 1)], Some(&vec![typed(2, 1)]));
        assert_eq!(machines.all[1], machine("local (2 map and 1 reduce slots)", 1, 3));
        assert_eq!(BOTH.map(|kind| machines.slot(kind, 0)), [1, 3]);
        let machines = Machines::of(&[typed(2, 1)], Some(&vec![machine("local", 1, 4)]));
        let away = MachineDraft { name: "local (4 slots)".to_owned(), ..typed(4, 4) };
        assert_eq!(machines.all, [typed(2, 1), away]);
        assert_eq!(BOTH.map(|kind| machines.slot(kind, 3)), [5, 4]);
    }
}
