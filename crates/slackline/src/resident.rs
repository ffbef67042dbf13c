//! The loop that drives runs under one policy on an engine: those that come to a service at any time, or one.
//!
//! - [`Host`]: brings runs, gives [`Order`]s to the engine and receives the results; [`drive`]: the loop;
//! - [`Returned`]: a run that has ended or cannot continue.
//!
//! A host gives the sessions of its runs to the loop. When the flows of a run have ended, the loop returns its
//! session, so that the outcome can be written. The host decides where runs come from, which users may submit
//! them, and what is reported about them.

use std::collections::BTreeMap;

use slackline_executor::engine::backend::{EndedRun, EngineEvent, without_flows};
pub use slackline_executor::engine::backend::{
    FlowOrder, FlowOverrides, RunConfig, RunId, SharedEngine, SharedEngineConfig, SharedMachine,
};
use slackline_executor::engine::event::EventCallback;
use slackline_executor::run::RunEnd;
use slackline_executor::run::error::EngineError;
pub use slackline_model::quota::{Quota, UserQuota};
use slackline_model::{Cluster, History, Objective, Time};
use slackline_policy::plans::Plans;
use slackline_policy::{Choice, Config, Driver, Figures, Learning};
use slackline_task::base::activity;

use crate::policy_spec::PolicySpec;
use crate::run::Session;
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
    /// Change a flow.
    Change {
        /// The run.
        number: u64,
        /// The flow.
        flow: String,
        /// What is to change.
        change: FlowOrder,
    },
}

/// A run to be driven.
pub struct Admission {
    /// Its number, given by the host.
    pub number: u64,
    /// Its session.
    pub session: Box<dyn Session>,
    /// Its settings.
    pub config: RunConfig,
    /// The known durations of its phases ([`Run::known`](crate::run::Run::known)).
    pub known: History,
    /// Receives its events, in the time of the run.
    pub on_event: EventCallback,
}

/// A run that the loop returns.
pub struct Returned {
    /// Its number, given by the host.
    pub number: u64,
    /// How it ended. After an engine error the run can be admitted again.
    pub end: Result<RunEnd, EngineError>,
    /// The session; `None` if the engine did not admit it.
    pub session: Option<Box<dyn Session>>,
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

/// How the loop ended.
#[derive(Clone, Debug, Default)]
pub struct Drove {
    /// Why the policy cannot continue.
    pub failure: Option<String>,
    /// Why flows can never finish, if the loop ended for that reason.
    pub unfinished: Vec<String>,
    /// Why the engine gave up, such as machines that will not come.
    pub gave_up: Option<String>,
    /// The choices of a policy that chooses between rules.
    pub choices: Vec<Choice>,
}

/// Drives the runs of the host until [`Host::is_over`]. Active runs are then stopped and returned, so that
/// they can be resumed later.
pub fn drive(resident: &mut (dyn SharedEngine + 'static), rules: &Rules, host: &mut dyn Host) -> Drove {
    let mut machines = resident.machines();
    let empty = without_flows(&machines);
    let mut policy = rules.policy.build(empty.cluster(), &rules.objective);
    let stopwatch = Stopwatch::start();
    let nanos = || stopwatch.nanos();
    let config = Config {
        slowstart: rules.slowstart,
        stopwatch: Some(&nanos),
        // The limit on failures of a task is a setting of its run, and the driver has none.
        attempts_max: u16::MAX,
        learning: Some(learning(empty.cluster())),
        ..Config::plain()
    };
    let mut nowhere = ();
    let mut admitted = AdmittedRuns::default();
    host.machines(&machines);
    let mut limits = Limits::new();
    let mut driver = Driver::new(empty, policy.as_mut(), resident, &mut nowhere, config);
    loop {
        let now = driver.view().now;
        for order in host.orders(now) {
            if let Some(refused) = admitted.carry_out(order, &mut driver) {
                host.returned(now, refused);
            }
        }
        if host.is_over() {
            break;
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
        let limits_now = admitted.limits(&mut driver);
        if limits_now != limits {
            limits = limits_now;
            host.limits(&limits);
        }
        let now = driver.view().now;
        for event in driver.engine().events() {
            match event {
                EngineEvent::Notice(what) => host.said(&what),
                EngineEvent::MachinesChanged => {
                    let machines_now = driver.engine().machines();
                    if machines_now != machines {
                        machines = machines_now;
                        host.machines(&machines);
                    }
                }
                EngineEvent::Ended(ended) => {
                    admitted.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
                }
            }
        }
    }
    let now = driver.view().now;
    let gave_up = driver.gave_up().map(str::to_owned);
    let Figures { failure, unfinished, .. } = driver.close();
    let unfinished = unfinished.iter().filter(|_| gave_up.is_none()).map(ToString::to_string).collect();
    for ended in resident.stop() {
        admitted.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
    }
    Drove { failure, unfinished, gave_up, choices: policy.choices().to_vec() }
}

/// What is learned of durations and speeds over all runs of an engine.
fn learning(cluster: &Cluster) -> Learning {
    Learning::new(cluster, &History::new()).guessing().believing_speeds(cluster).remembering(REMEMBERED)
}

/// The runs on the engine.
#[derive(Default)]
struct AdmittedRuns {
    by_number: BTreeMap<u64, RunId>,
    by_run: BTreeMap<RunId, u64>,
}

impl AdmittedRuns {
    /// Carries out an order. Returns a run that the engine does not admit.
    fn carry_out(&mut self, order: Order, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Option<Returned> {
        match order {
            Order::Admit(admission) => return self.admit(*admission, driver),
            Order::Change { number, flow, change } => {
                if let Some(&run) = self.by_number.get(&number) {
                    driver.engine().order_flow(run, &flow, change);
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
        let Admission { number, session, config, known, on_event } = admission;
        driver.know(&known);
        match driver.engine().add_run(session, config, on_event) {
            Ok(id) => {
                self.by_number.insert(number, id);
                self.by_run.insert(id, number);
                None
            }
            Err(error) => Some(Returned { number, end: Err(error), session: None }),
        }
    }

    /// The limits of the policy, by numbers of runs.
    fn limits(&self, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Limits {
        let limits = driver.limits();
        let limits = limits.into_iter().filter_map(|(flow, id, limit)| {
            let number = self.by_run.get(&driver.engine().run_of(flow)?)?;
            Some(((*number, id), limit))
        });
        limits.collect()
    }

    fn returned(&mut self, ended: EndedRun) -> Option<Returned> {
        let number = self.by_run.remove(&ended.run)?;
        self.by_number.remove(&number);
        Some(Returned { number, end: ended.how, session: Some(ended.session) })
    }
}
