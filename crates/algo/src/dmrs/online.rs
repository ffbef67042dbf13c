//! DMRS as a policy: job scheduler, task scheduler, machine queues (§V).
//!
//! The jobs are the ready jobs of all flows. When one becomes ready, the linear program is solved for
//! what is left of all of them, the list is made anew from what the slots do now, and every slot gets a
//! queue. A task is handed to its machine when its slot is free and its phase can run, so that a machine
//! of n slots is n machines. Before a task starts after something has not gone as planned, the best slot
//! for it is looked for again, and if it is another one, the list is made anew.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use slackline_model::{Instance, JobId, MachineId, PhaseId, PhaseKind, Span, Time};
use slackline_policy::{Action, Event, Policy, Style, View};

use super::beliefs::{Beliefs, Sizes, SpeedSource};
use super::history::History;
use super::list::{self, List, Placed};
use super::lp::{self, Form, Side};
use super::model;
use super::order::{self, Key};
use super::plan::Plan;
use super::queues::{At, Queues, Running, slack};
use super::variant::Variant;

/// How to schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Which scheduler.
    pub variant: Variant,
    /// Where speeds come from (the mean speed for [`Variant::Identical`], whatever is said here).
    pub speeds: SpeedSource,
    /// What is known of single tasks.
    pub sizes: Sizes,
    /// Whether the list is made anew when reality departs from it.
    pub reoptimise: Reoptimise,
    /// Which linear program.
    pub form: Form,
    /// What the list is sorted by.
    pub key: Key,
}

/// When the list is made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reoptimise {
    /// When jobs or machines come or go, and when the best slot of the next task has changed.
    #[default]
    OnDeparture,
    /// Only when jobs or machines come or go.
    Never,
}

/// What is out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Nothing,
    /// The list: machines came or went, or tasks were lost.
    List,
    /// The order too: a job became ready.
    Order,
}

/// How many tasks are placed ahead at least, for each slot and in all.
const AHEAD: (u64, u64) = (4, 1_000);

/// The DMRS policy.
#[derive(Clone, Debug)]
pub struct Dmrs {
    config: Config,
    beliefs: Beliefs,
    queues: Queues,
    /// Ready jobs that are not done.
    jobs: BTreeSet<JobId>,
    /// σ, made at the last arrival; jobs that are done stay in it.
    order: Vec<JobId>,
    /// Jobs of σ that are not on the list yet, and the list as far as it goes.
    unplanned: VecDeque<JobId>,
    list: Option<List>,
    /// Reduces that belong to no queue (map-only): when they became ready, and the next task to look at.
    loose: BTreeMap<(Time, PhaseId), u32>,
    /// Slots without a task, and those of them that may start one now.
    idle: BTreeSet<At>,
    awake: BTreeSet<At>,
    /// What has to be made anew.
    due: Due,
    /// Some task was off its time since the list was made.
    departed: bool,
    /// Follows a plan made elsewhere.
    fixed: bool,
    started: u64,
    forecast: BTreeMap<JobId, Time>,
    reoptimised: u64,
}

impl Dmrs {
    /// A policy for one run that begins with what `history` has seen.
    pub fn new(instance: &Instance, config: Config, history: History) -> Self {
        let queues = Queues::new(instance.cluster());
        let idle: BTreeSet<At> = queues.iter().map(|(at, _)| at).collect();
        let speeds = match config.variant {
            Variant::Identical => SpeedSource::Mean,
            Variant::Full | Variant::MapOnly => config.speeds,
        };
        Self {
            beliefs: Beliefs::new(instance, speeds, config.sizes, history),
            config,
            queues,
            jobs: BTreeSet::new(),
            order: Vec::new(),
            unplanned: VecDeque::new(),
            list: None,
            loose: BTreeMap::new(),
            awake: idle.clone(),
            idle,
            due: Due::Nothing,
            departed: false,
            fixed: false,
            started: 0,
            forecast: BTreeMap::new(),
            reoptimised: 0,
        }
    }

    /// A policy that does exactly what a plan of the same instance says, for runs in which nothing fails.
    pub fn following(instance: &Instance, plan: &Plan) -> Self {
        let mut policy = Self::new(instance, Config::default(), History::new());
        policy.fixed = true;
        for placed in &plan.placed {
            policy.queues.push(instance.lane_of(placed.phase).index(), placed);
        }
        policy
    }

