//! Tasks and flows as an engine of whole jobs reports them.

use std::io;
use std::path::PathBuf;

use slackline_model::instance::Arrival;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::Outcome;

use crate::store::log::LogError;

/// A flow that comes to the driver.
pub struct ArrivingFlow {
    /// Its remaining work.
    pub arrival: Arrival,
    /// Its phases, in the order of the arrival: the job, and how many tasks.
    pub phases: Vec<(u32, PhaseKind, u32)>,
}

/// A task that ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedTask {
    pub id: TaskId,
    /// The slot it ran on, of the slot kind that serves it.
    pub slot: u32,
    /// Since when it had its slot.
    pub start: Time,
    /// Since when it ran.
    pub began: Time,
    pub end: Time,
    pub outcome: Outcome,
    /// The part file that it wrote, of a task that writes one.
    pub part: Option<PathBuf>,
}

/// Why a job whose tasks have all ended well is not done.
#[derive(Debug, thiserror::Error)]
pub enum CannotFinish {
    /// Its output cannot be completed: its flow has failed.
    #[error("output {output}: cannot be completed: {problem}")]
    Output {
        output: String,
        /// The error of the file system.
        problem: io::Error,
    },
    /// Nothing can be recorded any more: the run has to stop, and can be resumed.
    #[error("{0}; finished tasks are kept: fix this, then run the same command to resume")]
    Journal(#[from] LogError),
}

/// A task whose attempt failed.
#[derive(Clone, Copy, Debug)]
pub struct FailedTask<'a> {
    pub id: TaskId,
    /// The slot it ran on.
    pub slot: u32,
    pub start: Time,
    pub end: Time,
    /// Why, as text for the user.
    pub message: &'a str,
}
