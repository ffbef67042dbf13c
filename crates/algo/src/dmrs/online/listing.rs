//! The job scheduler and the task scheduler: order and list the remaining work of the ready jobs.

use std::collections::VecDeque;

use slackline_model::{JobId, PhaseId};
use slackline_policy::{Action, View};

use super::super::list::{self, List, Placed};
use super::super::queues::{Running, SlotRef, Speeds};
use super::super::variant::Variant;
use super::state::{Awake, Dmrs, ListedJobs, Placing};
use crate::estimated;

/// The number of tasks that are placed ahead, unless one for each 64 slots is more.
const AHEAD: u64 = 500;
const AHEAD_SLOTS: u64 = 64;
/// The limit for each slot, while slots have nothing to do.
const AHEAD_MOST: u64 = 2;
/// The number of tasks to place before checking again for idle slots.
const AT_ONCE: u64 = 256;

impl Dmrs {
    /// The job scheduler: σ from the linear program over the remaining work of the ready jobs.
    pub(super) fn sort(&mut self, view: &View<'_>) {
        let Self { ranking, jobs, config, queues, speeds, order, .. } = self;
        ranking.sort(jobs.ids(), *config, queues, speeds.get(), view, order);
    }

    /// Whether the list can be continued after σ was renewed: all tasks ran as listed, and the listed jobs
    /// with remaining tasks come first in the new order, as in the old one. Then only the jobs that are not
    /// on the list are taken over. Jobs that were listed out of turn do not count. O(jobs log jobs).
    pub(super) fn continue_list(&mut self, view: &View<'_>) -> bool {
        if self.departed || self.list.is_none() {
            return false;
        }
        let Self { listed: ListedJobs { jobs: listed, in_turn, all: on_list, .. }, jobs, .. } = self;
        listed.retain(|&job| jobs.contains(job));
        on_list.keep(jobs.members());
        let has_left = |job: &&JobId| {
            jobs.contains(**job)
                && view.instance.job(**job).phases().any(|phase| view.phase(phase).unstarted() > 0)
        };
        let is_early = |job: &JobId| on_list.contains(job.0) && !in_turn.contains(job.0);
        let mut order = self.order.iter().filter(|job| !is_early(job)).filter(has_left);
        if listed.iter().filter(has_left).any(|job| order.next() != Some(job)) {
            return false;
        }
        self.plan_the_rest(view);
        true
    }

    /// Plans to list the jobs of σ that are not on the list; some of them could start now.
    fn plan_the_rest(&mut self, view: &View<'_>) {
        let Self { order, jobs, listed: ListedJobs { all, unplanned, .. }, .. } = self;
        let rest = order.iter().copied().filter(|&job| jobs.contains(job) && !all.contains(job.0));
        unplanned.clear();
        unplanned.extend(rest);
        let mut could_start = std::mem::take(&mut self.could_start);
        could_start.iter_mut().for_each(VecDeque::clear);
        for &job in &self.listed.unplanned {
            for phase in view.instance.job(job).phases() {
                if self.could_start(phase, view) {
                    could_start[view.instance.slot_kind_of(phase).index()].push_back(job);
                }
            }
        }
        self.could_start = could_start;
    }

    /// Whether tasks of a phase could start now and are placed ahead.
    pub(super) fn could_start(&self, phase: PhaseId, view: &View<'_>) -> bool {
        let state = view.phase(phase);
        state.is_ready()
            && state.unstarted() > 0
            && self.config.variant.places(view.instance.phase(phase).kind)
            && !view.state.is_early(view.instance, phase)
    }

