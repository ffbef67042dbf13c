//! A queue and the present task of every slot, for the online policy.

use std::collections::{BTreeMap, VecDeque};

use slackline_model::id::TiVec;
use slackline_model::{Cluster, GroupId, MachineId, PhaseId, Span, Time};

use super::bits::Bits;
use super::list::{self, Placed};

/// A slot, by slot kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotRef {
    pub(super) slot_kind: usize,
    pub(super) slot: u32,
}

/// A task on a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) phase: PhaseId,
    pub(super) task: u32,
    /// Estimated size.
    pub(super) span: Span,
    pub(super) since: Time,
}

/// A task that just ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) phase: PhaseId,
    pub(super) took: Span,
    pub(super) now: Time,
}

/// A task in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) phase: PhaseId,
    pub(super) task: u32,
    /// Estimated size.
    pub(super) span: Span,
    /// The estimated time from which it can start.
    pub(super) ready: Time,
    /// Position in the list.
    pub(super) rank: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) machine: MachineId,
    pub(super) group: GroupId,
    pub(super) up: bool,
    pub(super) running: Option<Running>,
    /// Its task waits for maps that must run again: when it ends is unknown.
    pub(super) held: bool,
    pub(super) queue: VecDeque<Queued>,
    pub(super) idle_since: Time,
}

/// The estimated speeds, to convert sizes into times.
#[derive(Clone, Debug)]
pub(super) struct Speeds(pub(super) TiVec<GroupId, f64>);

impl Speeds {
    pub(super) fn time(&self, slot: &Slot, span: Span) -> Span {
        span.at_speed_nearest(self.0[slot.group])
    }

    /// When the slot is estimated to be free of its task, not before `now`.
    pub(super) fn free(&self, slot: &Slot, now: Time) -> Time {
        let Some(running) = slot.running else { return now };
        late(running.since + self.time(slot, running.span), now)
    }
}

/// The estimated end of a task that was due at `due`, not before `now`. An overdue task is assumed to be late
/// by the same time again.
fn late(due: Time, now: Time) -> Time {
    if due >= now { due } else { now + now.since(due) }
}

/// Tasks of a phase with the same estimated end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TaskGroup {
    since: Time,
    span: Span,
    group: GroupId,
}

/// A slot with a task, and when it is estimated to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Busy {
    due: Time,
    slot: u32,
    group: GroupId,
}

/// Takes the entries of two sorted lists in order, of which the second is short.
fn merge<'a>(many: impl Iterator<Item = &'a Busy>, mut few: &[Busy], mut take: impl FnMut(&Busy)) {
    for entry in many {
        while let Some((first, rest)) = few.split_first()
            && first < entry
        {
            take(first);
            few = rest;
        }
        take(entry);
    }
    few.iter().for_each(take);
}

/// Slots with a task by the estimated end of the task, except for changes since the last sort: most are the
/// same from one list to the next.
#[derive(Clone, Debug, Default)]
struct InOrder {
    busy: Vec<Busy>,
    /// The next list, kept for its memory.
    renewed: Vec<Busy>,
    /// Slots with changes since the last sort, once each.
    changed: Vec<u32>,
    is_changed: Bits,
}

impl InOrder {
    fn change(&mut self, slot: u32) {
        if !self.is_changed.contains(slot) {
            self.is_changed.insert(slot);
            self.changed.push(slot);
        }
    }

