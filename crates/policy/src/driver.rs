//! The driver loop: reports in, decisions out, tasks started; the same for every policy and engine.

use std::collections::BTreeSet;

use slackline_model::id::TiVec;
use slackline_model::schedule::{Clock, FlowTimes, Origin, Rows, TaskRows};
use slackline_model::{FlowId, History, Instance, MachineId, Schedule, Span, Time};

use crate::assign::{Assigner, Deciding};
use crate::audit;
use crate::engine::{Engine, Offers, Report};
use crate::event::Event;
use crate::learning::Learning;
use crate::ledger::{Ledger, Rules};
use crate::policy::{Action, Policy, Style};
use crate::spot::Scope;
use crate::view::{Estimates, View};

/// How a run is to be driven.
pub struct Config<'a> {
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// How long a task waits for a slot near its input.
    pub locality_wait: Span,
    /// How often a task may fail before its flow is abandoned; one attempt is always made.
    pub attempts_max: u16,
    /// What the policy believes of durations.
    pub estimates: Estimates,
    /// What corrects the estimates from finished tasks (`--knowledge learned`); `None` to leave them.
    pub learning: Option<Learning>,
    /// Re-derives the whole state after every instant and compares (tests; slow).
    pub audit: bool,
    /// Nanoseconds on a wall clock, to time decisions; `None` for no timing.
    pub stopwatch: Option<&'a dyn Fn() -> u64>,
    /// Told now and then how many tasks are done.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
}

/// How often a task may fail, unless something else is said; as Hadoop's `mapreduce.map.maxattempts`.
pub const ATTEMPTS_MAX: u16 = 4;

impl Config<'_> {
    /// No early reduces, no waiting for local slots, true means, no extras.
    pub fn plain(instance: &Instance) -> Self {
        Self {
            slowstart: 1.0,
            locality_wait: Span::ZERO,
            attempts_max: ATTEMPTS_MAX,
            estimates: Estimates::mean(instance),
            learning: None,
            audit: false,
            stopwatch: None,
            progress: None,
        }
    }
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    /// Everything that ran.
    pub tasks: TaskRows,
    /// First start of each flow.
    pub started: TiVec<FlowId, Option<Time>>,
    /// Completion of each flow; `None` if it could not be finished.
    pub completions: TiVec<FlowId, Option<Time>>,
    /// How many times a phase was chosen for free slots.
    pub decisions: u64,
    /// How many reports the engine sent.
    pub reports: u64,
    /// What is known of finished tasks now, if the run learned.
    pub history: Option<History>,
    /// Nanoseconds each instant's decisions took, if a stopwatch was given.
    pub decision_nanos: Vec<u64>,
    /// Why the policy could not go on ([`Policy::failure`]): then the run ended there, and its schedule is none.
    pub failure: Option<String>,
    slowstart: f64,
    minima: bool,
}

/// Drives `engine` by `policy` until all flows are done, nothing can happen any more, or the policy fails.
///
/// The instance must have been cut into tasks ([`Instance::cut`]). Time: O(log) an instant, batch and
/// decision; nothing per task of a batch.
pub fn run<E: Engine + ?Sized>(
    instance: &Instance,
    policy: &mut dyn Policy,
    engine: &mut E,
    config: Config<'_>,
) -> Run {
    let mut driver = Driver::new(instance, policy, engine, config);
    while driver.step() {}
    driver.close()
}

/// Instants between two calls of [`Config::progress`].
const PROGRESS_EVERY: u64 = 4096;

/// A run in progress.
struct Driver<'a, 'c, E: ?Sized> {
    policy: &'a mut dyn Policy,
    engine: &'a mut E,
    config: Config<'c>,
    offers: Offers,
    ledger: Ledger<'a>,
    assigner: Assigner,
    minima: bool,
    /// What the engine reported at this instant; the next two follow from it. Kept between instants so
    /// that nothing is allocated for each.
    reports: Vec<Report>,
    events: Vec<Event>,
    actions: Vec<Action>,
    offering: Vec<MachineId>,
    instants: u64,
    n_reports: u64,
    nanos: Vec<u64>,
}

