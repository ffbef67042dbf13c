//! A queue of runnable phases, for policies that put phases in an order.
//!
//! FIFO, EDF and the Johnson orders differ only in the key. The queue keeps every phase that may be
//! runnable and drops those at the head that turn out not to be; an event that could make a phase
//! runnable again puts it back. Every operation costs O(log phases), whatever the number of tasks.

use std::collections::BTreeSet;

use slackline_model::{Lane, PhaseId};

use crate::grown::Grown;
use crate::policy::{Ask, Event};
use crate::view::View;

/// Phases in the order of a key, then of their ids, one queue a lane.
#[derive(Clone, Debug)]
pub struct ReadyQueue<K> {
    lanes: [BTreeSet<(K, PhaseId)>; 2],
    /// The key under which a phase was queued last.
    keys: Grown<PhaseId, Option<K>>,
    queued: Grown<PhaseId, bool>,
    /// Early reduces that were barred from taking a slot when they came to the head.
    barred: Vec<PhaseId>,
}

impl<K> Default for ReadyQueue<K> {
    fn default() -> Self {
        Self {
            lanes: [BTreeSet::new(), BTreeSet::new()],
            keys: Grown::default(),
            queued: Grown::default(),
            barred: Vec::new(),
        }
    }
}

impl<K: Ord + Copy> ReadyQueue<K> {
    /// An empty queue, for any instance.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the events of an instant. `key` is asked once a phase becomes ready.
    pub fn update(&mut self, events: &[Event], view: &View<'_>, mut key: impl FnMut(PhaseId) -> K) {
        for event in events {
            match *event {
                Event::PhaseReady(phase) => {
                    let key = key(phase);
                    self.remove(phase, view);
                    self.keys[phase] = Some(key);
                    self.insert(phase, view);
                }
                Event::TasksDone { phase, .. } | Event::TasksLost { phase, .. } => self.insert(phase, view),
                _ => {}
            }
        }
        // Whatever happened may have moved the bar: fewer reduces wait, or slots came back.
        for phase in std::mem::take(&mut self.barred) {
            self.insert(phase, view);
        }
    }

    /// Asks for the keys of all ready phases again, the others keep theirs. O(n log n) for n ready
    /// phases. For policies whose order changes; events of the instant still go to
    /// [`ReadyQueue::update`].
    pub fn rekey(&mut self, view: &View<'_>, mut key: impl FnMut(PhaseId) -> K) {
        let ready: Vec<PhaseId> =
            view.instance.cluster().lanes().iter().flat_map(|&lane| view.state.ready(lane)).collect();
        for phase in ready {
            if self.keys[phase].is_some() {
                let queued = self.queued[phase];
                self.remove(phase, view);
                self.keys[phase] = Some(key(phase));
                if queued {
                    self.insert(phase, view);
                }
            }
        }
    }

    /// The first phase that can run on the asking slot, leaving those in `ask.skip` out.
    pub fn first(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<PhaseId> {
        let mut from = None;
        loop {
            let lane = &self.lanes[ask.lane.index()];
            let &(key, phase) = match from {
                None => lane.first()?,
                Some(passed) => {
                    lane.range((std::ops::Bound::Excluded(passed), std::ops::Bound::Unbounded)).next()?
                }
            };
            if view.runnable(phase) == 0 {
                self.drop(phase, ask.lane, view);
            } else if ask.skip.contains(&phase) {
                from = Some((key, phase));
            } else {
                return Some(phase);
            }
        }
    }

    fn insert(&mut self, phase: PhaseId, view: &View<'_>) {
        let state = view.phase(phase);
        if let Some(key) = self.keys[phase]
            && !self.queued[phase]
            && state.is_ready()
            && state.unstarted() > 0
        {
            self.queued[phase] = true;
            self.lanes[view.instance.lane_of(phase).index()].insert((key, phase));
        }
    }

    fn remove(&mut self, phase: PhaseId, view: &View<'_>) {
        if self.queued[phase] {
            let key = self.keys[phase].expect("invariant: queued phases have a key");
            self.lanes[view.instance.lane_of(phase).index()].remove(&(key, phase));
            self.queued[phase] = false;
        }
    }

    fn drop(&mut self, phase: PhaseId, lane: Lane, view: &View<'_>) {
        let key = self.keys[phase].expect("invariant: queued phases have a key");
        self.lanes[lane.index()].remove(&(key, phase));
        self.queued[phase] = false;
        if view.state.is_early(view.instance, phase) && view.phase(phase).unstarted() > 0 {
            self.barred.push(phase);
        }
    }
}
