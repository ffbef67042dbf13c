//! What an engine brings to a run: finding the tasks of a workload, a run that survives, and driving it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use slackline_local::run::{Drive, Recovered};
use slackline_local::{Attempt, Ended, Identity, JobHistory, Obstacle, RunEnd, TaskId};
use slackline_model::Draft;
use slackline_model::draft::MachineDraft;

use super::RunError;

/// An engine that really runs flows.
pub trait Backend {
    /// Which of its settings shape a run, by name: a run that was begun with others is another run.
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
    /// The directory holds another run or something else, or the run cannot go on.
    fn open(&self, state: &Path, identity: &Identity) -> Result<Opened, RunError>;
}

/// What is in a state directory.
pub enum Opened {
    /// No run.
    Nothing,
    /// A run of which all outputs were removed by hand.
    Orphaned,
    /// A run that can go on.
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

/// A job that cannot be run as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindered {
    /// Its flow.
    pub flow: String,
    /// Where the document says what it runs, and what is in the way.
    pub fault: Fault,
}

/// A workload whose tasks are known, ready to begin.
pub trait Prepared {
    /// The workload with all phases, task by task.
    fn workload(&self) -> &Draft;

    /// Jobs that cannot be run as things are.
    fn hindered(&self) -> Vec<Hindered>;

    /// Removes the run of a state directory, with the outputs it made, to make room for this one. Says whether there
    /// was one.
    ///
    /// # Errors
    /// It cannot be removed as a whole; then nothing is.
    fn discard(&self, state: &Path) -> Result<bool, RunError>;

    /// Begins the run.
    ///
    /// # Errors
    /// Outputs that are there already, a run that was begun there meanwhile, whatever the engine says.
    fn begin(self: Box<Self>, beginning: Beginning<'_>) -> Result<Box<dyn Session>, RunError>;
}

/// Where and when a run begins, and what it is.
#[derive(Clone, Debug)]
pub struct Beginning<'a> {
    /// The directory of its state.
    pub state: &'a Path,
    /// What it is.
    pub identity: Identity,
    /// When it starts: microseconds since 1970.
    pub started: u64,
}

/// A run that was begun and goes on where it was, whatever kills it.
pub trait Session {
    /// The workload with all phases, task by task, with the durations that were believed when it began. Jobs of
    /// [`TaskId`] are counted in its order.
    fn workload(&self) -> &Draft;

    /// When it started: microseconds since 1970.
    fn started(&self) -> u64;

    /// All attempts that have ended, by their numbers.
    fn attempts(&self) -> &[Attempt];

    /// What resuming it found.
    fn recovered(&self) -> Recovered;

    /// What is in the way of jobs that are not done; their flows have failed from the start.
    fn obstacles(&self) -> &[Obstacle];

    /// What the jobs took that are done, for later runs.
    fn finished_jobs(&self) -> JobHistory;

    /// Runs what is left. `stop` is given what stops the run from another thread.
    ///
    /// # Errors
    /// The engine could not go on; what is done stays done.
    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, RunError>;
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

/// The tasks of a run that are done.
pub(super) fn done(session: &dyn Session) -> BTreeSet<TaskId> {
    let done = session.attempts().iter().filter(|attempt| matches!(attempt.ended, Ended::Done(_)));
    done.map(|attempt| attempt.id).collect()
}

/// A job of a workload, by names.
pub(super) struct JobAt<'a> {
    pub(super) flow: &'a str,
    pub(super) job: &'a str,
}

/// The jobs of a workload, in the order in which [`TaskId`] counts them.
pub(super) fn jobs(workload: &Draft) -> impl Iterator<Item = JobAt<'_>> {
    workload
        .flows
        .iter()
        .flat_map(|flow| flow.jobs.iter().map(move |job| JobAt { flow: &flow.id, job: &job.id }))
}

/// The flows that cannot be run.
pub(super) fn hindered(session: &dyn Session) -> BTreeSet<String> {
    let flows: Vec<&str> = jobs(session.workload()).map(|job| job.flow).collect();
    session.obstacles().iter().map(|obstacle| flows[obstacle.job].to_owned()).collect()
}
