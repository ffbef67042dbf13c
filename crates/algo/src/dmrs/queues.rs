//! A queue and the present task of every slot, for the online policy.

use slackline_model::id::TiVec;
use slackline_model::{Cluster, GroupId, MachineId, PhaseId, Span, Table, Time};

use super::bits::Bits;
use super::links::{Links, NONE, Queued};
use super::list::{List, Placed};

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

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) machine: MachineId,
    pub(super) group: GroupId,
    pub(super) up: bool,
    pub(super) running: Option<Running>,
    /// Its task waits for maps that must run again: when it ends is unknown.
    pub(super) held: bool,
    /// The first and the last place of its queue.
    queue: (u32, u32),
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

/// The time of slots without a task in [`InOrder`].
const NEVER: Time = Time(u64::MAX);

/// Slots with a task by the estimated end of the task, those of one end together, except for changes since
/// the last sort: most are the same from one list to the next.
#[derive(Clone, Debug, Default)]
struct InOrder {
    /// The estimated ends, and where in `slots` the slots of each stop.
    runs: Vec<(Time, u32)>,
    /// By end and number.
    slots: Vec<u32>,
    /// The next order, kept for its memory.
    renewed: (Vec<(Time, u32)>, Vec<u32>),
    /// The end by which each slot is in the order; [`NEVER`] if it is not in it.
    ends: Vec<Time>,
    /// Slots with changes since the last sort, once each.
    changed: Vec<u32>,
    is_changed: Bits,
    /// Scratch: what leaves the order and what enters it, by end and number.
    removed: Vec<(Time, u32)>,
    added: Vec<(Time, u32)>,
}

impl InOrder {
    fn change(&mut self, slot: u32) {
        if !self.is_changed.contains(slot) {
            self.is_changed.insert(slot);
            self.changed.push(slot);
        }
    }

    /// The slots of each end, from the run at `place` on.
    fn runs_from(&self, place: usize) -> impl Iterator<Item = (Time, &[u32])> {
        let mut first = place.checked_sub(1).map_or(0, |before| self.runs[before].1 as usize);
        self.runs[place..].iter().map(move |&(end, last)| {
            let slots = &self.slots[first..last as usize];
            first = last as usize;
            (end, slots)
        })
    }

    /// Removes the changed slots and inserts them by their new ends. O(slots), but only the runs with changes
    /// are read slot by slot.
    fn renew(&mut self, end: impl Fn(u32) -> Option<Time>) {
        self.note_changes(end);
        let (mut runs, mut slots) = std::mem::take(&mut self.renewed);
        runs.clear();
        slots.clear();
        let (mut removed, mut added) = (self.removed.as_slice(), self.added.as_slice());
        for (end, run) in self.runs_from(0) {
            let earlier = take_while(&mut added, |time| time < end);
            for alike in earlier.chunk_by(|a, b| a.0 == b.0) {
                slots.extend(alike.iter().map(|&(_, slot)| slot));
                runs.push((alike[0].0, slots.len() as u32));
            }
            let gone = take_while(&mut removed, |time| time == end);
            let new = take_while(&mut added, |time| time == end);
            let first = slots.len();
            if gone.is_empty() {
                slots.extend_from_slice(run);
            } else if gone.len() < run.len() {
                let mut gone = gone.iter().map(|&(_, slot)| slot).peekable();
                slots.extend(run.iter().filter(|&&slot| gone.next_if_eq(&slot).is_none()));
            }
            if !new.is_empty() {
                slots.extend(new.iter().map(|&(_, slot)| slot));
                slots[first..].sort_unstable();
            }
            if slots.len() > first {
                runs.push((end, slots.len() as u32));
            }
        }
        for alike in added.chunk_by(|a, b| a.0 == b.0) {
            slots.extend(alike.iter().map(|&(_, slot)| slot));
            runs.push((alike[0].0, slots.len() as u32));
        }
        self.renewed = (std::mem::replace(&mut self.runs, runs), std::mem::replace(&mut self.slots, slots));
    }