impl<'a, 'c, E: Engine + ?Sized> Driver<'a, 'c, E> {
    fn new(
        instance: &'a Instance,
        policy: &'a mut dyn Policy,
        engine: &'a mut E,
        config: Config<'c>,
    ) -> Self {
        let capabilities = engine.capabilities();
        let rules = Rules { slowstart: config.slowstart, attempts_max: config.attempts_max };
        let mut ledger = Ledger::new(instance, rules, capabilities);
        if policy.style() == Style::Placements {
            ledger.freed = Some(BTreeSet::new());
        }
        // Behind heartbeats, and while a phase waits for local slots, a slot may go elsewhere although
        // some phase is below its minimum: then no policy can promise to keep them.
        let is_prompt = capabilities.offers == Offers::Immediate && config.locality_wait == Span::ZERO;
        Self {
            assigner: Assigner::new(instance, policy, config.locality_wait),
            minima: policy.keeps_minima() && is_prompt,
            offers: capabilities.offers,
            policy,
            engine,
            config,
            ledger,
            reports: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            offering: Vec::new(),
            instants: 0,
            n_reports: 0,
            nanos: Vec::new(),
        }
    }

    /// One instant; false when the run is over.
    fn step(&mut self) -> bool {
        if self.ledger.state.flows_left() == 0 || self.policy.failure().is_some() {
            return false;
        }
        self.reports.clear();
        let Some(now) = self.engine.poll(&mut self.reports) else { return false };
        self.ledger.now = now;
        self.absorb();
        if self.ledger.state.is_hopeless() {
            return false;
        }
        let before = self.config.stopwatch.map(|clock| clock());
        self.decide();
        if let (Some(clock), Some(before)) = (self.config.stopwatch, before) {
            self.nanos.push(clock().saturating_sub(before));
        }
        if self.config.audit {
            audit::audit(&self.ledger);
        }
        self.instants += 1;
        if self.instants.is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = &mut self.config.progress
        {
            progress(self.ledger.state.tasks_done());
        }
        true
    }

    /// Reports become state and events.
    fn absorb(&mut self) {
        self.events.clear();
        self.offering.clear();
        self.n_reports += self.reports.len() as u64;
        for &report in &self.reports {
            self.ledger.absorb(report, self.engine, &mut self.events);
            if let Report::Offer(machine) = report {
                self.offering.push(machine);
            }
        }
    }

    /// The policy hears what happened, and free slots get work.
    fn decide(&mut self) {
        let Self { policy, engine, config, ledger, assigner, events, actions, .. } = self;
        if !events.is_empty() {
            actions.clear();
            let (instance, now) = (ledger.instance, ledger.now);
            if let Some(learning) = &mut config.learning {
                learning.learn(events, instance, &mut config.estimates);
            }
            let view = View { instance, state: &ledger.state, estimates: &config.estimates, now };
            policy.on_events(events, &view, actions);
            if policy.failure().is_some() {
                return;
            }
            assigner.absorb(actions, ledger, *engine);
        }
        let scope = match self.offers {
            Offers::Immediate => Scope::All,
            Offers::Heartbeat => Scope::Machines(&self.offering),
        };
        let mut deciding = Deciding { policy: *policy, estimates: &config.estimates };
        assigner.assign(ledger, *engine, &mut deciding, events, scope);
    }

    fn close(mut self) -> Run {
        self.ledger.abandon();
        let state = &self.ledger.state;
        Run {
            completions: self.ledger.instance.flows().keys().map(|flow| state.completion(flow)).collect(),
            tasks: self.ledger.log,
            started: self.ledger.started,
            decisions: self.assigner.decisions,
            reports: self.n_reports,
            history: self.config.learning.map(Learning::into_history),
            decision_nanos: self.nanos,
            failure: self.policy.failure().map(str::to_owned),
            slowstart: self.config.slowstart,
            minima: self.minima,
        }
    }
}

impl Run {
    /// The schedule of the run with its claims: completions and costs, no lower bound yet.
    pub fn schedule(self, instance: &Instance, policy: &str, clock: Clock) -> Schedule {
        let origin =
            Origin { policy: policy.to_owned(), minima: self.minima, clock, slowstart: self.slowstart };
        let times = |flow: FlowId| FlowTimes {
            start: self.started[flow].map(Time::seconds),
            completion: self.completions[flow].map(Time::seconds),
        };
        Schedule::from_rows(instance, origin, Rows::Tasks(self.tasks), times)
    }
}

#[cfg(test)]
mod tests;
