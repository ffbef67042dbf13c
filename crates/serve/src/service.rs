//! The running service: the event loop owns the [`ServiceState`], and other threads write its records and
//! carry out its effects.
//!
//! ```text
//!  commands ─┐                 ┌─► launchers ────┐ opened runs
//!  events   ─┼─► state ─► log ─┼─► scheduler ────┼─► finalizer ─┐
//!            ┘    ▲            ├─► forecaster    │              │
//!                 │            ├─► hooks, events │              │
//!                 └────────────┴─────────────────┴──────────────┘
//! ```
//!
//! The writer thread appends records with one flush, while the event loop receives the next messages. Answers
//! and effects wait until their records are on disk. Answers that change nothing do not wait. No thread in
//! the diagram waits for another. The watchdog names a blocked thread.

pub mod durations;
pub mod explain;
pub(crate) mod finalizer;
pub mod flow_file;
pub mod forecaster;
pub mod handle;
pub mod hooks;
pub mod launcher;
pub mod message;
pub mod paths;
pub mod pending_view;
pub mod run_observer;
pub mod scheduler;
pub mod store;
pub(crate) mod watchdog;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use slackline::PolicySpec;
use slackline::report::headline;
use slackline::resident::{FlowOverrides, Rules, UserQuota};
use slackline::run::{self, Backend, EngineSpec, HistoryStore};
use slackline_executor::store::log::LogError;
use slackline_model::{Combine, Metric, Objective, Time};
use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock::{self, ClockReading};

use crate::Moment;
use crate::api::{Alert, Event};
use crate::service::finalizer::Finalizer;
use crate::service::forecaster::{ForecastRequest, Forecaster};
use crate::service::handle::{Events, ServiceHandle, Timings};
use crate::service::hooks::Hooks;
use crate::service::launcher::{Launcher, LauncherPool, Machines, OpenedRuns, Past, ThreadHandles, WorkItem};
use crate::service::message::{CommandRequest, Message, StatusCallback};
use crate::service::paths::ServicePaths;
use crate::service::run_observer::RecentAttempts;
use crate::service::scheduler::{EngineCommand, Ports, Scheduler, Start};
use crate::service::store::Store;
use crate::service::watchdog::{Blockage, Watchdog};
use crate::service::writer::{Write, WriteResult, Writer};
use crate::state::record::Record;
use crate::state::{
    Answer, Effect, HealthProblem, Limits, Refusal, RefusalKind, ServiceFacts, ServiceState, StateEvent,
    Transition,
};

/// The number of threads that open runs.
const OPENERS: usize = 4;

/// How long the stop waits for the last records, and then for the other threads.
const LAST: Duration = Duration::from_millis(2_500);

/// The interval between two checks whether the threads have ended.
const STEP: Duration = Duration::from_millis(10);

/// The most messages received in one turn. It bounds the delay of an answer.
const AT_ONCE: usize = 1_000;

/// The longest sleep of the event loop.
const SLEEP: Duration = Duration::from_secs(1);

/// The configuration of a service.
#[derive(Clone)]
pub struct Setup {
    /// The state directory.
    pub paths: ServicePaths,
    pub engine: EngineSpec,
    pub policy: PolicySpec,
    /// The policy that simulates forecasts: the same, or a faster one.
    pub looks_with: PolicySpec,
    /// Replaces the cost metric of the flow files.
    pub metric: Option<Metric>,
    /// The combination of the flow costs into the objective.
    pub combine: Combine,
    /// The fraction of maps after which reduces may take slots.
    pub slowstart: f64,
    /// The most attempts of a task whose job sets no limit.
    pub attempts_max: u16,
    pub limits: Limits,
    /// The receivers of alerts.
    pub hooks: Hooks,
    /// The time zone of schedules without a zone.
    pub zone: jiff::tz::TimeZone,
    /// Receives status lines while the engine starts.
    pub says: StatusCallback,
    /// Receives warnings for the operator, about blocked threads.
    pub warns: StatusCallback,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine cannot be started.
    #[error("{0}")]
    Engine(String),
    /// The first record is not the start of a service.
    #[error("{0}: found records that do not begin a service, expected the state of one")]
    Foreign(String),
}

