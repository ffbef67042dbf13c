//! The driver loop, the same for every policy and engine: takes reports, asks the policy for decisions,
//! starts tasks.

use slackline_model::id::TiVec;
use slackline_model::schedule::{AmRow, Clock, FlowTimes, Origin, Rows, TaskRows};
use slackline_model::{FlowId, History, Instance, MachineId, PhaseId, Schedule, SlotKind, Span, Time};

use crate::assign::{Assigner, Deciding};
use crate::audit;
use crate::engine::{AsEngine, Offers, Report};
use crate::event::Event;
use crate::learning::Learning;
use crate::ledger::{Ledger, Rules};
use crate::locality::Waits;
use crate::log::Sink;
use crate::policy::{Action, Ask, Policy, Style};
use crate::row_collector::RowCollector;
use crate::slot_scope::Scope;
use crate::unfinished::{Stuck, Unfinished};
use crate::view::{Estimates, View, mean_of};

/// The configuration of a run.
pub struct Config<'a> {
    /// The fraction of a job's maps after which its reduces may take slots; 1 for no early reduces.
    pub slowstart: f64,
    /// How long a task waits for a slot near its input.
    pub locality_wait: Span,
    /// How long it then waits for a slot in the rack of its input; zero to take any slot at once.
    pub rack_wait: Span,
    /// The number of failures of a task after which its flow fails; one attempt is always made.
    pub attempts_max: u16,
    /// The policy's estimate of the mean duration of the tasks of a phase, requested once, when the flow
    /// arrives.
    pub believe: Believe<'a>,
    /// Whether the policy also knows the proportions of the tasks within a phase ([`Estimates::each`]).
    pub each: bool,
    /// Corrects the estimates from finished tasks (`--knowledge learned`), and also provides the first
    /// estimates; `None` to keep the estimates unchanged.
    pub learning: Option<Learning>,
    /// Derives the whole state after every instant and compares (tests; slow).
    pub audit: bool,
    /// Nanoseconds of a wall clock, to time decisions; `None` for no timing.
    pub stopwatch: Option<&'a dyn Fn() -> u64>,
    /// Called from time to time with the number of finished tasks.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
}

/// Returns the policy's estimate of the mean duration of the tasks of a phase, at speed 1.
pub type Believe<'a> = Box<dyn FnMut(&Instance, PhaseId) -> Span + 'a>;

/// The default limit on failures of a task; Hadoop's `mapreduce.map.maxattempts` has the same.
pub const ATTEMPTS_MAX: u16 = 4;

impl Config<'_> {
    /// No early reduces, no waiting for local slots, true means, no extras.
    pub fn plain() -> Self {
        Self {
            slowstart: 1.0,
            locality_wait: Span::ZERO,
            rack_wait: Span::ZERO,
            attempts_max: ATTEMPTS_MAX,
            believe: Box::new(|instance, phase| mean_of(instance.phase(phase))),
            each: false,
            learning: None,
            audit: false,
            stopwatch: None,
            progress: None,
        }
    }
}

impl Config<'_> {
    /// How long phases wait for slots near their input.
    fn waits(&self) -> Waits {
        Waits { node: self.locality_wait, rack: self.rack_wait }
    }

    /// Derives the whole state after every instant and compares (tests; slow).
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audit = true;
        self
    }
}

/// The result of a run of a whole instance. Ids are those of the instance.
#[derive(Debug)]
pub struct Run {
    /// All rows, in the order in which they started.
    pub tasks: TaskRows,
    /// The ApplicationMasters of jobs, if they need them, in the order in which they left.
    pub ams: Vec<AmRow>,
    /// First start of each flow.
    pub started: TiVec<FlowId, Option<Time>>,
    /// Completion of each flow; `None` if it could not be finished.
    pub completions: TiVec<FlowId, Option<Time>>,
    /// The figures of the run.
    pub figures: Figures,
}

