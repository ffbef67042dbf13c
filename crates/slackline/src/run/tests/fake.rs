//! An engine for tests: durations are given, time is simulated, and runs are kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use slackline_executor::engine::backend::{EndedRun, RunConfig, RunId, SharedEngine, SharedMachine};
use slackline_executor::engine::event::Observer;
use slackline_executor::spec::remaining::remaining;
use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, Instance, PhaseId, Span, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, Order, Report, RowId, Start};
use slackline_sim::{Options, Sim};
use slackline_task::process::spec::Outcome;

use crate::resident::FlowOverrides;
use crate::run::{
    Attempt, AttemptOutcome, Backend, EngineError, Fault, JobHistory, JobName, JobVerdict, Obstacle, Opening,
    Prepared, Recovery, RunEnd, RunEvent, Session, TaskId,
};

/// A run, as it would be stored on disk.
#[derive(Clone)]
struct Stored {
    started: u64,
    workload: Draft,
    attempts: Vec<Attempt>,
    is_finished: bool,
}

#[derive(Default)]
struct Disk {
    run: Option<Stored>,
    past: Option<JobHistory>,
}

pub(in crate::run) struct Fake {
    pub(in crate::run) slots: u32,
    /// By job: the durations of its maps and reduces. A job that is not listed has two maps of 1 s; the first
    /// job, if it is called a, also has a reduce of 2 s.
    pub(in crate::run) phases: Vec<(Vec<f64>, Vec<f64>)>,
    /// The number of finished tasks after which the run stops.
    pub(in crate::run) stop_after: Option<usize>,
    disk: Arc<Mutex<Disk>>,
}

impl Fake {
    pub(in crate::run) fn new() -> Self {
        Self { slots: 2, phases: Vec::new(), stop_after: None, disk: Arc::default() }
    }

    /// The history that the last call of `prepare` received.
    pub(in crate::run) fn past(&self) -> Option<JobHistory> {
        self.disk.lock().unwrap().past.clone()
    }

    fn session(&self, run: Stored) -> FakeSession {
        let done = run.attempts.len();
        let recovered = Recovery { done, ..Recovery::default() };
        FakeSession { run, recovered, stop_after: self.stop_after, disk: self.disk.clone() }
    }
}

fn each(seconds: Vec<f64>) -> Option<PhaseDraft> {
    (!seconds.is_empty()).then(|| TasksDraft::Each(seconds).into())
}

impl Backend for Fake {
    fn options(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("slots".to_owned(), self.slots.to_string())])
    }

    fn machines(&self) -> Vec<MachineDraft> {
        let slots = Slots::Universal(self.slots);
        vec![MachineDraft { name: "local".to_owned(), count: 1, speed: 1.0, slots, rack: None }]
    }

    fn prepare(
        &self,
        workload: &Draft,
        past: &JobHistory,
        _: &Path,
    ) -> Result<Box<dyn Prepared>, Vec<Fault>> {
        self.disk.lock().unwrap().past = Some(past.clone());
        let mut draft = workload.clone();
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        for (index, job) in jobs.enumerate() {
            let reduces = if job.id == "a" && index == 0 { vec![2.0] } else { Vec::new() };
            let (maps, reduces) = self.phases.get(index).cloned().unwrap_or((vec![1.0; 2], reduces));
            (job.map, job.reduce) = (each(maps), each(reduces));
        }
        let (slots, phases, stop_after) = (self.slots, self.phases.clone(), self.stop_after);
        let engine = Self { slots, phases, stop_after, disk: self.disk.clone() };
        Ok(Box::new(FakePrepared { draft, engine }))
    }

    fn unfinished_since(&self, _: &Path) -> Result<Option<u64>, EngineError> {
        let disk = self.disk.lock().unwrap();
        Ok(disk.run.as_ref().filter(|run| !run.is_finished).map(|run| run.started))
    }
}

struct FakePrepared {
    draft: Draft,
    engine: Fake,
}

impl Prepared for FakePrepared {
    fn workload(&self) -> &Draft {
        &self.draft
    }

    fn preview(&self, _: &Opening<'_>) -> Result<Vec<JobVerdict>, EngineError> {
        Ok(Vec::new())
    }

    fn open(self: Box<Self>, opening: Opening<'_>) -> Result<Box<dyn Session>, EngineError> {
        let earlier = self.engine.disk.lock().unwrap().run.take();
        let (removed, resumes) = (opening.choices.again && earlier.is_some(), !opening.choices.again);
        let new = Stored {
            started: opening.started,
            workload: self.draft,
            attempts: Vec::new(),
            is_finished: false,
        };
        let run = earlier.filter(|_| resumes).unwrap_or(new);
        self.engine.disk.lock().unwrap().run = Some(run.clone());
        let mut session = self.engine.session(run);
        session.recovered.starts_over = removed;
        Ok(Box::new(session))
    }
}

struct FakeSession {
    run: Stored,
    recovered: Recovery,
    stop_after: Option<usize>,
    disk: Arc<Mutex<Disk>>,
}

impl FakeSession {
    /// The task numbers in the run of the remaining tasks of a phase.
    fn numbers(&self, instance: &Instance, phase: PhaseId, done: &BTreeSet<TaskId>) -> Vec<TaskId> {
        let (info, mut index) = (instance.phase(phase), 0);
        let job = instance.job(info.job);
        for flow in &self.run.workload.flows {
            for draft in &flow.jobs {
                if flow.id == instance.flow(job.flow).id && draft.id == job.id {
                    let drafts = [&draft.map, &draft.reduce];
                    let TasksDraft::Each(seconds) = &drafts[info.kind as usize].as_ref().unwrap().tasks
                    else {
                        panic!("the fake engine lists tasks");
                    };
                    let ids =
                        (0..seconds.len() as u32).map(|task| TaskId { job: index, phase: info.kind, task });
                    return ids.filter(|id| !done.contains(id)).collect();
                }
                index += 1;
            }
        }
        panic!("no such job");
    }
}

