//! One engine on a cluster for several runs that join and leave.
//!
//! The runs share the polls, the table and the container ledger. Each run submits its jobs as a single run
//! does, records them in its own journal, and finds its applications again after the service was killed.

mod session;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use slackline_executor::engine::backend::{
    self, EndedRun, FlowOverrides, Quotas, RunConfig, RunId, SharedEngine, SharedMachine,
};
use slackline_executor::engine::event::Observer;
use slackline_executor::engine::external_runs::JoinOutcome;
use slackline_executor::run::error::EngineError;
use slackline_model::draft::MachineDraft;
use slackline_model::{FlowId, Instance, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, Order, Report, Start};
use slackline_policy::plans::Plans;

use crate::flows::engine::{FlowEngine, LeavingRun};
use crate::flows::session::{RunContext, YarnSession};
use crate::flows::submission::HadoopSubmission;
use crate::rest::resource_manager::ResourceManager;

/// An engine for any number of runs.
pub(super) struct YarnSharedEngine {
    engine: FlowEngine,
    /// Asked once for each new run.
    manager: ResourceManager,
    machines: Vec<MachineDraft>,
    empty: Instance,
    /// The contexts of hosted runs.
    contexts: BTreeMap<RunId, RunContext>,
    /// Limits on the slots of users.
    quotas: Quotas,
    /// Reports for the next poll.
    due: Vec<Report>,
    ended: Vec<EndedRun>,
    /// The last number of a session without a run.
    without_run: u32,
}

impl YarnSharedEngine {
    /// An engine on these machines; `empty` is their instance without flows.
    pub(super) fn new(
        engine: FlowEngine,
        manager: ResourceManager,
        machines: Vec<MachineDraft>,
        empty: Instance,
    ) -> Self {
        Self {
            engine,
            manager,
            machines,
            empty,
            contexts: BTreeMap::new(),
            quotas: Quotas::default(),
            due: Vec::new(),
            ended: Vec::new(),
            without_run: u32::MAX,
        }
    }

    fn finish_runs(&mut self, all: Vec<LeavingRun>) {
        for LeavingRun { run, end: how, session } in all {
            let run_id = RunId(run);
            self.quotas.remove(run_id);
            let Some(context) = self.contexts.remove(&run_id) else { continue };
            self.ended.push(EndedRun {
                run: run_id,
                how,
                session: Box::new(YarnSession::of(session, context)),
            });
        }
    }
}

impl Engine for YarnSharedEngine {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        reports.append(&mut self.due);
        let now = self.engine.poll(reports);
        let left = self.engine.ended_runs(reports);
        self.finish_runs(left);
        now
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        self.engine.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.engine.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.engine.wake_at(at);
    }

    fn room(&mut self, flow: FlowId) -> u32 {
        self.quotas.room(self.engine.run_of(flow).map(RunId), self.engine.open_runs().map(RunId))
    }

    /// The service may add runs at any time.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl SharedEngine for YarnSharedEngine {
    fn empty(&self) -> &Instance {
        &self.empty
    }

    fn machines(&self) -> Vec<SharedMachine> {
        let shared = |draft: &MachineDraft| SharedMachine {
            draft: draft.clone(),
            is_up: self.engine.is_up(&draft.name),
        };
        self.machines.iter().map(shared).collect()
    }

    fn notices(&mut self) -> Vec<String> {
        self.engine.take_notices()
    }

    fn add_run(
        &mut self,
        session: Box<dyn backend::Session>,
        rules: RunConfig,
        observer: Box<dyn Observer + Send>,
    ) -> Result<RunId, EngineError> {
        let there = session.into_any().downcast::<YarnSession>();
        let there = there
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let (session, context) = there.into_parts();
        let submit = Rc::new(HadoopSubmission {
            config: context.config.clone(),
            files: context.files.clone(),
            state: context.state.clone(),
            slowstart: rules.slowstart,
            worker: OnceLock::new(),
        });
        match self.engine.join(session, &rules, observer, submit, &self.manager)? {
            JoinOutcome::From(run) => {
                self.contexts.insert(RunId(run), context);
                self.quotas.add(RunId(run), rules.quota);
                Ok(RunId(run))
            }
            JoinOutcome::NothingLeft(session, end) => {
                let run_id = RunId(self.without_run);
                self.without_run -= 1;
                let session = Box::new(YarnSession::of(*session, context));
                self.ended.push(EndedRun { run: run_id, how: Ok(end), session });
                Ok(run_id)
            }
        }
    }

    fn update_flow(&mut self, run_id: RunId, flow: &str, overrides: FlowOverrides) {
        if self.contexts.contains_key(&run_id) {
            self.engine.update_flow(run_id.0, flow, overrides, &mut self.due);
        }
    }

    fn cancel_flow(&mut self, run_id: RunId, flow: &str) {
        if self.contexts.contains_key(&run_id) {
            self.engine.cancel_flow(run_id.0, flow, &mut self.due);
        }
    }

    fn finished_runs(&mut self) -> Vec<EndedRun> {
        std::mem::take(&mut self.ended)
    }

    /// The engine waits at most until its next poll.
    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn planned(&mut self, plans: &Plans) {
        self.engine.apply_plans(plans);
    }

    fn stop(&mut self) -> Vec<EndedRun> {
        let left = self.engine.stop();
        self.finish_runs(left);
        self.finished_runs()
    }
}
