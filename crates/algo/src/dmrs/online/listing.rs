//! The job scheduler and the task scheduler: what is left of the ready jobs becomes an order and a list.

use std::collections::BTreeSet;

use slackline_model::{JobId, PhaseId, PhaseKind};
use slackline_policy::{Action, View};

use super::super::list::{self, List, Placed};
use super::super::lp::{self, Side};
use super::super::queues::{At, Running, Speeds};
use super::super::variant::Variant;
use super::super::{estimates, model, order};
use super::state::{Awake, Dmrs, Placing};

/// How many tasks are placed ahead: so many, or one for so many slots if that is more.
const AHEAD: u64 = 500;
const AHEAD_SLOTS: u64 = 64;
/// And at most so many for each slot, while there are slots with nothing to do.
const AHEAD_MOST: u64 = 2;
/// How many are placed before it is looked again whether slots have nothing to do.
const AT_ONCE: u64 = 256;

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
                for (end, group, running) in self.queues.ends(phase, speeds, view.now) {
                    let rest = end.since(view.now).seconds() * speeds.0[group];
                    work += rest * f64::from(running);
                    longest = longest.max(rest);
                    count = count.saturating_add(running);
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
        self.count_startable(view);
        true
    }

    /// Counts the tasks that could start now of jobs that are not wholly on the list.
    fn count_startable(&mut self, view: &View<'_>) {
        self.startable = [0; 2];
        let placing = self.placing.iter().map(|placing| placing.id);
        for job in self.unplanned.iter().copied().chain(placing) {
            let of_job = self.startable_of(job, view);
            self.startable.iter_mut().zip(of_job).for_each(|(all, more)| *all += more);
        }
    }

    /// The tasks of a job that could start now and are placed ahead, by lane.
    fn startable_of(&self, job: JobId, view: &View<'_>) -> [u64; 2] {
        let mut startable = [0; 2];
        if self.jobs.contains(&job) {
            for phase in view.instance.job(job).phases() {
                let state = view.phase(phase);
                let is_mine = self.config.variant.places(view.instance.phase(phase).kind);
                if is_mine && state.is_ready() && !view.state.is_early(view.instance, phase) {
                    startable[view.instance.lane_of(phase).index()] += u64::from(state.unstarted());
                }
            }
        }
        startable
    }

    /// The task scheduler: a list of all tasks to start, from what the slots do now.
    pub(super) fn replan(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        self.queues.clear();
        out.push(Action::ClearPlacements);
        self.take_back(view);
        self.loose.clear();
        if self.config.variant == Variant::MapOnly {
            for reduce in
                self.jobs.iter().filter_map(|&job| view.instance.job(job).reduce).collect::<Vec<_>>()
            {
                self.loosen(reduce, view);
            }
        }
        let speeds = self.speeds.get().clone();
        let slots = if self.rough {
            self.slots_that_work(&speeds, view)
        } else {
            [0, 1].map(|lane| self.queues.free_slots(lane, &speeds, view.now))
        };
        self.list = Some(List::new(slots));
        let jobs = &self.jobs;
        self.unplanned = self.order.iter().copied().filter(|job| jobs.contains(job)).collect();
        self.placing = None;
        self.count_startable(view);
        self.listed.clear();
        (self.due.list, self.departed, self.started) = (false, false, 0);
        self.awake = Awake::All;
        self.extend(view);
    }

    /// Takes tasks off their slots that were handed over and have not begun, or were stopped, or whose flow was
    /// abandoned.
    fn take_back(&mut self, view: &View<'_>) {
        let handed = std::mem::take(&mut self.handed);
        let at: Vec<At> = if self.rough { self.queues.iter().map(|(at, _)| at).collect() } else { handed };
        for at in at {
            let is_not_there =
                |r: Running| !view.state.knows(r.phase) || view.phase(r.phase).is_pending(r.task);
            if self.queues.slot(at).running.is_some_and(is_not_there) {
                self.vacate(at, view.now);
            }
        }
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
                slots[at.lane].push(list::Slot { number: at.slot, speed, free });
            }
        }
        held.into_iter().for_each(|at| self.queues.hold(at));
        slots
    }

    /// Lists further tasks until enough are in the queues, if they have run low or a slot has nothing to do that tasks
    /// not on the list could do.
    pub(super) fn extend(&mut self, view: &View<'_>) {
        if self.unplanned.is_empty() && self.placing.is_none() {
            return;
        }
        let slots = (self.queues.lane(0).len() + self.queues.lane(1).len()) as u64;
        let (enough, most) = ((slots / AHEAD_SLOTS).max(AHEAD), (AHEAD_MOST * slots).max(AHEAD));
        let mut is_hungry = self.is_hungry();
        if self.queues.queued() * 2 > enough && !(is_hungry && self.queues.queued() < most) {
            return;
        }
        let Some(mut list) = self.list.take() else { return };
        loop {
            let wanted = if is_hungry { most } else { enough };
            let left = wanted.saturating_sub(self.queues.queued()).min(AT_ONCE);
            if left == 0 || !self.place_some(&mut list, left, view) {
                break;
            }
            self.awake = Awake::All;
            is_hungry = self.is_hungry();
        }
        self.list = Some(list);
    }

    /// Places up to so many tasks of the next job; false if there is none.
    fn place_some(&mut self, list: &mut List, most: u64, view: &View<'_>) -> bool {
        let placing = self.placing.take().filter(|placing| self.jobs.contains(&placing.id));
        let Some(mut placing) = placing.or_else(|| self.next_job(view)) else { return false };
        let Placing { job, progress, .. } = &mut placing;
        let queues = &mut self.queues;
        let mut report = |task: Placed| queues.push(view.instance.lane_of(task.phase).index(), &task);
        list.go_on(job, progress, most, &mut report);
        if placing.progress.is_over(&placing.job) {
            let less = placing.startable;
            self.startable.iter_mut().zip(less).for_each(|(all, less)| *all = all.saturating_sub(less));
        } else {
            self.placing = Some(placing);
        }
        true
    }

    /// The next job of σ that is not on the list goes there.
    fn next_job(&mut self, view: &View<'_>) -> Option<Placing> {
        let jobs = &self.jobs;
        let id = std::iter::from_fn(|| self.unplanned.pop_front()).find(|id| jobs.contains(id))?;
        self.listed.push(id);
        let job = self.rest_of(id, view);
        let progress = list::Progress::new(&job);
        Some(Placing { id, job, progress, startable: self.startable_of(id, view) })
    }

    /// Whether a slot that may start a task has none to start, and a task that is not on the list could start there.
    fn is_hungry(&self) -> bool {
        let could = |lane: usize| self.startable[lane] > 0;
        match &self.awake {
            Awake::All => (0..2).any(|lane| could(lane) && self.queues.has_nothing_to_do(lane)),
            Awake::Some(slots) => slots
                .iter()
                .any(|&at| could(at.lane) && self.queues.is_idle(at) && !self.queues.is_loaded(at)),
        }
    }

    /// The tasks of a job that have not begun.
    fn rest_of(&self, id: JobId, view: &View<'_>) -> list::Job {
        let phase = |id: PhaseId| {
            let info = view.instance.phase(id);
            let ends = self.queues.ends(id, self.speeds.get(), view.now);
            let running = ends.map(|(end, _, count)| (end, count)).collect();
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