    /// What is known now, for the next run.
    pub fn history(&self) -> &History {
        self.beliefs.history()
    }

    /// When each job was expected to end when it was placed first; in map-only, its maps.
    pub fn forecast(&self) -> &BTreeMap<JobId, Time> {
        &self.forecast
    }

    /// How many times the list was made anew because the best slot of a task had changed.
    pub fn reoptimised(&self) -> u64 {
        self.reoptimised
    }

    fn note(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            Event::TasksDone { phase, machine, took, count } => {
                self.tasks_done(phase, count, (machine, took), view);
            }
            Event::TasksLost { .. } => self.due = self.due.max(Due::List),
            Event::PhaseReady(phase) => self.phase_ready(phase, view),
            Event::PhaseDone(_) | Event::Wake => self.awake.extend(&self.idle),
            Event::JobDone(job) => {
                self.jobs.remove(&job);
            }
            Event::MachineDown(machine) => self.machine(machine, false, view),
            Event::MachineUp(machine) => self.machine(machine, true, view),
            Event::FlowFailed(flow) => {
                self.jobs.retain(|&job| view.instance.job(job).flow != flow);
                self.due = self.due.max(Due::List);
            }
            Event::FlowArrived(_) | Event::FlowDone(_) => {}
        }
    }

    fn tasks_done(
        &mut self,
        phase: PhaseId,
        count: u32,
        (machine, took): (MachineId, Span),
        view: &View<'_>,
    ) {
        let instance = view.instance;
        let lane = instance.lane_of(phase).index();
        let group = self.queues.of_machine(lane, machine).next().map(|at| self.queues.slot(at).group);
        // The task was believed to take that long before this one was seen.
        for _ in 0..count {
            let speeds = self.beliefs.speeds();
            let Some(at) = self.queues.finished(lane, machine, (phase, took, view.now), speeds) else {
                break;
            };
            let slot = self.queues.slot(at);
            if let Some(running) = slot.running {
                let expected = self.beliefs.speeds().time(slot, running.span);
                self.departed |= took.0.abs_diff(expected.0) > slack(expected).0;
            }
            if slot.held {
                self.due = self.due.max(Due::List);
            }
            self.vacate(at, view.now);
        }
        if let Some(group) = group {
            self.beliefs.learn(view, phase, count, (group, took));
        }
        if instance.phase(phase).cap < view.phase(phase).total() {
            self.awake.extend(&self.idle);
        }
    }

    fn vacate(&mut self, at: At, now: Time) {
        let slot = self.queues.slot_mut(at);
        slot.running = None;
        slot.held = false;
        slot.idle_since = now;
        if slot.up {
            self.idle.insert(at);
            self.awake.insert(at);
        }
    }

    fn phase_ready(&mut self, phase: PhaseId, view: &View<'_>) {
        self.loosen(phase, view);
        if self.jobs.insert(view.instance.phase(phase).job) {
            self.due = Due::Order;
        }
        self.awake.extend(&self.idle);
    }

    /// In map-only, the reduces of a ready phase wait for any slot.
    fn loosen(&mut self, phase: PhaseId, view: &View<'_>) {
        let is_reduce = view.instance.phase(phase).kind == PhaseKind::Reduce;
        if self.config.variant == Variant::MapOnly && is_reduce && view.phase(phase).is_ready() {
            self.loose.insert((view.phase(phase).ready_since(), phase), 0);
        }
    }

    fn machine(&mut self, machine: MachineId, up: bool, view: &View<'_>) {
        self.due = self.due.max(Due::List);
        for lane in 0..2 {
            for at in self.queues.of_machine(lane, machine) {
                self.queues.slot_mut(at).up = up;
                self.idle.remove(&at);
                self.vacate(at, view.now);
            }
        }
    }

    /// The job scheduler: σ from the linear program over what is left of the ready jobs.
    fn sort(&mut self, view: &View<'_>) {
        let ends = self.queues.ends(self.beliefs.speeds(), view.now);
        let mut ids = Vec::with_capacity(self.jobs.len());
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for &id in &self.jobs {
            let info = view.instance.job(id);
            let side = |kind| {
                let Some(phase) = info.phase(kind) else { return Side::default() };
                let (mut work, mut longest) = self.beliefs.left(view, phase);
                let running = ends.get(&phase).map_or(&[][..], Vec::as_slice);
                for &(end, group) in running {
                    let rest = end.since(view.now).seconds() * self.beliefs.speeds().0[group];
                    work += rest;
                    longest = longest.max(rest);
                }
                let count = view.phase(phase).unstarted().saturating_add(running.len() as u32);
                Side { work, longest, tasks: count.min(view.instance.phase(phase).cap) }
            };
            let weight = model::weight(view.instance.flow(info.flow));
            let (map, reduce) = (side(PhaseKind::Map), side(PhaseKind::Reduce));
            jobs.push(self.config.variant.considers(lp::Job { weight, release: 0.0, map, reduce }));
            ids.push(id);
        }
        let system = self.beliefs.system(view.instance.cluster());
        let solution = lp::solve(&jobs, &system, self.config.form);
        let order = order::order(&jobs, &system, &solution, self.config.key);
        self.order = order.into_iter().map(|at| ids[at]).collect();
    }

    /// The task scheduler: a list of all tasks to start, from what the slots do now.
    fn replan(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        self.queues.clear();
        out.push(Action::ClearPlacements);
        let mut slots = [Vec::new(), Vec::new()];
        let mut vacant = Vec::new();
        for (at, slot) in self.queues.iter() {
            if let Some(running) = slot.running
                && view.phase(running.phase).is_pending(running.task)
            {
                // It was handed over and has not begun, or was stopped.
                vacant.push(at);
            }
        }
        for at in vacant {
            self.vacate(at, view.now);
        }
        self.loose.clear();
        for job in self.jobs.clone() {
            if let Some(reduce) = view.instance.job(job).reduce {
                self.loosen(reduce, view);
            }
        }
        let speeds = self.beliefs.speeds().clone();
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
            self.queues.slot_mut(at).held = true;
        }
        self.list = Some(List::new(slots));
        let jobs = &self.jobs;
        self.unplanned = self.order.iter().copied().filter(|job| jobs.contains(job)).collect();
        (self.due, self.departed, self.started) = (Due::Nothing, false, 0);
        self.awake.extend(&self.idle);
        self.extend(view);
    }

    /// Lists further jobs until enough tasks are in the queues.
    fn extend(&mut self, view: &View<'_>) {
        let Some(mut list) = self.list.take() else { return };
        let slots = self.queues.lane(0).len() + self.queues.lane(1).len();
        let wanted = (AHEAD.0 * slots as u64).max(AHEAD.1);
        if self.queues.queued() * 2 <= wanted && !self.unplanned.is_empty() {
            let ends = self.queues.ends(self.beliefs.speeds(), view.now);
            while self.queues.queued() < wanted
                && let Some(id) = self.unplanned.pop_front()
            {
                let job = self.rest_of(id, &ends, view);
                let queues = &mut self.queues;
                let mut report = |task: Placed| queues.push(view.instance.lane_of(task.phase).index(), &task);
                if let Some(end) = list.place(&job, &mut report) {
                    self.forecast.entry(id).or_insert(end);
                }
            }
            self.awake.extend(&self.idle);
        }
        self.list = Some(list);
    }

    /// The tasks of a job that have not begun.
    fn rest_of(
        &self,
        id: JobId,
        ends: &BTreeMap<PhaseId, Vec<(Time, slackline_model::GroupId)>>,
        view: &View<'_>,
    ) -> list::Job {
        let phase = |id: PhaseId| {
            let info = view.instance.phase(id);
            let running = ends.get(&id).into_iter().flatten().map(|&(end, _)| end).collect();
            let lane = view.instance.lane_of(id).index();
            let runs = self.beliefs.pending(view, id);
            let mut phase = list::Phase { id, lane, cap: info.cap, running, runs };
            phase.sort();
            phase
        };
        let placed = |id: &PhaseId| self.config.variant.places(view.instance.phase(*id).kind);
        let phases = view.instance.job(id).phases().filter(placed).map(phase).collect();
        list::Job { ready: view.now, phases }
    }

    /// Hands tasks to slots that are free.
    fn start(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        let mut begun: BTreeMap<PhaseId, u32> = BTreeMap::new();
        let mut may_replan = self.config.reoptimise == Reoptimise::OnDeparture
            && self.config.variant != Variant::Identical
            && !self.fixed;
        loop {
            let mut awake: Vec<At> = std::mem::take(&mut self.awake).into_iter().collect();
            if !self.loose.is_empty() {
                awake.sort_by_key(|&at| (self.queues.slot(at).idle_since, at));
            }
            let mut replanned = false;
            for at in awake {
                if !self.idle.contains(&at) {
                    continue;
                }
                if let Some(task) = self.next_loose(at, &begun, view) {
                    self.hand_over(at, task, &mut begun, out);
                    continue;
                }
                let Some(task) = self.head(at, &begun, view) else { continue };
                if let Some(start) = self.too_early(at, view.now) {
                    out.push(Action::WakeAt(start));
                    continue;
                }
                if self.departed && may_replan && self.may_pay(at, view.now) {
                    // What was handed over in this call is not under way yet, but no longer to be listed.
                    replanned = true;
                    break;
                }
                self.queues.pop(at);
                self.hand_over(at, task, &mut begun, out);
            }
            if !replanned {
                return;
            }
            may_replan = false;
            self.reoptimised += 1;
            begun.clear();
            self.replan(view, out);
        }
    }

    /// Whether another slot is better for the head of `at`, and enough has happened since the list was
    /// made for making it anew to cost O(log tasks) a task in all.
    fn may_pay(&self, at: At, now: Time) -> bool {
        self.started >= self.queues.queued() / 64
            && self.queues.is_better_elsewhere(at, self.beliefs.speeds(), now)
    }

    /// The head of a slot's queue, if it can start now.
    fn head(&mut self, at: At, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> Option<Running> {
        loop {
            let head = *self.queues.slot(at).queue.front()?;
            if view.phase(head.phase).is_pending(head.task) {
                let room = has_room(head.phase, begun, view);
                let running =
                    Running { phase: head.phase, task: head.task, span: head.span, since: view.now };
                return room.then_some(running);
            }
            self.queues.pop(at);
        }
    }

    /// When the head of a slot's queue is to start, if that is not yet: a plan that is followed says so.
    fn too_early(&self, at: At, now: Time) -> Option<Time> {
        let head = self.queues.slot(at).queue.front()?;
        (self.fixed && head.start > now).then_some(head.start)
    }

    /// The first reduce that belongs to no queue and can start now (map-only).
    fn next_loose(&mut self, at: At, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> Option<Running> {
        let mut over = None;
        let mut found = None;
        for (&key, next) in &mut self.loose {
            let (_, phase) = key;
            let state = view.phase(phase);
            while *next < state.total() && !state.is_pending(*next) {
                *next += 1;
            }
            if *next == state.total() {
                over = Some(key);
            } else if view.instance.lane_of(phase).index() == at.lane && has_room(phase, begun, view) {
                let span = self.beliefs.size(view, phase);
                found = Some(Running { phase, task: *next, span, since: view.now });
                *next += 1;
                break;
            }
        }
        if let Some(key) = over {
            self.loose.remove(&key);
        }
        found
    }

    fn hand_over(
        &mut self,
        at: At,
        task: Running,
        begun: &mut BTreeMap<PhaseId, u32>,
        out: &mut Vec<Action>,
    ) {
        let slot = self.queues.slot_mut(at);
        slot.running = Some(task);
        out.push(Action::Place { machine: slot.machine, phase: task.phase, first: task.task, count: 1 });
        *begun.entry(task.phase).or_default() += 1;
        self.idle.remove(&at);
        self.started += 1;
    }
}

/// Whether one more task of a phase can start, its maps being done.
fn has_room(phase: PhaseId, begun: &BTreeMap<PhaseId, u32>, view: &View<'_>) -> bool {
    let begun = begun.get(&phase).copied().unwrap_or(0);
    !view.state.is_early(view.instance, phase) && view.runnable(phase) > begun
}

impl Policy for Dmrs {
    fn name(&self) -> &'static str {
        self.config.variant.name()
    }

    fn style(&self) -> Style {
        Style::Placements
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        for event in events {
            self.note(event, view);
        }
        if !self.fixed {
            if self.due == Due::Order {
                self.sort(view);
            }
            if self.due == Due::Nothing {
                self.extend(view);
            } else {
                self.replan(view, out);
            }
        }
        self.start(view, out);
    }
}