/// A running service.
pub struct Service {
    handle: ServiceHandle,
    is_over: Arc<AtomicBool>,
    state: JoinHandle<Result<(), String>>,
    others: ThreadHandles,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Starts a service, or resumes one from its state directory with all unfinished submissions. All flows
    /// run as the user of this process.
    ///
    /// # Errors
    /// The state directory is unusable, or the engine cannot be started.
    pub fn start(setup: &Setup) -> Result<Self, StartError> {
        let now = ClockReading::read();
        let (mut store, records) = Store::open(setup.paths.root())?;
        let facts = facts(setup);
        let (state, out) = if records.is_empty() {
            let (state, began) = ServiceState::new(facts, now);
            store.append(&[began])?;
            (state, Transition::default())
        } else {
            let foreign = || StartError::Foreign(setup.paths.root().display().to_string());
            ServiceState::replayed(facts, now, records).ok_or_else(foreign)?
        };
        std::fs::create_dir_all(setup.paths.all_gone()).map_err(|problem| LogError::File {
            name: format!("state of the service {}", setup.paths.root().display()),
            problem,
        })?;
        // The rewritten log leaves out forgotten submissions.
        store.replace(&state.records())?;
        Threads::start(setup, state, store, out, now)
    }

    pub fn handle(&self) -> &ServiceHandle {
        &self.handle
    }

    /// Whether the event loop has ended without a stop.
    pub fn has_ended(&self) -> bool {
        self.state.is_finished()
    }

    /// Stops all running tasks, and waits until they have ended. Their runs resume when the service is
    /// started again.
    ///
    /// # Errors
    /// The error that ended the service, if it ended before the stop.
    pub fn stop(self) -> Result<(), String> {
        self.is_over.store(true, Ordering::SeqCst);
        // The event loop checks `is_over` at least once a second.
        let ended =
            self.state.join().unwrap_or_else(|_| Err("the desk ended in the middle of something".to_owned()));
        // A restart recovers the work of a thread that is still blocked.
        for _ in 0..LAST.as_millis() / STEP.as_millis() {
            if lock(&self.others).iter().all(JoinHandle::is_finished) {
                break;
            }
            clock::pause(STEP);
        }
        ended
    }
}

impl Setup {
    fn launcher(
        &self,
        backend: &Arc<dyn Backend>,
        past: &Past,
        machines: &Machines,
        readies: &OpenedRuns,
    ) -> Launcher {
        Launcher {
            paths: self.paths.clone(),
            backend: backend.clone(),
            policy: self.policy.clone(),
            metric: self.metric,
            slowstart: self.slowstart,
            attempts_max: self.attempts_max,
            past: past.clone(),
            machines: machines.clone(),
            readies: readies.clone(),
        }
    }

    /// The forecaster of a service that was first started at `began`.
    fn forecaster(&self, began: Moment, timings: &Timings) -> Forecaster {
        let outlook = run::Forecaster::new(self.policy.clone(), Vec::new(), self.objective(), self.slowstart);
        Forecaster::new(outlook, self.looks_with.clone(), began, timings.predictions.clone())
    }

    fn objective(&self) -> Objective {
        Objective::new(self.metric.unwrap_or(Metric::Response), self.combine)
    }
}

fn alert_failed(alert: &Alert, problem: impl Display) -> Message {
    let message = format!("{} of {} was not told: {problem}", alert.kind.name(), alert.number);
    Message::Happened("alert_failed", message)
}

fn facts(setup: &Setup) -> ServiceFacts {
    ServiceFacts {
        engine: setup.engine.name().to_owned(),
        policy: setup.policy.spec().to_owned(),
        objective: headline::objective(setup.objective()),
        zone: setup.zone.clone(),
        limits: setup.limits.clone(),
    }
}

struct Threads;

