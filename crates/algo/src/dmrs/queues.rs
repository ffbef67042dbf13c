//! A queue for every slot, and what each slot does now, as the online policy knows it.

use std::collections::{BTreeSet, VecDeque};

use slackline_model::id::TiVec;
use slackline_model::{Cluster, GroupId, MachineId, PhaseId, Span, Time};

use super::list::Placed;

/// A slot, by lane and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) lane: usize,
    pub(super) slot: u32,
}

/// A task on a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) phase: PhaseId,
    pub(super) task: u32,
    /// Believed size.
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
    /// Believed size.
    pub(super) span: Span,
    /// When it is believed to be free to start.
    pub(super) ready: Time,
    /// Position in the list.
    pub(super) rank: u64,
}

/// One slot.
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

/// What is believed of speeds, to turn sizes into times.
#[derive(Clone, Debug)]
pub(super) struct Speeds(pub(super) TiVec<GroupId, f64>);

impl Speeds {
    pub(super) fn time(&self, slot: &Slot, span: Span) -> Span {
        span.at_speed_nearest(self.0[slot.group])
    }

    /// When the slot is believed to be free of its task, not before `now`. A task that is overdue is
    /// taken to be as late again as it is.
    pub(super) fn free(&self, slot: &Slot, now: Time) -> Time {
        let Some(running) = slot.running else { return now };
        let due = running.since + self.time(slot, running.span);
        if due >= now { due } else { now + now.since(due) }
    }
}

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    lanes: [Vec<Slot>; 2],
    /// The first slot of each machine by lane, and how many it has.
    machines: [Vec<(u32, u32)>; 2],
    ranks: u64,
    /// Tasks in queues.
    queued: u64,
    /// Slots with a task in their queue.
    loaded: BTreeSet<At>,
    /// Slots by the phase of the task on them.
    serving: BTreeSet<(PhaseId, At)>,
}

