//! The order in which free slots are used: by estimated speed, the fastest first, then by number.
//!
//! So the order of machines in a document does not matter: the same number of slots of each speed is used.

use slackline_model::id::TiVec;
use slackline_model::{Cluster, GroupId, SlotKind, SlotRange};

use crate::slots::SlotSet;

/// Slots of one slot kind with the same estimated speed.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeedClass {
    /// The estimated speed.
    pub speed: f64,
    /// The slots.
    pub slots: Vec<SlotRange>,
}

impl SpeedClass {
    /// The number of slots, including those of machines that are away.
    pub fn len(&self) -> u32 {
        self.slots.iter().map(|range| range.len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// The slots of each slot kind by speed, the fastest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fastest {
    /// The estimated speeds of groups from which the order was computed.
    speeds: Vec<f64>,
    slot_kinds: [Vec<SpeedClass>; 2],
}

impl Fastest {
    /// Updates the order to the estimated speeds. O(groups), and O(groups²) when speeds changed.
    pub(crate) fn refresh(&mut self, cluster: &Cluster, speeds: &TiVec<GroupId, f64>) {
        if self.speeds != speeds.raw {
            self.speeds.clone_from(&speeds.raw);
            for &slot_kind in cluster.slot_kinds() {
                self.slot_kinds[slot_kind.index()] = classes(cluster, slot_kind, &self.speeds);
            }
        }
    }

    /// The slots of a kind by speed.
    pub(crate) fn classes(&self, slot_kind: SlotKind) -> &[SpeedClass] {
        &self.slot_kinds[slot_kind.index()]
    }

    /// Takes the `n` fastest free slots (fewer if there are fewer) and appends them to `out`.
    pub(crate) fn take(&self, slot_kind: SlotKind, free: &mut SlotSet, n: u32, out: &mut Vec<SlotRange>) {
        let classes = self.classes(slot_kind);
        if classes.len() < 2 {
            free.take_lowest(n, out);
            return;
        }
        let mut left = n;
        for &range in classes.iter().flat_map(|class| &class.slots) {
            if left == 0 {
                return;
            }
            left -= free.take_in(range, left, out);
        }
    }
}

fn classes(cluster: &Cluster, slot_kind: SlotKind, speeds: &[f64]) -> Vec<SpeedClass> {
    let slots = |group: &slackline_model::cluster::Group| {
        let first = cluster.machine_slots(slot_kind, group.first)?;
        Some(SlotRange { first: first.first, len: first.len * group.count })
    };
    let groups = speeds.iter().zip(cluster.groups());
    let mut all: Vec<(f64, SlotRange)> =
        groups.filter_map(|(&speed, group)| Some((speed, slots(group)?))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.first.cmp(&b.1.first)));
    let mut classes: Vec<SpeedClass> = Vec::new();
    for (speed, range) in all {
        match classes.last_mut() {
            Some(class) if class.speed == speed => class.slots.push(range),
            _ => classes.push(SpeedClass { speed, slots: vec![range] }),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::MachineDraft;

    use super::*;
    use crate::testing::{flow, instance, machines, uniform};
    use crate::view::Estimates;

    fn group(name: &str, slots: u32, speed: f64) -> MachineDraft {
        MachineDraft { speed, ..machines(name, 1, slots) }
    }

    fn range(first: u32, len: u32) -> SlotRange {
        SlotRange { first, len }
    }

    #[test]
    fn the_fastest_slots_come_first_and_those_of_one_speed_by_number() {
        let groups =
            vec![group("slow", 3, 1.0), group("fast", 2, 4.0), group("too", 2, 1.0), group("mid", 1, 2.0)];
        let instance = instance(groups, vec![flow("f", uniform(1, 1.0), None)]);
        let mut fastest = Fastest::default();
        let mut speeds = Estimates::new(instance.cluster()).speed;
        fastest.refresh(instance.cluster(), &speeds);
        let mut free = SlotSet::empty(8);
        free.insert(range(0, 8));
        let mut out = Vec::new();
        fastest.take(SlotKind::Any, &mut free, 7, &mut out);
        assert_eq!(out, [range(3, 2), range(7, 1), range(0, 3), range(5, 1)]);
        assert_eq!(fastest.classes(SlotKind::Any).iter().map(SpeedClass::len).collect::<Vec<_>>(), [2, 1, 5]);
        // Only the estimated speed counts.
        speeds.raw[2] = 8.0;
        fastest.refresh(instance.cluster(), &speeds);
        free.insert(range(3, 2));
        out.clear();
        fastest.take(SlotKind::Any, &mut free, 2, &mut out);
        assert_eq!(out, [range(6, 1), range(3, 1)]);
    }

    #[test]
    fn without_slots_in_a_slot_kind_a_group_is_left_out() {
        let map_reduce = |name: &str, map, reduce, speed| MachineDraft {
            slots: Slots::MapReduce { map, reduce },
            ..group(name, 1, speed)
        };
        let groups = vec![map_reduce("a", 2, 1, 1.0), map_reduce("b", 3, 0, 2.0)];
        let instance = instance(groups, vec![flow("f", uniform(1, 1.0), None)]);
        let mut fastest = Fastest::default();
        fastest.refresh(instance.cluster(), &Estimates::new(instance.cluster()).speed);
        let class = |speed, first, len| SpeedClass { speed, slots: vec![range(first, len)] };
        assert_eq!(fastest.classes(SlotKind::Map), [class(2.0, 2, 3), class(1.0, 0, 2)]);
        assert_eq!(fastest.classes(SlotKind::Reduce), [class(1.0, 0, 1)]);
    }
}
