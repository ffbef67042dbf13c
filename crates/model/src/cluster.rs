//! The cluster: groups of equal machines with slots, and the slot kinds of those slots.
//!
//! A *slot kind* is a set of slots that serve the same phases. A cluster with map slots and reduce slots
//! (Hadoop 1) has two slot kinds; a cluster with generic slots has one for both. The slots of a slot kind are
//! numbered from 0, machine by machine in the order of the document. So the slots of a machine are a range,
//! and so are those of a group: no table per slot is kept.

use std::ops::{Range, RangeInclusive};

use crate::id::{GroupId, MachineId, PhaseKind, TiVec};

/// The limit on slots of a slot kind, so that slot numbers and their sums fit `u32`.
pub(crate) const SLOTS_MAX: u64 = 1 << 31;

/// The allowed speeds of machines.
pub const SPEEDS: RangeInclusive<f64> = 1e-6..=1e6;

/// The tasks that the slots of a machine may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// This many slots, each for a map or a reduce task.
    Generic(u32),
    /// Slots of Hadoop 1: each serves one kind only.
    MapReduce {
        /// Slots for map tasks.
        map: u32,
        /// Slots for reduce tasks.
        reduce: u32,
    },
}

impl Slots {
    /// The slots of a machine, of all kinds.
    pub const fn total(self) -> u32 {
        match self {
            Self::Generic(slots) => slots,
            Self::MapReduce { map, reduce } => map.saturating_add(reduce),
        }
    }
}

/// Equal machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name; machines are `name-0` … or, for a single one, `name`.
    pub name: String,
    /// The number of machines; at least 1.
    pub count: u32,
    /// Speed: a task of `s` seconds takes `s / speed`.
    pub speed: f64,
    /// Slots of each machine.
    pub slots: Slots,
    /// The rack, if the document names one. Machines without one share one rack, as in Hadoop's default rack.
    pub rack: Option<String>,
    /// The first machine of the group.
    pub first: MachineId,
}

crate::named_enum! {
    /// Slots that serve the same phases.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SlotKind {
        /// Map slots.
        Map = "map",
        /// Reduce slots.
        Reduce = "reduce",
        /// Generic slots.
        Any = "generic",
    }
}

impl SlotKind {
    /// A dense index: 0 for [`SlotKind::Map`] and [`SlotKind::Any`], 1 for [`SlotKind::Reduce`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::Map | Self::Any => 0,
            Self::Reduce => 1,
        }
    }
}

/// Consecutive slots of one slot kind: `first`, `first + 1`, … (`len` of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotRange {
    /// The first slot.
    pub first: u32,
    /// The number of slots; at least 1.
    pub len: u32,
}

impl SlotRange {
    /// One past the last slot.
    pub const fn end(self) -> u32 {
        self.first.saturating_add(self.len)
    }
}

/// The slots that one group adds to a slot kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    first: u32,
    per_machine: u32,
    machines: u32,
    /// The number of them whose machines left for good.
    gone: u32,
    first_machine: MachineId,
    /// Number of the slot kind's first slot within a machine (reduce slots come after map slots).
    offset: u32,
    speed: f64,
}

impl Stretch {
    /// Slots of machines that have not left.
    fn slots(&self) -> u32 {
        self.per_machine * (self.machines - self.gone)
    }
}

/// A valid cluster: at least one machine with a slot, and either only generic slots or only map slots and
/// reduce slots.
///
/// Machines may join and leave. Ids of machines and numbers of slots only grow and are never reused.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    groups: TiVec<GroupId, Group>,
    map_reduce: bool,
    n_machines: u32,
    slot_kinds: [Vec<Stretch>; 2],
    totals: [u32; 2],
}

impl Cluster {
    /// Lays out the slot kinds. The instance builder has checked the groups: one form of slots, positive
    /// speeds, at least one slot, totals below 2^31.
    pub(crate) fn new(groups: Vec<Group>) -> Self {
        let mut cluster = Self {
            map_reduce: matches!(groups[0].slots, Slots::MapReduce { .. }),
            groups: TiVec::new(),
            n_machines: 0,
            slot_kinds: [Vec::new(), Vec::new()],
            totals: [0; 2],
        };
        for group in groups {
            cluster.add(group);
        }
        cluster
    }

