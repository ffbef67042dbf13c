//! The start of a rollout: the active flows as dense tables, running tasks with estimated ends, free slots.
//!
//! Flows, jobs and phases are numbered from 0, each flow's phases together. The data that a rollout changes
//! has separate types (`…RolloutState`), so that only that data is copied, in one step.

use std::collections::BinaryHeap;
use std::ops::Range;

use slackline_model::{FlowId, PhaseId, PhaseKind, SlotKind, Span, Time};
use slackline_policy::{Holding, View};

use crate::estimated;
use crate::machines::busy;
use crate::rule::residual::is_live;

/// The start of a rollout, and the state that it changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) time: Time,
    pub(super) flows: Vec<FlowId>,
    /// First phase and first job of each flow, by id and by number here.
    pub(super) firsts: Vec<(PhaseId, u32)>,
    pub(super) jobs: Vec<Job>,
    /// The successors of jobs ([`Job::before`]).
    pub(super) before: Vec<u32>,
    pub(super) phases: Vec<Phase>,
    /// Unstarted tasks, phase by phase: the number, and the duration of each at speed 1.
    pub(super) runs: Vec<(u32, Span)>,
    /// Slots of one speed, in the order in which they are assigned, by slot kind.
    pub(super) classes: [Vec<Class>; 2],
    /// Slots from this number on are of this class, by slot kind.
    class_from: [Vec<(u32, u16)>; 2],
    /// Slots that are up, by slot kind.
    pub(super) alive: [u32; 2],
    /// The number of them that long tasks may hold, by slot kind ([`super::reserved_slots`]).
    pub(super) long_max: [u32; 2],
    /// Future flows, by arrival.
    pub(super) arrivals: Vec<Arrival>,
    /// Phases that are ready at the arrival of their flow.
    pub(super) opening: Vec<u32>,
    /// When waiting flows go first, by time.
    pub(super) limits: Vec<(Time, u32)>,
    /// Whether slots serve both kinds of phases.
    pub(super) generic: bool,
    pub(super) start: RolloutState,
}

/// The state that a rollout changes.
#[derive(Clone, Debug, Default)]
pub(super) struct RolloutState {
    pub(super) flows: Vec<FlowNow>,
    pub(super) jobs: Vec<JobNow>,
    pub(super) phases: Vec<PhaseNow>,
    /// Free slots of each class, by slot kind.
    pub(super) free: [Vec<u32>; 2],
    /// Reduces that hold slots and wait for maps, by slot kind.
    pub(super) waiting: [u32; 2],
    /// Slots that long tasks hold, by slot kind.
    pub(super) long: [u32; 2],
    /// The number of arrived [`Snapshot::arrivals`], and of passed [`Snapshot::limits`].
    pub(super) arrived: usize,
    pub(super) passed: usize,
    /// Batches of such reduces: lists, each headed by its phase ([`PhaseNow::waits`]).
    pub(super) waits: Vec<Wait>,
    /// Batches that compute, with their ends.
    pub(super) ends: BinaryHeap<End>,
}

/// A future flow.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) at: Time,
    /// The phases that are ready at its arrival, as a range of [`Snapshot::opening`].
    pub(super) opening: Range<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) flow: u32,
    pub(super) map: Option<u32>,
    pub(super) reduce: Option<u32>,
    /// Its successors, as a range of [`Snapshot::before`].
    pub(super) before: Range<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) job: u32,
    pub(super) slot_kind: u8,
    pub(super) is_instant: bool,
    /// The maps that a reduce phase waits for.
    pub(super) maps: Option<u32>,
    pub(super) cap: u32,
    /// The reduces of its job may take slots when at most this number of tasks of the map phase is left.
    pub(super) opens_at: u32,
    /// The mean duration of a task at speed 1.
    pub(super) mean: Span,
    /// Whether its tasks are long ([`super::reserved_slots`]).
    pub(super) is_long: bool,
}

/// Slots of one speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// The estimated speed.
    pub(super) speed: f64,
    /// The number of slots.
    pub(super) slots: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowNow {
    pub(super) jobs_left: u32,
    pub(super) completion: Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobNow {
    pub(super) blocked_by: u32,
    pub(super) phases_left: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseNow {
    /// Unfinished tasks.
    pub(super) left: u32,
    pub(super) unstarted: u32,
    pub(super) running: u32,
    pub(super) is_ready: bool,
    /// The next task to start: its run in [`Snapshot::runs`], and the number of started tasks of that run.
    pub(super) run: u32,
    pub(super) used: u32,
    /// The first of its batches that wait for maps.
    pub(super) waits: Option<u32>,
}

/// Reduces that hold slots and wait for maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) count: u32,
    pub(super) class: u16,
    pub(super) span: Span,
    pub(super) next: Option<u32>,
}

/// Tasks that end together. The greatest is the one that ends first, which a heap returns first. Ends of one
/// instant are equal, since they are handled together.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: Time,
    pub(super) phase: u32,
    pub(super) count: u32,
    pub(super) class: u16,
}

