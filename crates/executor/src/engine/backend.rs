//! The traits that an engine implements: find the tasks of a workload, open a run, drive it. An
//! [`EngineEntry`] is its line in the table of engines.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::quota::UserQuota;
use slackline_model::{Draft, FlowId, Instance, Profile, Time};
use slackline_policy::engine::AsEngine;
use slackline_policy::plans::Plans;

use crate::engine::event::EventCallback;
use crate::run::RunRecord;
use crate::run::error::EngineError;
use crate::run::opening::{self, Opening, StatusCallback};
use crate::run::{JobVerdict, RunEnd};
use crate::spec::fault::Fault;
use crate::spec::job_cost::JobHistory;
use crate::spec::resolve::ResolvedWorkload;

/// An engine by name, its parameters and how it is made of them.
///
/// Everything else follows from the entry: how the engine is named on a command line, its flags, their help
/// and completions.
#[derive(Clone, Copy, Debug)]
pub struct EngineEntry {
    /// Its name on the command line: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// The description of the engine, in one line.
    pub summary: &'static str,
    /// Its parameters. Each is a flag of the verbs that run flows, unless they have another flag of that
    /// name; engines that share a name share the flag. One called [`ADDRESS`] may be written
    /// `name://address`.
    pub params: &'static [Param],
    /// Makes it. Nothing is started or written before it is asked to.
    pub make: Make,
}

/// Makes an engine from a valid value for each of its parameters.
///
/// Fails if the values do not go together, or not here.
pub type Make = fn(&Settings) -> Result<Box<dyn Backend>, EngineError>;

/// The parameter with the address of an engine, such as `host:8088`.
pub const ADDRESS: &str = "address";

/// The values of a parameter that is off by default: its flag needs no value.
pub const SWITCH: Values = Values::Choice(&["off", "on"]);

/// The properties of an engine before anything runs on it.
#[derive(Clone, Debug, Default)]
pub struct EngineDescription {
    /// Its settings, by name, to be shown with the run.
    pub options: BTreeMap<String, String>,
    /// The machines that flows are scheduled on, in one group.
    pub machines: Vec<MachineDraft>,
    /// How it differs from machines that do everything at once, for predictions; `None` if it does not.
    pub profile: Option<Profile>,
}

/// An engine that really runs flows.
pub trait Backend: Send + Sync {
    /// The properties of the engine before anything runs.
    fn description(&self) -> EngineDescription;

    /// Finds the tasks of every job of a workload that has this engine's machines. `past` has the costs of
    /// earlier runs of the jobs, and `state` is the state directory of the run. Writes nothing, except
    /// placeholders in the state directory for remote files.
    ///
    /// # Errors
    /// The problem of the workload, and its place.
    fn prepare(&self, workload: &Draft, past: &JobHistory, state: &Path) -> Result<PreparedRun, Vec<Fault>>;

    /// The engine for the runs of a service.
    ///
    /// # Errors
    /// An engine that runs nothing but one flow file at a time; an error of the engine.
    fn shared_engine(&self, config: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let _ = config;
        Err(EngineError::other("a service cannot use this engine, which runs one flow file at a time"))
    }
}

/// Where and since when a shared engine runs.
#[derive(Clone, Copy)]
pub struct SharedEngineConfig<'a> {
    /// The directory of its files.
    pub files: &'a Path,
    /// When the time that it lives in began: microseconds since 1970.
    pub started: u64,
    /// To what that time has come at least.
    pub seen: Time,
    /// What jobs took, by which machines are known.
    pub past: &'a JobHistory,
    /// Receives what the engine waits for, as text.
    pub status: StatusCallback<'a>,
}

/// A machine of a shared engine.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMachine {
    /// Its name, slots and speed.
    pub draft: MachineDraft,
    /// Whether the machine is up.
    pub is_up: bool,
}

/// An instance of these machines, without flows.
///
/// # Panics
/// If the machines are invalid; those of an engine never are.
pub fn without_flows(machines: &[SharedMachine]) -> Instance {
    let machines = machines.iter().map(|machine| machine.draft.clone()).collect();
    let instance = Instance::new(&Draft { machines, ..Draft::default() });
    instance.expect("invariant: an engine has checked its machines").without_flows()
}

/// A shared engine: runs come and go, share its machines, and are driven by one driver.
///
/// Its time is that of the service it is of, and so are the times of the flows that it brings; observers of a
/// run learns of the time of their run.
pub trait SharedEngine: AsEngine {
    /// The machines as they are now: those from the beginning, then those that joined, in their order.
    fn machines(&self) -> Vec<SharedMachine>;

    /// The events since the last call, in addition to the reports to the driver.
    fn events(&mut self) -> Vec<EngineEvent> {
        Vec::new()
    }

    /// Adds a session to run, which was opened for [these machines](SharedEngine::machines). Its open flows
    /// come to the driver when they are released, each with its overrides.
    ///
    /// # Errors
    /// A session of another engine or of other machines; an invalid workload; jobs that need more than a
    /// machine has.
    fn add_run(
        &mut self,
        session: Box<dyn Session>,
        rules: RunConfig,
        on_event: EventCallback,
    ) -> Result<RunId, EngineError>;

