//! A cluster on which runs come and go, as an engine that stays.
//!
//! What is on the cluster is asked and told once for all runs: one table, one look, one set of books. Each run submits its
//! jobs as one that is alone, records them in its own journal, and finds its applications again after the service was killed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;

use slackline_executor::engine::Observer;
use slackline_executor::engine::backend::{
    self, EndedRun, FlowOverrides, Quotas, RunConfig, RunId, SharedEngine, SharedMachine,
};
use slackline_executor::engine::external_runs::JoinOutcome;
use slackline_executor::run::error::EngineError;
use slackline_model::draft::MachineDraft;
use slackline_model::{FlowId, Instance, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, Order, Report, Start};
use slackline_policy::plans::Plans;

use super::backend::{Cover, SessionThere};
use super::guest::{Guest, Parted};
use super::submission::Submission;
use crate::rest::ResourceManager;

/// A cluster for as many runs as come.
pub(super) struct ResidentThere {
    guest: Guest<'static>,
    /// Is asked once for each run that comes.
    manager: ResourceManager,
    machines: Vec<MachineDraft>,
    empty: Instance,
    /// What is said of sessions beside their runs, until they come back.
    covers: BTreeMap<RunId, Cover>,
    /// Whose runs are that may hold only so many slots together, and how many.
    quotas: Quotas,
    /// Reports that are due at the next poll.
    due: Vec<Report>,
    ended: Vec<EndedRun>,
    /// The last number that was given to a session that has no run.
    without_run: u32,
}

impl ResidentThere {
    /// An engine on these machines, of which `empty` has no flows.
    pub(super) fn new(
        guest: Guest<'static>,
        manager: ResourceManager,
        (machines, empty): (Vec<MachineDraft>, Instance),
    ) -> Self {
        Self {
            guest: guest.staying(),
            manager,
            machines,
            empty,
            covers: BTreeMap::new(),
            quotas: Quotas::default(),
            due: Vec::new(),
            ended: Vec::new(),
            without_run: u32::MAX,
        }
    }

    fn give_back(&mut self, all: Vec<Parted>) {
        for (run, how, session) in all {
            let seat = RunId(run);
            self.quotas.remove(seat);
            let Some(cover) = self.covers.remove(&seat) else { continue };
            self.ended.push(EndedRun { run: seat, how, session: Box::new(SessionThere::of(session, cover)) });
        }
    }
}

impl Engine for ResidentThere {
    fn capabilities(&self) -> Capabilities {
        self.guest.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        reports.append(&mut self.due);
        let now = self.guest.poll(reports);
        let left = self.guest.leaving(reports);
        self.give_back(left);
        now
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        self.guest.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.guest.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.guest.wake_at(at);
    }

    fn room(&mut self, flow: FlowId) -> u32 {
        self.quotas.room(self.guest.run_of(flow).map(RunId), self.guest.held().map(RunId))
    }

    /// More may come as long as somebody drives it.
    fn may_bring_flows(&mut self) -> bool {
        true
    }
}

impl SharedEngine for ResidentThere {
    fn empty(&self) -> &Instance {
        &self.empty
    }

    fn machines(&self) -> Vec<SharedMachine> {
        let shared = |draft: &MachineDraft| SharedMachine {
            draft: draft.clone(),
            is_up: self.guest.is_up(&draft.name),
        };
        self.machines.iter().map(shared).collect()
    }

    fn notices(&mut self) -> Vec<String> {
        self.guest.said()
    }

    fn add_run(
        &mut self,
        session: Box<dyn backend::Session>,
        rules: RunConfig,
        observer: Box<dyn Observer + Send>,
    ) -> Result<RunId, EngineError> {
        let there = session.into_any().downcast::<SessionThere>();
        let there = there
            .map_err(|_| EngineError::other("found a session of another engine, expected one of this"))?;
        let (session, cover) = there.apart();
        let submit = Rc::new(Submission {
            site: cover.site.clone(),
            remote: cover.remote.clone(),
            state: cover.state.clone(),
            slowstart: rules.slowstart,
            worker: OnceLock::new(),
        });
        match self.guest.join(session, (&rules, observer), (submit, &self.manager))? {
            JoinOutcome::From(run) => {
                self.covers.insert(RunId(run), cover);
                self.quotas.add(RunId(run), rules.quota);
                Ok(RunId(run))
            }
            JoinOutcome::NothingLeft(session, end) => {
                let seat = RunId(self.without_run);
                self.without_run -= 1;
                let session = Box::new(SessionThere::of(*session, cover));
                self.ended.push(EndedRun { run: seat, how: Ok(end), session });
                Ok(seat)
            }
        }
    }

    fn update_flow(&mut self, seat: RunId, flow: &str, standing: FlowOverrides) {
        if self.covers.contains_key(&seat) {
            self.guest.stand((seat.0, flow), standing, &mut self.due);
        }
    }

    fn cancel_flow(&mut self, seat: RunId, flow: &str) {
        if self.covers.contains_key(&seat) {
            self.guest.cancel((seat.0, flow), &mut self.due);
        }
    }

    fn finished_runs(&mut self) -> Vec<EndedRun> {
        std::mem::take(&mut self.ended)
    }

    /// It waits for no longer than until its next look.
    fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn planned(&mut self, plans: &Plans) {
        self.guest.tell(plans);
    }

    fn stop(&mut self) -> Vec<EndedRun> {
        let left = self.guest.stop();
        self.give_back(left);
        self.finished_runs()
    }
}