slackline_model::order_by_key!(End, |end| std::cmp::Reverse(end.at));

impl Snapshot {
    /// Copies the state that `view` shows now. O(phases of active flows + running batches); allocates only if
    /// there is more than before.
    pub fn take(&mut self, view: &View<'_>) {
        self.time = view.now;
        self.clear();
        self.take_slots(view);
        for flow in view.instance.flows().keys().filter(|&flow| is_live(flow, view)) {
            self.take_flow(flow, view);
        }
        for holding in view.held.running() {
            self.take_running(&holding, view);
        }
    }

    /// Copies the slots, all of them free, without any flow.
    pub fn take_empty(&mut self, view: &View<'_>) {
        self.time = view.now;
        self.clear();
        self.take_slots(view);
        for (free, classes) in self.start.free.iter_mut().zip(&self.classes) {
            free.iter_mut().zip(classes).for_each(|(free, class)| *free = class.slots);
        }
    }

    /// Limits the slots that tasks of more than `theta` may hold: all but a share `rho` of each slot kind,
    /// rounded down.
    pub(super) fn reserve(&mut self, theta: Span, rho: f64) {
        for (most, &alive) in self.long_max.iter_mut().zip(&self.alive) {
            *most = long_max(alive, rho);
        }
        self.start.long = [0; 2];
        for (phase, now) in self.phases.iter_mut().zip(&self.start.phases) {
            phase.is_long = phase.mean > theta;
            self.start.long[usize::from(phase.slot_kind)] += if phase.is_long { now.running } else { 0 };
        }
    }

    /// The unstarted tasks of a flow take `factor` times as long.
    pub(super) fn stretch(&mut self, phases: Range<usize>, factor: f64) {
        let all = self.runs.len();
        for phase in phases {
            for (_, span) in &mut self.runs[run_range(&self.start.phases, phase, all)] {
                *span = Span::from_seconds_nearest(span.seconds() * factor);
            }
        }
    }

    /// The phases of a flow.
    pub(super) fn phases_of(&self, flow: usize) -> Range<usize> {
        let end = self.firsts.get(flow + 1).map_or(self.phases.len(), |&(_, first)| first as usize);
        self.firsts[flow].1 as usize..end
    }

    /// The number of a phase of an active flow; `None` for other phases.
    pub fn number(&self, phase: PhaseId, view: &View<'_>) -> Option<u32> {
        let flow = self.flows.binary_search(&view.instance.flow_of(phase)).ok()?;
        let (first, number) = self.firsts[flow];
        Some(number + (phase.0 - first.0))
    }

    /// Clears the tables and keeps their memory.
    fn clear(&mut self) {
        self.flows.clear();
        self.firsts.clear();
        self.jobs.clear();
        self.before.clear();
        self.phases.clear();
        self.runs.clear();
        self.start.flows.clear();
        self.start.jobs.clear();
        self.start.phases.clear();
        self.start.waits.clear();
        self.start.ends.clear();
        self.arrivals.clear();
        self.opening.clear();
        self.limits.clear();
        self.start.waiting = [0; 2];
        self.start.long = [0; 2];
        for slot_kind in 0..2 {
            self.classes[slot_kind].clear();
            self.class_from[slot_kind].clear();
            self.start.free[slot_kind].clear();
        }
    }

    fn take_slots(&mut self, view: &View<'_>) {
        let cluster = view.instance.cluster();
        self.generic = !cluster.is_map_reduce();
        for &slot_kind in cluster.slot_kinds() {
            let at = slot_kind.index();
            (self.alive[at], self.long_max[at]) = (view.state.alive(slot_kind), u32::MAX);
            for (number, class) in (0..).zip(view.held.classes(slot_kind)) {
                self.classes[at].push(Class { speed: class.speed, slots: class.len() });
                self.class_from[at].extend(class.slots.iter().map(|range| (range.first, number)));
                self.start.free[at].push(view.held.free_of(slot_kind, class));
            }
            self.class_from[at].sort_unstable();
        }
    }

