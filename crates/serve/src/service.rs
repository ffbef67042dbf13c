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
mod own_paths;
pub mod paths;
pub mod pending_view;
pub mod run_observer;
pub mod scheduler;
mod setup;
pub mod store;
pub(crate) mod watchdog;
pub(crate) mod writer;

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use slackline::resident::Order;
use slackline::run::{self, Backend, HistoryStore};
use slackline_executor::store::log::LogError;
use slackline_model::WallTime;
use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock::{self, ClockReading};

use crate::api::Alert;
use crate::lock;
use crate::service::finalizer::Finalizer;
use crate::service::forecaster::{ForecastRequest, Forecaster};
use crate::service::handle::{Events, ServiceHandle, Timings};
use crate::service::launcher::{
    Launcher, LauncherPool, Machines, OpenedRun, OpenedRuns, Past, ThreadHandles,
};
use crate::service::message::{AnswerSender, Message, Tell, WriteResult};
use crate::service::run_observer::RecentAttempts;
use crate::service::scheduler::{DetachedRuns, Ports, Scheduler};
pub use crate::service::setup::Setup;
use crate::service::store::Store;
use crate::service::watchdog::{Blockage, Watchdog};
use crate::service::writer::{Write, Writer};
use crate::state::record::Record;
use crate::state::series::RunKey;
use crate::state::{Answer, Effect, HealthProblem, Refusal, RefusalKind, ServiceState, Transition, WorkItem};

/// How long the stop waits for the last records, and then for the other threads.
const LAST: Duration = Duration::from_millis(2_500);

/// The interval between two checks whether the threads have ended.
const STEP: Duration = Duration::from_millis(10);

/// The most messages received in one turn. It bounds the delay of an answer.
const AT_ONCE: usize = 1_000;

/// The longest sleep of the event loop.
const SLEEP: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine cannot be started.
    #[error("{0}")]
    Engine(String),
    /// The first record is not the start of a service.
    #[error("{0}: its first record is not the start of a service, expected the state directory of a service")]
    Foreign(String),
}

impl StartError {
    fn engine(problem: impl Display) -> Self {
        Self::Engine(problem.to_string())
    }
}

/// A running service.
pub struct Service {
    handle: ServiceHandle,
    is_over: Arc<AtomicBool>,
    state: JoinHandle<Result<(), String>>,
    others: ThreadHandles,
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
        let facts = setup.facts();
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
        Self::start_threads(setup, state, store, out, now)
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
            self.state.join().unwrap_or_else(|_| Err("the state thread ended unexpectedly".to_owned()));
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

impl Service {
    fn start_threads(
        setup: &Setup,
        state: ServiceState,
        store: Store,
        out: Transition,
        now: ClockReading,
    ) -> Result<Self, StartError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (questions, received) = channel::<Message>();
        let to = questions.clone();
        let tell: Tell = Arc::new(move |event| drop(to.send(Message::Event(event))));
        let history = HistoryStore::new(&setup.paths.history())?;
        let past: Past = Arc::new(Mutex::new(Arc::new(history.latest()?)));
        let (errands, to_open) = channel();
        let (looks, to_look) = channel();
        let (closing, to_close) = channel();
        let (alerts, to_alert) = channel();
        let (writes, to_write) = channel();
        let others = ThreadHandles::default();
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map(|thread| lock(&others).push(thread)).map_err(StartError::engine)
        };