    /// Removes the changed slots and inserts their new entries.
    fn renew(&mut self, due: impl FnMut(&u32) -> Option<Busy>) {
        let Self { busy, renewed, changed, is_changed } = self;
        let mut again: Vec<Busy> = changed.iter().filter_map(due).collect();
        again.sort_unstable();
        renewed.clear();
        renewed.reserve(busy.len() + again.len());
        let stay = busy.iter().filter(|entry| !is_changed.contains(entry.slot));
        merge(stay, &again, |entry| renewed.push(*entry));
        std::mem::swap(busy, renewed);
        changed.clear();
        is_changed.clear();
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    slot_kinds: [Vec<Slot>; 2],
    /// The first slot of each machine by slot kind, and how many it has.
    machines: [Vec<(u32, u32)>; 2],
    ranks: u64,
    queued: u64,
    /// Slots with a task in their queue.
    loaded: [Bits; 2],
    /// Slots that are up and have no task.
    idle: [Bits; 2],
    /// The number of tasks of each phase on slots.
    serving: BTreeMap<PhaseId, BTreeMap<TaskGroup, u32>>,
    in_order: [InOrder; 2],
    /// The speeds by which slots were ordered.
    speeds: Vec<f64>,
}

impl Queues {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let mut queues = Self::default();
        let mut machines: Vec<MachineId> = (0..cluster.n_machines()).map(MachineId).collect();
        if cluster.uniform_speed().is_none() {
            // Ties go to the first slot, and so must not depend on the order in which groups are listed.
            machines.sort_by_key(|&machine| (&cluster.group_of(machine).name, machine));
        }
        for machine in machines {
            queues.join(cluster, machine);
        }
        queues
    }

    /// Adds a machine, with all slots idle: they are numbered after the existing slots.
    pub(super) fn join(&mut self, cluster: &Cluster, machine: MachineId) {
        let group = cluster.group_id_of(machine);
        for &slot_kind in cluster.slot_kinds() {
            let first = self.slot_kinds[slot_kind.index()].len() as u32;
            let len = cluster.machine_slots(slot_kind, machine).map_or(0, |range| range.len);
            let machines = &mut self.machines[slot_kind.index()];
            machines.resize(machines.len().max(machine.index() + 1), (0, 0));
            machines[machine.index()] = (first, len);
            let slot = Slot {
                machine,
                group,
                up: true,
                running: None,
                held: false,
                queue: VecDeque::new(),
                idle_since: Time::ZERO,
            };
            self.slot_kinds[slot_kind.index()].extend((0..len).map(|_| slot.clone()));
            (first..first + len).for_each(|slot| self.idle[slot_kind.index()].insert(slot));
        }
    }

    pub(super) fn slot(&self, at: SlotRef) -> &Slot {
        &self.slot_kinds[at.slot_kind][at.slot as usize]
    }

    fn slot_mut(&mut self, at: SlotRef) -> &mut Slot {
        &mut self.slot_kinds[at.slot_kind][at.slot as usize]
    }

    /// The machine of a slot joins or leaves.
    pub(super) fn set_up(&mut self, at: SlotRef, up: bool) {
        self.slot_mut(at).up = up;
        self.settle(at);
    }

    /// The end of the task on a slot is unknown.
    pub(super) fn hold(&mut self, at: SlotRef) {
        self.slot_mut(at).held = true;
    }

    /// Puts a task on a slot that has none.
    pub(super) fn occupy(&mut self, at: SlotRef, task: Running) {
        self.slot_mut(at).running = Some(task);
        let alike = self.alike(at, task);
        *self.serving.entry(task.phase).or_default().entry(alike).or_default() += 1;
        self.settle(at);
    }

    /// Removes the tasks of a slot.
    pub(super) fn vacate(&mut self, at: SlotRef, now: Time) {
        let slot = self.slot_mut(at);
        slot.held = false;
        slot.idle_since = now;
        if let Some(task) = slot.running.take() {
            let alike = self.alike(at, task);
            if let Some(of_phase) = self.serving.get_mut(&task.phase) {
                if let Some(count) = of_phase.get_mut(&alike) {
                    *count -= 1;
                    if *count == 0 {
                        of_phase.remove(&alike);
                    }
                }
                if of_phase.is_empty() {
                    self.serving.remove(&task.phase);
                }
            }
        }
        self.settle(at);
    }

    fn alike(&self, at: SlotRef, task: Running) -> TaskGroup {
        TaskGroup { since: task.since, span: task.span, group: self.slot(at).group }
    }