/// The counters of a run. They remain when its rows are dropped.
#[derive(Clone, Debug)]
pub struct Figures {
    /// How many times a phase was chosen for free slots.
    pub decisions: u64,
    /// How many reports the engine sent.
    pub reports: u64,
    /// The history of finished tasks, if the run learned.
    pub history: Option<History>,
    /// Nanoseconds each instant's decisions took, if a stopwatch was given.
    pub decision_nanos: Vec<u64>,
    /// Why the policy failed ([`Policy::failure`]). The run ended there, and its schedule is invalid.
    pub failure: Option<String>,
    /// The flows that arrived and can never finish, by reason.
    pub unfinished: Vec<Unfinished>,
    /// The fraction of maps after which reduces could take slots.
    pub slowstart: f64,
    /// Whether the run promised to keep minima.
    pub minima: bool,
}

/// Drives `engine` by `policy` until all flows of `instance` are done, no further event is possible, or the
/// policy fails. The engine brings the flows.
///
/// The instance must have been cut into tasks ([`Instance::cut`]). Time: O(log) per instant, batch and
/// decision; nothing per task of a batch.
pub fn run<E: AsEngine + ?Sized>(
    instance: &Instance,
    policy: &mut dyn Policy,
    engine: &mut E,
    config: Config<'_>,
) -> Run {
    run_unless(instance, policy, engine, config, || false).expect("invariant: nothing stops it")
}

/// Like [`run`], but returns `None` if `stop` returns true. The driver calls it between two instants.
pub fn run_unless<E: AsEngine + ?Sized>(
    instance: &Instance,
    policy: &mut dyn Policy,
    engine: &mut E,
    config: Config<'_>,
    mut stop: impl FnMut() -> bool,
) -> Option<Run> {
    let mut kept = RowCollector::new(instance);
    let mut driver = Driver::new(instance.without_flows(), policy, engine, &mut kept, config);
    while driver.step() {
        if stop() {
            return None;
        }
    }
    let figures = driver.close();
    let RowCollector { tasks, ams, started, completions, .. } = kept;
    Some(Run { tasks, ams, started, completions, figures })
}

/// Instants between two calls of [`Config::progress`].
const PROGRESS_EVERY: u64 = 4096;

