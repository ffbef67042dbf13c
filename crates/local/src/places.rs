//! Which machine a slot is of. The journal has slots by their numbers, of the slot kind that serves the task; people and what is
//! learned of machines want names.

use slackline_model::PhaseKind;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// The slots of a workload's machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    groups: Vec<MachineDraft>,
}

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place<'a> {
    /// The group of its machine.
    pub group: &'a str,
    /// Which machine of the group, from 0; none of one that is alone in it.
    nth: Option<u32>,
    /// Its number in the machine.
    pub slot: u32,
    /// The speed of the machine, as the workload has it.
    pub speed: f64,
}

impl Places {
    /// Those of these machines.
    pub fn of(machines: &[MachineDraft]) -> Self {
        Self { groups: machines.to_vec() }
    }

    /// Whether there is more than one machine, so that it has to be said which one it is.
    pub fn are_several(&self) -> bool {
        self.groups.iter().map(|group| group.count).sum::<u32>() > 1
    }

    /// A machine has joined.
    pub fn add(&mut self, name: &str, slots: u32) {
        let (name, slots) = (name.to_owned(), Slots::Universal(slots));
        self.groups.push(MachineDraft { name, count: 1, speed: 1.0, slots, rack: None });
    }

    /// The machine of a slot that a task of a kind has, and the slot's number there; none if there is but one machine.
    pub fn of_several(&self, kind: PhaseKind, slot: u32) -> Option<(String, u32)> {
        let place = self.at(kind, slot).filter(|_| self.are_several())?;
        Some((place.machine(), place.slot))
    }

    /// Where a slot is that a task of a kind has; none of one that there is not. O(groups).
    pub fn at(&self, kind: PhaseKind, slot: u32) -> Option<Place<'_>> {
        let mut left = slot;
        for group in &self.groups {
            let (each, before) = match (group.slots, kind) {
                (Slots::Universal(slots), _) => (slots, 0),
                (Slots::Typed { map, .. }, PhaseKind::Map) => (map, 0),
                (Slots::Typed { map, reduce }, PhaseKind::Reduce) => (reduce, map),
            };
            if left < each * group.count {
                let nth = (group.count > 1).then_some(left / each);
                let (name, speed) = (group.name.as_str(), group.speed);
                return Some(Place { group: name, nth, slot: before + left % each, speed });
            }
            left -= each * group.count;
        }
        None
    }

    /// The speed of the machine of a slot; that of a usual one if there is no such slot.
    pub(crate) fn speed(&self, kind: PhaseKind, slot: u32) -> f64 {
        self.at(kind, slot).map_or(1.0, |place| place.speed)
    }
}

impl Place<'_> {
    /// The name of the machine.
    pub fn machine(&self) -> String {
        self.nth.map_or_else(|| self.group.to_owned(), |nth| format!("{}-{nth}", self.group))
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
    use slackline_model::{Draft, Instance};

    use super::*;

    #[test]
    fn slots_are_where_the_cluster_has_them() {
        let machine = |name: &str, count, slots| MachineDraft {
            name: name.into(),
            count,
            speed: 2.0,
            slots,
            rack: None,
        };
        let universal = vec![
            machine("a", 1, Slots::Universal(2)),
            machine("b", 3, Slots::Universal(4)),
            machine("c", 1, Slots::Universal(1)),
        ];
        let typed = |map, reduce| Slots::Typed { map, reduce };
        let typed =
            vec![machine("a", 2, typed(2, 1)), machine("b", 1, typed(1, 0)), machine("c", 1, typed(0, 3))];
        let maps = Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into());
        let flows =
            vec![FlowDraft::new("f", vec![JobDraft { id: "j".into(), map: maps, ..JobDraft::default() }])];
        for machines in [universal, typed] {
            let places = Places::of(&machines);
            let instance =
                Instance::new(&Draft { machines, flows: flows.clone(), ..Draft::default() }).unwrap();
            let cluster = instance.cluster();
            for kind in PhaseKind::ALL {
                let slot_kind = cluster.slot_kind_of(kind);
                for slot in 0..cluster.slots(slot_kind) {
                    let (machine, number) = cluster.machine_of(slot_kind, slot);
                    let place = places.at(kind, slot).unwrap();
                    assert_eq!((place.machine(), place.slot), (cluster.machine_name(machine), number));
                    assert_eq!(place.speed, 2.0);
                }
                assert_eq!(places.at(kind, cluster.slots(slot_kind)), None);
            }
        }
    }
}
