//! A run of processes as a session, with an engine for it alone.

use std::any::Any;

use slackline_model::Draft;

use crate::engine::backend::{Session, SharedEngine};
use crate::engine::process_session::ProcessSession;
use crate::engine::shared::SharedProcessEngine;
use crate::fleet::processes::Processes;
use crate::run::error::{EngineError, file};
use crate::run::{JobVerdict, LostOutput, Recovery};
use crate::spec::job_cost::JobHistory;
use crate::spec::preflight::Obstacle;
use crate::store::journal::{Attempt, Segment};

impl Session for ProcessSession {
    fn workload(&self) -> &Draft {
        self.session.draft()
    }

    fn started(&self) -> u64 {
        self.session.started()
    }

    fn attempts(&self) -> &[Attempt] {
        self.session.attempts()
    }

    fn recovered(&self) -> Recovery {
        self.session.recovered()
    }

    fn verdicts(&self) -> &[JobVerdict] {
        self.session.verdicts()
    }

    fn lost(&self) -> &[LostOutput] {
        self.session.lost()
    }

    fn segments(&self) -> &[Segment] {
        self.session.segments()
    }

    fn memory(&self) -> Option<&str> {
        self.session.memory()
    }

    fn obstacles(&self) -> &[Obstacle] {
        self.session.obstacles()
    }

    fn finished_jobs(&self) -> JobHistory {
        self.session.finished_jobs()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let settings = self.settings.clone();
        if let Some((fleet, check)) = self.acquired.take() {
            let engine = SharedProcessEngine::for_run(Box::new(fleet), &self.session, settings)?;
            return Ok(Box::new(engine.seen_by(check)));
        }
        let (pids, groups) = (self.session.layout.pids(), self.session.memory.groups.take());
        let fleet = Processes::new(settings.worker.clone(), pids.clone(), groups).map_err(file(&pids))?;
        Ok(Box::new(SharedProcessEngine::for_run(Box::new(fleet), &self.session, settings)?))
    }
}
