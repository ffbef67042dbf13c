//! A queue of runnable phases, for policies that order phases.
//!
//! FIFO, EDF and the Johnson orders differ only in the key. The queue keeps every phase that may be runnable
//! and drops phases at the head that are not; an event that could make a phase runnable again puts it back.
//! Every operation costs O(log phases), for any number of tasks.

use std::collections::BTreeSet;

use slackline_model::{PhaseId, SlotKind};

use crate::event::Event;
use crate::id_table::IdTable;
use crate::policy::Ask;
use crate::view::View;

/// Phases in the order of a key, then of their ids, one queue a slot kind.
#[derive(Clone, Debug)]
pub struct ReadyQueue<K> {
    slot_kinds: [BTreeSet<(K, PhaseId)>; 2],
    /// Phases that were ready.
    known: IdTable<PhaseId, Option<QueueEntry<K>>>,
    /// Early reduces that were barred from taking a slot when they came to the head.
    barred: Vec<PhaseId>,
}

/// A phase that was ready.
#[derive(Clone, Copy, Debug)]
struct QueueEntry<K> {
    /// The key of its last insertion.
    key: K,
    is_queued: bool,
}

impl<K> Default for ReadyQueue<K> {
    fn default() -> Self {
        Self { slot_kinds: [BTreeSet::new(), BTreeSet::new()], known: IdTable::default(), barred: Vec::new() }
    }
}

impl<K: Ord + Copy> ReadyQueue<K> {
    /// An empty queue, for any instance.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies the events of an instant. `key` is called once when a phase becomes ready.
    pub fn update(&mut self, events: &[Event], view: &View<'_>, mut key: impl FnMut(PhaseId) -> K) {
        for event in events {
            match *event {
                Event::PhaseReady(phase) => {
                    let key = key(phase);
                    self.remove(phase, view);
                    self.known[phase] = Some(QueueEntry { key, is_queued: false });
                    self.insert(phase, view);
                }
                Event::TasksDone { phase, .. } | Event::TasksLost { phase, .. } => self.insert(phase, view),
                Event::FlowDone(flow) | Event::FlowFailed(flow) => {
                    for phase in view.instance.flow(flow).phases() {
                        self.remove(phase, view);
                        self.known.forget([phase]);
                    }
                }
                _ => {}
            }
        }
        // Any event may have lifted the bar: fewer reduces wait, or slots were freed.
        for phase in std::mem::take(&mut self.barred) {
            self.insert(phase, view);
        }
    }

    /// Recomputes the keys of all ready phases; the others keep theirs. O(n log n) for n ready phases. For
    /// policies whose order changes; the events of the instant still go to [`ReadyQueue::update`].
    pub fn rekey(&mut self, view: &View<'_>, mut key: impl FnMut(PhaseId) -> K) {
        for &slot_kind in view.instance.cluster().slot_kinds() {
            for phase in view.state.ready(slot_kind) {
                if let Some(Some(known)) = self.known.get_mut(phase) {
                    known.key = key(phase);
                }
            }
            // One bulk insertion is several times faster than single insertions.
            let queued = std::mem::take(&mut self.slot_kinds[slot_kind.index()]);
            let again = |(old, phase): (K, PhaseId)| {
                (self.known[phase].as_ref().map_or(old, |known| known.key), phase)
            };
            self.slot_kinds[slot_kind.index()] = queued.into_iter().map(again).collect();
        }
    }

    /// Sets the key of a phase, if it was ready. O(log n).
    pub fn move_to(&mut self, phase: PhaseId, key: K, view: &View<'_>) {
        let Some(known) = self.known[phase].filter(|known| known.key != key) else { return };
        self.remove(phase, view);
        self.known[phase] = Some(QueueEntry { key, is_queued: known.is_queued });
        if known.is_queued {
            self.slot_kinds[view.instance.slot_kind_of(phase).index()].insert((key, phase));
        }
    }

    /// Whether the order of the phases matters now: several can run, and not on the `free` slots together.
    /// O(phases up to there).
    pub fn is_contended(&self, slot_kind: SlotKind, free: u32, view: &View<'_>) -> bool {
        let mut wanted = (0, 0);
        self.slot_kinds[slot_kind.index()].iter().any(|&(_, phase)| {
            let tasks = view.runnable(phase);
            wanted = (wanted.0 + u32::from(tasks > 0), tasks.saturating_add(wanted.1));
            wanted.0 > 1 && wanted.1 > free
        })
    }

