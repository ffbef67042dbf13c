//! What happens in a run: one type for the live view, the forecast, the event file, hooks and the service.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use slackline_model::Time;
use slackline_task::base::task_id::TaskId;

use crate::store::journal::Attempt;
use crate::store::running_attempt::RunningAttempt;

/// Something that happened in a run. Jobs have the numbers of [`TaskId`]. Text is built for failures and
/// warnings alone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// An attempt of a task has its slot.
    AttemptStarted(RunningAttempt),
    /// The progress of a running attempt changed.
    AttemptProgress(RunningAttempt),
    /// The journal has the record of an attempt that ended. The event for its task follows.
    AttemptRecorded(Box<Attempt>),
    /// A task finished, after this many seconds.
    TaskFinished { task: TaskId, seconds: f64 },
    /// An attempt failed.
    AttemptFailed {
        task: TaskId,
        /// Its error, in one or several lines.
        message: String,
        /// The file with the output of its commands, if there is any.
        log: Option<PathBuf>,
        /// Whether another attempt of the task is running, so that this failure does not count.
        other_runs: bool,
        /// Whether the task is not retried: its job has failed.
        is_final: bool,
    },
    /// An attempt was stopped.
    AttemptStopped {
        task: TaskId,
        /// Its number, if it held a slot.
        attempt: Option<u64>,
    },
    /// Output of finished tasks of one phase was lost: they rerun.
    OutputLost { tasks: Vec<TaskId>, reason: String },
    /// A job finished; its output is complete.
    JobFinished {
        job: u32,
        /// Records that its tasks in this session could not use.
        skipped_records: u64,
    },
    /// A flow fails before its start: a job of another flow, whose output it reads, can never finish.
    FlowBlocked { flow: String, missing_job: u32 },
    /// A flow has failed: a job of it failed, and nothing of it runs any more.
    FlowFailed { flow: String },
    /// A machine is gone; its tasks restart elsewhere.
    MachineDown { machine: String, reason: String },
    /// A machine is back, or has joined.
    MachineUp {
        machine: String,
        /// The number of its slots, if it was not known before.
        new_slots: Option<u32>,
    },
    /// The system that runs the tasks does not answer, with the reason; or it answers again.
    EngineUnreachable(Option<String>),
    /// A warning for the user; the run is not affected.
    Warning(String),
    /// The wall clock jumped forward by this many microseconds, or back if negative. Dates come earlier or
    /// later by as much.
    ClockJumped(i64),
    /// Time passes.
    Tick,
}

impl RunEvent {
    /// The number of the job that the event is about; `None` if it concerns all jobs.
    pub(crate) fn job(&self) -> Option<u32> {
        match self {
            Self::AttemptStarted(attempt) | Self::AttemptProgress(attempt) => Some(attempt.id.job),
            Self::TaskFinished { task, .. }
            | Self::AttemptFailed { task, .. }
            | Self::AttemptStopped { task, .. } => Some(task.job),
            Self::JobFinished { job, .. } => Some(*job),
            _ => None,
        }
    }

    /// The event with job numbers that start at `first`.
    pub(crate) fn numbered_from(mut self, first: u32) -> Self {
        match &mut self {
            Self::AttemptStarted(attempt) | Self::AttemptProgress(attempt) => attempt.id.job -= first,
            Self::TaskFinished { task, .. }
            | Self::AttemptFailed { task, .. }
            | Self::AttemptStopped { task, .. } => task.job -= first,
            Self::JobFinished { job, .. } => *job -= first,
            _ => {}
        }
        self
    }
}

/// Receives the events of a run, each with its time of the run.
pub type EventCallback = Box<dyn FnMut(Time, &RunEvent) + Send>;

/// The state of a flow of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowStatus {
    /// No task has started: it is not released yet, or its tasks wait.
    #[default]
    Waiting,
    /// No more tasks start until it is resumed.
    Held,
    /// A task has started.
    Running,
    /// All tasks have finished.
    Finished,
    /// A task failed and is not retried, or the flow could not start.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl FlowStatus {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Held, Self::Running, Self::Finished, Self::Failed, Self::Cancelled];

    /// Whether nothing of the flow runs any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }

    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}