    /// The task scheduler: lists all tasks to start, from the present state of the slots.
    pub(super) fn replan(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        self.queues.clear();
        out.push(Action::ClearPlacements);
        self.take_back(view);
        self.loose.clear();
        if self.config.variant == Variant::MapOnly {
            for reduce in
                self.jobs.ids().iter().filter_map(|&job| view.instance.job(job).reduce).collect::<Vec<_>>()
            {
                self.loosen(reduce, view);
            }
        }
        let speeds = self.speeds.get().clone();
        let mut list = self.list.take().unwrap_or_default();
        list.clear();
        if self.rough {
            list = List::new(self.slots_that_work(&speeds, view));
        } else {
            (0..2).for_each(|slot_kind| self.queues.add_free(&mut list, slot_kind, &speeds, view.now));
        }
        self.list = Some(list);
        (self.placing, self.aside) = (None, [None, None]);
        self.listed.jobs.clear();
        self.listed.in_turn.clear();
        self.listed.all.clear();
        self.plan_the_rest(view);
        (self.due.list, self.departed, self.started) = (false, false, 0);
        self.awake = Awake::All;
        self.extend(view);
    }

    /// Removes tasks from their slots that were handed over and have not started, or were stopped, or whose
    /// flow failed.
    fn take_back(&mut self, view: &View<'_>) {
        let handed = std::mem::take(&mut self.handed);
        let at: Vec<SlotRef> =
            if self.rough { self.queues.iter().map(|(at, _)| at).collect() } else { handed };
        for at in at {
            let is_not_there = |r: Running| {
                !view.state.knows(r.phase)
                    || view.state.has_failed(view.instance.flow_of(r.phase))
                    || view.phase(r.phase).is_pending(r.task)
            };
            if self.queues.slot(at).running.is_some_and(is_not_there) {
                self.vacate(at, view.now);
            }
        }
    }

    /// Forgets all handed-over tasks that have started.
    pub(super) fn note_begun(&mut self, view: &View<'_>) {
        let queues = &self.queues;
        let has_not_begun = |r: Running| view.state.knows(r.phase) && view.phase(r.phase).is_pending(r.task);
        self.handed.retain(|&at| queues.slot(at).running.is_some_and(has_not_begun));
    }

    /// Slots that are up and whose tasks do not wait for maps that must run again.
    fn slots_that_work(&mut self, speeds: &Speeds, view: &View<'_>) -> [Vec<list::Slot>; 2] {
        let mut slots = [Vec::new(), Vec::new()];
        let mut held = Vec::new();
        for (at, slot) in self.queues.iter() {
            let waits = slot.running.is_some_and(|r| view.state.is_early(view.instance, r.phase));
            if waits {
                held.push(at);
            } else if slot.up {
                let (speed, free) = (speeds.0[slot.group], speeds.free(slot, view.now));
                slots[at.slot_kind].push(list::Slot { number: at.slot, speed, free });
            }
        }
        for at in held {
            self.queues.hold(at);
        }
        slots
    }

    /// Lists further tasks until the queues have enough, if they have run low. If slots are idle then, jobs
    /// that could start there are listed out of their turn.
    pub(super) fn extend(&mut self, view: &View<'_>) {
        let is_listed = self.listed.unplanned.is_empty()
            && self.placing.is_none()
            && self.aside.iter().all(Option::is_none);
        if is_listed {
            return;
        }
        let slots = (self.queues.slot_kind(0).len() + self.queues.slot_kind(1).len()) as u64;
        let (enough, most) = ((slots / AHEAD_SLOTS).max(AHEAD), (AHEAD_MOST * slots).max(AHEAD));
        let queued = self.queues.queued();
        if queued * 2 > enough && (queued >= most || self.hungry().is_none()) {
            return;
        }
        let Some(mut list) = self.list.take() else { return };
        loop {
            let queued = self.queues.queued();
            let placing = if queued < enough {
                self.next_in_turn(view).map(|placing| (placing, enough - queued))
            } else if queued < most {
                self.next_for_slots(view).map(|placing| (placing, most - queued))
            } else {
                None
            };
            let Some((placing, left)) = placing else { break };
            // Out of turn, at most as many tasks as idle slots: the other slots are for jobs in their turn.
            let left = placing
                .for_slot_kind
                .map_or(left, |slot_kind| left.min(self.queues.with_nothing_to_do(slot_kind)));
            self.place_some(&mut list, placing, left.clamp(1, AT_ONCE), view);
            self.awake = Awake::All;
        }
        self.list = Some(list);
    }

