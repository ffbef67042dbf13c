//! DMRS as a policy: job scheduler, task scheduler, machine queues (§V).
//!
//! The jobs are the ready jobs of all flows. When one becomes ready, the linear program is solved for
//! what is left of all of them, the list is made anew from what the slots do now, and every slot gets a
//! queue. A task is handed to its machine when its slot is free and its phase can run, so that a machine
//! of n slots is n machines. Before a task starts after something has not gone as planned, the best slot
//! for it is looked for again, and if it is another one, the list is made anew.

mod listing;
mod starting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use slackline_model::{Cluster, Instance, JobId, MachineId, PhaseId, PhaseKind, Span, Time};
use slackline_policy::{Action, Event, Policy, Style, View};

use super::beliefs::Beliefs;
use super::list::List;
use super::lp::Form;
use super::order::Key;
use super::plan::Plan;
use super::queues::{At, Queues, slack};
use super::variant::Variant;

/// How to schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Which scheduler.
    pub variant: Variant,
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
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    /// σ: a job became ready.
    order: bool,
    /// The list: machines came or went, or tasks were lost.
    list: bool,
}

/// Idle slots that may start a task.
#[derive(Clone, Debug)]
enum Awake {
    /// All of them.
    All,
    /// These, as far as they are idle.
    Some(BTreeSet<At>),
}

impl Awake {
    fn insert(&mut self, at: At) {
        if let Self::Some(slots) = self {
            slots.insert(at);
        }
    }
}

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
    /// The list as far as it goes, the jobs on it, and those of σ that are not on it yet.
    list: Option<List>,
    listed: Vec<JobId>,
    unplanned: VecDeque<JobId>,
    /// Reduces that belong to no queue (map-only): when they became ready, and the next task to look at.
    loose: BTreeMap<(Time, PhaseId), u32>,
    /// Slots without a task, and which of them may start one now.
    idle: BTreeSet<At>,
    awake: Awake,
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
    /// A policy for one run on `cluster`.
    pub fn new(cluster: &Cluster, config: Config) -> Self {
        let queues = Queues::new(cluster);
        let idle: BTreeSet<At> = queues.iter().map(|(at, _)| at).collect();
        Self {
            beliefs: Beliefs::new(cluster, config.variant),
            config,
            queues,
            jobs: BTreeSet::new(),
            order: Vec::new(),
            unplanned: VecDeque::new(),
            list: None,
            listed: Vec::new(),
            loose: BTreeMap::new(),
            awake: Awake::All,
            idle,
            due: Due::default(),
            departed: false,
            fixed: false,
            started: 0,
            forecast: BTreeMap::new(),
            reoptimised: 0,
        }
    }

    /// A policy that does exactly what a plan of the same instance says, for runs in which nothing fails.
    pub fn following(instance: &Instance, plan: &Plan) -> Self {
        let mut policy = Self::new(instance.cluster(), Config::default());
        policy.fixed = true;
        for placed in &plan.placed {
            policy.queues.push(instance.lane_of(placed.phase).index(), placed);
        }
        policy
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
            Event::TasksLost { .. } => self.due.list = true,
            Event::PhaseReady(phase) => self.phase_ready(phase, view),
            Event::PhaseDone(_) | Event::Wake => self.awake = Awake::All,
            Event::JobDone(job) => {
                self.jobs.remove(&job);
            }
            Event::MachineDown(machine) => self.machine(machine, false, view),
            Event::MachineUp(machine) => self.machine(machine, true, view),
            Event::FlowFailed(flow) => {
                self.jobs.retain(|&job| view.instance.job(job).flow != flow);
                self.due.list = true;
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
                self.due.list = true;
            }
            self.vacate(at, view.now);
        }
        if instance.phase(phase).cap < view.phase(phase).total() {
            self.awake = Awake::All;
        }
    }

    fn vacate(&mut self, at: At, now: Time) {
        self.queues.vacate(at, now);
        if self.queues.slot(at).up {
            self.idle.insert(at);
            self.awake.insert(at);
        }
    }

    fn phase_ready(&mut self, phase: PhaseId, view: &View<'_>) {
        self.loosen(phase, view);
        if self.jobs.insert(view.instance.phase(phase).job) {
            self.due.order = true;
        }
        self.awake = Awake::All;
    }

    /// In map-only, the reduces of a ready phase wait for any slot.
    fn loosen(&mut self, phase: PhaseId, view: &View<'_>) {
        let is_reduce = view.instance.phase(phase).kind == PhaseKind::Reduce;
        if self.config.variant == Variant::MapOnly && is_reduce && view.phase(phase).is_ready() {
            self.loose.insert((view.phase(phase).ready_since(), phase), 0);
        }
    }

    fn machine(&mut self, machine: MachineId, up: bool, view: &View<'_>) {
        self.due.list = true;
        for lane in 0..2 {
            for at in self.queues.of_machine(lane, machine) {
                self.queues.set_up(at, up);
                self.idle.remove(&at);
                self.vacate(at, view.now);
            }
        }
    }
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
        // Not before: what has ended was expected with the speeds believed until now.
        self.beliefs.update(view.estimates);
        if !self.fixed {
            if std::mem::take(&mut self.due.order) {
                self.sort(view);
                self.due.list |= !self.goes_on(view);
            }
            if self.due.list {
                self.replan(view, out);
            } else {
                self.extend(view);
            }
        }
        self.start(view, out);
    }
}
