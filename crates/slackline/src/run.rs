//! Runs flows on an engine: starts or resumes a run, reports its progress, and returns the schedule that was
//! executed.
//!
//! - [`Request`]: the flow file, the policy and the options;
//! - [`Backend`], [`Session`]: the traits of an engine; [`LocalEngine`]: this machine;
//! - [`Engines`]: the table of engines by name, one [`EngineEntry`] each;
//! - [`Sink`]: receives the progress; [`Events`], [`Hooks`]: sinks for programs;
//! - [`Forecast`]: predicts the completion of flows; [`Turns`]: reports when the state or the prediction of a
//!   flow changes;
//! - `logs`: the logs of attempts (feature `report`);
//! - [`StateOfRun`]: the state of a run, read from its state directory while it runs or later;
//! - [`Run`]: the run itself; [`Outcome`] and [`Prediction`]: the executed and the simulated schedule.
//!
//! To add an engine, implement [`Backend`] and add an entry to the table. This module knows no processes and
//! no files of tasks.

mod engines;
mod error;
mod events;
mod failed_job;
mod figures;
mod flow_events;
mod forecast;
mod forecaster;
mod hook_process;
mod hooks;
mod jobs;
mod learning;
#[cfg(feature = "report")]
pub mod logs;
mod machines;
mod outcome;
mod paths;
mod policy;
mod preview;
mod request;
mod run_model;
mod single;
mod sink;
mod state;
#[cfg(test)]
mod tests;

pub use engines::{EngineSpec, EngineSpecError, Engines};
pub use error::{DeadlineError, RunError};
pub use events::Events;
pub use failed_job::FailedJob;
pub use figures::{JobFigures, PhaseFigures};
pub use forecast::Forecast;
pub use forecaster::{CachedOrder, Completions, ForecastInput, Forecaster, NewRun, Samples};
pub use hook_process::{HookProcess, variable};
pub use hooks::{HookCommands, Hooks};
pub use machines::MachineState;
pub use outcome::{Outcome, Prediction, PredictionError};
pub use preview::Preview;
pub use request::{Deadline, Request, set_deadlines};

pub use sink::{Ending, FlowOverview, JobOverview, Note, Overview, Progress, Silent, Sink};
pub use slackline_executor::engine::Settings;
pub use slackline_executor::engine::backend::{
    ADDRESS, Backend, EngineDescription, EngineEntry, Make, PreparedRun, SWITCH, Session, Stop,
};
pub use slackline_executor::engine::event::{FlowStatus, RunEvent};
pub use slackline_executor::engine::this_machine::LocalEngine;
pub use slackline_executor::store::running_attempt::{AttemptProgress, RunningAttempt};

use std::cell::RefCell;
use std::collections::BTreeMap;

pub use flow_events::{Cause, Turn, Turns, WatchedFlow};
/// Runs attempts for a run on another machine. A program calls this function when it is started as an agent.
pub use slackline_executor::fleet::agent::main as agent;
pub use slackline_executor::run::RunRecord;
pub use slackline_executor::run::error::EngineError;
pub use slackline_executor::run::inspect::RunInspection;
use slackline_executor::run::opening;
pub use slackline_executor::run::opening::Opening;
pub use slackline_executor::run::reuse::{Choices, ForeignOutput, Reason, Verdict};
pub use slackline_executor::run::{JobVerdict, LostOutput, Recovery, RunEnd};
pub use slackline_executor::spec::fault::{Fault, UnrunnableJob};
use slackline_executor::spec::job_cost::of_owned_workload;
pub use slackline_executor::spec::job_cost::{JobCost, JobHistory, JobName};
pub use slackline_executor::spec::preflight::Obstacle;
pub use slackline_executor::store::applications::ExternalJob;
pub use slackline_executor::store::history::HistoryStore;
use slackline_executor::store::history::Note as PastNote;
pub use slackline_executor::store::history::PastRun;
pub use slackline_executor::store::journal::{Attempt, AttemptOutcome, KeptJob, Segment, Setup};
pub use slackline_executor::store::log::LogError;
pub use slackline_executor::store::machine_slots::MachineSlots;
pub use slackline_model::TimeSpec;
use slackline_model::draft::FlowDraft;
use slackline_model::{Draft, History, Instance, Objective, Time};
use slackline_policy::Choice;
use slackline_task::base::clock;
pub use slackline_task::base::task_id::TaskId;
pub use slackline_task::process::worker_command::WorkerCommand;
/// The main function of an attempt's process. A program that runs flows on this machine calls it when it is
/// started as [`WorkerCommand`] specifies.
pub use slackline_task::worker::{main as worker, main_if_asked as worker_if_asked};
use slackline_trace::{ImportOptions, SourceMap, TraceError, read_workload};
pub use state::{FlowState, JobState, NamedAttempt, SoFar, Stage, StateOfRun, look, so_far, so_far_together};

