//! Maps slots to machines. The journal records slots by number, within the slot kind that serves the task;
//! users and statistics need machine names. Each segment of a run has its own machines and slot numbers;
//! [`WholeCluster`] joins them.

use std::collections::BTreeSet;

use slackline_model::cluster::{SlotRange, Slots};
use slackline_model::draft::MachineDraft;
use slackline_model::{PhaseKind, SlotKind};

use crate::store::journal::{Attempt, Segment};
use crate::store::machine_names::former_name;

/// The slots of a workload's machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineSlots {
    groups: Vec<MachineDraft>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSlot<'a> {
    /// The group of its machine.
    pub group: &'a str,
    /// The index of the machine in the group, from 0; `None` for the only machine.
    nth: Option<u32>,
    /// Its number in the machine.
    pub slot: u32,
    /// The speed of the machine in the workload.
    pub speed: f64,
}

impl MachineSlots {
    /// The slots of these machines.
    pub fn of(machines: &[MachineDraft]) -> Self {
        Self { groups: machines.to_vec() }
    }

    /// Whether there is more than one machine, so that messages must name the machine.
    pub fn are_several(&self) -> bool {
        self.groups.iter().map(|group| group.count).sum::<u32>() > 1
    }

    /// Adds a machine that has joined.
    pub fn add(&mut self, name: &str, slots: u32) {
        let (name, slots) = (name.to_owned(), Slots::Generic(slots));
        self.groups.push(MachineDraft { name, count: 1, speed: 1.0, slots, rack: None });
    }

    /// The machine of the slot of a task, and the slot's number there; `None` if there is only one machine.
    pub fn of_several(&self, kind: PhaseKind, slot: u32) -> Option<(String, u32)> {
        let place = self.at(kind, slot).filter(|_| self.are_several())?;
        Some((place.machine(), place.slot))
    }

    /// The place of the slot of a task; `None` if there is no such slot. O(groups).
    pub fn at(&self, kind: PhaseKind, slot: u32) -> Option<MachineSlot<'_>> {
        let Located { group, nth, slot } = locate(&self.groups, kind, slot)?;
        let before = match (group.slots, kind) {
            (Slots::MapReduce { map, .. }, PhaseKind::Reduce) => map,
            _ => 0,
        };
        let nth = (group.count > 1).then_some(nth);
        Some(MachineSlot { group: &group.name, nth, slot: before + slot, speed: group.speed })
    }

    /// The speed of the machine of a slot; the default speed if there is no such slot.
    pub(crate) fn speed(&self, kind: PhaseKind, slot: u32) -> f64 {
        self.at(kind, slot).map_or(1.0, |place| place.speed)
    }
}

/// A slot of a group of machines.
struct Located<'a> {
    group: &'a MachineDraft,
    /// The index of the machine in the group.
    nth: u32,
    /// Its number among the slots of the machine that serve the kind.
    slot: u32,
}

/// The place of the slot of a task. O(groups).
fn locate(groups: &[MachineDraft], kind: PhaseKind, slot: u32) -> Option<Located<'_>> {
    let mut left = slot;
    for group in groups {
        let each = serving(kind, group.slots);
        if left < each * group.count {
            return Some(Located { group, nth: left / each, slot: left % each });
        }
        left -= each * group.count;
    }
    None
}

/// The number of slots of a machine that serve a kind of tasks.
fn serving(kind: PhaseKind, slots: Slots) -> u32 {
    match (slots, kind) {
        (Slots::Generic(slots), _) => slots,
        (Slots::MapReduce { map, .. }, PhaseKind::Map) => map,
        (Slots::MapReduce { reduce, .. }, PhaseKind::Reduce) => reduce,
    }
}

/// The machines of several segments as one cluster: each machine once, with the largest number of slots that
/// it had. It has map and reduce slots if all segments had them.
pub struct WholeCluster {
    machines: Vec<MachineDraft>,
}

