//! The state of the DMRS policy, and how events change it.

use std::collections::{BTreeMap, VecDeque};

use slackline_model::{Cluster, JobId, MachineId, PhaseId, PhaseKind, Time};
use slackline_policy::{Event, View};

use super::super::bits::Bits;
use super::super::estimates::SpeedEstimates;
use super::super::jobs::JobSet;
use super::super::list::{self, List};
use super::super::queues::{Done, Queues, Running, SlotRef, slack};
use super::super::variant::Variant;
use super::config::Config;
use super::ranking::Ranking;
use crate::estimated;

/// The parts of the state that are out of date.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// σ: a job became ready.
    pub(super) order: bool,
    /// The list: machines came or went, or tasks were lost.
    pub(super) list: bool,
}

/// Idle slots that may start a task.
#[derive(Clone, Debug)]
pub(super) enum Awake {
    All,
    /// These slots, if they are idle.
    Some(Vec<SlotRef>),
}

impl Awake {
    fn insert(&mut self, at: SlotRef) {
        if let Self::Some(slots) = self {
            slots.push(at);
        }
    }
}

/// A partly listed job.
#[derive(Clone, Debug)]
pub(super) struct Placing {
    pub(super) id: JobId,
    pub(super) job: list::Job,
    pub(super) progress: list::Progress,
    /// The slot kind that was idle, if the job was listed out of turn.
    pub(super) for_slot_kind: Option<usize>,
}

/// The jobs of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedJobs {
    pub(super) jobs: Vec<JobId>,
    /// Those that were listed in their turn, done ones included.
    pub(super) in_turn: Bits,
    /// All of them, in turn or not.
    pub(super) all: Bits,
    /// Those of σ that are not on the list yet.
    pub(super) unplanned: VecDeque<JobId>,
}

#[derive(Clone, Debug)]
pub struct Dmrs {
    pub(super) config: Config,
    pub(super) speeds: SpeedEstimates,
    pub(super) queues: Queues,
    /// Ready jobs that are not done.
    pub(super) jobs: JobSet,
    pub(super) ranking: Ranking,
    /// σ, made at the last arrival; jobs that are done stay in it.
    pub(super) order: Vec<JobId>,
    /// The list so far, and its jobs.
    pub(super) list: Option<List>,
    pub(super) listed: ListedJobs,
    /// Reduces that belong to no queue (map-only): when they became ready, and the next task to consider.
    pub(super) loose: BTreeMap<(Time, PhaseId), u32>,
    /// Idle slots that may start a task now.
    pub(super) awake: Awake,
    /// The partly listed job.
    pub(super) placing: Option<Placing>,
    /// The same for jobs that are listed out of turn, by the idle slot kind.
    pub(super) aside: [Option<Placing>; 2],
    /// Jobs that could start when they were not on the list, by slot kind.
    pub(super) could_start: [VecDeque<JobId>; 2],
    /// Slots to which tasks were handed that may not have started.
    pub(super) handed: Vec<SlotRef>,
    /// Whether tasks were ever lost: then every new list computes the estimates of slots again.
    pub(super) rough: bool,
    /// The parts to rebuild.
    pub(super) due: Due,
    /// Whether some task was off its time since the list was made.
    pub(super) departed: bool,
    /// Tasks handed over since the list was made.
    pub(super) started: u64,
}

impl Dmrs {
    /// A policy for one run on `cluster`.
    pub fn new(cluster: &Cluster, config: Config) -> Self {
        Self {
            speeds: SpeedEstimates::new(cluster, config.variant),
            config,
            queues: Queues::new(cluster),
            jobs: JobSet::default(),
            ranking: Ranking::default(),
            order: Vec::new(),
            list: None,
            listed: ListedJobs::default(),
            loose: BTreeMap::new(),
            awake: Awake::All,
            placing: None,
            aside: [None, None],
            could_start: Default::default(),
            handed: Vec::new(),
            rough: false,
            due: Due::default(),
            departed: false,
            started: 0,
        }
    }

    pub(super) fn note(&mut self, event: &Event, view: &View<'_>) {
        self.unblock(event, view);
        match *event {
            Event::TasksDone { phase, machine, took, count } => {
                let done = Done { phase, took, now: view.now };
                for _ in 0..count {
                    if !self.task_done(machine, done, view) {
                        break;
                    }
                }
                if view.phase(phase).running() == 0 {
                    self.forget_who_left(phase, view);
                }
                if view.instance.phase(phase).cap < view.phase(phase).total() {
                    self.awake = Awake::All;
                }
            }
            Event::TaskRuns { phase, task, machine } => self.task_runs(phase, task, machine, view),
            Event::TasksLost { .. } => (self.due.list, self.rough) = (true, true),
            Event::PhaseReady(phase) => self.phase_ready(phase, view),
            Event::PhaseDone(_) | Event::Wake => self.awake = Awake::All,
            Event::JobDone(job) => {
                self.jobs.remove(job);
                self.ranking.forget(job);
            }
            Event::MachineDown(machine) => self.machine(machine, false, view),
            Event::MachineUp(machine) => self.machine(machine, true, view),
            Event::FlowFailed(flow) => {
                self.jobs.retain(|job| view.instance.job(job).flow != flow);
                (self.due.list, self.rough) = (true, true);
            }
            Event::MachineJoined(machine) => {
                self.speeds.join(view.instance.cluster());
                self.queues.join(view.instance.cluster(), machine);
                self.machine(machine, true, view);
            }
            Event::FlowArrived(_) | Event::FlowDone(_) | Event::MachineLeft(_) => {}
        }
    }

