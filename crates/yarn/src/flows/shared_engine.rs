//! One engine on a cluster for several runs that join and leave.
//!
//! The runs share the polls, the table and the container ledger. Each run submits its jobs as a single run
//! does, records them in its own journal, and finds its applications again after the service was killed.

mod session;

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::OnceLock;

use slackline_executor::engine::backend::{
    self, EndedRun, EngineEvent, FlowOrder, Quotas, RunConfig, RunId, SharedEngine, SharedMachine, ended_runs,
};
use slackline_executor::engine::event::EventCallback;
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

/// An engine for any number of runs.
pub(super) struct YarnSharedEngine {
    engine: FlowEngine,
    machines: Vec<MachineDraft>,
    /// By machine: whether it was there at the last poll.
    were_up: Vec<bool>,
    /// The contexts of hosted runs.
    contexts: BTreeMap<RunId, RunContext>,
    /// Limits on the slots of users.
    quotas: Quotas,
    /// Reports for the next poll.
    due: Vec<Report>,
    happened: Vec<EngineEvent>,
    /// The last number of a session without a run.
    without_run: u32,
}

impl YarnSharedEngine {
    /// An engine on these machines.
    pub(super) fn new(engine: FlowEngine, machines: Vec<MachineDraft>) -> Self {
        Self {
            were_up: machines.iter().map(|machine| engine.is_up(&machine.name)).collect(),
            engine,
            machines,
            contexts: BTreeMap::new(),
            quotas: Quotas::default(),
            due: Vec::new(),
            happened: Vec::new(),
            without_run: u32::MAX,
        }
    }

    fn finish_runs(&mut self, all: Vec<LeavingRun>) {
        for LeavingRun { run, end: how, session } in all {
            let run_id = RunId(run);
            self.quotas.remove(run_id);
            let Some(context) = self.contexts.remove(&run_id) else { continue };
            let session = Box::new(YarnSession::of(session, context));
            self.happened.push(EngineEvent::Ended(EndedRun { run: run_id, how, session }));
        }
    }

    /// Takes in what the cluster said: notices, and machines that went or came back.
    fn note_machines(&mut self) {
        self.happened.extend(self.engine.take_notices().into_iter().map(EngineEvent::Notice));
        let mut is_changed = false;
        for (machine, was_up) in self.machines.iter().zip(&mut self.were_up) {
            let is_up = self.engine.is_up(&machine.name);
            is_changed |= std::mem::replace(was_up, is_up) != is_up;
        }
        self.happened.extend(is_changed.then_some(EngineEvent::MachinesChanged));
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
        self.note_machines();
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
    fn machines(&self) -> Vec<SharedMachine> {
        let shared = |draft: &MachineDraft| SharedMachine {
            draft: draft.clone(),
            is_up: self.engine.is_up(&draft.name),
        };
        self.machines.iter().map(shared).collect()
    }

    fn events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.happened)
    }

    fn add_run(
        &mut self,
        session: Box<dyn backend::Session>,
        rules: RunConfig,
        on_event: EventCallback,
    ) -> Result<RunId, EngineError> {
        let there = (session as Box<dyn Any>).downcast::<YarnSession>();
        let there = there
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let YarnSession { session, mut context, .. } = *there;
        let earlier = std::mem::take(&mut context.earlier);
        let submit = Rc::new(HadoopSubmission {
            config: context.config.clone(),
            files: context.files.clone(),
            state: context.state.clone(),
            slowstart: rules.slowstart,
            worker: OnceLock::new(),
        });
        match self.engine.join(session, &rules, on_event, submit, earlier)? {
            JoinOutcome::From(run) => {
                self.contexts.insert(RunId(run), context);
                self.quotas.add(RunId(run), rules.quota);
                Ok(RunId(run))
            }
            JoinOutcome::NothingLeft(session, end) => {
                let run_id = RunId(self.without_run);
                self.without_run -= 1;
                let session = Box::new(YarnSession::of(*session, context));
                self.happened.push(EngineEvent::Ended(EndedRun { run: run_id, how: Ok(end), session }));
                Ok(run_id)
            }
        }
    }

    fn order_flow(&mut self, run_id: RunId, flow: &str, change: FlowOrder) {
        if self.contexts.contains_key(&run_id) {
            match change {
                FlowOrder::Override(overrides) => {
                    self.engine.update_flow(run_id.0, flow, overrides, &mut self.due);
                }
                FlowOrder::Cancel => self.engine.cancel_flow(run_id.0, flow, &mut self.due),
            }
        }
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
        ended_runs(self.events())
    }
}