    /// Records a change of a slot.
    fn settle(&mut self, at: SlotRef) {
        let slot = self.slot(at);
        if slot.up && slot.running.is_none() {
            self.idle[at.slot_kind].insert(at.slot);
        } else {
            self.idle[at.slot_kind].remove(at.slot);
        }
        self.in_order[at.slot_kind].change(at.slot);
    }

    /// Whether a slot is up and has no task.
    pub(super) fn is_idle(&self, at: SlotRef) -> bool {
        self.idle[at.slot_kind].contains(at.slot)
    }

    /// Whether a slot has a task in its queue.
    pub(super) fn is_loaded(&self, at: SlotRef) -> bool {
        self.loaded[at.slot_kind].contains(at.slot)
    }

    /// Slots that are up and have no task, in order.
    pub(super) fn idle(&self) -> impl Iterator<Item = SlotRef> {
        (0..2).flat_map(|slot_kind| self.idle[slot_kind].iter().map(move |slot| SlotRef { slot_kind, slot }))
    }

    /// The idle slots that have a queue.
    pub(super) fn idle_and_loaded(&self) -> impl Iterator<Item = SlotRef> {
        let of = |slot_kind: usize| self.idle[slot_kind].and(&self.loaded[slot_kind]);
        (0..2).flat_map(move |slot_kind| of(slot_kind).map(move |slot| SlotRef { slot_kind, slot }))
    }

    /// Whether some slot of a kind has neither a task nor a queue.
    pub(super) fn has_nothing_to_do(&self, slot_kind: usize) -> bool {
        self.idle[slot_kind].has_beyond(&self.loaded[slot_kind])
    }

    /// The number of slots with neither a task nor a queue.
    pub(super) fn with_nothing_to_do(&self, slot_kind: usize) -> u64 {
        self.idle[slot_kind].count_beyond(&self.loaded[slot_kind])
    }

    /// The slots of a kind that are up, by the estimated time at which they are free. O(slots), and sorting
    /// those that changed since the last call. Not for slots whose tasks wait.
    pub(super) fn free_slots(&mut self, slot_kind: usize, speeds: &Speeds, now: Time) -> Vec<list::Slot> {
        self.put_in_order(slot_kind, speeds);
        let slots = &self.slot_kinds[slot_kind];
        let busy = &self.in_order[slot_kind].busy;
        // Idle slots and slots whose task ends now are free now; overdue slots are free later than listed.
        let overdue = busy.partition_point(|entry| entry.due <= now);
        let idle = self.idle[slot_kind].iter().map(|slot| Busy {
            due: now,
            slot,
            group: slots[slot as usize].group,
        });
        let late = busy[..overdue].iter().map(|entry| Busy { due: late(entry.due, now), ..*entry });
        let mut near: Vec<Busy> = idle.chain(late).collect();
        near.sort_unstable();
        let of =
            |entry: &Busy| list::Slot { number: entry.slot, speed: speeds.0[entry.group], free: entry.due };
        let mut all = Vec::with_capacity(near.len() + busy.len() - overdue);
        merge(busy[overdue..].iter(), &near, |entry| all.push(of(entry)));
        all
    }

    /// Inserts the changes since the last call; sorts all slots if an estimated speed has changed.
    fn put_in_order(&mut self, slot_kind: usize, speeds: &Speeds) {
        if self.speeds != speeds.0.raw {
            self.speeds.clone_from(&speeds.0.raw);
            for (slot_kind, slots) in self.slot_kinds.iter().enumerate() {
                (0..slots.len() as u32).for_each(|slot| self.in_order[slot_kind].change(slot));
            }
        }
        let slots = &self.slot_kinds[slot_kind];
        let due = |&slot: &u32| {
            let info = &slots[slot as usize];
            let running = info.running.filter(|_| info.up)?;
            let due = running.since + speeds.time(info, running.span);
            Some(Busy { due, slot, group: info.group })
        };
        self.in_order[slot_kind].renew(due);
    }