    fn add(&mut self, mut group: Group) {
        group.first = MachineId(self.n_machines);
        let per = match group.slots {
            Slots::Generic(n) => [(n, 0), (0, 0)],
            Slots::MapReduce { map, reduce } => [(map, 0), (reduce, map)],
        };
        for (slot_kind, (per_machine, offset)) in per.into_iter().enumerate() {
            if per_machine > 0 {
                self.slot_kinds[slot_kind].push(Stretch {
                    first: self.totals[slot_kind],
                    per_machine,
                    machines: group.count,
                    gone: 0,
                    first_machine: group.first,
                    offset,
                    speed: group.speed,
                });
                self.totals[slot_kind] += per_machine * group.count;
            }
        }
        self.n_machines += group.count;
        self.groups.push(group);
    }

    /// Whether machines can join: the group is not empty, its slots have the cluster's form, its speed is
    /// allowed, and all numbers of machines and slots fit.
    pub fn can_join(&self, group: &Group) -> bool {
        let per_machine = match group.slots {
            Slots::Generic(n) => [n, 0],
            Slots::MapReduce { map, reduce } => [map, reduce],
        };
        let fits =
            |before: u32, more: u32| u64::from(before) + u64::from(more) * u64::from(group.count) < SLOTS_MAX;
        matches!(group.slots, Slots::MapReduce { .. }) == self.map_reduce
            && group.count > 0
            && SPEEDS.contains(&group.speed)
            && fits(self.n_machines, 1)
            && self.totals.iter().zip(per_machine).all(|(&before, more)| fits(before, more))
    }

    /// Adds machines: they get the next ids, which are returned, and their slots the next numbers.
    ///
    /// # Panics
    /// If they cannot join ([`Self::can_join`]).
    pub fn join(&mut self, group: Group) -> Range<u32> {
        assert!(self.can_join(&group), "machines that can join");
        let first = self.n_machines;
        self.add(group);
        first..self.n_machines
    }

    /// Removes a machine for good: its slots no longer count. O(groups).
    pub fn leave(&mut self, machine: MachineId) {
        for stretch in self.slot_kinds.iter_mut().flatten() {
            let last = stretch.first_machine.0 + stretch.machines;
            if (stretch.first_machine.0..last).contains(&machine.0) {
                stretch.gone += 1;
            }
        }
    }

    /// The machine groups, in the order of the document.
    pub fn groups(&self) -> &TiVec<GroupId, Group> {
        &self.groups
    }

    /// Whether the cluster has map slots and reduce slots (Hadoop 1) rather than generic slots.
    #[inline]
    pub fn is_map_reduce(&self) -> bool {
        self.map_reduce
    }

    /// The number of machines, including those that left: all ids are below it.
    pub fn n_machines(&self) -> u32 {
        self.n_machines
    }

