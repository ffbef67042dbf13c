//! A run among others: its session and the engine that works on it, in one value.

use std::collections::BTreeMap;

use self_cell::self_cell;
use slackline_model::draft::MachineDraft;
use slackline_model::instance::Arrival;
use slackline_model::{FlowId, Instance, PhaseId, Time};

use super::flow::{Arrived, Dates, Source};
use super::{Busy, EngineError, Fate, Local, RunEnd, Seat, Standing};
use crate::clock::{Later, RunClock};
use crate::elsewhere::Over;
use crate::run::Session;

/// A session, and what is left of its workload.
pub(crate) struct Owned {
    pub(crate) session: Session,
    pub(crate) instance: Instance,
}

self_cell!(
    /// The engine borrows from the session that it works on.
    struct Bench {
        owner: Owned,
        #[not_covariant]
        dependent: Local,
    }
);

/// A run among others.
pub(super) struct Seated {
    bench: Bench,
    /// How much later its time begins than that of the engine.
    later: Later,
    /// Its flows that were not over when it came.
    flows: BTreeMap<String, Here>,
    /// Whether it was seen that the engine cannot go on.
    is_stopped: bool,
}

/// A flow of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    standing: Standing,
    /// Whether it has come: released, and what it reads is there.
    has_come: bool,
    /// The number that the driver knows it by.
    number: Option<FlowId>,
}

impl Seated {
    /// A session at work: `make` gives the engine.
    pub(super) fn new(
        owned: Owned,
        later: Later,
        standings: &BTreeMap<String, Standing>,
        make: impl for<'a> FnOnce(&'a Owned) -> Local<'a>,
    ) -> Self {
        let here = |id: &String| Here {
            standing: standings.get(id).copied().unwrap_or_default(),
            ..Here::default()
        };
        let flows = owned
            .instance
            .flows()
            .iter_enumerated()
            .map(|(_, flow)| (flow.id.clone(), here(&flow.id)))
            .collect();
        Self { bench: Bench::new(owned, make), later, flows, is_stopped: false }
    }

    /// How much later its time begins than that of the engine.
    pub(super) fn later(&self) -> Later {
        self.later
    }

    /// Has the engine do something.
    pub(super) fn with<T>(&mut self, what: impl for<'a> FnOnce(&mut Local<'a>) -> T) -> T {
        self.bench.with_dependent_mut(|_, local| what(local))
    }

    fn see<T>(&self, what: impl for<'a> FnOnce(&Local<'a>) -> T) -> T {
        self.bench.with_dependent(|_, local| what(local))
    }

    /// When something of it is due by itself, in the time of the service.
    pub(super) fn due_at(&self) -> Option<Time> {
        self.bench.with_dependent(|_, local| local.due_at()).map(|at| self.later.of(at))
    }

    /// Whether it need not be looked at now.
    pub(super) fn is_quiet(&self, now: Time) -> bool {
        self.bench.with_dependent(|_, local| local.is_quiet()) && self.due_at().is_none_or(|at| at > now)
    }

    /// Stops what is at work, and records it.
    pub(super) fn stop(&mut self) {
        self.bench.with_dependent_mut(|_, local| local.end());
    }

    /// The engine goes on by itself.
    pub(super) fn idle(&mut self) {
        self.bench.with_dependent_mut(|_, local| local.idle());
    }

    /// Whether nothing of it is at work.
    pub(super) fn is_settled(&self) -> bool {
        self.bench.with_dependent(|_, local| local.is_settled())
    }

    /// Whether all its flows are over, or it cannot go on, and nothing of it is at work any more.
    pub(super) fn is_over(&self) -> bool {
        let is_open = |flow: &String| self.see(|local| local.fate(flow)) == Fate::Open;
        self.is_settled() && (self.is_stopped || !self.flows.keys().any(is_open))
    }

    /// Whether the engine cannot go on, and this was not known.
    pub(super) fn has_just_stopped(&mut self) -> bool {
        let is_fatal = self.see(|local| local.fatal().is_some());
        is_fatal && !std::mem::replace(&mut self.is_stopped, true)
    }

    /// A flow as it comes to the driver, if anything of it does; see [`Source::arrival`].
    ///
    /// # Errors
    /// A workload that is none.
    pub(super) fn arrival(
        &self,
        (seat, flow): (Seat, &str),
        busy: &[Busy],
        engine: (&RunClock, Time),
        to: (&[MachineDraft], PhaseId),
    ) -> Result<Option<(Arrived, Arrival)>, EngineError> {
        let Some(here) = self.flows.get(flow) else { return Ok(None) };
        self.bench.with_dependent(|owned, local| {
            let source = Source {
                seat,
                workload: owned.session.draft(),
                jobs: owned.session.jobs(),
                done: local.done(),
                dates: Dates::of(&local.clock, engine, self.later),
            };
            source.arrival((flow, here.standing), busy, to)
        })
    }

    /// A flow has come, and the driver knows it by that number, if at all.
    pub(super) fn note(&mut self, flow: &str, number: Option<FlowId>) {
        if let Some(here) = self.flows.get_mut(flow) {
            (here.has_come, here.number) = (true, number);
        }
    }

    /// A flow stands in another way. True if it has come, so that the driver has to know.
    pub(super) fn stand(&mut self, flow: &str, standing: Standing) -> bool {
        let Some(here) = self.flows.get_mut(flow) else { return false };
        let is_new = here.standing != standing;
        here.standing = standing;
        let has_come = here.has_come;
        is_new && has_come && self.see(|local| local.fate(flow)) == Fate::Open
    }

    /// The flows that the driver knows.
    pub(super) fn arrived(&self) -> Vec<String> {
        let known = self.flows.iter().filter(|(_, here)| here.number.is_some());
        known.map(|(flow, _)| flow.clone()).collect()
    }

    /// The driver is not to know a flow by its number any more, which is given.
    pub(super) fn take_number(&mut self, flow: &str) -> Option<FlowId> {
        self.flows.get_mut(flow)?.number.take()
    }

    /// The same of all its flows.
    pub(super) fn take_numbers(&mut self) -> Vec<FlowId> {
        self.flows.values_mut().filter_map(|here| here.number.take()).collect()
    }

    /// Ends it: what is recorded is on disk, and the session knows how it went.
    pub(super) fn close(mut self, is_interrupted: bool) -> (Result<RunEnd, EngineError>, Session) {
        if is_interrupted {
            self.bench.with_dependent(|_, local| local.interrupt_here());
        }
        self.stop();
        let fates: Vec<Fate> = self.flows.keys().map(|flow| self.see(|local| local.fate(flow))).collect();
        let fatal = self.see(|local| local.fatal().map(str::to_owned));
        let Owned { mut session, .. } = self.bench.into_owner();
        let all_done = fates.iter().all(|fate| *fate == Fate::Done);
        let over = Over { all_done, interrupted: is_interrupted || fatal.is_some(), policy_failed: None };
        let end = session.over(over);
        let end = match fatal {
            Some(reason) => Err(EngineError::Stopped(reason)),
            None => end,
        };
        (end, session)
    }
}
