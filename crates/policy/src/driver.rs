//! The driver loop: reports in, decisions out, tasks started; the same for every policy and engine.

use slackline_model::id::TiVec;
use slackline_model::schedule::{Clock, FlowRow, FlowStatus, TaskRows};
use slackline_model::{FlowId, Instance, MachineId, Schedule, Span, Time};

use crate::assign::{Assigner, Scope};
use crate::audit;
use crate::engine::{Engine, Offers, Report};
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::view::{Estimates, View};

/// How a run is to be driven.
pub struct Config<'a> {
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// How long a task waits for a slot near its input.
    pub locality_wait: Span,
    /// What the policy believes of durations.
    pub estimates: Estimates,
    /// Re-derives the whole state after every instant and compares (tests; slow).
    pub audit: bool,
    /// Nanoseconds on a wall clock, to time decisions; `None` for no timing.
    pub stopwatch: Option<&'a dyn Fn() -> u64>,
    /// Told now and then how many tasks are done.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
}

impl Config<'_> {
    /// No early reduces, no waiting for local slots, true means, no extras.
    pub fn plain(instance: &Instance) -> Self {
        Self {
            slowstart: 1.0,
            locality_wait: Span::ZERO,
            estimates: Estimates::mean(instance),
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
    /// Nanoseconds each instant's decisions took, if a stopwatch was given.
    pub decision_nanos: Vec<u64>,
    slowstart: f64,
    minima: bool,
}

/// Drives `engine` by `policy` until all flows are done or nothing can happen any more.
///
/// The instance must have been cut into tasks ([`Instance::cut`]). Time: O(log) an instant, batch and
/// decision; nothing per task of a batch.
pub fn run<E: Engine + ?Sized>(
    instance: &Instance,
    policy: &mut dyn Policy,
    engine: &mut E,
    mut config: Config<'_>,
) -> Run {
    let capabilities = engine.capabilities();
    let mut ledger = Ledger::new(instance, config.slowstart, capabilities);
    let mut assigner = Assigner::new(instance, policy, config.locality_wait);
    if policy.style() == crate::policy::Style::Placements {
        ledger.freed = Some(std::collections::BTreeSet::new());
    }
    // Behind heartbeats, and while a phase waits for local slots, a slot may go elsewhere although some
    // phase is below its minimum: then nobody can promise to keep them.
    let is_prompt = capabilities.offers == Offers::Immediate && config.locality_wait == Span::ZERO;
    let (mut reports, mut events, mut actions) = (Vec::new(), Vec::new(), Vec::new());
    let mut offers: Vec<MachineId> = Vec::new();
    let (mut n_reports, mut instants, mut nanos) = (0u64, 0u64, Vec::new());
    while ledger.state.flows_left() > 0 && !ledger.state.is_hopeless() {
        reports.clear();
        let Some(now) = engine.poll(&mut reports) else { break };
        ledger.now = now;
        n_reports += reports.len() as u64;
        events.clear();
        offers.clear();
        for &report in &reports {
            ledger.absorb(report, engine, &mut events);
            if let Report::Offer(machine) = report {
                offers.push(machine);
            }
        }
        let before = config.stopwatch.map(|clock| clock());
        if !events.is_empty() {
            actions.clear();
            let view = View { instance, state: &ledger.state, estimates: &config.estimates, now };
            policy.on_events(&events, &view, &mut actions);
            assigner.absorb(&actions, &ledger, engine);
        }
        let scope = match capabilities.offers {
            Offers::Immediate => Scope::All,
            Offers::Heartbeat => Scope::Machines(&offers),
        };
        assigner.assign(&mut ledger, engine, policy, (&config.estimates, &events, scope));
        if let (Some(clock), Some(before)) = (config.stopwatch, before) {
            nanos.push(clock().saturating_sub(before));
        }
        if config.audit {
            audit::audit(&ledger);
        }
        instants += 1;
        if instants % PROGRESS_EVERY == 0
            && let Some(progress) = &mut config.progress
        {
            progress(ledger.state.tasks_done());
        }
    }
    ledger.abandon();
    let completions = instance.flows().iter_enumerated().map(|(f, _)| ledger.state.completion(f)).collect();
    Run {
        tasks: ledger.log,
        started: ledger.started,
        completions,
        decisions: assigner.decisions,
        reports: n_reports,
        decision_nanos: nanos,
        slowstart: config.slowstart,
        minima: policy.keeps_minima() && is_prompt,
    }
}

/// Instants between two calls of [`Config::progress`].
const PROGRESS_EVERY: u64 = 4096;

impl Run {
    /// The schedule of the run with its claims: completions and costs, no lower bound yet.
    pub fn schedule(self, instance: &Instance, policy: &str, clock: Clock) -> Schedule {
        let row = |(flow, info): (FlowId, &slackline_model::instance::Flow)| {
            let completion = self.completions[flow].map(Time::seconds);
            FlowRow {
                flow,
                release: info.release.seconds(),
                start: self.started[flow].map(Time::seconds),
                completion,
                cost: completion.map(|c| info.cost.eval(c)),
                status: if completion.is_some() { FlowStatus::Done } else { FlowStatus::Failed },
            }
        };
        let flows: Vec<FlowRow> = instance.flows().iter_enumerated().map(row).collect();
        let costs: Option<Vec<f64>> = flows.iter().map(|f| f.cost).collect();
        Schedule {
            policy: policy.to_owned(),
            minima: self.minima,
            clock,
            slowstart: self.slowstart,
            objective: instance.objective(),
            cost: costs.map(|costs| instance.objective().combine.of(costs)),
            lower_bound: None,
            gap: None,
            metrics: Vec::new(),
            flows,
            tasks: self.tasks,
            allocations: Vec::new(),
        }
    }
}