/// The policy of a copied run.
pub enum Heir<'a> {
    /// A copy of the run's policy ([`Policy::copy`]).
    Copy(&'a mut dyn Policy),
    /// A policy without a past: it receives the present state as if all flows arrived now.
    New(&'a mut dyn Policy),
}

/// A run in progress. The caller steps it, and may read or copy it between two steps.
///
/// The driver keeps only flows that have arrived and are not finished, so memory depends on the active flows.
pub struct Driver<'a, 'c, E: ?Sized> {
    policy: &'a mut dyn Policy,
    engine: &'a mut E,
    sink: &'a mut dyn Sink,
    config: Config<'c>,
    offers: Offers,
    ledger: Ledger,
    estimates: Estimates,
    assigner: Assigner,
    minima: bool,
    /// The reports of the engine at this instant; the next two fields follow from them. Kept between instants
    /// to avoid allocations.
    reports: Vec<Report>,
    events: Vec<Event>,
    actions: Vec<Action>,
    offering: Vec<MachineId>,
    instants: u64,
    n_reports: u64,
    nanos: Vec<u64>,
    /// Whether no further event is possible although flows have not finished.
    is_stuck: bool,
    gave_up: Option<String>,
}

impl<'a, 'c, E: AsEngine + ?Sized> Driver<'a, 'c, E> {
    /// Starts a run. `empty` has the cluster, the pools and the objective, and no flows yet
    /// ([`Instance::without_flows`]). Finished rows and flows go to `sink`.
    pub fn new(
        empty: Instance,
        policy: &'a mut dyn Policy,
        engine: &'a mut E,
        sink: &'a mut dyn Sink,
        config: Config<'c>,
    ) -> Self {
        let capabilities = engine.capabilities();
        let rules =
            Rules { slowstart: config.slowstart, attempts_max: config.attempts_max, audit: config.audit };
        let estimates = Estimates { each: config.each, ..Estimates::new(empty.cluster()) };
        let mut ledger = Ledger::new(empty, rules, capabilities);
        if policy.style() == Style::Placements {
            ledger.freed = Some(Vec::new());
        }
        // With heartbeats or ApplicationMasters, and while a phase waits for local slots, a slot may go to
        // another phase although some phase is below its minimum. Then no policy can promise to keep minima.
        let is_prompt = capabilities.is_prompt() && config.waits() == Waits::NONE;
        let mut driver = Self {
            assigner: Assigner::new(policy, config.waits()),
            minima: policy.keeps_minima() && is_prompt,
            offers: capabilities.offers,
            policy,
            engine,
            sink,
            config,
            ledger,
            estimates,
            reports: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            offering: Vec::new(),
            instants: 0,
            n_reports: 0,
            nanos: Vec::new(),
            is_stuck: false,
            gave_up: None,
        };
        if let Some(learning) = &mut driver.config.learning {
            learning.begin(&driver.ledger.instance, &mut driver.estimates);
        }
        driver
    }

    /// The engine, for its caller.
    pub fn engine(&mut self) -> &mut E {
        self.engine
    }

    /// Adds a history of phases that are about to arrive, if the run learns; see [`Learning::know`].
    pub fn know(&mut self, history: &History) {
        if let Some(learning) = &mut self.config.learning {
            learning.know(history);
        }
    }

    /// The policy, for copies ([`Policy::copy`]).
    pub fn policy(&self) -> &dyn Policy {
        self.policy
    }

    /// Why the engine ended the run, if it did ([`Report::GaveUp`]).
    pub fn gave_up(&self) -> Option<&str> {
        self.gave_up.as_deref()
    }

    /// The unfinished flows by reason, if no further event is possible.
    fn unfinished(&self) -> Vec<Unfinished> {
        if !self.is_stuck || self.policy.failure().is_some() {
            return Vec::new();
        }
        Stuck { view: self.view(), policy: self.policy, gave_up: self.gave_up.clone() }.unfinished()
    }

    /// The flows that get no slot because of a quota or a limit of the policy although slots are free: ids and
    /// limits.
    pub fn limits(&self) -> Vec<(FlowId, String, String)> {
        let view = self.view();
        if view.instance.cluster().slot_kinds().iter().all(|&slot_kind| view.held.free(slot_kind) == 0) {
            return Vec::new();
        }
        let limit = |phase| {
            let quota = self.ledger.quotas.limit(&self.ledger.instance, phase);
            quota.or_else(|| self.policy.limit(view.instance.phase(phase).job, &view))
        };
        let flows = view.instance.flows().iter_enumerated();
        let limited = flows.filter_map(|(flow, info)| {
            let mut waiting = info.phases().filter(|&phase| view.state.waits_for_slots(phase));
            Some((flow, info.id.clone(), waiting.find_map(limit)?))
        });
        limited.collect()
    }

    /// Takes the durations of decisions since the last call, in nanoseconds; empty without a stopwatch.
    pub fn take_decision_nanos(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.nanos)
    }

    /// The view of the policy at this instant.
    pub fn view(&self) -> View<'_> {
        View::of(&self.ledger, &self.estimates)
    }

    /// The target of a phase in slots; `None` if the policy has no targets ([`Style::Targets`]).
    pub fn target(&self, phase: PhaseId) -> Option<f64> {
        (self.policy.style() == Style::Targets).then(|| self.assigner.target(phase))
    }

    /// The phases of a slot kind that would get slots next, in order, at most `most` of them, from repeated
    /// queries of a copy of the policy ([`Style::Priorities`]). Empty if the policy has another style or
    /// cannot be copied.
    pub fn ranking(&self, slot_kind: SlotKind, most: usize) -> Vec<PhaseId> {
        let is_asked = self.policy.style() == Style::Priorities && self.policy.failure().is_none();
        let Some(mut policy) = self.policy.copy().filter(|_| is_asked) else { return Vec::new() };
        let mut ranking = Vec::new();
        while ranking.len() < most {
            let ask = Ask { slot_kind, machine: None, slots: 1, skip: &ranking };
            let Some(grant) = policy.next(&ask, &self.view()) else { break };
            if ranking.contains(&grant.phase) {
                break;
            }
            ranking.push(grant.phase);
        }
        ranking
    }

    /// Copies the run in its present state, to look ahead. Another engine, usually a simulator, takes over
    /// the running tasks and brings the future events. The copy uses the true means of flows that arrive
    /// later.
    pub fn fork<'b, F: AsEngine + ?Sized>(
        &self,
        heir: Heir<'b>,
        engine: &'b mut F,
        sink: &'b mut dyn Sink,
    ) -> Driver<'b, 'b, F> {
        let mut ledger = self.ledger.clone();
        ledger.transfer(engine.as_engine());
        let (policy, is_new): (&mut dyn Policy, bool) = match heir {
            Heir::Copy(policy) => (policy, false),
            Heir::New(policy) => (policy, true),
        };
        let Config { slowstart, locality_wait, rack_wait, attempts_max, each, audit, ref learning, .. } =
            self.config;
        let config = Config {
            slowstart,
            locality_wait,
            rack_wait,
            attempts_max,
            each,
            audit,
            learning: learning.clone(),
            ..Config::plain()
        };
        let assigner = if is_new { Assigner::new(policy, config.waits()) } else { self.assigner.clone() };
        let mut fork = Driver {
            assigner,
            minima: self.minima,
            offers: engine.capabilities().offers,
            policy,
            engine,
            sink,
            config,
            ledger,
            estimates: self.estimates.clone(),
            reports: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            offering: Vec::new(),
            instants: 0,
            n_reports: 0,
            nanos: Vec::new(),
            is_stuck: false,
            gave_up: None,
        };
        if is_new {
            fork.tell_all();
        }
        fork
    }

    /// Sends a new policy the present state as events, as if all flows arrived now.
    fn tell_all(&mut self) {
        let Ledger { instance, state, .. } = &self.ledger;
        let mut events: Vec<Event> = instance.flows().keys().map(Event::FlowArrived).collect();
        for &slot_kind in instance.cluster().slot_kinds() {
            events.extend(state.ready(slot_kind).map(Event::PhaseReady));
        }
        self.actions.clear();
        let Self { policy, engine, ledger, estimates, assigner, actions, .. } = self;
        policy.on_events(&events, &View::of(ledger, estimates), actions);
        assigner.absorb(actions, ledger, engine.as_engine());
    }

    /// Waits for the next instant and handles it. Returns false when the run has ended.
    pub fn step(&mut self) -> bool {
        let is_over = self.ledger.state.flows_left() == 0 && !self.engine.may_bring_flows();
        if is_over || self.policy.failure().is_some() {
            return false;
        }
        self.reports.clear();
        let Some(now) = self.engine.poll(&mut self.reports) else {
            self.is_stuck = true;
            self.gave_up = self.reports.drain(..).find_map(|report| match report {
                Report::GaveUp(why) => Some(why),
                _ => None,
            });
            return false;
        };
        self.ledger.advance(now);
        self.absorb();
        if self.ledger.state.is_hopeless() {
            self.is_stuck = true;
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
        self.give_up_what_is_over();
        self.instants += 1;
        if self.instants.is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = &mut self.config.progress
        {
            progress(self.ledger.state.tasks_done());
        }
        true
    }

    /// Converts reports into state and events.
    fn absorb(&mut self) {
        self.events.clear();
        self.offering.clear();
        self.n_reports += self.reports.len() as u64;
        for report in self.reports.drain(..) {
            if let Report::Offer(machine) = report {
                self.offering.push(machine);
            }
            self.ledger.absorb(report, self.engine.as_engine(), &mut self.events);
        }
        self.ledger.fail_spent(self.engine.as_engine(), &mut self.events);
    }

    /// Sends the events to the policy, and assigns tasks to free slots.
    fn decide(&mut self) {
        let Self { policy, engine, config, ledger, estimates, assigner, events, actions, .. } = self;
        if !events.is_empty() {
            actions.clear();
            believe(config, ledger, estimates, events);
            ledger.fastest.refresh(ledger.instance.cluster(), &estimates.speed);
            policy.on_events(events, &View::of(ledger, estimates), actions);
            if policy.failure().is_some() {
                return;
            }
            assigner.absorb(actions, ledger, engine.as_engine());
        }
        let scope = match self.offers {
            Offers::Immediate => Scope::All,
            Offers::Heartbeat => Scope::Machines(&self.offering),
        };
        let mut deciding = Deciding { policy: *policy, estimates };
        assigner.assign(ledger, engine.as_engine(), &mut deciding, events, scope);
        if self.offers == Offers::Heartbeat {
            engine.want_offers(ledger.state.wants_slots());
        }
    }

    /// Finished rows and flows leave, and the driver forgets them.
    fn give_up_what_is_over(&mut self) {
        let Self { ledger, estimates, assigner, sink, config, .. } = self;
        ledger.drop_rows(*sink);
        for flow in ledger.state.take_over() {
            let phases = ledger.instance.flow(flow).phases();
            assigner.forget(phases.clone());
            if let Some(learning) = &mut config.learning {
                learning.forget(phases.clone());
            }
            phases.for_each(|phase| {
                estimates.task.remove(phase);
                estimates.unknown.remove(phase);
            });
            ledger.retire_flow(flow, *sink);
        }
    }

    /// Ends the run: stops running tasks, and sends all rows and flows to the sink.
    pub fn close(mut self) -> Figures {
        let unfinished = self.unfinished();
        self.ledger.abandon();
        self.ledger.drop_rows(self.sink);
        for flow in self.ledger.instance.flows().keys().collect::<Vec<_>>() {
            self.ledger.retire_flow(flow, self.sink);
        }
        Figures {
            decisions: self.assigner.decisions,
            reports: self.n_reports,
            history: self.config.learning.map(Learning::into_history),
            decision_nanos: self.nanos,
            unfinished,
            failure: self.policy.failure().map(str::to_owned),
            slowstart: self.config.slowstart,
            minima: self.minima,
        }
    }
}

