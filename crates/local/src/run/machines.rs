//! The machines of a run that goes on where its cluster is another than before.

use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// The machines of a run, and where the slots are that were recorded.
pub(super) struct Machines {
    /// The machines that there are, then those that there were: these are away.
    pub(super) all: Vec<MachineDraft>,
    /// By slot of the run so far: the slot it is now. A slot that is not in it keeps its number.
    pub(super) slots: Vec<u32>,
}

impl Machines {
    /// Those of a run whose machines are `now`, and were `before`, if it goes on. Only where every slot is a machine of its
    /// own they may be others than before. O(slots + machines^2).
    pub(super) fn of(now: &[MachineDraft], before: Option<&Vec<MachineDraft>>) -> Self {
        let mut all = now.to_vec();
        let is_slot = |machine: &MachineDraft| machine.slots == Slots::Universal(1);
        let Some(before) = before.filter(|before| before.iter().chain(now).all(is_slot)) else {
            return Self { all, slots: Vec::new() };
        };
        for machine in before {
            match all.iter_mut().find(|known| known.name == machine.name) {
                Some(known) => known.count = known.count.max(machine.count),
                None => all.push(machine.clone()),
            }
        }
        let first = |name: &str| -> u32 {
            all.iter().take_while(|machine| machine.name != name).map(|machine| machine.count).sum()
        };
        let slots = before.iter().flat_map(|machine| {
            let first = first(&machine.name);
            first..first + machine.count
        });
        let slots = slots.collect();
        Self { all, slots }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, count: u32, slots: u32) -> MachineDraft {
        MachineDraft { name: name.to_owned(), count, speed: 1.0, slots: Slots::Universal(slots), rack: None }
    }

    #[test]
    fn recorded_slots_stay_those_of_their_hosts_when_other_hosts_are_there() {
        let before = vec![machine("b", 2, 1), machine("c", 3, 1), machine("d", 1, 1)];
        let now = [machine("a", 1, 1), machine("c", 2, 1), machine("d", 2, 1)];
        let Machines { all, slots } = Machines::of(&now, Some(&before));
        let counts: Vec<(&str, u32)> = all.iter().map(|machine| (&*machine.name, machine.count)).collect();
        assert_eq!(counts, [("a", 1), ("c", 3), ("d", 2), ("b", 2)]);
        assert_eq!(slots, [6, 7, 1, 2, 3, 4]);
    }

    #[test]
    fn machines_with_slots_of_their_own_are_those_that_are_there() {
        let (before, now) = (vec![machine("local", 1, 4)], [machine("local", 1, 2)]);
        let Machines { all, slots } = Machines::of(&now, Some(&before));
        assert_eq!((all, slots), (now.to_vec(), Vec::new()));
        assert!(Machines::of(&now, None).slots.is_empty());
    }
}
