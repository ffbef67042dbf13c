//! A queue for every slot, and what each slot does now: the book the online policy keeps.

use std::collections::{BTreeMap, VecDeque};

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

/// A task in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) phase: PhaseId,
    pub(super) task: u32,
    /// Believed size.
    pub(super) span: Span,
    /// When it is believed to be free to start.
    pub(super) ready: Time,
    /// When it is planned to start.
    pub(super) start: Time,
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
    /// Its task waits for maps that must run again: nobody knows when it ends.
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
}

impl Queues {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let group_of: Vec<GroupId> = cluster
            .groups()
            .iter_enumerated()
            .flat_map(|(id, group)| (0..group.count).map(move |_| id))
            .collect();
        let (mut lanes, mut machines) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for &lane in cluster.lanes() {
            for (machine, &group) in group_of.iter().enumerate() {
                let machine = MachineId::from(machine);
                let (first, len) =
                    cluster.machine_slots(lane, machine).map_or((0, 0), |range| (range.first, range.len));
                machines[lane.index()].push((first, len));
                let slot = Slot {
                    machine,
                    group,
                    up: true,
                    running: None,
                    held: false,
                    queue: VecDeque::new(),
                    idle_since: Time::ZERO,
                };
                lanes[lane.index()].extend((0..len).map(|_| slot.clone()));
            }
        }
        Self { lanes, machines, ranks: 0, queued: 0 }
    }

    pub(super) fn slot(&self, at: At) -> &Slot {
        &self.lanes[at.lane][at.slot as usize]
    }

    pub(super) fn slot_mut(&mut self, at: At) -> &mut Slot {
        &mut self.lanes[at.lane][at.slot as usize]
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

    /// How many tasks are in queues.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    /// Appends a task to a slot's queue.
    pub(super) fn push(&mut self, lane: usize, placed: &Placed) {
        let Placed { phase, task, span, slot, ready, start, .. } = *placed;
        let queued = Queued { phase, task, span, ready, start, rank: self.ranks };
        self.ranks += 1;
        self.queued += 1;
        self.lanes[lane][slot as usize].queue.push_back(queued);
    }

    /// Takes the head of a slot's queue away.
    pub(super) fn pop(&mut self, at: At) {
        if self.slot_mut(at).queue.pop_front().is_some() {
            self.queued -= 1;
        }
    }

    /// Empties all queues.
    pub(super) fn clear(&mut self) {
        self.lanes.iter_mut().flatten().for_each(|slot| slot.queue.clear());
        self.queued = 0;
    }

    /// The slot of `machine` on which a task of `phase` just ended that took so long: the one on which
    /// that task would have begun then, whose task was believed to take that long; ties by slot.
    pub(super) fn finished(
        &self,
        lane: usize,
        machine: MachineId,
        (phase, took, now): (PhaseId, Span, Time),
        speeds: &Speeds,
    ) -> Option<At> {
        let slots = self.of_machine(lane, machine).filter_map(|at| {
            let slot = self.slot(at);
            let running = slot.running.filter(|running| running.phase == phase)?;
            let began = (running.since + took).0.abs_diff(now.0);
            Some((began, speeds.time(slot, running.span).0.abs_diff(took.0), at))
        });
        slots.min().map(|(_, _, at)| at)
    }

    /// When the tasks of each phase that run now are believed to end.
    pub(super) fn ends(&self, speeds: &Speeds, now: Time) -> BTreeMap<PhaseId, Vec<(Time, GroupId)>> {
        let mut ends: BTreeMap<PhaseId, Vec<(Time, GroupId)>> = BTreeMap::new();
        for slot in self.lanes.iter().flatten() {
            if let Some(running) = slot.running {
                ends.entry(running.phase).or_default().push((speeds.free(slot, now), slot.group));
            }
        }
        ends
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