    /// The first phase that can run on the free slot, outside `ask.skip`.
    pub fn first(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<PhaseId> {
        let mut from = None;
        loop {
            let slot_kind = &self.slot_kinds[ask.slot_kind.index()];
            let &(key, phase) = match from {
                None => slot_kind.first()?,
                Some(passed) => {
                    slot_kind.range((std::ops::Bound::Excluded(passed), std::ops::Bound::Unbounded)).next()?
                }
            };
            if view.runnable(phase) == 0 {
                self.drop(phase, ask.slot_kind, view);
            } else if ask.skip.contains(&phase) {
                from = Some((key, phase));
            } else {
                return Some(phase);
            }
        }
    }

    fn insert(&mut self, phase: PhaseId, view: &View<'_>) {
        let may_run = || view.phase(phase).is_ready() && view.phase(phase).unstarted() > 0;
        if let Some(Some(known)) = self.known.get_mut(phase)
            && !known.is_queued
            && may_run()
        {
            known.is_queued = true;
            self.slot_kinds[view.instance.slot_kind_of(phase).index()].insert((known.key, phase));
        }
    }

    fn remove(&mut self, phase: PhaseId, view: &View<'_>) {
        if self.known[phase].is_some_and(|known| known.is_queued) {
            self.take_out(phase, view.instance.slot_kind_of(phase));
        }
    }

    /// Removes a queued phase from the queue.
    fn take_out(&mut self, phase: PhaseId, slot_kind: SlotKind) {
        if let Some(Some(known)) = self.known.get_mut(phase) {
            known.is_queued = false;
            self.slot_kinds[slot_kind.index()].remove(&(known.key, phase));
        }
    }

    fn drop(&mut self, phase: PhaseId, slot_kind: SlotKind, view: &View<'_>) {
        self.take_out(phase, slot_kind);
        if view.state.is_early(view.instance, phase) && view.phase(phase).unstarted() > 0 {
            self.barred.push(phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::{FlowId, Instance, Time};

    use super::*;
    use crate::busy_slots::BusySlots;
    use crate::state::{Finished, State};
    use crate::testing::{flow, instance, machines, uniform};
    use crate::view::Estimates;

    /// A queue over the phases of an instance, with keys and the state of the phases.
    struct Bench<'a> {
        instance: &'a Instance,
        state: State,
        estimates: Estimates,
        queue: ReadyQueue<u32>,
        keys: Vec<u32>,
    }

    impl<'a> Bench<'a> {
        /// All flows have arrived.
        fn new(instance: &'a Instance, slowstart: f64, keys: &[u32]) -> Self {
            let estimates = Estimates::mean(instance);
            let (state, queue) = (State::new(instance.cluster(), slowstart), ReadyQueue::new());
            let mut bench = Self { instance, state, estimates, queue, keys: keys.to_vec() };
            let mut events = Vec::new();
            for flow in 0..instance.flows().len() {
                bench.state.arrive(instance, FlowId::from(flow), Time::ZERO, &mut events);
            }
            bench.tell(&events);
            bench
        }

        fn tell(&mut self, events: &[Event]) {
            let Self { instance, state, estimates, queue, keys } = self;
            let view = View { instance, state, estimates, held: BusySlots::none(), now: Time::ZERO };
            queue.update(events, &view, |phase| keys[phase.index()]);
        }

        fn first(&mut self, skip: &[u32]) -> Option<u32> {
            let Self { instance, state, estimates, queue, .. } = self;
            let skip: Vec<PhaseId> = skip.iter().copied().map(PhaseId).collect();
            let view = View { instance, state, estimates, held: BusySlots::none(), now: Time::ZERO };
            let ask = Ask { slot_kind: SlotKind::Any, machine: None, slots: 1, skip: &skip };
            queue.first(&ask, &view).map(|phase| phase.0)
        }

        fn rekey(&mut self, keys: &[u32]) {
            let Self { instance, state, estimates, queue, .. } = self;
            let view = View { instance, state, estimates, held: BusySlots::none(), now: Time::ZERO };
            queue.rekey(&view, |phase| keys[phase.index()]);
        }

        fn take(&mut self, phase: u32, count: u32) {
            self.state.take(self.instance, PhaseId(phase), count);
        }

        fn finish(&mut self, phase: u32, count: u32) {
            let finished = Finished { phase: PhaseId(phase), count, at: Time::ZERO, now: Time::ZERO };
            let mut events = vec![Event::TasksDone {
                phase: PhaseId(phase),
                count,
                machine: slackline_model::MachineId(0),
                took: slackline_model::Span(1),
            }];
            self.state.finish(self.instance, finished, &mut events);
            self.tell(&events);
        }
    }

    /// Three flows with two maps each on nine slots; at most one task of the first at a time.
    fn three() -> Instance {
        let mut flows = ["f", "g", "h"].map(|id| flow(id, uniform(2, 1.0), None));
        flows[0].jobs[0].max_slots.map = Some(1);
        instance(vec![machines("m", 1, 9)], flows.into())
    }

    #[test]
    fn a_phase_that_moves_is_found_at_its_new_place() {
        let instance = three();
        let mut bench = Bench::new(&instance, 1.0, &[7, 5, 6]);
        let Bench { instance, state, estimates, queue, .. } = &mut bench;
        let view = View { instance, state, estimates, held: BusySlots::none(), now: Time::ZERO };
        queue.move_to(PhaseId(1), 8, &view);
        queue.move_to(PhaseId(2), 6, &view);
        assert_eq!([bench.first(&[]), bench.first(&[2]), bench.first(&[0, 2])], [Some(2), Some(0), Some(1)]);
        // One that was started and comes back has the key that it was moved to.
        bench.take(0, 1);
        assert_eq!(bench.first(&[2]), Some(1));
        let Bench { instance, state, estimates, queue, .. } = &mut bench;
        let view = View { instance, state, estimates, held: BusySlots::none(), now: Time::ZERO };
        queue.move_to(PhaseId(0), 1, &view);
        bench.finish(0, 1);
        assert_eq!(bench.first(&[]), Some(0));
    }

    #[test]
    fn the_smallest_key_is_first_then_the_lowest_id() {
        let instance = three();
        let mut bench = Bench::new(&instance, 1.0, &[7, 5, 5]);
        assert_eq!(bench.first(&[]), Some(1));
        assert_eq!(bench.first(&[1]), Some(2));
        assert_eq!(bench.first(&[1, 2]), Some(0));
        assert_eq!(bench.first(&[0, 1, 2]), None);
        assert_eq!(bench.first(&[]), Some(1), "what was skipped is still there");
    }

    #[test]
    fn a_phase_that_cannot_run_leaves_and_comes_back_when_a_task_of_it_ends() {
        let instance = three();
        let mut bench = Bench::new(&instance, 1.0, &[1, 2, 3]);
        bench.take(0, 1);
        assert_eq!(bench.first(&[]), Some(1), "the first is at its cap");
        bench.finish(0, 1);
        assert_eq!(bench.first(&[]), Some(0));
        bench.take(0, 1);
        bench.take(1, 2);
        assert_eq!(bench.first(&[]), Some(2));
    }

    #[test]
    fn lost_tasks_bring_a_phase_back() {
        let instance = three();
        let mut bench = Bench::new(&instance, 1.0, &[3, 1, 2]);
        let taken = bench.state.take(&instance, PhaseId(1), 2);
        assert_eq!(bench.first(&[]), Some(2));
        let mut events = Vec::new();
        bench.state.kill(&instance, PhaseId(1), taken, &mut events);
        bench.tell(&events);
        assert_eq!(bench.first(&[]), Some(1));
    }

    #[test]
    fn keys_that_change_change_the_order_of_queued_phases() {
        let instance = three();
        let mut bench = Bench::new(&instance, 1.0, &[1, 2, 3]);
        bench.rekey(&[9, 8, 7]);
        assert_eq!((bench.first(&[]), bench.first(&[2]), bench.first(&[2, 1])), (Some(2), Some(1), Some(0)));
        bench.take(2, 2);
        assert_eq!(bench.first(&[]), Some(1));
        bench.rekey(&[9, 8, 1]);
        assert_eq!(bench.first(&[]), Some(1), "what left the queue does not come back by a key");
        bench.finish(2, 1);
        assert_eq!(bench.first(&[1]), Some(0), "all its tasks have started");
    }

    #[test]
    fn a_barred_early_reduce_comes_back_with_the_next_event() {
        let instance = instance(vec![machines("m", 1, 2)], vec![flow("f", uniform(2, 1.0), uniform(2, 1.0))]);
        let mut bench = Bench::new(&instance, 0.0, &[2, 1]);
        assert_eq!(bench.first(&[]), Some(1));
        bench.take(1, 1);
        assert_eq!(bench.first(&[]), Some(0), "one slot must be left to the maps");
        bench.state.set_alive(SlotKind::Any, 3);
        assert_eq!(bench.first(&[]), Some(0), "nothing was said");
        bench.tell(&[Event::Wake]);
        assert_eq!(bench.first(&[]), Some(1));
    }
}
