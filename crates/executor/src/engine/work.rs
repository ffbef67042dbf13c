//! What an engine works on: a run, as its session has it.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Instance;
use slackline_task::base::task_id::TaskId;

use crate::run::error::EngineError;
use crate::run::{RunEnd, Session};
use crate::spec::job_plan::JobPlan;

/// What an engine works on.
pub(crate) struct Work {
    pub(crate) session: Session,
    /// What was left of it when the engine got it.
    pub(crate) instance: Instance,
    /// By flow that reads from other flows: the jobs that it waits for.
    pub(crate) waits: BTreeMap<String, BTreeSet<u32>>,
    /// Tasks that are done already.
    pub(crate) done: BTreeSet<TaskId>,
    /// The number of the segment that records attempts.
    pub(crate) segment: u32,
    /// How often a task may fail whose job does not say.
    pub(crate) attempts_max: u16,
}

impl Work {
    /// What is left of a run, as an instance on the machines of now.
    pub(crate) fn of(session: Session, instance: Instance, attempts_max: u16) -> Self {
        Self {
            waits: session.waits(),
            done: session.done(),
            segment: session.head.segments.len() as u32 - 1,
            session,
            instance,
            attempts_max,
        }
    }
}

impl Session {
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
