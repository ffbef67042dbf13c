//! Flows that come at any time, under one policy on an engine that stays.
//!
//! - [`Host`], [`Order`]: whoever has runs to bring, and what is asked of the engine; [`drive`]: the loop;
//! - [`Returned`]: a run that is over, or cannot go on.
//!
//! A run is opened as one that is alone ([`Run::open`] with [`beside_others`](crate::run::Request::beside_others)), and given
//! to the loop; when its flows are over it comes back whole, so that its outcome can be written. Nothing here knows where
//! runs come from, who may bring them, or what is told of them: that is the host's.

use std::collections::BTreeMap;

use slackline_executor::engine::Observer;
pub use slackline_executor::engine::backend::{
    FlowOverrides, RunConfig, RunId, SharedEngine, SharedEngineConfig, SharedMachine,
};
use slackline_executor::run::RunEnd;
use slackline_executor::run::error::EngineError;
use slackline_model::schedule::NewRow;
use slackline_model::{History, Instance, Objective, SlotRange, Time};
use slackline_policy::engine::RowId;
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::plans::Plans;
use slackline_policy::{Config, Driver, Learning};
use slackline_task::base::activity;

use crate::policy_spec::PolicySpec;
use crate::run::{Lent, Run};
use crate::stopwatch::Stopwatch;

/// Names of phases that are remembered when their flows are over, to estimate those that come again.
const REMEMBERED: usize = 1_000;

/// Whoever brings runs to an engine that stays.
pub trait Host {
    /// What is asked now. The time is that of the engine, microseconds since its time began.
    fn orders(&mut self, now: Time) -> Vec<Order>;

    /// When it wants to be asked again, whatever happens.
    fn wakes_at(&self) -> Option<Time>;

    /// A run is over, or cannot go on.
    fn returned(&mut self, now: Time, returned: Returned);

    /// Whether to end the loop, with whatever still runs.
    fn is_over(&self) -> bool;

    /// The machines: at the beginning, and when one has gone, come back or joined.
    fn machines(&mut self, _machines: &[SharedMachine]) {}

    /// The flows that a limit of the policy keeps from free slots: whenever that changes.
    fn limits(&mut self, _limits: &Limits) {}

    /// Something that somebody should know of the machines.
    fn said(&mut self, _what: &str) {}

    /// How long the decisions of an instant took, nanoseconds.
    fn decided(&mut self, _nanos: u64) {}
}

/// By run and flow: the limit that keeps the flow from free slots.
pub type Limits = BTreeMap<(u64, String), String>;

/// What is asked of the engine. Runs are called by numbers that the host gives.
pub enum Order {
    /// A run is to be driven.
    Admit(Box<Admission>),
    /// A flow of a run stands in another way from now on.
    Stand {
        /// The run.
        number: u64,
        /// The flow.
        flow: String,
        /// How.
        standing: FlowOverrides,
    },
    /// A flow of a run is not to go on.
    Cancel {
        /// The run.
        number: u64,
        /// The flow.
        flow: String,
    },
}

/// A run that is brought.
pub struct Admission {
    /// What the host calls it.
    pub number: u64,
    /// The run, opened to be driven beside others.
    pub run: Run,
    /// What is known of its phases ([`Run::known`]).
    pub known: History,
    /// Flows that do not stand as their document says.
    pub standings: BTreeMap<String, FlowOverrides>,
    /// Whose it is, and how many slots all runs of theirs may hold together; none for as many as there are.
    pub quota: Option<(String, u32)>,
    /// Is told what happens in it, in the time of the run.
    pub observer: Box<dyn Observer + Send>,
}

/// A run that comes back.
pub struct Returned {
    /// What the host calls it.
    pub number: u64,
    /// How it ended. Where the engine could not go on with it, it can be brought again.
    pub end: Result<RunEnd, EngineError>,
    /// The run; none where the engine did not take it.
    pub run: Option<Run>,
}

/// Who decides, and by what rules.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The policy.
    pub policy: PolicySpec,
    /// What flows cost.
    pub objective: Objective,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
}

/// Drives what the host brings until it says that it is over; what still runs then is stopped, and comes back to be resumed
/// some day.
///
/// # Errors
/// The policy cannot decide any more, and why: what still ran comes back first.
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
        // How often a task may fail is the business of its run.
        .with_attempts_max(u16::MAX)
        .with_learning(Some(learning));
    let mut nowhere = Nowhere;
    let mut seats = Seats::default();
    let mut machines = resident.machines();
    host.machines(&machines);
    let mut limits = Limits::new();
    let mut driver = Driver::new(empty, policy.as_mut(), resident, &mut nowhere, config);
    while !host.is_over() {
        let now = driver.view().now;
        for order in host.orders(now) {
            if let Some(refused) = seats.carry_out(order, &mut driver) {
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
        let limits_now = seats.limits(&mut driver);
        if limits_now != limits {
            limits = limits_now;
            host.limits(&limits);
        }
        let now = driver.view().now;
        for ended in driver.engine().finished_runs() {
            seats.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
        }
    }
    let now = driver.view().now;
    let failure = driver.close().failure;
    for ended in resident.stop() {
        seats.returned(ended).into_iter().for_each(|returned| host.returned(now, returned));
    }
    failure.map_or(Ok(()), Err)
}

/// Rows and flows are in the journals of their runs.
struct Nowhere;

impl Sink for Nowhere {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {}

    fn flow(&mut self, _: &FlowEnd, _: &Instance) {}
}

/// The runs that the engine has.
#[derive(Default)]
struct Seats {
    by_number: BTreeMap<u64, RunId>,
    by_seat: BTreeMap<RunId, (u64, Lent)>,
}

impl Seats {
    /// Has the engine do what is asked; a run that it does not take comes back.
    fn carry_out(&mut self, order: Order, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Option<Returned> {
        match order {
            Order::Admit(admission) => return self.admit(*admission, driver),
            Order::Stand { number, flow, standing } => {
                if let Some(&seat) = self.by_number.get(&number) {
                    driver.engine().update_flow(seat, &flow, standing);
                }
            }
            Order::Cancel { number, flow } => {
                if let Some(&seat) = self.by_number.get(&number) {
                    driver.engine().cancel_flow(seat, &flow);
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
        let Admission { number, run, known, standings, quota, observer } = admission;
        driver.know(&known);
        let rules = run.request();
        let rules = RunConfig {
            attempts_max: rules.attempts_max,
            slowstart: rules.slowstart,
            overrides: standings,
            quota,
        };
        let (session, lent) = run.lend();
        match driver.engine().add_run(session, rules, observer) {
            Ok(seat) => {
                self.by_number.insert(number, seat);
                self.by_seat.insert(seat, (number, lent));
                None
            }
            Err(error) => Some(Returned { number, end: Err(error), run: None }),
        }
    }

    /// The limits of the policy, by the numbers of runs.
    fn limits(&self, driver: &mut Driver<'_, '_, dyn SharedEngine>) -> Limits {
        let limits = driver.limits();
        let limits = limits.into_iter().filter_map(|(flow, id, limit)| {
            let (number, _) = self.by_seat.get(&driver.engine().run_of(flow)?)?;
            Some(((*number, id), limit))
        });
        limits.collect()
    }

    fn returned(&mut self, ended: slackline_executor::engine::backend::EndedRun) -> Option<Returned> {
        let (number, lent) = self.by_seat.remove(&ended.run)?;
        self.by_number.remove(&number);
        Some(Returned { number, end: ended.how, run: Some(lent.back(ended.session)) })
    }
}