/// Updates the estimates after the events of an instant.
fn believe(config: &mut Config<'_>, ledger: &Ledger, estimates: &mut Estimates, events: &[Event]) {
    let instance = &ledger.instance;
    for event in events {
        match *event {
            Event::FlowArrived(flow) => {
                for phase in instance.flow(flow).phases() {
                    estimates.task.insert(phase, (config.believe)(instance, phase));
                }
            }
            Event::MachineJoined(machine) => {
                let group = instance.cluster().group_id_of(machine);
                if group.index() == estimates.speed.len() {
                    estimates.speed.push(instance.cluster().groups()[group].speed);
                }
            }
            _ => {}
        }
    }
    if let Some(learning) = &mut config.learning {
        learning.learn(events, instance, estimates);
    }
}

impl Run {
    /// The schedule of the run with its claims: completions and costs, no lower bound yet.
    pub fn schedule(self, instance: &Instance, policy: &str, clock: Clock) -> Schedule {
        let Figures { minima, slowstart, .. } = self.figures;
        let origin = Origin { policy: policy.to_owned(), minima, clock, slowstart, profile: None };
        let times = |flow: FlowId| FlowTimes {
            start: self.started[flow].map(Time::seconds),
            completion: self.completions[flow].map(Time::seconds),
        };
        let ams = self.ams;
        Schedule { ams, ..Schedule::from_rows(instance, origin, Rows::Tasks(self.tasks), times) }
    }
}

#[cfg(test)]
mod tests;