    /// Changes a flow. Its running tasks continue, unless it is cancelled. A finished flow does not change.
    fn order_flow(&mut self, run_id: RunId, flow: &str, change: FlowOrder);

    /// The session of a flow of the driver's.
    fn run_of(&self, flow: FlowId) -> Option<RunId> {
        let _ = flow;
        None
    }

    /// Ends the waiting of `Engine::poll`, from any thread; does nothing for an engine that waits briefly.
    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    /// Whether the engine needs the next decisions of the driver ([`SharedEngine::planned`]).
    fn wants_plans(&self) -> bool {
        false
    }

    /// The next decisions of the driver, after each step.
    fn planned(&mut self, plans: &Plans) {
        let _ = plans;
    }

    /// Stops everything that runs, and returns the sessions that are left, to be resumed later. To be called
    /// when no thread drives it any more.
    fn stop(&mut self) -> Vec<EndedRun>;
}

/// What happened in a shared engine.
pub enum EngineEvent {
    /// A message about its machines for the user.
    Notice(String),
    /// Machines joined, went or came back.
    MachinesChanged,
    /// All flows of a run have finished, or it cannot continue.
    Ended(EndedRun),
}

/// An order for a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowOrder {
    /// It has these overrides from now on.
    Override(FlowOverrides),
    /// Cancel the flow: its running tasks are stopped, and it has failed.
    Cancel,
}

/// A session in a shared engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u32);

/// The settings of a run in a shared engine.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The limit on failures of a task if its job has none.
    pub attempts_max: u16,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// Overrides of flows, by their names.
    pub overrides: BTreeMap<String, FlowOverrides>,
    /// The quota of its user.
    pub quota: Option<UserQuota>,
}

/// What may change of a flow while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOverrides {
    /// Whether no more tasks of it may start.
    #[serde(default)]
    pub held: bool,
    /// Another deadline, seconds since the start of its run.
    #[serde(default)]
    pub deadline: Option<f64>,
    /// Another weight.
    #[serde(default)]
    pub weight: Option<f64>,
    #[serde(default)]
    pub priority: Option<u32>,
    /// When it is going to come again, seconds since the start of its run; none if that is not known.
    #[serde(default)]
    pub next: Option<f64>,
}

impl FlowOverrides {
    /// Applies the overrides to the flow.
    pub fn applied(self, flow: &mut FlowDraft) {
        flow.deadline = self.deadline.or(flow.deadline);
        flow.weight = self.weight.unwrap_or(flow.weight);
        flow.priority = self.priority.or(flow.priority);
    }
}

/// A session that a shared engine has given back.
pub struct EndedRun {
    pub run: RunId,
    /// How the run ended; the reason if it cannot continue.
    pub how: Result<RunEnd, EngineError>,
    pub session: Box<dyn Session>,
}

/// The runs that ended.
pub fn ended_runs(events: Vec<EngineEvent>) -> Vec<EndedRun> {
    let ended = events.into_iter().filter_map(|event| match event {
        EngineEvent::Ended(ended) => Some(ended),
        EngineEvent::Notice(_) | EngineEvent::MachinesChanged => None,
    });
    ended.collect()
}

/// A workload whose tasks are known, ready to start.
pub struct PreparedRun {
    /// The tasks of its jobs.
    pub resolved: ResolvedWorkload,
    /// A message for the user about how memory limits of commands are enforced; `None` if no command has a
    /// limit, or the engine has nothing to report.
    pub memory: Option<String>,
    /// Opens it.
    pub open: Open,
}

/// Opens a run: finished work is kept, interrupted work continues, the rest starts.
///
/// Fails for outputs of another run, no runnable flow, a state directory in use, an error of the engine.
pub type Open = Box<dyn FnOnce(Opening<'_>, &ResolvedWorkload) -> Result<Box<dyn Session>, EngineError>>;

impl PreparedRun {
    /// A workload whose tasks are known to an engine that keeps no files.
    pub fn in_memory(workload: Draft, open: Open) -> Self {
        let resolved = ResolvedWorkload { draft: workload, ..ResolvedWorkload::default() };
        Self { resolved, memory: None, open }
    }

    /// What would happen to each job; nothing is written.
    ///
    /// # Errors
    /// A choice that names no job; a state directory of something else.
    pub fn preview(&self, opening: &Opening<'_>) -> Result<Vec<JobVerdict>, EngineError> {
        opening::preview(opening, &self.resolved)
    }

    /// Opens the run.
    ///
    /// # Errors
    /// See [`Open`].
    pub fn open(self, opening: Opening<'_>) -> Result<Box<dyn Session>, EngineError> {
        (self.open)(opening, &self.resolved)
    }
}

/// A started run. It can be resumed after a crash.
pub trait Session: Any + Send {
    /// The record of the opened run.
    fn record(&self) -> RunRecord<'_>;

    /// An engine for this run alone, in the time of the run. To be called once, where something is left to be
    /// done; then the run is [added](SharedEngine::add_run) to it. Its poll returns nothing when nothing of
    /// the run can start any more.
    ///
    /// # Errors
    /// An error of the engine.
    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError>;
}

/// Stops a run from another thread, for a signal handler for example: running attempts are killed, and the run
/// can be resumed. A run that has ended needs no stop.
pub type Stop = Box<dyn Fn() + Send>;