    pub(super) fn take_flow(&mut self, flow: FlowId, view: &View<'_>) {
        let instance = view.instance;
        let info = instance.flow(flow);
        let (Some(first_job), Some(first_phase)) = (info.jobs().next(), info.phases().next()) else { return };
        let (job_0, phase_0) = (self.jobs.len() as u32, self.phases.len() as u32);
        let job_number = |job: slackline_model::JobId| job_0 + (job.0 - first_job.0);
        let phase_number = |phase: PhaseId| phase_0 + (phase.0 - first_phase.0);
        let number = self.flows.len() as u32;
        self.flows.push(flow);
        self.firsts.push((first_phase, phase_0));
        let jobs_left = info.jobs().filter(|&job| !view.state.is_job_done(job)).count() as u32;
        self.start.flows.push(FlowNow { jobs_left, completion: Time::ZERO });
        for job in info.jobs() {
            let info = instance.job(job);
            let from = self.before.len() as u32;
            self.before.extend(info.before.iter().map(|&job| job_number(job)));
            let before = from..self.before.len() as u32;
            let (map, reduce) = (info.map.map(phase_number), info.reduce.map(phase_number));
            self.jobs.push(Job { flow: number, map, reduce, before });
            let blocked_by = info.after.iter().filter(|&&job| !view.state.is_job_done(job)).count() as u32;
            let phases_left = info.phases().filter(|&phase| !view.phase(phase).is_done()).count() as u32;
            self.start.jobs.push(JobNow { blocked_by, phases_left });
        }
        for phase in info.phases() {
            let info = instance.phase(phase);
            let maps = instance.job(info.job).map.filter(|_| info.kind == PhaseKind::Reduce);
            self.take_phase(phase, job_number(info.job), maps.map(phase_number), view);
        }
    }

    fn take_phase(&mut self, phase: PhaseId, job: u32, maps: Option<u32>, view: &View<'_>) {
        let (info, state) = (view.instance.phase(phase), view.phase(phase));
        let is_map = info.kind == PhaseKind::Map;
        let opens_at =
            if is_map { state.total() - view.state.maps_needed(phase).min(state.total()) } else { 0 };
        let is_instant = view.is_instant(phase);
        let slot_kind = view.instance.slot_kind_of(phase).index() as u8;
        let mean = view.estimates.task[phase];
        let is_long = false;
        self.phases.push(Phase { job, slot_kind, is_instant, maps, cap: info.cap, opens_at, mean, is_long });
        let run = self.runs.len() as u32;
        if !state.is_done() && !is_instant {
            self.runs.extend(estimated::pending(view, phase).map(|run| (run.count, run.span)));
        }
        let left = state.total() - state.done();
        let (unstarted, running) = (state.unstarted(), state.running());
        // A phase without length is done when it becomes ready, so it is not ready now.
        let open = self.start.jobs[job as usize].blocked_by == 0 && left > 0 && !is_instant;
        let is_ready = open
            && view
                .instance
                .job(info.job)
                .map
                .is_none_or(|map| is_map || view.phase(map).done() >= view.state.maps_needed(map));
        self.start.phases.push(PhaseNow { left, unstarted, running, is_ready, run, ..PhaseNow::default() });
    }

    /// A running batch ends at its estimated end. If this has passed, it ends after another tenth of its
    /// duration.
    fn take_running(&mut self, holding: &Holding<'_>, view: &View<'_>) {
        let Some(phase) = self.number(holding.phase, view) else { return };
        let slot_kind = usize::from(self.phases[phase as usize].slot_kind);
        let from = &self.class_from[slot_kind];
        let (_, class) = from[from.partition_point(|&(first, _)| first <= holding.places[0].first) - 1];
        let span = estimated::size(view, holding.phase, holding.first);
        let count = holding.count;
        let Some(since) = holding.since else {
            self.start.waiting[slot_kind] += count;
            self.start.hold(phase, Wait { count, class, span, next: None });
            return;
        };
        let estimated = span.at_speed_nearest(self.classes[slot_kind][usize::from(class)].speed);
        let at = view.now + busy(since, estimated, view.now);
        self.start.ends.push(End { at, phase, count, class });
    }
}

/// The number of slots of a kind that long tasks may hold if a share `rho` is reserved for others.
pub(super) fn long_max(alive: u32, rho: f64) -> u32 {
    alive - (rho * f64::from(alive)).floor() as u32
}

/// The tasks that a phase has to start, as a range of the `runs` runs of all phases.
fn run_range(phases: &[PhaseNow], phase: usize, runs: usize) -> Range<usize> {
    phases[phase].run as usize..phases.get(phase + 1).map_or(runs, |next| next.run as usize)
}

impl RolloutState {
    /// Copies another without allocating if it fits.
    pub(super) fn copy(&mut self, from: &Self) {
        let Self { flows, jobs, phases, free, waiting, long, arrived, passed, waits, ends } = self;
        flows.clone_from(&from.flows);
        jobs.clone_from(&from.jobs);
        phases.clone_from(&from.phases);
        free.clone_from(&from.free);
        (*waiting, *long) = (from.waiting, from.long);
        (*arrived, *passed) = (from.arrived, from.passed);
        waits.clone_from(&from.waits);
        ends.clone_from(&from.ends);
    }

    /// Adds a batch to the list of waiting batches of its phase.
    pub(super) fn hold(&mut self, phase: u32, wait: Wait) {
        let head = &mut self.phases[phase as usize].waits;
        let next = head.replace(self.waits.len() as u32);
        self.waits.push(Wait { next, ..wait });
    }
}

/// The slot kinds.
pub(super) fn slot_kinds(generic: bool) -> &'static [SlotKind] {
    if generic { &[SlotKind::Any] } else { &[SlotKind::Map, SlotKind::Reduce] }
}