impl Queues {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let mut queues = Self {
            lanes: [Vec::new(), Vec::new()],
            machines: [Vec::new(), Vec::new()],
            ranks: 0,
            queued: 0,
            loaded: BTreeSet::new(),
            serving: BTreeSet::new(),
        };
        (0..cluster.n_machines()).for_each(|machine| queues.join(cluster, MachineId(machine)));
        queues
    }

    /// A machine joins, with all slots idle; they come in the order of their ids.
    pub(super) fn join(&mut self, cluster: &Cluster, machine: MachineId) {
        let group = cluster.group_id_of(machine);
        for &lane in cluster.lanes() {
            let (first, len) =
                cluster.machine_slots(lane, machine).map_or((0, 0), |range| (range.first, range.len));
            self.machines[lane.index()].push((first, len));
            let slot = Slot {
                machine,
                group,
                up: true,
                running: None,
                held: false,
                queue: VecDeque::new(),
                idle_since: Time::ZERO,
            };
            self.lanes[lane.index()].extend((0..len).map(|_| slot.clone()));
        }
    }

    pub(super) fn slot(&self, at: At) -> &Slot {
        &self.lanes[at.lane][at.slot as usize]
    }

    fn slot_mut(&mut self, at: At) -> &mut Slot {
        &mut self.lanes[at.lane][at.slot as usize]
    }

    /// A slot's machine comes or goes.
    pub(super) fn set_up(&mut self, at: At, up: bool) {
        self.slot_mut(at).up = up;
    }

    /// When the task on a slot ends is unknown.
    pub(super) fn hold(&mut self, at: At) {
        self.slot_mut(at).held = true;
    }

    /// Puts a task on a slot that has none.
    pub(super) fn occupy(&mut self, at: At, task: Running) {
        self.slot_mut(at).running = Some(task);
        self.serving.insert((task.phase, at));
    }

    /// Takes whatever is on a slot away.
    pub(super) fn vacate(&mut self, at: At, now: Time) {
        let slot = self.slot_mut(at);
        slot.held = false;
        slot.idle_since = now;
        if let Some(task) = slot.running.take() {
            self.serving.remove(&(task.phase, at));
        }
    }

    /// All slots in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (At, &Slot)> {
        let of = |(lane, slots): (usize, &'_ Vec<Slot>)| (lane, slots.len());
        let lanes = self.lanes.iter().enumerate().map(of);
        lanes.flat_map(move |(lane, n)| {
            (0..n).map(move |slot| (At { lane, slot: slot as u32 }, &self.lanes[lane][slot]))
        })
    }

    /// The slots of a lane.
    pub(super) fn lane(&self, lane: usize) -> &[Slot] {
        &self.lanes[lane]
    }

    /// The slots of a machine in a lane.
    pub(super) fn of_machine(&self, lane: usize, machine: MachineId) -> impl Iterator<Item = At> + use<> {
        let (first, len) = self.machines[lane].get(machine.index()).copied().unwrap_or((0, 0));
        (first..first + len).map(move |slot| At { lane, slot })
    }

    /// Slots with a task in their queue, in order.
    pub(super) fn loaded(&self) -> &BTreeSet<At> {
        &self.loaded
    }

    /// How many tasks are in queues.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    /// Appends a task to a slot's queue.
    pub(super) fn push(&mut self, lane: usize, placed: &Placed) {
        let Placed { phase, task, span, slot, ready, .. } = *placed;
        let queued = Queued { phase, task, span, ready, rank: self.ranks };
        self.ranks += 1;
        self.queued += 1;
        let queue = &mut self.lanes[lane][slot as usize].queue;
        if queue.is_empty() {
            self.loaded.insert(At { lane, slot });
        }
        queue.push_back(queued);
    }

    /// Takes the head of a slot's queue away.
    pub(super) fn pop(&mut self, at: At) {
        let queue = &mut self.slot_mut(at).queue;
        let (popped, is_empty) = (queue.pop_front().is_some(), queue.is_empty());
        self.queued -= u64::from(popped);
        if is_empty {
            self.loaded.remove(&at);
        }
    }

    /// Empties all queues.
    pub(super) fn clear(&mut self) {
        for at in std::mem::take(&mut self.loaded) {
            self.slot_mut(at).queue.clear();
        }
        self.queued = 0;
    }

    /// The slot of `machine` on which a task of `phase` just ended that took so long: the one on which
    /// that task would have begun then, whose task was believed to take that long; ties by slot.
    pub(super) fn finished(
        &self,
        lane: usize,
        machine: MachineId,
        done: Done,
        speeds: &Speeds,
    ) -> Option<At> {
        let Done { phase, took, now } = done;
        let slots = self.of_machine(lane, machine).filter_map(|at| {
            let slot = self.slot(at);
            let running = slot.running.filter(|running| running.phase == phase)?;
            let began = (running.since + took).0.abs_diff(now.0);
            Some((began, speeds.time(slot, running.span).0.abs_diff(took.0), at))
        });
        slots.min().map(|(_, _, at)| at)
    }

    /// When the tasks of a phase that run now are believed to end, and where; slots in order.
    pub(super) fn ends(
        &self,
        phase: PhaseId,
        speeds: &Speeds,
        now: Time,
    ) -> impl Iterator<Item = (Time, GroupId)> {
        self.serving(phase).map(move |at| {
            let slot = self.slot(at);
            (speeds.free(slot, now), slot.group)
        })
    }

    /// The slots that tasks of a phase are on.
    pub(super) fn serving(&self, phase: PhaseId) -> impl Iterator<Item = At> {
        let from = At { lane: 0, slot: 0 };
        let of_phase = self.serving.range((phase, from)..).take_while(move |(p, _)| *p == phase);
        of_phase.map(|&(_, at)| at)
    }

    /// Whether some slot would end the head of `at` earlier than `at` itself, were it to start now, by
    /// more than `slack`: Eq. (20) and (21) with t_l from what runs and what is queued before it.
    pub(super) fn is_better_elsewhere(&self, at: At, speeds: &Speeds, now: Time) -> bool {
        let Some(&head) = self.slot(at).queue.front() else { return false };
        let own = speeds.time(self.slot(at), head.span);
        let limit = Time((now + own).0.saturating_sub(slack(own).0));
        self.lane(at.lane).iter().enumerate().any(|(number, slot)| {
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

/// What counts as on time: a hundredth of the task, and the documents' 2 µs.
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
            slots: Slots::Universal(1),
            rack: None,
        };
        let draft = Draft { machines: vec![machine("own"), machine("other")], ..Draft::default() };
        let instance = Instance::new(&draft).unwrap();
        let mut queues = Queues::new(instance.cluster());
        let (now, ready) = (Time(5_000_000), Time::ZERO);
        let span = Span(1_000_000);
        let head = Placed { phase: PhaseId(0), task: 0, span, slot: 0, ready, start: now, end: now + span };
        queues.push(0, &head);
        let own = At { lane: 0, slot: 0 };
        for (time, better) in [(989_997, true), (989_998, false), (1_000_000, false)] {
            let speeds = Speeds(vec![1.0, 1e6 / f64::from(time)].into());
            assert_eq!(queues.is_better_elsewhere(own, &speeds, now), better, "{time}");
        }
    }
}
