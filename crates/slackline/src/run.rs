//! Runs flows for real, on any engine: begins or resumes a run, reports what happens while it
//! lasts, and gives the schedule of what happened.
//!
//! - [`Request`]: what to run, under which policy;
//! - [`Backend`], [`Prepared`], [`Session`]: what an engine brings; [`LocalEngine`]: this machine;
//! - [`Engines`]: the table of engines by name; an [`EngineEntry`] is a line of it;
//! - [`Sink`]: where progress is reported; [`Forecast`]: when flows are going to be done;
//! - [`Run`]: the run itself; [`Outcome`] and [`Prediction`]: how it went, and how it was expected to go.
//!
//! An engine is added by implementing [`Backend`] for it and a line in the table; nothing here knows processes or
//! files of tasks.

mod engines;
mod error;
mod forecast;
mod learning;
mod outcome;
mod policy;
mod request;
mod session;
mod sink;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use slackline_local::clock;
use slackline_local::history::{Note as PastNote, PastRun};
use slackline_local::{Observer, remaining};
use slackline_model::{Draft, Instance, Objective, Time};
use slackline_trace::{ImportOptions, TraceError, read_workload};

pub use engines::{EngineSpec, EngineSpecError, Engines};
pub use error::{DeadlineError, RunError};
pub use forecast::{Forecast, Prospect};
pub use outcome::{Outcome, Prediction, PredictionError};
pub use request::{Deadline, Request};
pub use sink::{FlowOverview, JobOverview, Note, Overview, Progress, Silent, Sink};
pub use slackline_local::backend::{
    ADDRESS, Backend, EngineEntry, Fault, Make, Opened, Prepared, RunStart, SWITCH, Session, Stop,
    UnrunnableJob,
};
pub use slackline_local::journal::Difference;
pub use slackline_local::run::{Drive, EngineError, Recovered};
pub use slackline_local::this_machine::LocalEngine;
/// What the process of an attempt does: a program that runs flows on this machine calls it when it is started as
/// [`WorkerCommand`] says.
pub use slackline_local::worker::{main as worker, main_if_asked as worker_if_asked};
pub use slackline_local::{
    Attempt, Ended, Happening, HistoryStore, Identity, JobCost, JobHistory, JobName, LogError, Obstacle,
    RunEnd, Settings, TaskId, WorkerCommand,
};
pub use slackline_model::When;

/// A run that was begun, or found and resumed.
pub struct Run {
    request: Request,
    session: Box<dyn Session>,
    store: Option<HistoryStore>,
}

impl Run {
    /// Resumes the run that is in the request's state directory, or begins one. A run of which all outputs were
    /// removed begins again, as does any if the request says so. `sink` is told what was found.
    ///
    /// # Errors
    /// A flow file that cannot be run; a state directory or history of something else; whatever the engine says.
    /// Nothing is removed for a request that cannot be run.
    pub fn open(backend: &dyn Backend, request: Request, sink: &mut dyn Sink) -> Result<Self, RunError> {
        let store = request.history.as_deref().map(HistoryStore::new).transpose()?;
        let opening = Opening { backend, request: &request, store: store.as_ref() };
        let session = opening.session(sink)?;
        for obstacle in session.obstacles() {
            if let Some(job) = session::jobs(session.workload()).nth(obstacle.job) {
                let (flow, job, problem) = (job.flow, job.job, obstacle.problem.as_str());
                sink.note(&Note::Unrunnable { flow, job, problem });
            }
        }
        Ok(Self { request, session, store })
    }

    /// Runs what is left, and tells the history what this run took so far, however it ends.
    ///
    /// # Errors
    /// The engine could not continue, or the history cannot be written; finished work stays finished.
    pub fn go(&mut self, sink: &mut dyn Sink) -> Result<RunEnd, RunError> {
        let end = self.drive(sink);
        if let Some(store) = &self.store {
            let workload = self.request.short_name().to_owned();
            let note = PastNote { workload, policy: self.request.policy.spec().to_owned() };
            let jobs = self.session.finished_jobs();
            store.remember(&PastRun { started: self.session.started(), note, jobs })?;
        }
        end
    }

    /// The run, as its engine has it.
    pub fn session(&self) -> &dyn Session {
        self.session.as_ref()
    }

    fn drive(&mut self, sink: &mut dyn Sink) -> Result<RunEnd, RunError> {
        let session = self.session.as_mut();
        let unrunnable = session::unrunnable(session);
        let mut left = remaining(session.workload(), &session::done(session));
        left.flows.retain(|flow| !unrunnable.contains(&flow.id));
        if left.flows.is_empty() {
            sink.note(&Note::NothingLeft);
            return Ok(if unrunnable.is_empty() { RunEnd::Done } else { RunEnd::Failed });
        }
        let instance = Instance::new(&left)?;
        let mut policy = policy::make(&self.request.policy, &instance);
        let past = recalled(self.store.as_ref(), session.workload())?;
        let forecast = Forecast::new(&self.request, session);
        let overview = Overview::of(session, self.request.attempts_max);
        let sink = RefCell::new(sink);
        let mut watch = Watch { forecast, sink: &sink };
        // After the watch, as it may hold on to what the watch is lent to.
        let config = learning::config(&instance, session, &past, &self.request);
        let drive = Drive { instance: &instance, policy: policy.as_mut(), config, observer: &mut watch };
        let end = session.run(drive, &mut |stop| sink.borrow_mut().begin(&overview, stop));
        end.map_err(|error| match error {
            EngineError::Policy(failure) => {
                RunError::Policy { policy: self.request.policy.spec().to_owned(), failure }
            }
            other => other.into(),
        })
    }
}

