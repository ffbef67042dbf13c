//! A run on a cluster as a session, with an engine for it alone.

use slackline_executor::engine::backend::{Session, SharedEngine};
use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::run::RunRecord;
use slackline_executor::run::error::EngineError;

use crate::flows::engine::FlowEngine;
use crate::flows::session::{RunContext, YarnSession};
use crate::flows::shared_engine::YarnSharedEngine;

impl Session for YarnSession {
    fn record(&self) -> RunRecord<'_> {
        self.session.record()
    }

    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let RunContext { config, files, .. } = &self.context;
        let machines = self.session.draft().machines.clone();
        let cluster = config.cluster(self.table.take(), files.submitter.clone());
        let runs = ExternalRuns::for_run(&self.session);
        let engine =
            FlowEngine::new(runs, cluster, machines.clone(), config.rules(), config.timeouts.clone());
        Ok(Box::new(YarnSharedEngine::new(engine, &machines)?))
    }
}