        let backend: Arc<dyn Backend> = Arc::from(setup.engine.make().map_err(StartError::engine)?);
        let (readies, machines) = (OpenedRuns::default(), Machines::default());
        let launcher = Launcher {
            setup: setup.clone(),
            backend: backend.clone(),
            past: past.clone(),
            machines: machines.clone(),
            readies: readies.clone(),
        };
        let openers = LauncherPool::new(launcher, to_open, tell.clone(), others.clone());
        let openers = openers.map_err(StartError::Engine)?;
        let (blocked, over) = (Blockage::default(), is_over.clone());
        let watchdog =
            Watchdog { blocked: blocked.clone(), log: setup.warns.clone(), messages: questions.clone() };
        spawn("watchdog", Box::new(move || watchdog.work(&over, &openers)))?;
        let writer = Writer { store, paths: setup.paths.clone(), messages: questions.clone() };
        spawn("writer", Box::new(move || writer.work(&to_write)))?;
        let (timings, objective) = (Timings::default(), setup.objective());
        let forecast = run::Forecaster::new(setup.policy.clone(), Vec::new(), objective, setup.slowstart);
        let by = setup.looks_with.clone();
        let forecaster = Forecaster::new(forecast, by, state.began(), timings.predictions.clone());
        let to_state = tell.clone();
        spawn("forecaster", Box::new(move || forecaster.work(&to_look, &*to_state)))?;
        let (detached, known) = (DetachedRuns::default(), lock(&past).clone());
        let finalizer = Finalizer::new(history, past, detached.clone(), questions.clone());
        spawn("finalizer", Box::new(move || finalizer.work(&to_close)))?;
        let (hooks, over, failed) = (setup.hooks.clone(), is_over.clone(), questions.clone());
        let failed = move |alert: &Alert, problem: String| {
            let message = format!("alert {} of {} was not sent: {problem}", alert.kind.name(), alert.number);
            let _ = failed.send(Message::Happened("alert_failed", message));
        };
        spawn("hooks", Box::new(move || hooks.work(&to_alert, &over, &failed)))?;