    /// The slot kinds: map and reduce, or the generic one.
    pub fn slot_kinds(&self) -> &'static [SlotKind] {
        if self.map_reduce { &[SlotKind::Map, SlotKind::Reduce] } else { &[SlotKind::Any] }
    }

    /// The slot kind that serves phases of `kind`.
    #[inline]
    pub fn slot_kind_of(&self, kind: PhaseKind) -> SlotKind {
        match (self.map_reduce, kind) {
            (false, _) => SlotKind::Any,
            (true, PhaseKind::Map) => SlotKind::Map,
            (true, PhaseKind::Reduce) => SlotKind::Reduce,
        }
    }

    /// Slots of `slot_kind` in the whole cluster. O(groups).
    pub fn slots(&self, slot_kind: SlotKind) -> u32 {
        self.slot_kinds[slot_kind.index()].iter().map(Stretch::slots).sum()
    }

    /// All numbers of slots of `slot_kind` are below it; equal to [`Self::slots`] if no machine has left.
    pub fn slot_numbers(&self, slot_kind: SlotKind) -> u32 {
        self.totals[slot_kind.index()]
    }

    /// Sum of the speeds of the slots of `slot_kind`: slot-seconds of work per second.
    pub fn capacity(&self, slot_kind: SlotKind) -> f64 {
        self.slot_kinds[slot_kind.index()].iter().map(|s| s.speed * f64::from(s.slots())).sum()
    }

    /// The common speed of all machines that have slots, or `None` on mixed speeds.
    pub fn uniform_speed(&self) -> Option<f64> {
        let mut stretches = self.slot_kinds.iter().flatten().filter(|s| s.slots() > 0);
        let speed = stretches.next()?.speed;
        stretches.all(|s| s.speed == speed).then_some(speed)
    }

    /// Sum of the speeds of the fastest `n` slots of `slot_kind` (all of them if there are fewer).
    pub fn fastest(&self, slot_kind: SlotKind, n: u32) -> f64 {
        let mut stretches: Vec<_> =
            self.slot_kinds[slot_kind.index()].iter().map(|s| (s.speed, s.slots())).collect();
        stretches.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = n;
        let mut sum = 0.0;
        for (speed, count) in stretches {
            let take = count.min(left);
            sum += speed * f64::from(take);
            left -= take;
        }
        sum
    }

    /// The mean speed of all slots.
    pub fn mean_speed(&self) -> f64 {
        let speed: f64 = self.slot_kinds().iter().map(|&slot_kind| self.capacity(slot_kind)).sum();
        let slots: f64 = self.slot_kinds().iter().map(|&slot_kind| f64::from(self.slots(slot_kind))).sum();
        speed / slots
    }

    /// The id of the group of `machine`. O(log groups).
    pub fn group_id_of(&self, machine: MachineId) -> GroupId {
        GroupId::from(self.groups.raw.partition_point(|g| g.first <= machine) - 1)
    }

    /// The group of `machine`. O(log groups).
    pub fn group_of(&self, machine: MachineId) -> &Group {
        &self.groups[self.group_id_of(machine)]
    }

    /// The name of `machine`: `name-3`, or `name` for a group of one.
    pub fn machine_name(&self, machine: MachineId) -> String {
        let group = self.group_of(machine);
        if group.count == 1 {
            group.name.clone()
        } else {
            format!("{}-{}", group.name, machine.0 - group.first.0)
        }
    }

    /// The machine of that name. O(groups).
    pub fn machine_named(&self, name: &str) -> Option<MachineId> {
        self.groups.iter().find_map(|group| {
            if group.count == 1 {
                return (group.name == name).then_some(group.first);
            }
            let digits = name.strip_prefix(group.name.as_str())?.strip_prefix('-')?;
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            let number: u32 = digits.parse().ok()?;
            (canonical && number < group.count).then_some(MachineId(group.first.0 + number))
        })
    }

    /// The slots of `machine` in `slot_kind`, or `None` if it has none. O(groups).
    pub fn machine_slots(&self, slot_kind: SlotKind, machine: MachineId) -> Option<SlotRange> {
        let stretch = self.slot_kinds[slot_kind.index()]
            .iter()
            .find(|s| machine >= s.first_machine && machine.0 < s.first_machine.0 + s.machines)?;
        let first = stretch.first + (machine.0 - stretch.first_machine.0) * stretch.per_machine;
        Some(SlotRange { first, len: stretch.per_machine })
    }

    fn stretch(&self, slot_kind: SlotKind, slot: u32) -> &Stretch {
        let stretches = &self.slot_kinds[slot_kind.index()];
        if let [only] = stretches.as_slice() {
            return only;
        }
        &stretches[stretches.partition_point(|s| s.first <= slot) - 1]
    }

    /// The machine that has `slot` of `slot_kind`, and the slot's number within the machine. O(log groups).
    pub fn machine_of(&self, slot_kind: SlotKind, slot: u32) -> (MachineId, u32) {
        let s = self.stretch(slot_kind, slot);
        let at = slot - s.first;
        (MachineId(s.first_machine.0 + at / s.per_machine), s.offset + at % s.per_machine)
    }

    /// The slot of its kind that is `slot` within `machine`, for a task of `kind`; `None` if the machine
    /// has no such slot or it does not serve `kind`.
    pub fn slot_at(&self, kind: PhaseKind, machine: MachineId, slot: u32) -> Option<u32> {
        let slot_kind = self.slot_kind_of(kind);
        let range = self.machine_slots(slot_kind, machine)?;
        let offset = self.stretch(slot_kind, range.first).offset;
        let at = slot.checked_sub(offset)?;
        (at < range.len).then_some(range.first + at)
    }

    /// Speed of `slot` of `slot_kind`, and the first slot after it whose speed may differ.
    pub fn speed_of(&self, slot_kind: SlotKind, slot: u32) -> (f64, u32) {
        let s = self.stretch(slot_kind, slot);
        (s.speed, s.first + s.per_machine * s.machines)
    }
}
