//! One engine on a cluster for several runs that join and leave.
//!
//! The runs share the polls, the table and the container ledger. Each run submits its jobs as a single run
//! does, records them in its own journal, and finds its applications again after the service was killed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;

use slackline_local::Observer;
use slackline_local::backend::{self, Ended, Quotas, Resident, Seat, SeatRules, SharedMachine, Standing};
use slackline_local::elsewhere::Joined;
use slackline_local::run::EngineError;
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
    engine: FlowEngine<'static>,
    /// Asked once for each new run.
    manager: ResourceManager,
    machines: Vec<MachineDraft>,
    empty: Instance,
    /// The contexts of hosted runs.
    contexts: BTreeMap<Seat, RunContext>,
    /// Limits on the slots of users.
    quotas: Quotas,
    /// Reports for the next poll.
    due: Vec<Report>,
    ended: Vec<Ended>,
    /// The last number of a session without a run.
    without_run: u32,
}

impl YarnSharedEngine {
    /// An engine on these machines; `empty` is their instance without flows.
    pub(super) fn new(
        engine: FlowEngine<'static>,
        manager: ResourceManager,
        machines: Vec<MachineDraft>,
        empty: Instance,
    ) -> Self {
        Self {
            engine: engine.hosting(),
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
            let seat = Seat(run);
            self.quotas.remove(seat);
            let Some(context) = self.contexts.remove(&seat) else { continue };
            self.ended.push(Ended { seat, how, session: Box::new(YarnSession::of(session, context)) });
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
        self.quotas.room(self.engine.run_of(flow).map(Seat), self.engine.open_runs().map(Seat))
    }

    /// The service may add runs at any time.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl Resident for YarnSharedEngine {
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

    fn said(&mut self) -> Vec<String> {
        self.engine.take_notices()
    }

    fn seat(
        &mut self,
        session: Box<dyn backend::Session>,
        rules: SeatRules,
        observer: Box<dyn Observer + Send>,
    ) -> Result<Seat, EngineError> {
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
            Joined::From(run) => {
                self.contexts.insert(Seat(run), context);
                self.quotas.add(Seat(run), rules.quota);
                Ok(Seat(run))
            }
            Joined::NothingLeft(session, end) => {
                let seat = Seat(self.without_run);
                self.without_run -= 1;
                let session = Box::new(YarnSession::of(*session, context));
                self.ended.push(Ended { seat, how: Ok(end), session });
                Ok(seat)
            }
        }
    }

    fn stand(&mut self, seat: Seat, flow: &str, standing: Standing) {
        if self.contexts.contains_key(&seat) {
            self.engine.stand(seat.0, flow, standing, &mut self.due);
        }
    }

    fn cancel(&mut self, seat: Seat, flow: &str) {
        if self.contexts.contains_key(&seat) {
            self.engine.cancel(seat.0, flow, &mut self.due);
        }
    }

    fn ended(&mut self) -> Vec<Ended> {
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

    fn stop(&mut self) -> Vec<Ended> {
        let left = self.engine.stop();
        self.finish_runs(left);
        self.ended()
    }
}