        let recent = RecentAttempts::default();
        let ports = Ports {
            state: tell,
            looks: looks.clone(),
            detached,
            machines,
            closing,
            recent: recent.clone(),
            decisions: timings.decisions.clone(),
            is_over: is_over.clone(),
        };
        let scheduler = Scheduler::start(setup, state.began(), now, known, backend, ports);
        let scheduler = scheduler.map_err(StartError::Engine)?;
        let events = Events::default();
        let (paths, zone) = (setup.paths.clone(), setup.zone.clone());
        let handle =
            ServiceHandle { questions, events: events.clone(), recent, timings, paths, blocked, zone };
        let event_loop = EventLoop {
            state,
            writes,
            in_flight: None,
            next: Batch { out, waiting: Vec::new() },
            scheduler,
            errands,
            looks,
            readies,
            alerts: (!setup.hooks.is_empty()).then_some(alerts),
            events,
            is_over: is_over.clone(),
        };
        let builder = std::thread::Builder::new().name("events".to_owned());
        let thread = builder.spawn(move || event_loop.work(&received));
        let state = thread.map_err(StartError::engine)?;
        Ok(Self { handle, is_over, state, others })
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
type Waiting = (AnswerSender, Answer);

/// Records, and the effects and answers that wait until they are on disk.
#[derive(Default)]
struct Batch {
    out: Transition,
    waiting: Vec<Waiting>,
}

impl Batch {
    fn append(&mut self, mut later: Self) {
        self.out.append(&mut later.out);
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
    fn work(mut self, received: &Receiver<Message>) -> Result<(), String> {
        activity::announce("the state thread", Duty::Loop);
        self.write();
        while !self.is_over.load(Ordering::SeqCst) && !self.scheduler.has_ended() {
            match received.recv_timeout(self.patience()) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            activity::turn();
            for message in received.try_iter().take(AT_ONCE) {
                self.take(message);
            }
            self.state.tick(ClockReading::read(), &mut self.next.out);
            self.write();
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

    /// Handles a message. A refusal is sent at once, because it needs no record. The other answers and the
    /// effects wait until the records are on disk.
    fn take(&mut self, message: Message) {
        let (now, out) = (ClockReading::read(), &mut self.next.out);
        match message {
            Message::Command(principal, command, answer) => {
                match self.state.execute(now, &principal, command, out) {
                    Ok(answered) => self.next.waiting.push((answer, answered)),
                    // The client may have disconnected.
                    Err(refusal) => drop(answer.send(Err(refusal))),
                }
            }
            Message::Query(query) => self.state.query(now, out, query),
            Message::Event(event) => self.state.apply_event(now, event, out),
            Message::Problem(of, problem) => self.state.set_trouble(of, problem),
            Message::Happened(kind, message) => self.state.tell_of_service(now, kind, message, out),
            Message::Written(written) => self.written(written),
        }
    }

    /// Hands the next batch to an idle writer. The batches of a busy writer are written together.
    fn write(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        if self.next.out.records.is_empty() {
            self.next.out.records.extend(self.state.trial());
        }
        let mut batch = std::mem::take(&mut self.next);
        let name = |effect: &Effect| match effect {
            Effect::Forget { key, at } => Some((*at, key.clone())),
            _ => None,
        };
        let forgotten: Vec<(WallTime, RunKey)> = batch.out.effects.iter().filter_map(name).collect();
        if batch.out.records.is_empty() && forgotten.is_empty() {
            return self.finish(batch);
        }
        let records = std::mem::take(&mut batch.out.records);
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
            (Some(InFlight::Append(mut batch)), Err(problem)) => {
                batch.out.records = records;
                batch.append(std::mem::take(&mut self.next));
                self.not_written(&problem, batch);
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
            let _ = answer.send(Ok(answered));
        }
        self.carry_out(batch.out.effects);
    }

    /// Handles a failed write: revokes its submissions and refuses its commands. Its other records are
    /// written with the next batch.
    fn not_written(&mut self, problem: &str, Batch { out, waiting }: Batch) {
        let Transition { mut records, mut effects } = out;
        let is_submission = |record: &Record| match record {
            Record::Submitted { number, wanted, .. } if wanted.recurrence.is_none() => Some(*number),
            _ => None,
        };
        let revoked: Vec<u64> = records.iter().filter_map(is_submission).collect();
        records.retain(|record| is_submission(record).is_none());
        self.next.out.records = records;
        for &number in &revoked {
            self.state.revoke(number);
        }
        self.state.set_trouble(HealthProblem::Log, Some(problem.to_owned()));
        for (answer, _) in waiting {
            let _ = answer.send(Err(Refusal::new(RefusalKind::Unavailable, problem)));
        }
        effects.retain(
            |effect| !matches!(effect, Effect::Launch(WorkItem::Open(number, _)) if revoked.contains(number)),
        );
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Launch(item) => drop(self.errands.send(item)),
                Effect::Admit { number, name, quota, standings, deadlines } => {
                    let Some(opened) = lock(&self.readies).remove(&number) else { continue };
                    let OpenedRun { run, known, followed } = opened;
                    // The forecaster knows the run before the first forecast of it.
                    let _ = self.looks.send(ForecastRequest::Track {
                        number,
                        name,
                        started: WallTime(run.record().started),
                        followed: Box::new(followed.with_quota(quota.clone())),
                        standings: standings.clone(),
                        deadlines,
                    });
                    self.scheduler.admit(number, run, known, standings, quota);
                }
                Effect::Change { number, flow, change } => {
                    // The forecaster gets this first, because the next forecast needs it.
                    let _ = self.looks.send(ForecastRequest::Change(number, flow.clone(), change));
                    self.scheduler.order(Order::Change { number, flow, change });
                }
                // The writer has moved the directory aside.
                Effect::Forget { .. } => {}
                Effect::ClockJumped(by) => drop(self.looks.send(ForecastRequest::ClockJumped(by))),
                Effect::Predict { number } => drop(self.looks.send(ForecastRequest::Predict(number))),
                Effect::Alert(alert) => {
                    if let Some(alerts) = &self.alerts {
                        let _ = alerts.send(alert);
                    }
                }
                Effect::Event(event) => self.events.tell(event),
            }
        }
    }
}
