//! A run on a cluster, from its opening to its end.

use std::path::PathBuf;
use std::sync::Arc;

use slackline_executor::engine::backend::SharedEngine;
use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::run;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::{JobVerdict, LostOutput, Recovery};
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::preflight::Obstacle;
use slackline_executor::store::journal::{Attempt, Segment};
use slackline_model::{Draft, Instance};

use crate::cluster::table::Table;
use crate::flows::cluster_config::{ClusterConfig, RunFiles};
use crate::flows::engine::FlowEngine;
use crate::flows::shared_engine::YarnSharedEngine;
use crate::rest::http;
use crate::rest::resource_manager::ResourceManager;

pub(super) struct YarnSession {
    pub(super) session: run::Session,
    /// The table of a single run, until the run starts; `None` in a shared engine.
    pub(super) table: Option<Table>,
    pub(super) context: RunContext,
}

/// The context of a run beside its session.
pub(super) struct RunContext {
    pub(super) config: ClusterConfig,
    pub(super) state: PathBuf,
    pub(super) files: Arc<RunFiles>,
    pub(super) obstacles: Vec<Obstacle>,
    pub(super) verdicts: Vec<JobVerdict>,
}

impl YarnSession {
    /// A session for a shared engine.
    pub(super) fn of(session: run::Session, context: RunContext) -> Self {
        Self { session, table: None, context }
    }

    /// The session and its context.
    pub(super) fn into_parts(self) -> (run::Session, RunContext) {
        (self.session, self.context)
    }
}

impl slackline_executor::engine::backend::Session for YarnSession {
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
