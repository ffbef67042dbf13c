//! A run on a cluster as a session, with an engine for it alone.

use slackline_executor::engine::backend::{Session, SharedEngine};
use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::{JobVerdict, LostOutput, Recovery};
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::preflight::Obstacle;
use slackline_executor::store::journal::{Attempt, Segment};
use slackline_model::{Draft, Instance};

use crate::flows::engine::FlowEngine;
use crate::flows::session::{RunContext, YarnSession};
use crate::flows::shared_engine::YarnSharedEngine;
use crate::rest::http;
use crate::rest::resource_manager::ResourceManager;

impl Session for YarnSession {
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }

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
        &self.context.verdicts
    }

    fn lost(&self) -> &[LostOutput] {
        self.session.lost()
    }

    fn segments(&self) -> &[Segment] {
        self.session.segments()
    }

    fn obstacles(&self) -> &[Obstacle] {
        &self.context.obstacles
    }

    fn finished_jobs(&self) -> JobHistory {
        self.session.finished_jobs()
    }

    fn engine(&mut self) -> Result<Box<dyn SharedEngine>, EngineError> {
        let RunContext { config, files, .. } = &self.context;
        let machines = self.session.draft().machines.clone();
        let empty = Instance::new(&Draft { machines: machines.clone(), ..Draft::default() })?.without_flows();
        let cluster = config.cluster(self.table.take(), files.submitter.clone());
        let runs = ExternalRuns::for_run(&self.session);
        let engine =
            FlowEngine::new(runs, cluster, machines.clone(), config.rules(), config.timeouts.clone());
        let patient = ResourceManager::new(&config.address, http::Settings::default());
        Ok(Box::new(YarnSharedEngine::new(engine, patient, machines, empty)))
    }
}
