//! What an engine works on: a run, as its session has it.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Instance;
use slackline_task::base::task_id::TaskId;

use crate::run::error::EngineError;
use crate::run::{RunEnd, Session};
use crate::spec::job_plan::JobPlan;
use crate::store::journal::{Attempt, Journal, KeptJob};
use crate::store::layout::Layout;
use crate::store::publish::Publisher;

/// What an engine works on.
pub(crate) struct Work<'a> {
    pub(crate) instance: &'a Instance,
    /// Where the run's files are.
    pub(crate) layout: &'a Layout,
    /// What the run has done.
    pub(crate) journal: &'a Journal,
    /// The jobs of the run.
    pub(crate) jobs: &'a [JobPlan],
    pub(crate) publisher: Publisher<'a>,
    /// By flow that reads from other flows: the jobs that it waits for.
    pub(crate) waits: BTreeMap<String, BTreeSet<u32>>,
    /// Tasks that are done already.
    pub(crate) done: BTreeSet<TaskId>,
    /// All attempts of the run so far.
    pub(crate) attempts: &'a [Attempt],
    /// The number of the segment that records attempts.
    pub(crate) segment: u32,
    /// The jobs that earlier runs have done.
    pub(crate) kept: &'a [KeptJob],
    /// How often a task may fail whose job does not say.
    pub(crate) attempts_max: u16,
}

impl Session {
    /// What an engine works on; `attempts_max` is how often a task may fail whose job does not say.
    pub(crate) fn work<'a>(&'a self, instance: &'a Instance, attempts_max: u16) -> Work<'a> {
        let done = self.done();
        Work {
            instance,
            layout: &self.layout,
            journal: &self.journal,
            jobs: &self.jobs,
            publisher: self.publisher(),
            waits: self.waits(),
            done,
            attempts: &self.attempts,
            segment: self.head.segments.len() as u32 - 1,
            kept: &self.head.kept,
            attempts_max,
        }
    }

    /// How the run ended: whether all flows that were left are finished, and whether the engine was stopped.
    pub(crate) fn ended(&mut self, all_done: bool, is_interrupted: bool) -> Result<RunEnd, EngineError> {
        self.read_again()?;
        self.bytes_in = self.jobs.iter().map(JobPlan::bytes_in).collect();
        self.publish_state.finish();
        if !is_interrupted {
            self.release();
        }
        Ok(match all_done {
            true if self.obstacles.is_empty() => RunEnd::Done,
            false if is_interrupted => RunEnd::Interrupted,
            _ => RunEnd::Failed,
        })
    }
}
