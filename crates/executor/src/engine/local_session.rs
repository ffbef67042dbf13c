//! The session of a run on this machine.

use std::any::Any;

use slackline_model::Draft;

use crate::engine::backend::{Drive, Session, Stop};
use crate::engine::{Interrupt, Settings};
use crate::run::error::EngineError;
use crate::run::{self, JobVerdict, LostOutput, Recovery, RunEnd};
use crate::spec::job_cost::JobHistory;
use crate::spec::preflight::Obstacle;
use crate::store::journal::{Attempt, Segment};

/// A run on this machine, or one that a shared engine takes.
pub(crate) struct LocalSession {
    pub(crate) session: run::Session,
    pub(crate) settings: Settings,
}

impl Session for LocalSession {
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

    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, EngineError> {
        let interrupted = |interrupt: Interrupt| stop(Stop::new(move || interrupt.stop()));
        self.session.run(drive, self.settings.clone(), interrupted)
    }
}
