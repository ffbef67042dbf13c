//! The thread that drives the engine: it carries out the orders of the state, and returns finished runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use slackline::resident::{
    Admission, FlowOverrides, Host, Limits, Order, Returned, Rules, RunConfig, SharedEngineConfig,
    SharedMachine, UserQuota, drive,
};
use slackline::run::{Backend, DetachedRun, JobHistory, Request, Run, RunEvent, RunRecord};
use slackline_model::cluster::Slots;
use slackline_model::{History, Time, WallTime};
use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock::ClockReading;

use crate::service::durations::SharedHistogram;
use crate::service::forecaster::ForecastRequest;
use crate::service::launcher::Machines;
use crate::service::message::Tell;
use crate::service::run_observer::{RecentAttempts, Watch};
use crate::service::setup::Setup;
use crate::state::StateEvent;
use crate::{api, lock};

/// The admitted runs, without the sessions that the engine has, by number.
pub type DetachedRuns = Arc<Mutex<BTreeMap<u64, DetachedRun>>>;

/// Interrupts the engine's wait.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The receivers of the scheduler's events.
#[derive(Clone)]
pub struct Ports {
    pub state: Tell,
    /// The forecaster.
    pub looks: Sender<ForecastRequest>,
    /// The admitted runs, for the finalizer.
    pub detached: DetachedRuns,
    /// The machines, for the launchers.
    pub machines: Machines,
    /// The finalizer, which gets ended runs.
    pub closing: Sender<Returned>,
    /// Recently ended attempts.
    pub recent: RecentAttempts,
    /// The durations of decisions.
    pub decisions: SharedHistogram,
    pub is_over: Arc<AtomicBool>,
}

/// The scheduler with a started engine.
pub struct Scheduler {
    orders: Sender<Order>,
    ports: Ports,
    waker: Waker,
    thread: std::thread::JoinHandle<Result<(), String>>,
}

impl Scheduler {
    /// Starts the thread, and waits until the engine has started.
    ///
    /// # Errors
    /// The engine cannot be started.
    pub fn start(
        setup: &Setup,
        began: WallTime,
        now: ClockReading,
        past: Arc<JobHistory>,
        engine: Arc<dyn Backend>,
        ports: Ports,
    ) -> Result<Self, String> {
        let (orders, received) = channel();
        let of_host = ports.clone();
        let (ready, is_ready) = channel();
        let (files, says) = (setup.paths.engine(), setup.says.clone());
        let (policy, objective) = (setup.policy.clone(), setup.objective());
        let rules = Rules { policy, objective, slowstart: setup.slowstart };
        // The time of the engine starts when the service started first.
        let seen = Time(now.wall.since(began));
        let thread = std::thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
            let says = |what: &str| says(what);
            let residence =
                SharedEngineConfig { files: &files, started: began.0, seen, past: &past, status: &says };
            let mut resident = match engine.shared_engine(residence) {
                Ok(resident) => resident,
                Err(error) => {
                    // The receiver ends `start` with this error.
                    let _ = ready.send(Err(error.to_string()));
                    return Ok(());
                }
            };
            let mut host = ServiceHost { received, ports: of_host };
            // The launchers need the machines as soon as `start` returns.
            host.machines(&resident.machines());
            let _ = ready.send(Ok(resident.waker()));
            activity::announce("the scheduler", Duty::Loop);
            // The name of this operation for the watchdog, unless an inner operation has a name: the policy
            // decides.
            activity::during("decide by policy", rules.policy.spec(), || {
                drive(resident.as_mut(), &rules, &mut host).failure.map_or(Ok(()), Err)
            })
        });
        let thread = thread.map_err(|error| error.to_string())?;
        let waker = is_ready.recv().map_err(|_| "the engine could not be started".to_owned())??;
        Ok(Self { orders, ports, waker, thread })
    }

    pub fn order(&self, order: Order) {
        // `join` reports the error of a scheduler that has ended.
        let _ = self.orders.send(order);
        (self.waker)();
    }

    /// Starts scheduling an open run.
    pub fn admit(
        &self,
        number: u64,
        run: Run,
        known: History,
        overrides: BTreeMap<String, FlowOverrides>,
        quota: Option<UserQuota>,
    ) {
        let Request { attempts_max, slowstart, .. } = *run.request();
        let config = RunConfig { attempts_max, slowstart, overrides, quota };
        let (session, detached) = run.lend();
        lock(&self.ports.detached).insert(number, detached);
        let RunRecord { started, workload, .. } = session.record();
        let (state, looks) = (self.ports.state.clone(), self.ports.looks.clone());
        let tell = move |now, event: &RunEvent| {
            state(StateEvent::Run { number, event: event.clone() });
            // A forecaster that is gone needs nothing.
            let _ = looks.send(ForecastRequest::RunEvent(number, now, event.clone()));
        };
        let mut watch = Watch::new(number, WallTime(started), workload, self.ports.recent.clone(), tell);
        let on_event = Box::new(move |now: Time, event: &RunEvent| watch.happened(now, event));
        self.order(Order::Admit(Box::new(Admission { number, session, config, known, on_event })));
    }

    /// Wakes the engine, so that it notices the stop.
    pub fn wake(&self) {
        (self.waker)();
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// The policy has failed.
    pub fn join(self) -> Result<(), String> {
        self.thread.join().unwrap_or_else(|_| Err("the scheduler thread ended unexpectedly".to_owned()))
    }
}

/// The host of the engine, which forwards the orders of the state.
struct ServiceHost {
    received: Receiver<Order>,
    ports: Ports,
}

impl Host for ServiceHost {
    fn orders(&mut self, _: Time) -> Vec<Order> {
        self.received.try_iter().collect()
    }

    fn wakes_at(&self) -> Option<Time> {
        None
    }

    fn returned(&mut self, _: Time, returned: Returned) {
        let _ = self.ports.looks.send(ForecastRequest::Forget(returned.number));
        // The finalizer closes the run, because it writes documents.
        let _ = self.ports.closing.send(returned);
    }

    fn is_over(&self) -> bool {
        self.ports.is_over.load(Ordering::SeqCst)
    }

    fn machines(&mut self, machines: &[SharedMachine]) {
        let all = machines.iter().map(|machine| machine.draft.clone()).collect();
        *lock(&self.ports.machines) = all;
        let up = machines.iter().filter(|machine| machine.is_up).map(|machine| machine.draft.clone());
        let _ = self.ports.looks.send(ForecastRequest::Machines(up.collect()));
        let shown = machines.iter().map(|SharedMachine { draft, is_up }| {
            let slots = match draft.slots {
                Slots::Generic(slots) => slots,
                Slots::MapReduce { map, reduce } => map + reduce,
            };
            api::Machine {
                machine: draft.name.clone(),
                slots: u64::from(slots) * u64::from(draft.count),
                up: *is_up,
            }
        });
        (self.ports.state)(StateEvent::Machines(shown.collect()));
    }

    fn limits(&mut self, limits: &Limits) {
        (self.ports.state)(StateEvent::Limits(limits.clone()));
    }

    fn said(&mut self, what: &str) {
        (self.ports.state)(StateEvent::Machine(what.to_owned()));
    }

    fn decided(&mut self, nanos: u64) {
        self.ports.decisions.add(nanos as f64 / 1e9);
    }
}