impl Session for FakeSession {
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }

    fn workload(&self) -> &Draft {
        &self.run.workload
    }

    fn started(&self) -> u64 {
        self.run.started
    }

    fn attempts(&self) -> &[Attempt] {
        &self.run.attempts
    }

    fn verdicts(&self) -> &[JobVerdict] {
        &[]
    }

    fn recovered(&self) -> Recovery {
        self.recovered
    }

    fn obstacles(&self) -> &[Obstacle] {
        &[]
    }

    fn finished_jobs(&self) -> JobHistory {
        let mut known = JobHistory::new();
        let names =
            self.run.workload.flows.iter().flat_map(|f| f.jobs.iter().map(|j| JobName::new(&f.id, &j.id)));
        let names: Vec<JobName> = names.collect();
        for attempt in &self.run.attempts {
            let cost = known.entry(names[attempt.id.job as usize].clone()).or_default();
            cost.add(
                slackline_executor::spec::job_cost::MachineCost::of(attempt.id.phase, attempt.micros()),
                None,
            );
        }
        known
    }

    /// The left work of the run, simulated.
    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let mut left = self.run.workload.clone();
        let done: BTreeSet<TaskId> = self.run.attempts.iter().map(|attempt| attempt.id).collect();
        left = remaining(&left, &done);
        let instance: &'static Instance = Box::leak(Box::new(Instance::new(&left)?));
        let before = Span(self.run.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0));
        let (sim, empty) = (Sim::new(instance, Options::exact()), instance.without_flows());
        Ok(Box::new(FakeEngine {
            sim,
            empty,
            before,
            done,
            rows: BTreeMap::new(),
            run: None,
            is_over: false,
        }))
    }
}

/// A simulated engine for one run.
struct FakeEngine {
    sim: Sim<'static>,
    empty: Instance,
    /// When the session of the run started.
    before: Span,
    /// The tasks that were done then.
    done: BTreeSet<TaskId>,
    /// By row: its tasks, when they started.
    rows: BTreeMap<RowId, (Vec<(TaskId, u32)>, Time)>,
    run: Option<(FakeSession, Box<dyn Observer + Send>)>,
    is_over: bool,
}

impl FakeEngine {
    fn happened(&mut self, at: Time, event: &RunEvent) {
        self.run.as_mut().unwrap().1.happened(at, event);
    }
}

impl Engine for FakeEngine {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        let ended = reports.iter().filter_map(|report| match report {
            Report::Finished { row, at } => Some((*row, *at)),
            _ => None,
        });
        let mut ran = Vec::new();
        for (row, at) in ended {
            let (tasks, since) = self.rows.remove(&row).unwrap();
            let [start, end] = [since, at].map(|at| (at + self.before).0);
            let ended = AttemptOutcome::Done(Outcome::default());
            ran.extend(tasks.into_iter().map(|(id, slot)| Attempt {
                number: 0,
                id,
                slot,
                segment: 0,
                start,
                began: start,
                end,
                ended: ended.clone(),
            }));
        }
        ran.sort_by_key(|attempt| (attempt.end, attempt.id));
        for attempt in ran {
            let session = &self.run.as_ref().unwrap().0;
            if session.stop_after.is_some_and(|most| session.run.attempts.len() >= most) {
                self.is_over = true;
                return None;
            }
            let seconds = attempt.micros() as f64 / 1e6;
            self.happened(Time(attempt.end), &RunEvent::TaskFinished { task: attempt.id, seconds });
            self.run.as_mut().unwrap().0.run.attempts.push(attempt);
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let ids = self.run.as_ref().unwrap().0.numbers(live, start.phase, &self.done);
        let slots = start.places.iter().flat_map(|place| place.first..place.first + place.len);
        let tasks: Vec<_> = ids[start.first as usize..].iter().copied().zip(slots).collect();
        for &(task, _) in &tasks {
            self.happened(start.since + self.before, &RunEvent::AttemptStarted { task, holder: None });
        }
        self.rows.insert(start.row, (tasks, start.since));
        self.sim.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.sim.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.sim.wake_at(at);
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}

impl SharedEngine for FakeEngine {
    fn empty(&self) -> &Instance {
        &self.empty
    }

    fn machines(&self) -> Vec<SharedMachine> {
        Vec::new()
    }

    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn add_run(
        &mut self,
        session: Box<dyn Session>,
        _: RunConfig,
        observer: Box<dyn Observer + Send>,
    ) -> Result<RunId, EngineError> {
        self.run = Some((*session.into_any().downcast().unwrap(), observer));
        Ok(RunId(0))
    }

    fn update_flow(&mut self, _: RunId, _: &str, _: FlowOverrides) {}

    fn cancel_flow(&mut self, _: RunId, _: &str) {}

    fn finished_runs(&mut self) -> Vec<EndedRun> {
        Vec::new()
    }

    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    fn stop(&mut self) -> Vec<EndedRun> {
        let (mut session, _) = self.run.take().unwrap();
        let end = if self.is_over { RunEnd::Interrupted } else { RunEnd::Done };
        session.run.is_finished = end == RunEnd::Done;
        session.disk.lock().unwrap().run = Some(session.run.clone());
        vec![EndedRun { run: RunId(0), how: Ok(end), session: Box::new(session) }]
    }
}
