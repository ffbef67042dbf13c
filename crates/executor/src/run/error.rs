//! Why an engine cannot begin or resume a run.

use std::error::Error;
use std::io;
use std::path::Path;

use slackline_model::Invalid;
use slackline_model::params::ParamError;

use crate::run::reuse::ChoiceError;
use crate::spec::fault::UnrunnableJob;
use crate::spec::resolve::ResolveError;
use crate::store::journal::ADVICE;
use crate::store::log::LogError;

/// Why an engine cannot begin or resume a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The journal or the history.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directory holds an unfinished run that has no job of this one.
    #[error(
        "{path}: an unfinished run of other jobs is here: finish it with its own flow file, or choose another --state"
    )]
    Another { path: String },
    /// The run was started with another engine.
    #[error(
        "{path}: the unfinished run was started with engine {began}, not with {now}: use --engine \
         {began} to resume it, --again to start over, or another --state to keep both runs"
    )]
    OtherEngine {
        path: String,
        /// The engine that the run was started with.
        began: String,
        /// The engine that was asked to resume it.
        now: String,
    },
    /// The map output of a run that continues is in another directory than the machines are to share.
    #[error(
        "the map output of this run is in {from}, not in the directory of --engine ssh:shared=DIR: leave out shared=DIR to \
         resume, or pass --again to start over"
    )]
    Moved { from: String },
    /// No flow can be run.
    #[error("{}", .0.first().map_or("", |job| job.fault.problem.as_str()))]
    Unrunnable(Vec<UnrunnableJob>),
    /// A choice that names no job.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The directory is in use for something else.
    #[error(
        "{path}: exists without a journal or jobs.log beside it, so this is not the state directory of a run: choose another; \
         if a run has left it behind, remove the directory and move the outputs away"
    )]
    InUse { path: String },
    /// Another run writes to an output directory.
    #[error("{path}: another run writes to this directory; give each run its own output directory")]
    Claimed { path: String },
    /// The journal contradicts itself.
    #[error("{path}: found {problem}; the journal is damaged: {}", ADVICE)]
    Damaged {
        path: String,
        /// What does not fit.
        problem: String,
    },
    /// The file system refused something.
    #[error("{path}: {problem}")]
    File { path: String, problem: io::Error },
    /// A run beside others cannot be opened now, and can later without a change by the user.
    #[error("{0}")]
    Passing(String),
    /// An output directory is in the way.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The remaining workload is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The policy failed. Finished work is kept, and the run can be resumed.
    #[error("{0}")]
    Policy(String),
    /// The engine had to stop.
    #[error("{0}")]
    Stopped(String),
    /// Its settings do not go together, or are not to be had here.
    #[error(transparent)]
    Setting(#[from] ParamError),
    /// An error of another engine.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

impl EngineError {
    /// An error of an engine of another kind.
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> EngineError {
    move |problem| EngineError::File { path: path.display().to_string(), problem }
}
