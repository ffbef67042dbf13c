//! An engine for tests: durations are given, time is simulated, and runs are kept in memory.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use slackline_executor::engine::backend::*;
use slackline_executor::engine::event::{EventCallback, RunEvent};
use slackline_executor::run::{Recovery, RunEnd, RunRecord, error::EngineError};
use slackline_executor::spec::{fault::Fault, job_cost::JobHistory, remaining::remaining};
use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, TasksDraft};
use slackline_model::{Draft, Instance, Span, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, Order, Report, RowId, Start};
use slackline_sim::{Options, Sim};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::Outcome;

use crate::run::jobs::jobs;

pub(in crate::run) struct Fake {
    /// By job: the durations of its maps and reduces.
    pub(in crate::run) phases: Vec<[Vec<f64>; 2]>,
    /// The history that the last call of `prepare` received.
    pub(in crate::run) past: Mutex<JobHistory>,
    disk: Arc<Mutex<Option<Stored>>>,
}

impl Fake {
    pub(in crate::run) fn new() -> Self {
        let phases = [[vec![1.0; 2], vec![2.0]], [vec![1.0; 2], vec![]], [vec![1.0; 2], vec![]]].to_vec();
        Self { phases, past: Mutex::default(), disk: Arc::default() }
    }
}

/// A run, as it would be stored on disk.
#[derive(Clone)]
struct Stored {
    started: u64,
    workload: Draft,
    attempts: Vec<Attempt>,
    recovered: Recovery,
    disk: Arc<Mutex<Option<Stored>>>,
}

impl Backend for Fake {
    fn description(&self) -> EngineDescription {
        let (name, slots) = ("local".to_owned(), Slots::Universal(2));
        let machines = vec![MachineDraft { name, count: 1, speed: 1.0, slots, rack: None }];
        EngineDescription { machines, ..EngineDescription::default() }
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, _: &Path) -> Result<PreparedRun, Vec<Fault>> {
        *self.past.lock().unwrap() = past.clone();
        let mut workload = workload.clone();
        for (job, phases) in workload.flows.iter_mut().flat_map(|flow| &mut flow.jobs).zip(&self.phases) {
            let each =
                |seconds: &Vec<f64>| (!seconds.is_empty()).then(|| TasksDraft::Each(seconds.clone()).into());
            [job.map, job.reduce] = phases.each_ref().map(each);
        }
        let disk = self.disk.clone();
        let open: Open = Box::new(move |opening, resolved| {
            let (started, again) = (opening.started, opening.choices.again);
            let workload = resolved.draft.clone();
            let earlier = disk.lock().unwrap().take();
            let recovered = Recovery { starts_over: again && earlier.is_some(), ..Recovery::default() };
            let new = Stored { started, workload, attempts: Vec::new(), recovered, disk: disk.clone() };
            let mut run = earlier.filter(|_| !again).unwrap_or(new);
            run.recovered.done = run.attempts.len();
            *disk.lock().unwrap() = Some(run.clone());
            Ok(Box::new(run))
        });
        Ok(PreparedRun::in_memory(workload, open))
    }
}

impl Session for Stored {
    fn record(&self) -> RunRecord<'_> {
        let Self { started, workload, attempts, recovered, .. } = self;
        RunRecord { recovered: *recovered, ..RunRecord::new(workload, *started, attempts) }
    }

    /// What is left of the run, simulated.
    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let done = self.record().done();
        let left: &'static _ = Box::leak(Box::new(Instance::new(&remaining(&self.workload, &done))?));
        let before = Span(self.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0));
        let (sim, machines) = (Sim::new(left, Options::exact()), self.workload.machines.clone());
        Ok(Box::new(FakeEngine { sim, machines, before, done, rows: BTreeMap::new(), run: None }))
    }
}

/// A simulated engine for one run.
struct FakeEngine {
    sim: Sim<'static>,
    machines: Vec<MachineDraft>,
    /// How long the run had lasted when it was resumed, and the tasks that were done then.
    before: Span,
    done: BTreeSet<TaskId>,
    rows: BTreeMap<RowId, Vec<Attempt>>,
    run: Option<(Stored, EventCallback)>,
}

impl Engine for FakeEngine {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        let (run, on_event) = self.run.as_mut().unwrap();
        for report in &*reports {
            let Report::Finished { row, at } = *report else { continue };
            for attempt in self.rows.remove(&row).unwrap() {
                let attempt = Attempt { end: (at + self.before).0, ..attempt };
                let (task, seconds) = (attempt.id, attempt.micros() as f64 / 1e6);
                on_event(Time(attempt.end), &RunEvent::TaskFinished { task, seconds });
                run.attempts.push(attempt);
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let (run, on_event) = self.run.as_mut().unwrap();
        let (at, phase) = (start.since + self.before, live.phase(start.phase));
        let (flow, job) = (&live.flow(live.flow_of(start.phase)).id, &live.job(phase.job).id);
        let job = jobs(&run.workload).position(|at| (at.flow, at.job) == (flow, job)).unwrap() as u32;
        let ids = (0..).map(|task| TaskId { job, phase: phase.kind, task });
        let ids = ids.filter(|id| !self.done.contains(id)).skip(start.first as usize);
        let slots = start.places.iter().flat_map(|place| place.first..place.first + place.len);
        let started = ids.zip(slots).map(|(task, slot)| {
            on_event(at, &RunEvent::AttemptStarted { task, holder: None });
            let (start, ended) = (at.0, AttemptOutcome::Done(Outcome::default()));
            Attempt { number: 0, id: task, slot, segment: 0, start, began: start, end: start, ended }
        });
        self.rows.insert(start.row, started.collect());
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
    fn machines(&self) -> Vec<SharedMachine> {
        self.machines.iter().map(|draft| SharedMachine { draft: draft.clone(), is_up: true }).collect()
    }

    fn add_run(
        &mut self,
        session: Box<dyn Session>,
        _: RunConfig,
        on_event: EventCallback,
    ) -> Result<RunId, EngineError> {
        self.run = Some((*(session as Box<dyn Any>).downcast().unwrap(), on_event));
        Ok(RunId(0))
    }

    fn order_flow(&mut self, _: RunId, _: &str, _: FlowOrder) {}

    fn stop(&mut self) -> Vec<EndedRun> {
        let (run, _) = self.run.take().unwrap();
        *run.disk.lock().unwrap() = Some(run.clone());
        let left = remaining(&run.workload, &run.record().done());
        let how = Ok(if left.flows.is_empty() { RunEnd::Done } else { RunEnd::Interrupted });
        vec![EndedRun { run: RunId(0), how, session: Box::new(run) }]
    }
}
