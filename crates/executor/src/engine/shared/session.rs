//! A run of processes as a session, with an engine for it alone.

use crate::engine::backend::{Session, SharedEngine};
use crate::engine::process_session::ProcessSession;
use crate::engine::shared::SharedProcessEngine;
use crate::fleet::processes::Processes;
use crate::run::RunRecord;
use crate::run::error::{EngineError, file};

impl Session for ProcessSession {
    fn record(&self) -> RunRecord<'_> {
        self.session.record()
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