/// Keeps the forecast up to date and passes on what happens.
struct Watch<'a, 'b> {
    forecast: Forecast,
    sink: &'a RefCell<&'b mut dyn Sink>,
}

impl Observer for Watch<'_, '_> {
    fn happened(&mut self, now: Time, what: Happening<'_>) {
        self.forecast.note(now, what);
        self.sink.borrow_mut().happened(now, what, &self.forecast);
    }
}

/// What a run is opened from.
struct Opening<'a> {
    backend: &'a dyn Backend,
    request: &'a Request,
    store: Option<&'a HistoryStore>,
}

/// A run that can begin.
struct Ready {
    /// When it starts: microseconds since 1970.
    started: u64,
    prepared: Box<dyn Prepared>,
}

impl Opening<'_> {
    /// The run that is there, resumed, or a new one.
    fn session(&self, sink: &mut dyn Sink) -> Result<Box<dyn Session>, RunError> {
        let (state, identity) = (&self.request.state, self.request.identity(self.backend));
        if self.request.again {
            // Nothing is removed for a request that cannot be run.
            let ready = self.ready(sink)?;
            if ready.prepared.discard(state)? {
                sink.note(&Note::Removed);
            }
            return ready.begin(state, identity);
        }
        match self.backend.open(state, &identity)? {
            Opened::Begun(session) => {
                sink.note(&Note::Resumed(session.recovered()));
                Ok(session)
            }
            Opened::Nothing => self.ready(sink)?.begin(state, identity),
            Opened::Orphaned => {
                let ready = self.ready(sink)?;
                sink.note(&Note::OutputsGone);
                ready.prepared.discard(state)?;
                ready.begin(state, identity)
            }
        }
    }

    /// Finds the tasks of the flow file. Nothing is written yet.
    fn ready(&self, sink: &mut dyn Sink) -> Result<Ready, RunError> {
        let request = self.request;
        let started = clock::unix_micros();
        let start = clock::local(started);
        if let Some(zone) = clock::unknown_zone() {
            sink.note(&Note::UnknownZone(&zone));
        }
        let import = ImportOptions::new(request.importers.clone())
            .starting(start.clone())
            .with_parameters(request.parameters.clone());
        let imported = read_workload(&request.name, &request.bytes, None, &import)?;
        imported.diagnostics.iter().for_each(|diagnostic| sink.note(&Note::Diagnostic(diagnostic)));
        let mut draft = imported.draft;
        draft.start.get_or_insert(start);
        if !draft.machines.is_empty() {
            sink.note(&Note::ClusterLeftOut);
        }
        draft.machines = self.backend.machines();
        let (metric, combine) = (draft.objective.metric, draft.objective.combine);
        draft.objective =
            Objective::new(request.metric.unwrap_or(metric), request.combine.unwrap_or(combine));
        request.set_deadlines(&mut draft)?;
        let past = recalled(self.store, &draft)?;
        let placed = |faults: Vec<Fault>| {
            imported.source.error(faults.into_iter().map(|fault| (fault.path, fault.problem)).collect())
        };
        let prepared = self.backend.prepare(&draft, &past).map_err(placed)?;
        let workload = prepared.workload();
        if workload.flows.is_empty() {
            return Err(RunError::NoFlows { name: request.name.clone() });
        }
        Instance::new(workload).map_err(|invalid| TraceError::from_invalid(&invalid, &imported.source))?;
        // A run of which no flow can be run is none; where some can, the others fail.
        let found = prepared.unrunnable();
        let unrunnable: BTreeSet<&str> = found.iter().map(|job| job.flow.as_str()).collect();
        if unrunnable.len() == workload.flows.len() {
            return Err(placed(found.into_iter().map(|job| job.fault).collect()).into());
        }
        Ok(Ready { started, prepared })
    }
}

impl Ready {
    fn begin(self, state: &Path, identity: Identity) -> Result<Box<dyn Session>, RunError> {
        Ok(self.prepared.begin(RunStart { state, identity, started: self.started })?)
    }
}

/// What earlier runs of the jobs took, by the history if there is one.
fn recalled(store: Option<&HistoryStore>, workload: &Draft) -> Result<JobHistory, RunError> {
    Ok(store.map(|store| store.recall(workload)).transpose()?.unwrap_or_default())
}
