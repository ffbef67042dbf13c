//! An engine for tests: durations are given, time is simulated, and runs are kept in memory.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Mutex};

use slackline_executor::engine::{backend::*, event::EventCallback};
use slackline_executor::spec::remaining::remaining;
use slackline_model::{Span, cluster::Slots, draft::*};
use slackline_policy::engine::*;
use slackline_sim::{Options, Sim};
use slackline_task::process::spec::Outcome;

use crate::run::{jobs::jobs, *};

pub(in crate::run) struct Fake {
    /// By job: the durations of its maps and reduces.
    pub(in crate::run) phases: Vec<[Vec<f64>; 2]>,
    /// The history that the last call of `prepare` received.
    pub(in crate::run) past: Mutex<JobHistory>,
    disk: Disk,
}

/// The run that is stored, if there is one.
type Disk = Arc<Mutex<Option<Stored>>>;

#[derive(Clone)]
struct Stored {
    started: u64,
    workload: Draft,
    attempts: Vec<Attempt>,
    recovered: Recovery,
    disk: Disk,
}

impl Fake {
    pub(in crate::run) fn new() -> Self {
        let phases = [[vec![1.0; 2], vec![2.0]], [vec![1.0; 2], vec![]], [vec![1.0; 2], vec![]]].to_vec();
        Self { phases, past: Mutex::default(), disk: Disk::default() }
    }
}

impl Backend for Fake {
    fn description(&self) -> EngineDescription {
        let (name, slots) = ("local".to_owned(), Slots::Generic(2));
        let machines = vec![MachineDraft { name, count: 1, speed: 1.0, slots, rack: None }];
        EngineDescription { machines, ..EngineDescription::default() }
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, _: &Path) -> Result<PreparedRun, Vec<Fault>> {
        *self.past.lock().unwrap() = past.clone();
        let mut workload = workload.clone();
        let phase = |each: Vec<f64>| (!each.is_empty()).then(|| PhaseDraft::from(TasksDraft::Each(each)));
        for (job, phases) in workload.flows.iter_mut().flat_map(|flow| &mut flow.jobs).zip(&self.phases) {
            [job.map, job.reduce] = phases.clone().map(phase);
        }
        let disk = self.disk.clone();
        let open: Open = Box::new(move |opening, resolved| {
            let (earlier, again) = (disk.lock().unwrap().take(), opening.choices.again);
            let recovered = Recovery { starts_over: again && earlier.is_some(), ..Recovery::default() };
            let (started, workload) = (opening.started, resolved.draft.clone());
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
        let recovered = self.recovered;
        RunRecord { recovered, ..RunRecord::new(&self.workload, self.started, &self.attempts) }
    }

    /// What is left of the run, simulated.
    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let left = remaining(self.workload.clone(), &self.record().done());
        let sim = Sim::new(Box::leak(Box::new(Instance::new(&left)?)), Options::exact());
        let before = Span(self.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0));
        Ok(Box::new(FakeEngine { sim, machines: left.machines, before, running: BTreeMap::new(), run: None }))
    }
}

/// A simulated engine for one run.
struct FakeEngine {
    sim: Sim<'static>,
    machines: Vec<MachineDraft>,
    /// How long the run had lasted when it was resumed.
    before: Span,
    running: BTreeMap<RowId, Attempt>,
    run: Option<(Stored, EventCallback)>,
}

impl Engine for FakeEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { batch: Batch::Task, ..self.sim.capabilities() }
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        let (run, on_event) = self.run.as_mut().unwrap();
        for report in &*reports {
            let Report::Finished { row, at } = *report else { continue };
            let attempt = Attempt { end: (at + self.before).0, ..self.running.remove(&row).unwrap() };
            let (task, seconds) = (attempt.id, attempt.micros() as f64 / 1e6);
            on_event(Time(attempt.end), &RunEvent::TaskFinished { task, seconds });
            run.attempts.push(attempt);
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let (run, on_event) = self.run.as_mut().unwrap();
        let (flow, phase) = (&live.flow(live.flow_of(start.phase)).id, live.phase(start.phase));
        let name = (flow.as_str(), live.job(phase.job).id.as_str());
        let job = jobs(&run.workload).position(|job| job == name).unwrap() as u32;
        let done = &run.attempts[..run.recovered.done];
        let open = (0..).map(|task| TaskId { job, phase: phase.kind, task });
        let mut open = open.filter(|id| done.iter().all(|attempt| attempt.id != *id));
        let (id, at) = (open.nth(start.first as usize).unwrap(), start.since + self.before);
        on_event(at, &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id, 0)));
        let (slot, at, ended) = (start.places[0].first, at.0, AttemptOutcome::Done(Outcome::default()));
        let attempt = Attempt { number: 0, id, slot, segment: 0, start: at, began: at, end: at, ended };
        self.running.insert(start.row, attempt);
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
        let left = remaining(run.workload.clone(), &run.record().done());
        let how = Ok(if left.flows.is_empty() { RunEnd::Done } else { RunEnd::Interrupted });
        vec![EndedRun { run: RunId(0), how, session: Box::new(run) }]
    }
}