    /// All slots in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotRef, &Slot)> {
        let of = |(slot_kind, slots): (usize, &'_ Vec<Slot>)| (slot_kind, slots.len());
        let slot_kinds = self.slot_kinds.iter().enumerate().map(of);
        slot_kinds.flat_map(move |(slot_kind, n)| {
            (0..n).map(move |slot| {
                (SlotRef { slot_kind, slot: slot as u32 }, &self.slot_kinds[slot_kind][slot])
            })
        })
    }

    pub(super) fn slot_kind(&self, slot_kind: usize) -> &[Slot] {
        &self.slot_kinds[slot_kind]
    }

    /// The slots of a machine in a slot kind.
    pub(super) fn of_machine(
        &self,
        slot_kind: usize,
        machine: MachineId,
    ) -> impl Iterator<Item = SlotRef> + use<> {
        let (first, len) = self.machines[slot_kind].get(machine.index()).copied().unwrap_or((0, 0));
        (first..first + len).map(move |slot| SlotRef { slot_kind, slot })
    }

    /// The number of tasks in queues.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    /// Appends a task to a slot's queue.
    pub(super) fn push(&mut self, slot_kind: usize, placed: &Placed) {
        let Placed { phase, task, span, slot, ready, .. } = *placed;
        let queued = Queued { phase, task, span, ready, rank: self.ranks };
        self.ranks += 1;
        self.queued += 1;
        let queue = &mut self.slot_kinds[slot_kind][slot as usize].queue;
        if queue.is_empty() {
            self.loaded[slot_kind].insert(slot);
        }
        queue.push_back(queued);
    }

    /// Removes the head of a slot's queue.
    pub(super) fn pop(&mut self, at: SlotRef) {
        let queue = &mut self.slot_mut(at).queue;
        let (popped, is_empty) = (queue.pop_front().is_some(), queue.is_empty());
        self.queued -= u64::from(popped);
        if is_empty {
            self.loaded[at.slot_kind].remove(at.slot);
        }
    }

    pub(super) fn clear(&mut self) {
        for (slot_kind, loaded) in self.loaded.iter_mut().enumerate() {
            for slot in loaded.iter() {
                self.slot_kinds[slot_kind][slot as usize].queue.clear();
            }
            loaded.clear();
        }
        self.queued = 0;
    }

    /// The slot of `machine` on which a task of `phase` just ended after this duration: the slot whose task
    /// would have started then and was estimated to take that long; ties by slot. Slots whose task is still
    /// to be done are considered only if there is no other: the task failed, or has not started.
    pub(super) fn finished(
        &self,
        slot_kind: usize,
        machine: MachineId,
        done: Done,
        speeds: &Speeds,
        is_pending: impl Fn(u32) -> bool,
    ) -> Option<SlotRef> {
        let Done { phase, took, now } = done;
        let slots = self.of_machine(slot_kind, machine).filter_map(|at| {
            let slot = self.slot(at);
            let running = slot.running.filter(|running| running.phase == phase)?;
            let began = (running.since + took).0.abs_diff(now.0);
            let off = speeds.time(slot, running.span).0.abs_diff(took.0);
            Some((is_pending(running.task), began, off, at))
        });
        slots.min().map(|(.., at)| at)
    }

    /// The estimated ends of the running tasks of a phase, on machines of which group, and how many.
    pub(super) fn ends(
        &self,
        phase: PhaseId,
        speeds: &Speeds,
        now: Time,
    ) -> impl Iterator<Item = (Time, GroupId, u32)> {
        let alike = self.serving.get(&phase).into_iter().flatten();
        alike.map(move |(&TaskGroup { since, span, group }, &count)| {
            let due = since + span.at_speed_nearest(speeds.0[group]);
            (late(due, now), group, count)
        })
    }

