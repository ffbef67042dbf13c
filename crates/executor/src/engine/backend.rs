//! The traits that an engine implements: find the tasks of a workload, open a run, drive it. An
//! [`EngineEntry`] is its line in the table of engines.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Draft, FlowId, Instance, Profile, Time};
use slackline_policy::Engine;
use slackline_policy::plans::Plans;

use crate::engine::event::Observer;
use crate::run::error::EngineError;
use crate::run::opening::{Opening, StatusCallback};
use crate::run::{JobVerdict, LostOutput, Recovery, RunEnd};
use crate::spec::fault::Fault;
use crate::spec::job_cost::JobHistory;
use crate::spec::preflight::Obstacle;
use crate::store::journal::{Attempt, Segment};

/// An engine by name, its parameters and how it is made of them.
///
/// Everything else follows from the entry: how the engine is named on a command line, its flags, their help
/// and completions.
#[derive(Clone, Copy, Debug)]
pub struct EngineEntry {
    /// Its name on the command line: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// What it is, in a line.
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

/// The parameter that says where an engine is, such as `host:8088`.
pub const ADDRESS: &str = "address";

/// The values of a parameter that is off by default: its flag needs no value.
pub const SWITCH: Values = Values::Choice(&["off", "on"]);

/// An engine that really runs flows.
pub trait Backend: Send + Sync {
    /// Its settings, by name, to be shown with the run.
    fn options(&self) -> BTreeMap<String, String>;

    /// The machines that flows are scheduled on, in one group.
    fn machines(&self) -> Vec<MachineDraft>;

    /// How it differs from machines that do everything at once, for predictions; `None` if it does not.
    fn profile(&self) -> Option<Profile> {
        None
    }

    /// Finds the tasks of every job of a workload that has this engine's machines. `past` is what earlier
    /// runs of the jobs took, and `state` the state directory of the run. Nothing is written, but for what
    /// stands in the state directory for files that are elsewhere.
    ///
    /// # Errors
    /// What is wrong with the workload, and where.
    fn prepare(
        &self,
        workload: &Draft,
        past: &JobHistory,
        state: &Path,
    ) -> Result<Box<dyn Prepared>, Vec<Fault>>;

    /// The engine as one that stays.
    ///
    /// # Errors
    /// An engine that runs nothing but one flow file at a time; an error of the engine.
    fn shared_engine(&self, residence: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let _ = residence;
        Err(EngineError::other(
            "found an engine that runs one flow file at a time, expected one that can stay",
        ))
    }

    /// When the run of a state directory started that was begun and not finished, if there is one:
    /// microseconds since 1970.
    ///
    /// # Errors
    /// The directory holds something else, or cannot be read.
    fn unfinished_since(&self, state: &Path) -> Result<Option<u64>, EngineError>;
}

/// Where and when an engine is to stay.
#[derive(Clone, Copy, Debug)]
pub struct SharedEngineConfig<'a> {
    /// The directory of its files.
    pub files: &'a Path,
    /// When the time that it lives in began: microseconds since 1970.
    pub started: u64,
    /// To what that time has come at least.
    pub seen: Time,
    /// What jobs took, by which machines are known.
    pub past: &'a JobHistory,
    /// Receives what is waited for.
    pub status: StatusCallback<'a>,
}

/// A machine of a shared engine.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMachine {
    /// Its name, slots and speed.
    pub draft: MachineDraft,
    /// Whether it is there.
    pub is_up: bool,
}

/// A shared engine: runs come and go, share its machines, and are driven by one driver.
///
/// Its time is that of the service it is of, and so are the times of the flows that it brings; observers of a
/// run learns of the time of their run.
pub trait SharedEngine: Engine {
    /// The machines that there are from the beginning, and no flows.
    fn empty(&self) -> &Instance;

    /// The machines as they are now: those of [`SharedEngine::empty`] first, then those that joined, in their
    /// order.
    fn machines(&self) -> Vec<SharedMachine>;

    /// What the user should know of its machines, since this was asked last.
    fn notices(&mut self) -> Vec<String>;

    /// Takes a session to be run, which was opened beside others on [these machines](SharedEngine::machines):
    /// its open flows come to the driver when they are released, each with its overrides.
    ///
    /// # Errors
    /// A session of another engine or of other machines; a workload that is none; jobs that ask for more than
    /// a machine has.
    fn add_run(
        &mut self,
        session: Box<dyn Session>,
        rules: RunConfig,
        observer: Box<dyn Observer + Send>,
    ) -> Result<RunId, EngineError>;

    /// The overrides of a flow change. Its running tasks continue; nothing happens to a flow that is over.
    fn update_flow(&mut self, run_id: RunId, flow: &str, overrides: FlowOverrides);

    /// A flow is not to go on: what runs of it is stopped, and it has failed.
    fn cancel_flow(&mut self, run_id: RunId, flow: &str);

    /// Sessions whose flows are all over, and those that cannot go on, since this was asked last.
    fn finished_runs(&mut self) -> Vec<EndedRun>;

    /// The session of a flow of the driver's.
    fn run_of(&self, flow: FlowId) -> Option<RunId> {
        let _ = flow;
        None
    }

    /// Ends the waiting of [`Engine::poll`], from any thread.
    fn waker(&self) -> Arc<dyn Fn() + Send + Sync>;

    /// Whether it wants to be given what the driver would do next ([`SharedEngine::planned`]).
    fn wants_plans(&self) -> bool {
        false
    }

    /// What the driver would do next, after each step.
    fn planned(&mut self, plans: &Plans) {
        let _ = plans;
    }

