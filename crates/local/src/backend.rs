//! What an engine brings to a run: finding the tasks of a workload, a run that survives, and driving it. An
//! [`EngineEntry`] is what is said of it in the table of engines.

use std::collections::BTreeMap;
use std::path::Path;

use slackline_model::Draft;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, Settings, Values};

use crate::job_cost::JobHistory;
use crate::journal::{Attempt, Identity};
use crate::preflight::Obstacle;
use crate::run::{Drive, EngineError, Recovered, RunEnd};

/// An engine by name, its parameters and how it is made of them.
///
/// Everything else follows from the entry: how the engine is named on a command line, its flags, their help and
/// completions.
#[derive(Clone, Copy, Debug)]
pub struct EngineEntry {
    /// Its name on the command line: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it is told. Each is a flag of the verbs that run flows, unless they have another flag of that name;
    /// engines that share a name share the flag. One called [`ADDRESS`] may be written `name://address`.
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

/// The values of a parameter that is off unless it is said: its flag needs no value.
pub const SWITCH: Values = Values::Choice(&["off", "on"]);

/// An engine that really runs flows.
pub trait Backend {
    /// Which of its settings shape a run, by name: a run that was begun with others is another run. Where another
    /// engine could take the state directory for its own, `engine` is one of them.
    fn options(&self) -> BTreeMap<String, String>;

    /// The machines that flows are scheduled on, in one group.
    fn machines(&self) -> Vec<MachineDraft>;

    /// Finds the tasks of every job of a workload that has this engine's machines. `past` is what earlier runs of
    /// the jobs took. Nothing is written.
    ///
    /// # Errors
    /// What is wrong with the workload, and where.
    fn prepare(&self, workload: &Draft, past: &JobHistory) -> Result<Box<dyn Prepared>, Vec<Fault>>;

    /// Looks for a run in a state directory, and resumes it if it has one.
    ///
    /// # Errors
    /// The directory holds another run or something else, or the run cannot be resumed.
    fn open(&self, state: &Path, identity: &Identity) -> Result<Opened, EngineError>;
}

/// What is in a state directory.
pub enum Opened {
    /// No run.
    Nothing,
    /// A run of which all outputs were removed by hand.
    Orphaned,
    /// A run that can be driven.
    Begun(Box<dyn Session>),
}

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `flows[0].jobs[2].run`.
    pub path: String,
    /// What was found and what was expected.
    pub problem: String,
}

/// A job that cannot be run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrunnableJob {
    /// Its flow.
    pub flow: String,
    /// Where the document says what it runs, and what prevents it.
    pub fault: Fault,
}

/// A workload whose tasks are known, ready to begin.
pub trait Prepared {
    /// The workload with all phases, task by task.
    fn workload(&self) -> &Draft;

    /// Jobs that cannot be run now.
    fn unrunnable(&self) -> Vec<UnrunnableJob>;

    /// Removes the run of a state directory, with the outputs it made, to make room for this one. Says whether there
    /// was one.
    ///
    /// # Errors
    /// It cannot be removed as a whole; then nothing is.
    fn discard(&self, state: &Path) -> Result<bool, EngineError>;

    /// Begins the run.
    ///
    /// # Errors
    /// Outputs that are there already, a run that was begun there meanwhile, whatever the engine says.
    fn begin(self: Box<Self>, beginning: RunStart<'_>) -> Result<Box<dyn Session>, EngineError>;
}

/// Where and when a run begins, and what it is.
#[derive(Clone, Debug)]
pub struct RunStart<'a> {
    /// The directory of its state.
    pub state: &'a Path,
    /// What it is.
    pub identity: Identity,
    /// When it starts: microseconds since 1970.
    pub started: u64,
}

/// A run that was begun and can be resumed, whatever kills it.
pub trait Session {
    /// The workload with all phases, task by task, with the durations that were believed when it began. Jobs of
    /// [`TaskId`](crate::TaskId) are counted in its order.
    fn workload(&self) -> &Draft;

    /// When it started: microseconds since 1970.
    fn started(&self) -> u64;

    /// All attempts that have ended, by their numbers.
    fn attempts(&self) -> &[Attempt];

    /// What resuming it found.
    fn recovered(&self) -> Recovered;

    /// What prevents unfinished jobs from running; their flows have failed from the start.
    fn obstacles(&self) -> &[Obstacle];

    /// What the jobs took that are done, for later runs.
    fn finished_jobs(&self) -> JobHistory;

    /// Runs what is left. `stop` is given what stops the run from another thread.
    ///
    /// # Errors
    /// The engine could not continue; finished work stays finished.
    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, EngineError>;
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