impl WholeCluster {
    /// The cluster of these segments. Machines have their latest speeds. O(machines²).
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Self {
        let groups: Vec<&MachineDraft> = segments.into_iter().flat_map(|segment| &segment.machines).collect();
        let is_map_reduce = groups.iter().all(|group| matches!(group.slots, Slots::MapReduce { .. }));
        let mut machines: Vec<MachineDraft> = Vec::new();
        for group in groups {
            let slots = match group.slots {
                Slots::MapReduce { map, reduce } if !is_map_reduce => Slots::Generic(map + reduce),
                slots => slots,
            };
            let name = former_name(group);
            match machines.iter_mut().find(|known| known.name == name) {
                Some(known) => {
                    (known.speed, known.count) = (group.speed, known.count.max(group.count));
                    known.slots = most(known.slots, slots);
                }
                None => machines.push(MachineDraft { name: name.to_owned(), slots, ..group.clone() }),
            }
        }
        Self { machines }
    }

    pub fn machines(&self) -> &[MachineDraft] {
        &self.machines
    }

    /// The number here of an attempt's slot; `None` if there is no such slot.
    pub fn slot(&self, segments: &[Segment], attempt: &Attempt) -> Option<u32> {
        let segment = segments.get(attempt.segment as usize)?;
        self.slot_of(segment, attempt.id.phase, attempt.slot)
    }

    /// The number here of a slot of a segment that serves a kind of task.
    pub fn slot_of(&self, segment: &Segment, kind: PhaseKind, slot: u32) -> Option<u32> {
        let Located { group, nth, slot } = locate(&segment.machines, kind, slot)?;
        let name = former_name(group);
        let mut first = 0;
        for known in &self.machines {
            let each = serving(kind, known.slots);
            if known.name == name {
                // Slots for reduces come after those for maps if both are generic slots.
                let before = match (group.slots, known.slots, kind) {
                    (Slots::MapReduce { map, .. }, Slots::Generic(_), PhaseKind::Reduce) => map,
                    _ => 0,
                };
                return Some(first + nth * each + before + slot);
            }
            first += known.count * each;
        }
        None
    }

    /// The slots of a segment, by [`SlotKind::index`]; `None` for all slots. O(slots · machines).
    pub(crate) fn slots(&self, segment: &Segment) -> Option<[Vec<SlotRange>; 2]> {
        let is_map_reduce =
            self.machines.iter().any(|machine| matches!(machine.slots, Slots::MapReduce { .. }));
        let mut numbers = [BTreeSet::new(), BTreeSet::new()];
        for (kind, slot_kind) in [(PhaseKind::Map, SlotKind::Map), (PhaseKind::Reduce, SlotKind::Reduce)] {
            let slot_kind = if is_map_reduce { slot_kind } else { SlotKind::Any };
            let all: u32 =
                segment.machines.iter().map(|group| group.count * serving(kind, group.slots)).sum();
            let here = (0..all).filter_map(|slot| self.slot_of(segment, kind, slot));
            numbers[slot_kind.index()].extend(here);
        }
        let all =
            |kind| self.machines.iter().map(|group| group.count * serving(kind, group.slots)).sum::<u32>();
        let expected = [all(PhaseKind::Map), if is_map_reduce { all(PhaseKind::Reduce) } else { 0 }];
        let found = [0, 1].map(|kind| numbers[kind].len() as u32);
        (found != expected).then(|| numbers.map(ranges))
    }
}

/// The larger number of slots of either kind.
fn most(a: Slots, b: Slots) -> Slots {
    match (a, b) {
        (Slots::Generic(a), Slots::Generic(b)) => Slots::Generic(a.max(b)),
        (Slots::MapReduce { map, reduce }, Slots::MapReduce { map: maps, reduce: reduces }) => {
            Slots::MapReduce { map: map.max(maps), reduce: reduce.max(reduces) }
        }
        // The segments agree in their kind of slots here.
        (a, _) => a,
    }
}

/// Numbers in order as ranges.
fn ranges(numbers: BTreeSet<u32>) -> Vec<SlotRange> {
    let mut ranges: Vec<SlotRange> = Vec::new();
    for slot in numbers {
        match ranges.last_mut() {
            Some(last) if last.end() == slot => last.len += 1,
            _ => ranges.push(SlotRange { first: slot, len: 1 }),
        }
    }
    ranges
}