    /// The slots that tasks of a phase are on, and which. O(slots) if there are any.
    pub(super) fn places_of(&self, slot_kind: usize, phase: PhaseId) -> Vec<(SlotRef, u32)> {
        if !self.serving.contains_key(&phase) {
            return Vec::new();
        }
        let of = |(number, slot): (u32, &Slot)| {
            let running = slot.running.filter(|running| running.phase == phase)?;
            Some((SlotRef { slot_kind, slot: number }, running.task))
        };
        (0..).zip(&self.slot_kinds[slot_kind]).filter_map(of).collect()
    }

    /// Whether some slot would end the head of `at` earlier than `at` itself, by more than `slack`, if it
    /// started now: Eq. (20) and (21), with t_l from the running and the queued tasks before it.
    pub(super) fn is_better_elsewhere(&self, at: SlotRef, speeds: &Speeds, now: Time) -> bool {
        let Some(&head) = self.slot(at).queue.front() else { return false };
        let own = speeds.time(self.slot(at), head.span);
        let limit = Time((now + own).0.saturating_sub(slack(own).0));
        self.slot_kind(at.slot_kind).iter().enumerate().any(|(number, slot)| {
            if number as u32 == at.slot || !slot.up || slot.held {
                return false;
            }
            let time = speeds.time(slot, head.span);
            let mut free = speeds.free(slot, now);
            for queued in slot.queue.iter().take_while(|queued| queued.rank < head.rank) {
                if free + time >= limit {
                    return false;
                }
                free = free.max(queued.ready) + speeds.time(slot, queued.span);
            }
            free + time < limit
        })
    }
}

/// The tolerance for being on time: a hundredth of the task, and the documents' 2 µs.
pub(super) fn slack(time: Span) -> Span {
    Span(time.0 / 100 + 2)
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::MachineDraft;
    use slackline_model::{Draft, Instance};

    use super::*;

    /// Eq. (20) and (21): a slot is better if the task ends there earlier by more than a hundredth of its
    /// time and 2 µs.
    #[test]
    fn another_slot_is_better_by_more_than_a_hundredth() {
        let machine = |name: &str| MachineDraft {
            name: name.into(),
            count: 1,
            speed: 1.0,
            slots: Slots::Generic(1),
            rack: None,
        };
        let draft = Draft { machines: vec![machine("own"), machine("other")], ..Draft::default() };
        let instance = Instance::new(&draft).unwrap();
        let mut queues = Queues::new(instance.cluster());
        let (now, ready) = (Time(5_000_000), Time::ZERO);
        let span = Span(1_000_000);
        let head = Placed { phase: PhaseId(0), task: 0, span, slot: 0, ready, start: now, end: now + span };
        queues.push(0, &head);
        let own = SlotRef { slot_kind: 0, slot: 0 };
        for (time, better) in [(989_997, true), (989_998, false), (1_000_000, false)] {
            let speeds = Speeds(vec![1.0, 1e6 / f64::from(time)].into());
            assert_eq!(queues.is_better_elsewhere(own, &speeds, now), better, "{time}");
        }
    }

    /// Of two equal tasks on a machine, the first failed when the second ended.
    #[test]
    fn a_task_that_is_still_to_be_done_has_not_ended() {
        let slots = Slots::Generic(2);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let draft = Draft { machines: vec![machine], ..Draft::default() };
        let instance = Instance::new(&draft).unwrap();
        let mut queues = Queues::new(instance.cluster());
        let (phase, span) = (PhaseId(0), Span(1_000_000));
        for slot in 0..2 {
            let task = Running { phase, task: slot, span, since: Time::ZERO };
            queues.occupy(SlotRef { slot_kind: 0, slot }, task);
        }
        let done = Done { phase, took: span, now: Time::ZERO + span };
        let ended = |is_pending: fn(u32) -> bool| {
            queues.finished(0, MachineId(0), done, &Speeds(vec![1.0].into()), is_pending)
        };
        assert_eq!(ended(|task| task == 0), Some(SlotRef { slot_kind: 0, slot: 1 }));
        assert_eq!(ended(|_| true), Some(SlotRef { slot_kind: 0, slot: 0 }));
    }
}
