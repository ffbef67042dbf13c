//! Runs that arrive at any time, under one policy on a long-running engine: the core of the service.
//!
//! - [`Host`]: brings runs, gives [`Order`]s to the engine and receives the results; [`drive`]: the loop;
//! - [`Returned`]: a run that has ended or cannot continue.
//!
//! A run is opened like one with its own engine ([`Run::open`] with
//! [`beside_others`](crate::run::Request::beside_others)) and given to the loop. When its flows have ended,
//! the loop returns the run, so that its outcome can be written. The host decides where runs come from, which
//! users may submit them, and what is reported about them.

use std::collections::BTreeMap;

pub use slackline_executor::engine::backend::{
    FlowOverrides, RunConfig, RunId, SharedEngine, SharedEngineConfig, SharedMachine,
};
use slackline_executor::engine::event::Observer;
use slackline_executor::run::RunEnd;
use slackline_executor::run::error::EngineError;
use slackline_model::{History, Objective, Time};
use slackline_policy::plans::Plans;
use slackline_policy::{Config, Driver, Learning};
use slackline_task::base::activity;

use crate::policy_spec::PolicySpec;
use crate::run::{DetachedRun, Run};
use crate::stopwatch::Stopwatch;

/// The number of phases that are remembered after their flows have ended, to estimate recurring flows.
const REMEMBERED: usize = 1_000;

/// Brings runs to a long-running engine and receives the results.
pub trait Host {
    /// The orders for the engine now. `now` is in microseconds since the engine started.
    fn orders(&mut self, now: Time) -> Vec<Order>;

    /// The time at which the host wants to be called again, even without an event.
    fn wakes_at(&self) -> Option<Time>;

    /// A run has ended or cannot continue.
    fn returned(&mut self, now: Time, returned: Returned);

    /// Whether to end the loop, even if runs are active.
    fn is_over(&self) -> bool;

    /// The machines: called at the start, and when a machine fails, returns or joins.
    fn machines(&mut self, _machines: &[SharedMachine]) {}

    /// The flows that a limit of the policy keeps from free slots: called when they change.
    fn limits(&mut self, _limits: &Limits) {}

    /// A notice about the machines, for users.
    fn said(&mut self, _what: &str) {}

    /// The duration of the decisions at one instant, nanoseconds.
    fn decided(&mut self, _nanos: u64) {}
}

/// By run and flow: the limit that keeps the flow from free slots.
pub type Limits = BTreeMap<(u64, String), String>;

/// An order to the engine. The host numbers the runs.
pub enum Order {
    /// Drive a run.
    Admit(Box<Admission>),
    /// Replace the overrides of a flow.
    Stand {
        /// The run.
        number: u64,
        /// The flow.
        flow: String,
        /// The overrides.
        overrides: FlowOverrides,
    },
    /// Cancel a flow.
    Cancel {
        /// The run.
        number: u64,
        /// The flow.
        flow: String,
    },
}

/// A run to be driven.
pub struct Admission {
    /// Its number, given by the host.
    pub number: u64,
    /// The run, opened to share the engine with others.
    pub run: Run,
    /// The known durations of its phases ([`Run::known`]).
    pub known: History,
    /// By flow: overrides of its document.
    pub overrides: BTreeMap<String, FlowOverrides>,
    /// The owner, and the number of slots that all runs of the owner may hold together; `None` for no limit.
    pub quota: Option<(String, u32)>,
    /// Receives its events, in the time of the run.
    pub observer: Box<dyn Observer + Send>,
}

/// A run that the loop returns.
pub struct Returned {
    /// Its number, given by the host.
    pub number: u64,
    /// How it ended. After an engine error the run can be admitted again.
    pub end: Result<RunEnd, EngineError>,
    /// The run; `None` if the engine did not admit it.
    pub run: Option<Run>,
}

/// The policy and the settings of its decisions.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The policy.
    pub policy: PolicySpec,
    /// The cost of flows.
    pub objective: Objective,
    /// The fraction of a job's maps that must be finished before its reduces may take slots; 1 for all maps.
    pub slowstart: f64,
}