impl MachineSlot<'_> {
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
        let generic = vec![
            machine("a", 1, Slots::Generic(2)),
            machine("b", 3, Slots::Generic(4)),
            machine("c", 1, Slots::Generic(1)),
        ];
        let map_reduce = |map, reduce| Slots::MapReduce { map, reduce };
        let map_reduce = vec![
            machine("a", 2, map_reduce(2, 1)),
            machine("b", 1, map_reduce(1, 0)),
            machine("c", 1, map_reduce(0, 3)),
        ];
        let maps = Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into());
        let flows =
            vec![FlowDraft::new("f", vec![JobDraft { id: "j".into(), map: maps, ..JobDraft::default() }])];
        for machines in [generic, map_reduce] {
            let places = MachineSlots::of(&machines);
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

    const BOTH: [PhaseKind; 2] = PhaseKind::ALL;

    fn segment(machines: &[(&str, u32, Slots)]) -> Segment {
        let machine = |&(name, count, slots): &(&str, u32, Slots)| MachineDraft {
            name: name.into(),
            count,
            speed: 1.0,
            slots,
            rack: None,
        };
        Segment { machines: machines.iter().map(machine).collect(), ..Segment::default() }
    }

    fn named(whole: &WholeCluster) -> Vec<(&str, u32, Slots)> {
        whole.machines().iter().map(|machine| (&*machine.name, machine.count, machine.slots)).collect()
    }

    fn slots(whole: &WholeCluster, segment: &Segment, kind: PhaseKind) -> Vec<u32> {
        (0..).map_while(|slot| whole.slot_of(segment, kind, slot)).collect()
    }

    fn range(first: u32, len: u32) -> SlotRange {
        SlotRange { first, len }
    }

    #[test]
    fn a_machine_is_one_machine_when_its_slots_change() {
        let some = |slots| segment(&[("local", 1, Slots::Generic(slots))]);
        let all = [some(2), some(4), some(1)];
        let whole = WholeCluster::of(&all);
        assert_eq!(named(&whole), [("local", 1, Slots::Generic(4))]);
        for kind in BOTH {
            assert_eq!(all.each_ref().map(|one| slots(&whole, one, kind).len()), [2, 4, 1]);
        }
        assert_eq!(whole.slots(&all[0]), Some([vec![range(0, 2)], Vec::new()]));
        assert_eq!(
            (whole.slots(&all[1]), whole.slots(&all[2])),
            (None, Some([vec![range(0, 1)], Vec::new()]))
        );
    }

    #[test]
    fn machines_that_join_and_leave_keep_their_slots() {
        let one = Slots::Generic(1);
        let all = [
            segment(&[("b", 2, one), ("c", 3, one), ("d", 1, one)]),
            segment(&[("a", 1, one), ("c", 2, one), ("d", 2, one)]),
        ];
        let whole = WholeCluster::of(&all);
        assert_eq!(named(&whole), [("b", 2, one), ("c", 3, one), ("d", 2, one), ("a", 1, one)]);
        for kind in BOTH {
            assert_eq!(slots(&whole, &all[0], kind), [0, 1, 2, 3, 4, 5]);
            assert_eq!(slots(&whole, &all[1], kind), [7, 2, 3, 5, 6]);
        }
        assert_eq!(whole.slots(&all[1]), Some([vec![range(2, 2), range(5, 3)], Vec::new()]));
        // A machine that a service renames, because another number of its slots is there now, is the same
        // machine.
        let renamed = segment(&[("a (3 slots)", 1, Slots::Generic(3)), ("a", 1, Slots::Generic(2))]);
        let whole = WholeCluster::of([&renamed]);
        assert_eq!(named(&whole), [("a", 1, Slots::Generic(3))]);
        assert_eq!(slots(&whole, &renamed, PhaseKind::Map), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn slots_of_a_kind_become_slots_for_both_where_some_are() {
        let map_reduce = |map, reduce| segment(&[("local", 1, Slots::MapReduce { map, reduce })]);
        let all = [map_reduce(2, 1), segment(&[("local", 1, Slots::Generic(2))])];
        let whole = WholeCluster::of(&all);
        assert_eq!(named(&whole), [("local", 1, Slots::Generic(3))]);
        assert_eq!(BOTH.map(|kind| slots(&whole, &all[0], kind)), [vec![0, 1], vec![2]]);
        let whole = WholeCluster::of([&map_reduce(2, 1), &map_reduce(1, 3)]);
        assert_eq!(named(&whole), [("local", 1, Slots::MapReduce { map: 2, reduce: 3 })]);
        assert_eq!(whole.slots(&map_reduce(2, 1)), Some([vec![range(0, 2)], vec![range(0, 1)]]));
    }
}