    /// Stops everything that runs, and returns the sessions that are left, to be resumed later. To be called
    /// when no thread drives it any more.
    fn stop(&mut self) -> Vec<EndedRun>;
}

/// A session in a shared engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u32);

/// The settings of a run in a shared engine.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// How often a task may fail whose job does not say.
    pub attempts_max: u16,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// Flows that do not stand as their document says, by their names.
    pub overrides: BTreeMap<String, FlowOverrides>,
    /// Whose it is, and how many slots all runs of theirs may hold together; none for as many as there are.
    pub quota: Option<(String, u32)>,
}

/// Whose sessions are that may hold only this many slots together.
#[derive(Clone, Debug, Default)]
pub struct Quotas(BTreeMap<RunId, (String, u32)>);

impl Quotas {
    /// A session is there: whose it is, and how many slots all of theirs may hold, if not all.
    pub fn add(&mut self, run_id: RunId, quota: Option<(String, u32)>) {
        self.0.extend(quota.map(|quota| (run_id, quota)));
    }

    /// A session is there no more.
    pub fn remove(&mut self, run_id: RunId) {
        self.0.remove(&run_id);
    }

    /// How many more slots a session may have, where `held` says whose the slots are that are held, one by
    /// one. O(held · log sessions) where there is a quota.
    pub fn room(&self, run_id: Option<RunId>, held: impl Iterator<Item = RunId>) -> u32 {
        let Some((owner, most)) = run_id.and_then(|run_id| self.0.get(&run_id)) else { return u32::MAX };
        let is_theirs = |run_id: &RunId| self.0.get(run_id).is_some_and(|(other, _)| other == owner);
        most.saturating_sub(u32::try_from(held.filter(is_theirs).count()).unwrap_or(u32::MAX))
    }
}

/// What may change of a flow while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOverrides {
    /// Whether nothing more of it is to start.
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
    /// The flow with what is different of it.
    pub fn applied(self, flow: &mut FlowDraft) {
        flow.deadline = self.deadline.or(flow.deadline);
        flow.weight = self.weight.unwrap_or(flow.weight);
        flow.priority = self.priority.or(flow.priority);
    }
}

/// A session that a shared engine has given back.
pub struct EndedRun {
    pub run: RunId,
    /// How it ended; the reason where it cannot go on.
    pub how: Result<RunEnd, EngineError>,
    pub session: Box<dyn Session>,
}

/// A workload whose tasks are known, ready to begin.
pub trait Prepared {
    /// The workload with all phases, task by task.
    fn workload(&self) -> &Draft;

    /// What its user should know, such as a file that a job reads twice.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// What would happened to each job; nothing is written.
    ///
    /// # Errors
    /// A choice that names no job; a state directory of something else.
    fn preview(&self, opening: &Opening<'_>) -> Result<Vec<JobVerdict>, EngineError>;

    /// What would hold the memory of commands that have a limit, for the user; none if none has one, or the
    /// engine has nothing to say of it.
    fn memory(&self) -> Option<String> {
        None
    }

    /// Opens the run: what is done already is kept, what was cut short is continued, the rest begins.
    ///
    /// # Errors
    /// Outputs that are another's, no flow that can be run, a state directory in use, an error of the engine.
    fn open(self: Box<Self>, opening: Opening<'_>) -> Result<Box<dyn Session>, EngineError>;
}

/// A started run. It can be resumed after a crash.
pub trait Session: Send {
    /// The workload with all phases, task by task, with the durations that were estimated when it began. Jobs
    /// of [`TaskId`](slackline_task::base::task_id::TaskId) are counted in its order.
    fn workload(&self) -> &Draft;

    /// When it started: microseconds since 1970.
    fn started(&self) -> u64;

    /// All attempts that have ended, by their numbers.
    fn attempts(&self) -> &[Attempt];

    /// What opening it found.
    fn recovered(&self) -> Recovery;

    /// What happens to the jobs of the flow file, in its order.
    fn verdicts(&self) -> &[JobVerdict];

    /// Output of earlier sessions that opening it found gone or changed; none where the engine does not look.
    fn lost(&self) -> &[LostOutput] {
        &[]
    }

    /// The segments of the run, in order. Empty for an engine that does not record them: then all attempts
    /// have slots of the workload's machines.
    fn segments(&self) -> &[Segment] {
        &[]
    }

    /// What holds the memory of commands that have a limit, for the user; none if none has one, or the engine
    /// has nothing to say of it.
    fn memory(&self) -> Option<&str> {
        None
    }

    /// What prevents unfinished jobs from running; their flows have failed from the start.
    fn obstacles(&self) -> &[Obstacle];

    /// What the jobs took that are done, for later runs.
    fn finished_jobs(&self) -> JobHistory;

    /// The session itself, for the engine that it is of.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;

    /// An engine for this run alone, in the time of the run. To be called once, where something is left to be
    /// done; then the run is [added](SharedEngine::add_run) to it. Its poll returns nothing when nothing of
    /// the run can start any more.
    ///
    /// # Errors
    /// An error of the engine.
    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError>;
}

/// Stops a run from another thread, for a signal handler for example. A run that has ended needs no stop.
pub struct Stop(Box<dyn Fn() + Send>);

impl Stop {
    /// Stops by calling `stop`.
    pub fn new(stop: impl Fn() + Send + 'static) -> Self {
        Self(Box::new(stop))
    }

    /// Asks the engine to stop: running attempts are killed, and the run can be resumed.
    pub fn stop(&self) {
        (self.0)();
    }
}