/// Drives the runs of the host until [`Host::is_over`]. Active runs are then stopped and returned, so that
/// they can be resumed later.
///
/// # Errors
/// The policy cannot continue, with the reason. Active runs are returned first.
pub fn drive(
    resident: &mut (dyn SharedEngine + 'static),
    rules: &Rules,
    host: &mut dyn Host,
) -> Result<(), String> {
    let empty = resident.empty().clone();
    let mut policy = rules.policy.build(empty.cluster(), &rules.objective);
    let learning = Learning::new(empty.cluster(), &History::new())
        .guessing()
        .believing_speeds(empty.cluster())
        .remembering(REMEMBERED);
    let stopwatch = Stopwatch::start();
    let nanos = || stopwatch.nanos();
    let config = Config::plain()
        .with_slowstart(rules.slowstart)
        .with_stopwatch(Some(&nanos))
        // The limit on failures of a task is a setting of its run, and the driver has none.
        .with_attempts_max(u16::MAX)
        .with_learning(Some(learning));
    let mut nowhere = ();
    let mut admitted = AdmittedRuns::default();
    let mut machines = resident.machines();
    host.machines(&machines);
    let mut limits = Limits::new();
    let mut driver = Driver::new(empty, policy.as_mut(), resident, &mut nowhere, config);
    while !host.is_over() {
        let now = driver.view().now;
        for order in host.orders(now) {
            if let Some(refused) = admitted.carry_out(order, &mut driver) {
                host.returned(now, refused);
            }
        }
        if let Some(at) = host.wakes_at() {
            driver.engine().wake_at(at);
        }
        activity::turn();
        if !driver.step() {
            break;
        }
        if driver.engine().wants_plans() {
            let plans = Plans::of(&driver);
            driver.engine().planned(&plans);
        }
        driver.take_decision_nanos().into_iter().for_each(|nanos| host.decided(nanos));
        let said = driver.engine().notices();
        for what in &said {
            host.said(what);
        }
        let machines_now = driver.engine().machines();
        if machines_now != machines {
            machines = machines_now;
            host.machines(&machines);
        }
        let limits_now = admitted.limits(&mut driver);
        if limits_now != limits {
            limits = limits_now;
            host.limits(&limits);
        }
        let now = driver.view().now;
        for ended in driver.engine().finished_runs() {
            admitted.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
        }
    }
    let now = driver.view().now;
    let failure = driver.close().failure;
    for ended in resident.stop() {
        admitted.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
    }
    failure.map_or(Ok(()), Err)
}

/// The runs on the engine.
#[derive(Default)]
struct AdmittedRuns {
    by_number: BTreeMap<u64, RunId>,
    by_run: BTreeMap<RunId, (u64, DetachedRun)>,
}

impl AdmittedRuns {
    /// Carries out an order. Returns a run that the engine does not admit.
    fn carry_out(&mut self, order: Order, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Option<Returned> {
        match order {
            Order::Admit(admission) => return self.admit(*admission, driver),
            Order::Stand { number, flow, overrides } => {
                if let Some(&run) = self.by_number.get(&number) {
                    driver.engine().update_flow(run, &flow, overrides);
                }
            }
            Order::Cancel { number, flow } => {
                if let Some(&run) = self.by_number.get(&number) {
                    driver.engine().cancel_flow(run, &flow);
                }
            }
        }
        None
    }

    fn admit(
        &mut self,
        admission: Admission,
        driver: &mut Driver<'_, '_, dyn SharedEngine>,
    ) -> Option<Returned> {
        let Admission { number, run, known, overrides, quota, observer } = admission;
        driver.know(&known);
        let rules = run.request();
        let rules =
            RunConfig { attempts_max: rules.attempts_max, slowstart: rules.slowstart, overrides, quota };
        let (session, lent) = run.lend();
        match driver.engine().add_run(session, rules, observer) {
            Ok(id) => {
                self.by_number.insert(number, id);
                self.by_run.insert(id, (number, lent));
                None
            }
            Err(error) => Some(Returned { number, end: Err(error), run: None }),
        }
    }

    /// The limits of the policy, by numbers of runs.
    fn limits(&self, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Limits {
        let limits = driver.limits();
        let limits = limits.into_iter().filter_map(|(flow, id, limit)| {
            let (number, _) = self.by_run.get(&driver.engine().run_of(flow)?)?;
            Some(((*number, id), limit))
        });
        limits.collect()
    }

    fn returned(&mut self, ended: slackline_executor::engine::backend::EndedRun) -> Option<Returned> {
        let (number, lent) = self.by_run.remove(&ended.run)?;
        self.by_number.remove(&number);
        Some(Returned { number, end: ended.how, run: Some(lent.back(ended.session)) })
    }
}