    /// Tasks at the heads of queues may be able to start after an event.
    fn unblock(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            Event::PhaseReady(phase) => self.queues.unblock(phase),
            Event::PhaseDone(phase) => {
                let job = view.instance.phase(phase).job;
                view.instance.job(job).phases().for_each(|phase| self.queues.unblock(phase));
            }
            // A phase that was at its cap may continue.
            Event::TasksDone { phase, .. } => {
                if view.instance.phase(phase).cap < view.phase(phase).total() {
                    self.queues.unblock(phase);
                }
            }
            Event::FlowArrived(_) | Event::FlowDone(_) | Event::JobDone(_) => {}
            _ => self.queues.unblock_all(),
        }
    }

    /// Removes a task from its slot. Returns false if it was on none.
    fn task_done(&mut self, machine: MachineId, done: Done, view: &View<'_>) -> bool {
        let slot_kind = view.instance.slot_kind_of(done.phase).index();
        let speeds = self.speeds.get();
        let is_pending = |task| view.phase(done.phase).is_pending(task);
        let Some(at) = self.queues.finished(slot_kind, machine, done, speeds, is_pending) else {
            return false;
        };
        let slot = self.queues.slot(at);
        if let Some(running) = slot.running {
            let expected = speeds.time(slot, running.span);
            self.departed |= done.took.0.abs_diff(expected.0) > slack(expected).0;
        }
        if slot.held {
            self.due.list = true;
        }
        self.vacate(at, view.now);
        true
    }

    /// No task of a phase runs: slots that were assumed to run one that has started are free. If the cluster
    /// starts tasks itself, a task may have been on another slot of its machine than assumed.
    fn forget_who_left(&mut self, phase: PhaseId, view: &View<'_>) {
        let slot_kind = view.instance.slot_kind_of(phase).index();
        for (at, task) in self.queues.places_of(slot_kind, phase) {
            if !view.phase(phase).is_pending(task) {
                self.vacate(at, view.now);
            }
        }
    }

    /// Records a task that the cluster started itself on a slot of that machine, and nowhere else.
    fn task_runs(&mut self, phase: PhaseId, task: u32, machine: MachineId, view: &View<'_>) {
        self.ranking.begin(view.instance.phase(phase).job);
        let slot_kind = view.instance.slot_kind_of(phase).index();
        let estimated = self.queues.places_of(slot_kind, phase).into_iter().find(|&(_, other)| other == task);
        if let Some((at, _)) = estimated {
            if self.queues.slot(at).machine == machine {
                return;
            }
            self.vacate(at, view.now);
        }
        let idle = self.queues.of_machine(slot_kind, machine).find(|&at| self.queues.is_idle(at));
        if let Some(at) = idle {
            let span = estimated::size(view, phase, task);
            self.queues.occupy(at, Running { phase, task, span, since: view.now });
            if view.state.is_early(view.instance, phase) {
                // It waits for maps that may be queued behind it.
                (self.due.list, self.rough) = (true, true);
            }
        }
    }

    pub(super) fn vacate(&mut self, at: SlotRef, now: Time) {
        self.queues.vacate(at, now);
        if self.queues.slot(at).up {
            self.awake.insert(at);
        }
    }

    fn phase_ready(&mut self, phase: PhaseId, view: &View<'_>) {
        self.loosen(phase, view);
        let job = view.instance.phase(phase).job;
        if self.jobs.insert(job) {
            self.due.order = true;
        } else if !self.listed.all.contains(job.0) {
            self.could_start[view.instance.slot_kind_of(phase).index()].push_back(job);
        }
        self.awake = Awake::All;
    }

    /// In map-only, the reduces of a ready phase wait for any slot.
    pub(super) fn loosen(&mut self, phase: PhaseId, view: &View<'_>) {
        let is_reduce = view.instance.phase(phase).kind == PhaseKind::Reduce;
        if self.config.variant == Variant::MapOnly && is_reduce && view.phase(phase).is_ready() {
            self.loose.insert((view.phase(phase).ready_since(), phase), 0);
        }
    }

    fn machine(&mut self, machine: MachineId, up: bool, view: &View<'_>) {
        self.due.list = true;
        for slot_kind in 0..2 {
            for at in self.queues.of_machine(slot_kind, machine) {
                self.queues.set_up(at, up);
                self.vacate(at, view.now);
            }
        }
    }
}