impl Threads {
    fn start(
        setup: &Setup,
        state: ServiceState,
        store: Store,
        out: Transition,
        now: ClockReading,
    ) -> Result<Service, StartError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (messages, received) = channel::<Message>();
        let event = |messages: &Sender<Message>| {
            let messages = messages.clone();
            move |event: StateEvent| drop(messages.send(Message::Event(event)))
        };
        let history = HistoryStore::new(&setup.paths.history())?;
        let past: Past = Arc::new(RwLock::new(Arc::new(history.latest()?)));
        let (recent, readies, machines) =
            (RecentAttempts::default(), OpenedRuns::default(), Machines::default());
        let (errands, to_open) = channel();
        let (looks, to_look) = channel();
        let (closing, to_close) = channel();
        let (alerts, to_alert) = channel();
        let others = ThreadHandles::default();
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread
                .map(|thread| lock(&others).push(thread))
                .map_err(|error| StartError::Engine(error.to_string()))
        };
        let blocked = Blockage::default();

        let backend: Arc<dyn Backend> =
            Arc::from(setup.engine.make().map_err(|e| StartError::Engine(e.to_string()))?);
        let launcher = setup.launcher(&backend, &past, &machines, &readies);
        let to_open = Arc::new(Mutex::new(to_open));
        let (started, threads) = (AtomicUsize::new(0), others.clone());
        let openers = LauncherPool { launcher, to_open, messages: messages.clone(), started, threads };
        (0..OPENERS).try_for_each(|_| openers.start()).map_err(StartError::Engine)?;
        let watchdog = Watchdog::new(blocked.clone(), setup.warns.clone(), messages.clone());
        let (over, (writes, to_write)) = (is_over.clone(), channel());
        spawn("watchdog", Box::new(move || watchdog.work(&over, &openers)))?;
        let writer = Writer { store, paths: setup.paths.clone() };
        let written = messages.clone();
        let tell = move |what| drop(written.send(Message::Written(what)));
        spawn("writer", Box::new(move || writer.work(&to_write, &tell)))?;
        let timings = Timings::default();
        let forecaster = setup.forecaster(state.began(), &timings);
        let tell = event(&messages);
        spawn("forecaster", Box::new(move || forecaster.work(&to_look, &tell)))?;
        let troubled = messages.clone();
        let finalizer = Finalizer::new(history, past.clone(), move |message| drop(troubled.send(message)));
        let tell = event(&messages);
        spawn("finalizer", Box::new(move || finalizer.work(&to_close, &tell)))?;
        let (hooks, over, failed) = (setup.hooks.clone(), is_over.clone(), messages.clone());
        let failed = move |alert: &Alert, problem| drop(failed.send(alert_failed(alert, problem)));
        spawn("hooks", Box::new(move || hooks.work(&to_alert, &over, &failed)))?;

        let ports = Ports {
            state: Arc::new(event(&messages)),
            looks: looks.clone(),
            readies: readies.clone(),
            machines,
            closing,
            recent: recent.clone(),
            decisions: timings.decisions.clone(),
            is_over: is_over.clone(),
        };
        let (policy, objective) = (setup.policy.clone(), setup.objective());
        let rules = Rules { policy, objective, slowstart: setup.slowstart };
        let seen = Time(now.wall.0.saturating_sub(state.began()));
        let known = past.read().map_or_else(|held| held.into_inner().clone(), |past| past.clone());
        let start =
            Start { paths: &setup.paths, began: state.began(), seen, past: known, says: setup.says.clone() };
        let scheduler = Scheduler::start(start, backend, rules, ports).map_err(StartError::Engine)?;
        let events = Events::default();
        let handle = ServiceHandle {
            questions: messages,
            events: events.clone(),
            recent,
            timings,
            paths: setup.paths.clone(),
            blocked,
        };
        let event_loop = EventLoop {
            state,
            writes,
            in_flight: None,
            next: Batch::default(),
            scheduler,
            errands,
            looks,
            readies,
            alerts: (!setup.hooks.is_empty()).then_some(alerts),
            events,
            is_over: is_over.clone(),
        };
        let builder = std::thread::Builder::new().name("events".to_owned());
        let thread = builder.spawn(move || event_loop.work(&received, out));
        let state = thread.map_err(|error| StartError::Engine(error.to_string()))?;
        Ok(Service { handle, is_over, state, others })
    }
}

/// The event loop: the state, and the channels to the other threads.
struct EventLoop {
    state: ServiceState,
    writes: Sender<Write>,
    /// The batch that the writer is writing.
    in_flight: Option<InFlight>,
    next: Batch,
    scheduler: Scheduler,
    errands: Sender<WorkItem>,
    looks: Sender<ForecastRequest>,
    readies: OpenedRuns,
    alerts: Option<Sender<Alert>>,
    events: Events,
    is_over: Arc<AtomicBool>,
}

/// An answer that waits until its records are on disk.
type Waiting = (tokio::sync::oneshot::Sender<Result<Answer, Refusal>>, Result<Answer, Refusal>);

/// Records, and the effects and answers that wait until they are on disk.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    effects: Vec<Effect>,
    waiting: Vec<Waiting>,
}

impl Batch {
    fn append(&mut self, mut later: Self) {
        self.records.append(&mut later.records);
        self.effects.append(&mut later.effects);
        self.waiting.append(&mut later.waiting);
    }
}

/// The work of the writer.
enum InFlight {
    /// Append records. The writer returns the records with its result.
    Append(Batch),
    /// Rewrite the log with all records of the state, including those of the batch.
    Replace(Batch),
}