    /// Places up to `most` tasks of a job.
    fn place_some(&mut self, list: &mut List, mut placing: Placing, most: u64, view: &View<'_>) {
        let queues = &mut self.queues;
        let mut report = |task: Placed| queues.push(view.instance.slot_kind_of(task.phase).index(), &task);
        list.go_on(&placing.job, &mut placing.progress, most, &mut report);
        if !placing.progress.is_over(&placing.job) {
            match placing.for_slot_kind {
                None => self.placing = Some(placing),
                Some(slot_kind) => self.aside[slot_kind] = Some(placing),
            }
        }
    }

    /// The next job of σ, or the rest of one.
    fn next_in_turn(&mut self, view: &View<'_>) -> Option<Placing> {
        if let Some(begun) = self.placing.take().filter(|begun| self.jobs.contains(begun.id)) {
            return Some(begun);
        }
        let Self { jobs, listed: ListedJobs { all: on_list, unplanned, .. }, .. } = self;
        let is_left = |id: &JobId| jobs.contains(*id) && !on_list.contains(id.0);
        let Some(id) = std::iter::from_fn(|| unplanned.pop_front()).find(is_left) else {
            return self.aside.iter_mut().find_map(Option::take);
        };
        self.listed.jobs.push(id);
        self.listed.in_turn.insert(id.0);
        Some(self.begin(id, None, view))
    }

    /// The first job of σ that could start in a slot kind with idle slots.
    fn next_for_slots(&mut self, view: &View<'_>) -> Option<Placing> {
        while let Some(slot_kind) = self.hungry() {
            let begun = self.aside[slot_kind].take().filter(|begun| self.jobs.contains(begun.id));
            if begun.is_some() {
                return begun;
            }
            let Some(id) = self.could_start[slot_kind].pop_front() else { continue };
            if self.placing.as_ref().is_some_and(|placing| placing.id == id) {
                // It is the turn of this job.
                self.could_start[slot_kind].push_front(id);
                return self.placing.take();
            }
            let phases = || view.instance.job(id).phases();
            let is_here = |phase: PhaseId| view.instance.slot_kind_of(phase).index() == slot_kind;
            if self.jobs.contains(id)
                && !self.listed.all.contains(id.0)
                && phases().any(|phase| is_here(phase) && self.could_start(phase, view))
            {
                return Some(self.begin(id, Some(slot_kind), view));
            }
        }
        None
    }

    fn begin(&mut self, id: JobId, for_slot_kind: Option<usize>, view: &View<'_>) -> Placing {
        self.listed.all.insert(id.0);
        let job = self.rest_of(id, view);
        let progress = list::Progress::new(&job);
        Placing { id, job, progress, for_slot_kind }
    }

    /// A slot kind with a slot that has neither a task nor a queue, although a job that is not wholly on the
    /// list could start there.
    fn hungry(&self) -> Option<usize> {
        let could =
            |slot_kind: usize| self.aside[slot_kind].is_some() || !self.could_start[slot_kind].is_empty();
        (0..2).find(|&slot_kind| could(slot_kind) && self.queues.with_nothing_to_do(slot_kind) > 0)
    }

    /// The unstarted tasks of a job.
    fn rest_of(&self, id: JobId, view: &View<'_>) -> list::Job {
        let phase = |id: PhaseId| {
            let info = view.instance.phase(id);
            let ends = self.queues.ends(id, self.speeds.get(), view.now);
            let running = ends.map(|(end, _, count)| (end, count)).collect();
            let slot_kind = view.instance.slot_kind_of(id).index();
            let runs = estimated::pending(view, id).collect();
            let mut phase = list::Phase { id, slot_kind, cap: info.cap, running, runs };
            phase.sort();
            phase
        };
        let placed =
            |id: &PhaseId| self.config.variant.places(view.instance.phase(*id).kind) && !view.is_instant(*id);
        let phases = view.instance.job(id).phases().filter(placed).map(phase).collect();
        list::Job { ready: view.now, phases }
    }
}