const SECOND: u64 = 1_000_000;

/// A run without its session, which an engine has meanwhile.
pub struct DetachedRun {
    pub(crate) request: Request,
    due: Due,
    store: Option<HistoryStore>,
    setting: policy::Setting,
    choices: Vec<Choice>,
}

/// By flow: its deadline, microseconds since 1970.
type Due = BTreeMap<String, u64>;

impl DetachedRun {
    /// Reassembles the run.
    pub fn back(self, session: Box<dyn Session>) -> Run {
        let Self { request, due, store, setting, choices } = self;
        Run { request, due, session, store, setting, choices }
    }
}

/// A run, new or resumed.
pub struct Run {
    request: Request,
    due: Due,
    session: Box<dyn Session>,
    store: Option<HistoryStore>,
    setting: policy::Setting,
    /// The choices of a policy that chooses between rules, since this process started to drive the run.
    choices: Vec<Choice>,
}

impl Run {
    /// Opens the run of the request's state directory. Finished, unchanged jobs are kept, an interrupted run
    /// is resumed, and all other jobs run. `sink` receives notes about the state that was found.
    ///
    /// # Errors
    /// A flow file that cannot be run; a state directory or history of another program; any error of the
    /// engine. Nothing is removed for a request that cannot be run.
    pub fn open(backend: &dyn Backend, request: Request, sink: &mut dyn Sink) -> Result<Self, RunError> {
        let store = request.history.as_deref().map(HistoryStore::new).transpose()?;
        let opener = Opener { backend, request: &request, store: store.as_ref() };
        let (session, due) = opener.session(sink)?;
        let record = session.record();
        for obstacle in record.obstacles {
            if let Some((flow, job)) = jobs::jobs(record.workload).nth(obstacle.job) {
                let problem = obstacle.problem.as_str();
                sink.note(&Note::Unrunnable { flow, job, problem });
            }
        }
        if let Some(memory) = record.memory {
            sink.note(&Note::Memory(memory));
        }
        let setting = request.setting(backend);
        Ok(Self { request, due, session, store, setting, choices: Vec::new() })
    }

    /// Returns the verdict on each job and the simulated run, and writes nothing.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub fn preview(
        backend: &dyn Backend,
        request: &Request,
        sink: &mut dyn Sink,
    ) -> Result<Preview, RunError> {
        let store = request.history.as_deref().filter(|path| path.exists()).map(HistoryStore::existing);
        let opener = Opener { backend, request, store: store.as_ref() };
        let ready = opener.ready(sink)?;
        let verdicts = ready.prepared.preview(&opener.opening(ready.started))?;
        if let Some(memory) = &ready.prepared.memory {
            sink.note(&Note::Memory(memory));
        }
        // In whole seconds, so that a run that starts now starts at second 0.
        let now = Time(clock::unix_micros().saturating_sub(ready.started) / SECOND * SECOND);
        Preview::new(
            &request.policy,
            &request.setting(backend),
            &ready.prepared.resolved.draft,
            now,
            verdicts,
        )
    }

    /// Runs the remaining jobs. Records the durations so far in the history, however the run ends. Returns
    /// the run, and how it ended.
    ///
    /// # Errors
    /// The engine cannot continue. Finished work stays finished.
    pub fn go(self, sink: &mut dyn Sink) -> Result<(Self, RunEnd), RunError> {
        let (run, end) = self.drive(sink)?;
        if let Some(store) = &run.store
            && let Err(error) = store.remember(&run.to_remember())
        {
            sink.note(&Note::HistoryUnwritten(&error.to_string()));
        }
        Ok((run, end?))
    }

    /// The record of this run for a history: its durations so far.
    pub fn to_remember(&self) -> PastRun {
        let workload = self.request.short_name().to_owned();
        let note = PastNote { workload, policy: self.request.policy.spec().to_owned() };
        let owner = self.request.owner.as_deref();
        let record = self.record();
        let jobs = owned(record.finished_jobs(), owner);
        let counts = figures::finished_counts(&JobFigures::all(record.workload, record.attempts));
        let counts = owned(counts, owner);
        PastRun { started: record.started, note, jobs, counts }
    }

    /// Splits the run into its session, for a long-running engine ([`crate::resident`]), and the rest.
    /// [`DetachedRun::back`] reassembles them.
    pub fn lend(self) -> (Box<dyn Session>, DetachedRun) {
        let Self { request, due, session, store, setting, choices } = self;
        (session, DetachedRun { request, due, store, setting, choices })
    }

    /// The known durations of the remaining phases: first those measured in this run, then those of earlier
    /// runs.
    ///
    /// # Errors
    /// A history that cannot be read; an invalid workload.
    pub fn known(&self) -> Result<History, RunError> {
        let workload = self.record().workload;
        let past = recalled(&self.request, self.store.as_ref(), workload)?;
        let instance = Instance::new(workload)?;
        Ok(learning::known(&self.record(), &instance, &past))
    }

    /// The request that the run executes.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The deadline of a flow in the current request, microseconds since 1970; `None` for a flow without a
    /// deadline. If nothing is left to do, the session is that of the last run, whose workload still has the
    /// old deadlines.
    pub fn due(&self, flow: &str) -> Option<u64> {
        self.due.get(flow).copied()
    }

    /// What is known of the run: as it was opened, or as it ended.
    pub fn record(&self) -> RunRecord<'_> {
        self.session.record()
    }
}

