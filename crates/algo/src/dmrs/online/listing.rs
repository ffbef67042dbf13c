//! The job scheduler and the task scheduler: what is left of the ready jobs becomes an order and a list.

use std::collections::BTreeSet;

use slackline_model::{JobId, PhaseId, PhaseKind};
use slackline_policy::{Action, View};

use super::super::list::{self, List, Placed};
use super::super::lp::{self, Side};
use super::super::variant::Variant;
use super::super::{estimates, model, order};
use super::state::{Awake, Dmrs};

/// How many tasks are placed ahead at least, for each slot and in all.
const AHEAD: (u64, u64) = (2, 500);

impl Dmrs {
    /// The job scheduler: σ from the linear program over what is left of the ready jobs.
    pub(super) fn sort(&mut self, view: &View<'_>) {
        let speeds = self.speeds.get();
        let mut ids = Vec::with_capacity(self.jobs.len());
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for &id in &self.jobs {
            let info = view.instance.job(id);
            let side = |kind| {
                let Some(phase) = info.phase(kind).filter(|&phase| !view.is_instant(phase)) else {
                    return Side::default();
                };
                let (mut work, mut longest) = estimates::left(view, phase);
                let mut count = view.phase(phase).unstarted();
                for (end, group) in self.queues.ends(phase, speeds, view.now) {
                    let rest = end.since(view.now).seconds() * speeds.0[group];
                    work += rest;
                    longest = longest.max(rest);
                    count = count.saturating_add(1);
                }
                Side { work, longest, tasks: count.min(view.instance.phase(phase).cap) }
            };
            let weight = model::weight(view.instance.flow(info.flow));
            let (map, reduce) = (side(PhaseKind::Map), side(PhaseKind::Reduce));
            jobs.push(self.config.variant.considers(lp::Job { weight, release: 0.0, map, reduce }));
            ids.push(id);
        }
        let system = model::system(view.instance.cluster(), |group| speeds.0[group]);
        let solution = lp::solve(&jobs, &system, self.config.form);
        let order = order::order(&jobs, &system, &solution, self.config.key);
        self.order = order.into_iter().map(|at| ids[at]).collect();
    }

    /// Whether the list can be continued as it is after σ was renewed: everything went as it was listed, and the
    /// jobs on it that have tasks left come first in the new order, as they did in the old. Then only the
    /// jobs that are not on it are taken over. O(jobs).
    pub(super) fn goes_on(&mut self, view: &View<'_>) -> bool {
        if self.departed || self.list.is_none() {
            return false;
        }
        self.listed.retain(|job| self.jobs.contains(job));
        let has_left = |job: &&JobId| {
            self.jobs.contains(job)
                && view.instance.job(**job).phases().any(|phase| view.phase(phase).unstarted() > 0)
        };
        let listed: BTreeSet<JobId> = self.listed.iter().copied().collect();
        let mut order = self.order.iter().filter(has_left);
        if self.listed.iter().filter(has_left).any(|job| order.next() != Some(job)) {
            return false;
        }
        self.unplanned = self.order.iter().copied().filter(|job| !listed.contains(job)).collect();
        true
    }

    /// The task scheduler: a list of all tasks to start, from what the slots do now.
    pub(super) fn replan(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        self.queues.clear();
        out.push(Action::ClearPlacements);
        let mut slots = [Vec::new(), Vec::new()];
        let mut vacant = Vec::new();
        for (at, slot) in self.queues.iter() {
            if let Some(running) = slot.running
                && (!view.state.knows(running.phase) || view.phase(running.phase).is_pending(running.task))
            {
                // It was handed over and has not begun, or was stopped, or its flow was abandoned.
                vacant.push(at);
            }
        }
        for at in vacant {
            self.vacate(at, view.now);
        }
        self.loose.clear();
        if self.config.variant == Variant::MapOnly {
            for reduce in
                self.jobs.iter().filter_map(|&job| view.instance.job(job).reduce).collect::<Vec<_>>()
            {
                self.loosen(reduce, view);
            }
        }
        let speeds = self.speeds.get().clone();
        let mut held = Vec::new();
        for (at, slot) in self.queues.iter() {
            let waits = slot.running.is_some_and(|r| view.state.is_early(view.instance, r.phase));
            if waits {
                held.push(at);
            } else if slot.up {
                let (speed, free) = (speeds.0[slot.group], speeds.free(slot, view.now));
                slots[at.lane].push(list::Slot { number: at.slot, speed, free });
            }
        }
        for at in held {
            self.queues.hold(at);
        }
        self.list = Some(List::new(slots));
        let jobs = &self.jobs;
        self.unplanned = self.order.iter().copied().filter(|job| jobs.contains(job)).collect();
        self.listed.clear();
        (self.due.list, self.departed, self.started) = (false, false, 0);
        self.awake = Awake::All;
        self.extend(view);
    }

    /// Lists further jobs until enough tasks are in the queues, if they have run low or a slot has nothing
    /// to do.
    pub(super) fn extend(&mut self, view: &View<'_>) {
        if self.unplanned.is_empty() {
            return;
        }
        let Some(mut list) = self.list.take() else { return };
        let slots = self.queues.lane(0).len() + self.queues.lane(1).len();
        let wanted = (AHEAD.0 * slots as u64).max(AHEAD.1);
        let queued = self.queues.queued();
        if queued < wanted && (queued * 2 <= wanted || self.is_hungry()) {
            while self.queues.queued() < wanted
                && let Some(id) = self.unplanned.pop_front()
            {
                if !self.jobs.contains(&id) {
                    continue;
                }
                let job = self.rest_of(id, view);
                let queues = &mut self.queues;
                let mut report = |task: Placed| queues.push(view.instance.lane_of(task.phase).index(), &task);
                list.place(&job, &mut report);
                self.listed.push(id);
            }
            self.awake = Awake::All;
        }
        self.list = Some(list);
    }

    /// Whether a slot that may start a task has none to start.
    fn is_hungry(&self) -> bool {
        let loaded = self.queues.loaded();
        match &self.awake {
            Awake::All => self.idle.iter().any(|at| !loaded.contains(at)),
            Awake::Some(slots) => slots.iter().any(|at| self.idle.contains(at) && !loaded.contains(at)),
        }
    }

    /// The tasks of a job that have not begun.
    fn rest_of(&self, id: JobId, view: &View<'_>) -> list::Job {
        let phase = |id: PhaseId| {
            let info = view.instance.phase(id);
            let ends = self.queues.ends(id, self.speeds.get(), view.now);
            let running = ends.map(|(end, _)| end).collect();
            let lane = view.instance.lane_of(id).index();
            let runs = estimates::pending(view, id);
            let mut phase = list::Phase { id, lane, cap: info.cap, running, runs };
            phase.sort();
            phase
        };
        let placed =
            |id: &PhaseId| self.config.variant.places(view.instance.phase(*id).kind) && !view.is_instant(*id);
        let phases = view.instance.job(id).phases().filter(placed).map(phase).collect();
        list::Job { ready: view.now, phases }
    }
}