    /// Finds what leaves the order and what enters it.
    fn note_changes(&mut self, end: impl Fn(u32) -> Option<Time>) {
        let Self { ends, changed, is_changed, removed, added, .. } = self;
        removed.clear();
        added.clear();
        for slot in changed.drain(..) {
            is_changed.remove(slot);
            if ends.len() <= slot as usize {
                ends.resize(slot as usize + 1, NEVER);
            }
            let new = end(slot).unwrap_or(NEVER);
            let old = std::mem::replace(&mut ends[slot as usize], new);
            if old != new {
                removed.extend((old != NEVER).then_some((old, slot)));
                added.extend((new != NEVER).then_some((new, slot)));
            }
        }
        // Stable, as it is faster on what consists of sorted parts: slots of one end mostly change together.
        removed.sort();
        added.sort();
    }
}

/// Takes the first entries of a list, up to one of another time.
fn take_while<'a>(list: &mut &'a [(Time, u32)], is_taken: impl Fn(Time) -> bool) -> &'a [(Time, u32)] {
    let n = list.iter().take_while(|entry| is_taken(entry.0)).count();
    let (taken, rest) = list.split_at(n);
    *list = rest;
    taken
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    slot_kinds: [Vec<Slot>; 2],
    /// The first slot of each machine by slot kind, and how many it has.
    machines: [Vec<(u32, u32)>; 2],
    /// The phase of the task on each slot; [`NONE`] without a task.
    phases: [Vec<u32>; 2],
    links: Links,
    ranks: u64,
    queued: u64,
    /// Slots with a task in their queue.
    loaded: [Bits; 2],
    /// Slots that are up and have no task.
    idle: [Bits; 2],
    /// The number of tasks on slots of each phase that has any, in order.
    serving: Table<PhaseId, Vec<(TaskGroup, u32)>>,
    /// Slots with a queue whose head cannot start before its phase changes, and those slots by phase.
    blocked: [Bits; 2],
    blocked_by: Table<PhaseId, Vec<SlotRef>>,
    /// How many slots have neither a task nor a queue.
    spare: [u64; 2],
    in_order: [InOrder; 2],
    /// Scratch: numbers of slots.
    numbers: Vec<u32>,
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
                queue: (NONE, NONE),
                idle_since: Time::ZERO,
            };
            self.slot_kinds[slot_kind.index()].extend((0..len).map(|_| slot.clone()));
            self.phases[slot_kind.index()].resize((first + len) as usize, NONE);
            (first..first + len).for_each(|slot| self.idle[slot_kind.index()].insert(slot));
            self.spare[slot_kind.index()] += u64::from(len);
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
        self.phases[at.slot_kind][at.slot as usize] = task.phase.0;
        let alike = self.alike(at, task);
        if !self.serving.contains(task.phase) {
            self.serving.insert(task.phase, Vec::new());
        }
        let of_phase = &mut self.serving[task.phase];
        match of_phase.last_mut() {
            // Tasks mostly start together.
            Some((last, count)) if *last == alike => *count += 1,
            _ => match of_phase.binary_search_by_key(&alike, |entry| entry.0) {
                Ok(place) => of_phase[place].1 += 1,
                Err(place) => of_phase.insert(place, (alike, 1)),
            },
        }
        self.settle(at);
    }

    /// Removes the tasks of a slot.
    pub(super) fn vacate(&mut self, at: SlotRef, now: Time) {
        let slot = self.slot_mut(at);
        slot.held = false;
        slot.idle_since = now;
        if let Some(task) = slot.running.take() {
            self.phases[at.slot_kind][at.slot as usize] = NONE;
            let alike = self.alike(at, task);
            if let Some(of_phase) = self.serving.get_mut(task.phase) {
                if let Ok(place) = of_phase.binary_search_by_key(&alike, |entry| entry.0) {
                    of_phase[place].1 -= 1;
                    if of_phase[place].1 == 0 {
                        of_phase.remove(place);
                    }
                }
                if of_phase.is_empty() {
                    self.serving.remove(task.phase);
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
        let (is_idle, was_idle) = (slot.up && slot.running.is_none(), self.is_idle(at));
        if is_idle != was_idle {
            let spare = u64::from(!self.is_loaded(at));
            if is_idle {
                self.idle[at.slot_kind].insert(at.slot);
                self.spare[at.slot_kind] += spare;
            } else {
                self.idle[at.slot_kind].remove(at.slot);
                self.spare[at.slot_kind] -= spare;
            }
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

    /// The idle slots that have a queue whose head may be able to start.
    pub(super) fn idle_and_loaded(&self) -> impl Iterator<Item = SlotRef> {
        let of = |slot_kind: usize| {
            self.idle[slot_kind].and_not(&self.loaded[slot_kind], &self.blocked[slot_kind])
        };
        (0..2).flat_map(move |slot_kind| of(slot_kind).map(move |slot| SlotRef { slot_kind, slot }))
    }

    /// The number of slots with neither a task nor a queue.
    pub(super) fn with_nothing_to_do(&self, slot_kind: usize) -> u64 {
        self.spare[slot_kind]
    }

    /// Adds the slots of a kind that are up to a list, by the estimated time at which they are free. O(slots),
    /// and sorting those that changed since the last call. Not for slots whose tasks wait.
    pub(super) fn add_free(&mut self, list: &mut List, slot_kind: usize, speeds: &Speeds, now: Time) {
        self.put_in_order(slot_kind, speeds);
        let slots = &self.slot_kinds[slot_kind];
        let speed = |slot: u32| speeds.0[slots[slot as usize].group];
        let are_alike = speeds.0.raw.windows(2).all(|pair| pair[0] == pair[1]);
        let mut add = |free: Time, run: &[u32]| {
            for alike in run.chunk_by(|&a, &b| are_alike || speed(a) == speed(b)) {
                list.add(slot_kind, speed(alike[0]), free, alike);
            }
        };
        let in_order = &self.in_order[slot_kind];
        let overdue = in_order.runs.partition_point(|&(end, _)| end <= now);
        if overdue == 0 {
            self.numbers.clear();
            self.idle[slot_kind].append_to(&mut self.numbers);
            add(now, &self.numbers);
            in_order.runs_from(0).for_each(|(end, run)| add(end, run));
            return;
        }
        // Idle slots and slots whose task ends now are free now; overdue slots are free later than listed.
        let mut near: Vec<(Time, u32)> = self.idle[slot_kind].iter().map(|slot| (now, slot)).collect();
        for (end, run) in in_order.runs_from(0).take(overdue) {
            near.extend(run.iter().map(|&slot| (late(end, now), slot)));
        }
        near.sort();
        let mut near = near.as_slice();
        for (end, run) in in_order.runs_from(overdue).chain([(NEVER, [].as_slice())]) {
            let earlier = take_while(&mut near, |time| time <= end);
            for alike in earlier.chunk_by(|a, b| a.0 == b.0) {
                self.numbers.clear();
                self.numbers.extend(alike.iter().map(|&(_, slot)| slot));
                add(alike[0].0, &self.numbers);
            }
            add(end, run);
        }
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
        let due = |slot: u32| {
            let info = &slots[slot as usize];
            let running = info.running.filter(|_| info.up)?;
            Some(running.since + speeds.time(info, running.span))
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
        let (first, last) = &mut self.slot_kinds[slot_kind][slot as usize].queue;
        if *first == NONE {
            self.loaded[slot_kind].insert(slot);
            self.spare[slot_kind] -= u64::from(self.idle[slot_kind].contains(slot));
        }
        self.links.push(first, last, queued);
    }

    /// The head of a slot's queue.
    pub(super) fn head(&self, at: SlotRef) -> Option<&Queued> {
        self.links.iter(self.slot(at).queue.0).next()
    }

    /// Removes the head of a slot's queue.
    pub(super) fn pop(&mut self, at: SlotRef) {
        if !self.is_loaded(at) {
            return;
        }
        let (first, _) = &mut self.slot_kinds[at.slot_kind][at.slot as usize].queue;
        self.queued -= 1;
        self.links.pop(first);
        if *first == NONE {
            self.loaded[at.slot_kind].remove(at.slot);
            self.spare[at.slot_kind] += u64::from(self.is_idle(at));
        }
    }

    pub(super) fn clear(&mut self) {
        for (slot_kind, loaded) in self.loaded.iter_mut().enumerate() {
            for slot in loaded.iter() {
                self.slot_kinds[slot_kind][slot as usize].queue = (NONE, NONE);
                self.spare[slot_kind] += u64::from(self.idle[slot_kind].contains(slot));
            }
            loaded.clear();
        }
        self.links.clear();
        self.queued = 0;
        self.unblock_all();
    }

    /// The head of a slot's queue, of this phase, cannot start before the phase changes.
    pub(super) fn block(&mut self, at: SlotRef, phase: PhaseId) {
        let blocked = &mut self.blocked[at.slot_kind];
        if !blocked.contains(at.slot) {
            blocked.insert(at.slot);
            self.blocked_by.get_or_insert_with(phase, Vec::new).push(at);
        }
    }

    /// Tasks of a phase may be able to start again.
    pub(super) fn unblock(&mut self, phase: PhaseId) {
        for at in self.blocked_by.remove(phase).into_iter().flatten() {
            self.blocked[at.slot_kind].remove(at.slot);
        }
    }

    pub(super) fn unblock_all(&mut self) {
        if !self.blocked_by.is_empty() {
            self.blocked_by = Table::new();
            self.blocked.iter_mut().for_each(Bits::clear);
        }
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
        let mut best = None;
        for at in self.of_machine(slot_kind, machine) {
            let slot = self.slot(at);
            let Some(running) = slot.running.filter(|running| running.phase == phase) else { continue };
            let began = (running.since + took).0.abs_diff(now.0);
            let off = speeds.time(slot, running.span).0.abs_diff(took.0);
            let found = (is_pending(running.task), began, off, at);
            best = Some(best.map_or(found, |best| found.min(best)));
            if (found.0, began, off) == (false, 0, 0) {
                // None of the later slots can be better.
                break;
            }
        }
        best.map(|(.., at)| at)
    }

    /// The estimated ends of the running tasks of a phase, on machines of which group, and how many.
    pub(super) fn ends(
        &self,
        phase: PhaseId,
        speeds: &Speeds,
        now: Time,
    ) -> impl Iterator<Item = (Time, GroupId, u32)> {
        let alike = self.serving.get(phase).into_iter().flatten();
        alike.map(move |&(TaskGroup { since, span, group }, count)| {
            let due = since + span.at_speed_nearest(speeds.0[group]);
            (late(due, now), group, count)
        })
    }

    /// The slots that tasks of a phase are on, and which. O(slots) if there are any.
    pub(super) fn places_of(&self, slot_kind: usize, phase: PhaseId) -> Vec<(SlotRef, u32)> {
        if !self.serving.contains(phase) {
            return Vec::new();
        }
        let mut left: u32 = self.serving[phase].iter().map(|&(_, count)| count).sum();
        let mut places = Vec::with_capacity(left as usize);
        // Whole chunks are compared faster than single slots.
        for (chunk, phases) in (0..).zip(self.phases[slot_kind].chunks(64)) {
            if left == 0 {
                break;
            }
            if !phases.contains(&phase.0) {
                continue;
            }
            for (k, _) in (0..).zip(phases).filter(|&(_, &other)| other == phase.0) {
                let at = SlotRef { slot_kind, slot: chunk * 64 + k };
                places.extend(self.slot(at).running.map(|running| (at, running.task)));
                left -= 1;
            }
        }
        places
    }

    /// Whether some slot would end the head of `at` earlier than `at` itself, by more than `slack`, if it
    /// started now: Eq. (20) and (21), with t_l from the running and the queued tasks before it.
    pub(super) fn is_better_elsewhere(&self, at: SlotRef, speeds: &Speeds, now: Time) -> bool {
        let Some(&head) = self.head(at) else { return false };
        let own = speeds.time(self.slot(at), head.span);
        let limit = Time((now + own).0.saturating_sub(slack(own).0));
        self.slot_kind(at.slot_kind).iter().enumerate().any(|(number, slot)| {
            if number as u32 == at.slot || !slot.up || slot.held {
                return false;
            }
            let time = speeds.time(slot, head.span);
            let mut free = speeds.free(slot, now);
            for queued in self.links.iter(slot.queue.0).take_while(|queued| queued.rank < head.rank) {
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