/// The inputs of opening a run.
struct Opener<'a> {
    backend: &'a dyn Backend,
    request: &'a Request,
    store: Option<&'a HistoryStore>,
}

/// A run that is ready to be opened.
struct Ready {
    /// The start of the run, microseconds since 1970; in the past for a resumed run.
    started: u64,
    prepared: PreparedRun,
    /// Maps values to their positions in the document, for error messages.
    source: SourceMap,
}

impl Opener<'_> {
    /// Opens the session of the state directory: keeps finished jobs, resumes an interrupted run, and runs
    /// the rest.
    fn session(&self, sink: &mut dyn Sink) -> Result<(Box<dyn Session>, Due), RunError> {
        let Ready { started, prepared, source } = self.ready(sink)?;
        let due = |flow: &FlowDraft| {
            let micros = (flow.deadline? * SECOND as f64).round();
            // A deadline may be before the start of the run.
            Some((flow.id.clone(), started.saturating_add_signed(micros as i64)))
        };
        let due = prepared.resolved.draft.flows.iter().filter_map(due).collect();
        let said = RefCell::new(&mut *sink);
        let says = |what: &str| said.borrow_mut().note(&Note::Waiting(what));
        let opening = opening::Opening { status: &says, ..self.opening(started) };
        let session = prepared.open(opening).map_err(|error| match error {
            EngineError::Unrunnable(jobs) => {
                source.error(jobs.into_iter().map(|job| (job.fault.path, job.fault.problem)).collect()).into()
            }
            other => RunError::from(other),
        })?;
        let RunRecord { recovered, lost, verdicts, .. } = session.record();
        if recovered.starts_over {
            sink.note(&Note::StartsOver);
        }
        for lost in lost {
            sink.note(&Note::Lost(lost));
        }
        if recovered.done + recovered.cut_short > 0 {
            sink.note(&Note::Resumed(recovered));
        }
        for verdict in verdicts {
            sink.note(&Note::Job(verdict));
        }
        Ok((session, due))
    }

    fn opening(&self, started: u64) -> opening::Opening<'_> {
        let setup = self.request.setup(self.backend);
        opening::Opening {
            state: &self.request.state,
            setup,
            started,
            choices: self.request.choices.clone(),
            beside_others: self.request.beside_others.is_some(),
            status: &|_| {},
        }
    }

    /// Finds the tasks of the flow file; writes nothing yet. A resumed run keeps its start, and its deadlines
    /// move only if the request says since when they count. A run that resumes no job gets a new start.
    fn ready(&self, sink: &mut dyn Sink) -> Result<Ready, RunError> {
        let request = self.request;
        let unfinished =
            if request.choices.again { None } else { opening::unfinished_since(&request.state)? };
        if let Some(started) = unfinished {
            // What an engine has prepared may hold a lock: it is gone before anything is prepared again.
            let prepared = self.ready_since(started, &mut Silent)?.prepared;
            let jobs = prepared.preview(&self.opening(started))?;
            drop(prepared);
            if jobs.iter().any(|job| job.resumes) {
                return self.ready_since(started, sink);
            }
        }
        self.ready_since(request.since.unwrap_or_else(clock::unix_micros), sink)
    }

    fn ready_since(&self, started: u64, sink: &mut dyn Sink) -> Result<Ready, RunError> {
        let request = self.request;
        let since = request.since.map_or(started, |since| since.max(started));
        let start = clock::in_zone(since, request.zone.as_deref());
        if let Some(zone) = clock::unknown_zone() {
            sink.note(&Note::UnknownZone(&zone));
        }
        let import = ImportOptions::new(request.importers.clone())
            .starting(start.clone())
            .with_parameters(request.parameters.clone());
        let imported = read_workload(&request.name, &request.bytes, None, &import)?;
        imported.diagnostics.iter().for_each(|diagnostic| sink.note(&Note::Diagnostic(diagnostic)));
        let mut draft = imported.draft;
        if let Some(directory) = &request.directory {
            let runs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
            runs.filter_map(|job| job.run.as_mut()).for_each(|run| paths::start_from(run, directory));
        }
        let runs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs).filter_map(|job| job.run.as_mut());
        runs.for_each(|run| run.limits.failure_policy = run.limits.failure_policy.or(request.failure_policy));
        let has_start = draft.start.as_ref().is_some_and(|own| *own != start);
        draft.start.get_or_insert(start);
        if !draft.machines.is_empty() {
            sink.note(&Note::ClusterLeftOut);
        }
        draft.machines = request.beside_others.clone().unwrap_or_else(|| self.backend.description().machines);
        let (metric, combine) = (draft.objective.metric, draft.objective.combine);
        draft.objective =
            Objective::new(request.metric.unwrap_or(metric), request.combine.unwrap_or(combine));
        for Deadline { flow, when } in set_deadlines(&request.deadlines, &mut draft)? {
            sink.note(&Note::LateAlready { flow, when });
        }
        if !has_start {
            draft.start = Some(clock::local(started));
            let later = (since - started) as f64 / SECOND as f64;
            draft.flows = draft.flows.into_iter().map(|flow| due_later(flow, later)).collect();
        }
        let past = recalled(request, self.store, &draft)?;
        let source = imported.source;
        let placed = |faults: Vec<Fault>| {
            let is_away = !faults.is_empty() && faults.iter().all(|fault| fault.may_pass);
            let error = source.error(faults.into_iter().map(|f| (f.path, f.problem)).collect());
            if is_away { RunError::Away(error) } else { error.into() }
        };
        let prepared = self.backend.prepare(&draft, &past, &request.state).map_err(placed)?;
        prepared.resolved.warnings.iter().for_each(|warning| sink.note(&Note::Warning(warning)));
        let workload = &prepared.resolved.draft;
        if workload.flows.is_empty() {
            return Err(RunError::NoFlows { name: request.name.clone() });
        }
        Instance::new(workload).map_err(|invalid| TraceError::from_invalid(&invalid, &source))?;
        Ok(Ready { started, prepared, source })
    }
}

/// Moves the deadline of the flow by `seconds`. Its release time stays, because some of its tasks may have
/// started by then.
fn due_later(flow: FlowDraft, seconds: f64) -> FlowDraft {
    FlowDraft { release: flow.release, ..flow.later(seconds) }
}

/// Renames jobs for a history that several owners share.
fn owned<T>(jobs: BTreeMap<JobName, T>, owner: Option<&str>) -> BTreeMap<JobName, T> {
    let Some(owner) = owner else { return jobs };
    jobs.into_iter().map(|(name, what)| (name.of_owner(owner), what)).collect()
}

/// The durations of earlier runs of the jobs: those of the request if it has any, otherwise those of the
/// history.
fn recalled(
    request: &Request,
    store: Option<&HistoryStore>,
    workload: &Draft,
) -> Result<JobHistory, RunError> {
    let owner = request.owner.as_deref();
    if let Some(past) = &request.past {
        return Ok(of_owned_workload(past, workload, owner));
    }
    let latest = store.map(HistoryStore::latest).transpose()?.unwrap_or_default();
    Ok(of_owned_workload(&latest, workload, owner))
}