impl EventLoop {
    fn work(mut self, received: &Receiver<Message>, out: Transition) -> Result<(), String> {
        activity::announce("the desk", Duty::Loop);
        self.settle(out, Vec::new());
        while !self.is_over.load(Ordering::SeqCst) && !self.scheduler.has_ended() {
            let (mut out, mut waiting) = (Transition::default(), Vec::new());
            match received.recv_timeout(self.patience()) {
                Ok(message) => self.take(message, &mut out, &mut waiting),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            activity::turn();
            for message in received.try_iter().take(AT_ONCE) {
                self.take(message, &mut out, &mut waiting);
            }
            self.state.tick(ClockReading::read(), &mut out);
            self.settle(out, waiting);
        }
        self.is_over.store(true, Ordering::SeqCst);
        self.scheduler.wake();
        self.write_last(received);
        self.scheduler.join()
    }

    /// Waits until the records of earlier commands are on disk, at most `LAST`. A command without an answer
    /// after that was not accepted.
    fn write_last(&mut self, received: &Receiver<Message>) {
        while self.in_flight.is_some() {
            match received.recv_timeout(LAST) {
                Ok(Message::Written(written)) => self.written(written),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn patience(&self) -> Duration {
        Duration::from_micros(self.state.due(ClockReading::read())).min(SLEEP)
    }

    fn take(&mut self, message: Message, out: &mut Transition, waiting: &mut Vec<Waiting>) {
        let now = ClockReading::read();
        match message {
            Message::Command(CommandRequest { principal, command, answer }) => {
                let answered = self.state.execute(now, &principal, command, out);
                waiting.push((answer, answered));
            }
            Message::Event(event) => self.state.apply_event(now, event, out),
            Message::Problem(of, problem) => self.state.set_trouble(of, problem),
            Message::Happened(kind, message) => self.state.tell_of_service(now, kind, message, out),
            Message::Written(written) => self.written(written),
        }
    }

    /// Sends answers that need no record. The others and the effects wait until the records are on disk.
    fn settle(&mut self, out: Transition, waiting: Vec<Waiting>) {
        for (answer, answered) in waiting {
            if is_look(&answered) {
                // The client may have disconnected.
                let _ = answer.send(answered);
            } else {
                self.next.waiting.push((answer, answered));
            }
        }
        self.next.append(Batch { records: out.records, effects: out.effects, waiting: Vec::new() });
        self.write();
    }

    /// Hands the next batch to an idle writer. The batches of a busy writer are written together.
    fn write(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        if self.next.records.is_empty() {
            self.next.records.extend(self.state.trial());
        }
        let mut batch = std::mem::take(&mut self.next);
        let name = |effect: &Effect| match effect {
            Effect::Forget { name, at } => Some((*at, name.clone())),
            _ => None,
        };
        let forgotten: Vec<(Moment, String)> = batch.effects.iter().filter_map(name).collect();
        if batch.records.is_empty() && forgotten.is_empty() {
            return self.finish(batch);
        }
        let records = std::mem::take(&mut batch.records);
        let needed = self.state.least_records();
        self.in_flight = Some(InFlight::Append(batch));
        // A writer that is gone has panicked. Then no more answers are sent.
        let _ = self.writes.send(Write::Append { records, forgotten, needed });
    }

    /// Handles the result of the writer.
    fn written(&mut self, WriteResult { records, outcome }: WriteResult) {
        match (self.in_flight.take(), outcome) {
            (Some(InFlight::Append(batch)), Ok(is_grown)) => {
                self.state.set_trouble(HealthProblem::Log, None);
                self.finish(batch);
                if is_grown {
                    let batch = std::mem::take(&mut self.next);
                    self.in_flight = Some(InFlight::Replace(batch));
                    let _ = self.writes.send(Write::Replace(self.state.records()));
                }
            }
            (Some(InFlight::Append(batch)), Err(problem)) => {
                let mut all = Batch { records, ..batch };
                all.append(std::mem::take(&mut self.next));
                self.not_written(&problem, all);
            }
            (Some(InFlight::Replace(batch)), Ok(_)) => {
                self.state.set_trouble(HealthProblem::Compaction, None);
                self.finish(batch);
            }
            (Some(InFlight::Replace(mut batch)), Err(problem)) => {
                self.state.set_trouble(HealthProblem::Compaction, Some(problem));
                batch.append(std::mem::take(&mut self.next));
                self.next = batch;
            }
            (None, _) => {}
        }
        self.write();
    }

    /// Sends the answers and carries out the effects of a batch that is on disk.
    fn finish(&mut self, batch: Batch) {
        for (answer, answered) in batch.waiting {
            // The client may have disconnected.
            let _ = answer.send(answered);
        }
        self.carry_out(batch.effects);
    }

    /// Handles a failed write: revokes its submissions and refuses its commands. Its other records are
    /// written with the next batch.
    fn not_written(&mut self, problem: &str, mut batch: Batch) {
        let is_submission = |record: &Record| match record {
            Record::Submitted { number, wanted, .. } if wanted.recurrence.is_none() => Some(*number),
            _ => None,
        };
        let revoked: Vec<u64> = batch.records.iter().filter_map(is_submission).collect();
        batch.records.retain(|record| is_submission(record).is_none());
        self.next.records = batch.records;
        for &number in &revoked {
            self.state.revoke(number);
        }
        self.state.set_trouble(HealthProblem::Log, Some(problem.to_owned()));
        for (answer, _) in batch.waiting {
            let message = problem.to_owned();
            let _ = answer.send(Err(Refusal { kind: RefusalKind::Unavailable, message }));
        }
        let of_revoked = |effect: &Effect| matches!(effect, Effect::Open(number) if revoked.contains(number));
        self.carry_out(batch.effects.into_iter().filter(|effect| !of_revoked(effect)).collect());
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Open(number) => {
                    self.work_item(number, |number, wanted| WorkItem::Open { number, wanted });
                }
                Effect::Look(number) => {
                    self.work_item(number, |number, wanted| WorkItem::Look { number, wanted });
                }
                Effect::Read(number) => {
                    self.work_item(number, |number, wanted| WorkItem::Read { number, wanted });
                }
                Effect::Admit { number, standings } => self.admit(number, standings),
                Effect::Change { number, flow, change } => {
                    // The forecaster gets this first, because the next forecast needs it.
                    let _ = self.looks.send(ForecastRequest::Change(number, flow.clone(), change));
                    self.scheduler.order(EngineCommand::Change(number, flow, change));
                }
                // The writer has moved the directory aside.
                Effect::Forget { .. } => {}
                Effect::RemoveAside(before) => {
                    let _ = self.errands.send(WorkItem::RemoveAside(before));
                }
                Effect::ClockJumped(by) => drop(self.looks.send(ForecastRequest::ClockJumped(by))),
                Effect::Predict { number } => drop(self.looks.send(ForecastRequest::Predict(number))),
                Effect::Alert(alert) => {
                    if let Some(alerts) = &self.alerts {
                        let _ = alerts.send(alert);
                    }
                }
                Effect::Event(event) => self.tell(event),
            }
        }
    }

    /// Hands an open run to the forecaster, then to the scheduler. So the forecaster knows the run before the
    /// first forecast of it.
    fn admit(&self, number: u64, standings: BTreeMap<String, FlowOverrides>) {
        let user = self.state.wanted(number).map(|wanted| wanted.user.clone());
        let quota = user.zip(self.state.slots_by_user()).map(|(user, slots)| UserQuota { user, slots });
        let mut readies = lock(&self.readies);
        if let Some(ready) = readies.get_mut(&number)
            && let Some(followed) = ready.followed.take()
        {
            let _ = self.looks.send(ForecastRequest::Track {
                number,
                name: self.state.wanted(number).map_or_else(String::new, |wanted| wanted.name.clone()),
                started: ready.run.record().started,
                followed: Box::new(followed.with_quota(quota.clone())),
                standings: standings.clone(),
                deadlines: self.state.deadlines_of(number),
            });
        }
        drop(readies);
        self.scheduler.order(EngineCommand::Admit { number, overrides: standings, quota });
    }

    fn work_item(
        &self,
        number: u64,
        make: impl FnOnce(u64, Box<crate::state::record::SubmissionSpec>) -> WorkItem,
    ) {
        if let Some(wanted) = self.state.wanted(number) {
            let _ = self.errands.send(make(number, Box::new(wanted.clone())));
        }
    }

    fn tell(&self, event: Event) {
        self.events.tell(event);
    }
}

/// Whether an answer changes nothing, so that it needs no record on disk.
fn is_look(answered: &Result<Answer, Refusal>) -> bool {
    matches!(
        answered,
        Err(_)
            | Ok(Answer::Submissions(_)
                | Answer::Submission(_)
                | Answer::Pending(_)
                | Answer::Service(_)
                | Answer::Load(_)
                | Answer::Alerts(_)
                | Answer::Recurrences(_))
    )
}
