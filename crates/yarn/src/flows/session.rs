//! A run on a cluster, from its opening to its end.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use slackline_executor::engine::backend::{Drive, RemainingWork, Stop};
use slackline_executor::engine::external_runs::Elsewhere;
use slackline_executor::run;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::{JobVerdict, LostOutput, Recovery, RunEnd};
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::spec::preflight::Obstacle;
use slackline_executor::store::journal::{Attempt, Segment};
use slackline_model::Draft;

use crate::cluster::table::Table;
use crate::flows::cluster_config::{ClusterConfig, RunFiles};
use crate::flows::engine::{FlowEngine, JobSubmission};
use crate::flows::submission::HadoopSubmission;
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

    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, EngineError> {
        let Self { session, table, context } = self;
        let RunContext { config, state, files, .. } = context;
        let table = table.take();
        let asked = Arc::new(AtomicBool::new(false));
        let flag = asked.clone();
        stop(Stop::new(move || flag.store(true, Ordering::SeqCst)));
        let (slowstart, worker) = (drive.config.slowstart, OnceLock::new());
        let submit = Rc::new(HadoopSubmission {
            config: config.clone(),
            files: files.clone(),
            state: state.clone(),
            slowstart,
            worker,
        });
        let submits: Rc<dyn JobSubmission> = submit.clone();
        let machines = session.draft().machines.clone();
        let run = |left: Elsewhere<'_>, rest: RemainingWork<'_>| {
            let mut cluster = config.cluster(table, files.submitter.clone());
            let patient = ResourceManager::new(&config.address, http::Settings::default());
            cluster.expect(left.owner(0), &patient).map_err(EngineError::other)?;
            let mut engine =
                FlowEngine::new(left, cluster, machines, config.rules(), config.timeouts.clone(), asked);
            engine.add_run(0, submits);
            engine.run(rest)
        };
        let close = |jobs: &[JobPlan], owner: &str| submit.close(jobs, owner);
        session.run_elsewhere(drive, run, close)
    }
}
