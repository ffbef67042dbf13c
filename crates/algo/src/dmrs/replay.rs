//! Executes a list on the real machines.
//!
//! The baselines of the paper do not plan everything: Identical-machine assumes wrong speeds, Map-only places
//! no reduces. Here every slot serves its queue in order, and a head that cannot start yet keeps its slot
//! waiting. A reduce that is in no queue goes to the slot that has been free longest, before the queue of
//! that slot (deviation D8). Nothing is decided again.
//!
//! This is not a run of the policy in the simulator: a plan knows all releases, and the policy learns of jobs
//! as they arrive. On machines of one slot, without late releases and caps, the tasks are the same (tested).
//! The simulator could not follow these queues: a policy names the machine, not the slot, and learns only
//! that some slot of a machine became free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use slackline_model::id::TiVec;
use slackline_model::{Instance, PhaseId, PhaseKind, Span, Time};

use super::list::{Placed, Slot as Given};
use super::model;
use super::queues::SlotRef;

/// A slot and its remaining tasks.
#[derive(Clone, Debug)]
struct Slot {
    speed: f64,
    queue: VecDeque<(PhaseId, u32, Span)>,
}

/// The progress of a phase.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// When it became ready.
    ready: Option<Time>,
    /// Unfinished tasks.
    left: u32,
    running: u32,
    /// Whether its tasks are in queues.
    queued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done(PhaseId, SlotRef),
    /// A phase may start.
    Ready(PhaseId),
}

struct Replay<'a> {
    instance: &'a Instance,
    slots: [Vec<Slot>; 2],
    phases: TiVec<PhaseId, Progress>,
    /// Ready phases outside the queues, with their next task.
    loose: BTreeMap<(Time, PhaseId), u32>,
    /// Slots without a task and since when, and those of them that may get one now.
    idle: BTreeSet<(Time, SlotRef)>,
    awake: BTreeSet<(Time, SlotRef)>,
    events: BinaryHeap<Reverse<(Time, Event)>>,
    ran: Vec<Placed>,
}

/// All tasks of the instance that take a slot, each of `planned` on the slot it was given and in that order,
/// the others wherever there is room; in the order of their starts. O(tasks · log slots + jobs · slots).
///
/// The phases of one-job flows only; a list never places a reduce before its maps, so nothing waits for ever.
pub(super) fn replay(instance: &Instance, planned: &[Placed]) -> Vec<Placed> {
    let mut replay = Replay::new(instance, planned);
    while let Some(&Reverse((now, _))) = replay.events.peek() {
        while let Some(&Reverse((at, event))) = replay.events.peek()
            && at == now
        {
            replay.events.pop();
            replay.note(event, now);
        }
        for (since, at) in std::mem::take(&mut replay.awake) {
            replay.serve(since, at, now);
        }
    }
    replay.ran
}

impl<'a> Replay<'a> {
    fn new(instance: &'a Instance, planned: &[Placed]) -> Self {
        let cluster = instance.cluster();
        let slot = |slot: Given| Slot { speed: slot.speed, queue: VecDeque::new() };
        let mut slots = model::slots(cluster, |group| cluster.groups()[group].speed)
            .map(|slot_kind| slot_kind.into_iter().map(slot).collect::<Vec<_>>());
        let progress = |phase: &slackline_model::instance::Phase| Progress {
            ready: None,
            left: phase.tasks().map_or(0, slackline_model::tasks::Tasks::count),
            running: 0,
            queued: false,
        };
        let mut phases: TiVec<PhaseId, Progress> = instance.phases().iter().map(progress).collect();
        for task in planned {
            let slot_kind = instance.slot_kind_of(task.phase).index();
            slots[slot_kind][task.slot as usize].queue.push_back((task.phase, task.task, task.span));
            phases[task.phase].queued = true;
        }
        let with_length = |&phase: &PhaseId| !instance.phase(phase).is_without_length();
        let first = |job: &slackline_model::instance::Job| {
            let release = instance.flow(job.flow).release;
            job.phases().find(with_length).map(|phase| Reverse((release, Event::Ready(phase))))
        };
        let numbers = slots.iter().enumerate().flat_map(|(slot_kind, slots)| {
            (0..slots.len() as u32).map(move |slot| (Time::ZERO, SlotRef { slot_kind, slot }))
        });
        Self {
            idle: numbers.collect(),
            events: instance.jobs().iter().filter_map(first).collect(),
            ran: Vec::with_capacity(planned.len()),
            awake: BTreeSet::new(),
            loose: BTreeMap::new(),
            instance,
            slots,
            phases,
        }
    }

    fn note(&mut self, event: Event, now: Time) {
        match event {
            Event::Ready(phase) => self.ready(phase, now),
            Event::Done(phase, at) => {
                self.idle.insert((now, at));
                self.awake.insert((now, at));
                let info = self.instance.phase(phase);
                let progress = &mut self.phases[phase];
                progress.left -= 1;
                progress.running -= 1;
                if progress.left >= info.cap {
                    // Another slot may have waited for the cap.
                    self.awake.extend(&self.idle);
                }
                let reduce = self.instance.job(info.job).reduce;
                let next = reduce.filter(|&reduce| !self.instance.phase(reduce).is_without_length());
                if let (0, PhaseKind::Map, Some(reduce)) = (self.phases[phase].left, info.kind, next) {
                    self.ready(reduce, now);
                }
            }
        }
    }

    fn ready(&mut self, phase: PhaseId, now: Time) {
        self.phases[phase].ready = Some(now);
        if !self.phases[phase].queued {
            self.loose.insert((now, phase), 0);
        }
        self.awake.extend(&self.idle);
    }

    fn can_start(&self, phase: PhaseId) -> bool {
        self.phases[phase].ready.is_some() && self.phases[phase].running < self.instance.phase(phase).cap
    }

    /// Starts a task on a slot that is free since `since`, if one may start.
    fn serve(&mut self, since: Time, at: SlotRef, now: Time) {
        let fits = |&(_, phase): &(Time, PhaseId)| {
            self.instance.slot_kind_of(phase).index() == at.slot_kind && self.can_start(phase)
        };
        let task = match self.loose.keys().copied().find(fits) {
            Some((at, phase)) => Some(self.take_loose(at, phase)),
            None => self.take_head(at),
        };
        let Some((phase, task, span)) = task else { return };
        self.idle.remove(&(since, at));
        let end = now + span.at_speed_nearest(self.slots[at.slot_kind][at.slot as usize].speed);
        let progress = &mut self.phases[phase];
        progress.running += 1;
        let ready = progress.ready.unwrap_or(now);
        self.ran.push(Placed { phase, task, span, slot: at.slot, ready, start: now, end });
        self.events.push(Reverse((end, Event::Done(phase, at))));
    }

    fn take_head(&mut self, at: SlotRef) -> Option<(PhaseId, u32, Span)> {
        let &(phase, ..) = self.slots[at.slot_kind][at.slot as usize].queue.front()?;
        if self.can_start(phase) {
            self.slots[at.slot_kind][at.slot as usize].queue.pop_front()
        } else {
            None
        }
    }

    fn take_loose(&mut self, at: Time, phase: PhaseId) -> (PhaseId, u32, Span) {
        let key = (at, phase);
        let tasks = self.instance.phase(phase).tasks().expect("invariant: phases were cut into tasks");
        let next = self.loose.get_mut(&key).expect("invariant: the key was just found");
        let task = *next;
        *next += 1;
        if *next == tasks.count() {
            self.loose.remove(&key);
        }
        (key.1, task, tasks.run_at(task).0)
    }
}
