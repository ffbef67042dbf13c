//! The engine: attempts are processes, their output is committed by renaming, time is real.
//!
//! It takes no scheduling decision: it starts what the driver asks for, and reports the results. An attempt
//! that ended well is recorded in the journal, its output moved to its place, and only then reported; so
//! whatever starts after it finds its output.

mod ending;
mod speculation;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use slackline_model::{FlowId, Instance, PhaseKind, Span, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, Start};

use crate::clock::RunClock;
use crate::job_plan::JobPlan;
use crate::journal::Journal;
use crate::layout::Layout;
use crate::process::{self, Attempt, Worker, WorkerCommand};
use crate::remaining::Numbers;
use crate::task::{self, Spec, Task};
use crate::task_id::TaskId;

/// The longest the engine sleeps, so that observers see time go by.
const TICK: Duration = Duration::from_millis(250);

/// How attempts are run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How workers are started.
    pub worker: WorkerCommand,
    /// Memory for the buffers of an attempt, bytes.
    pub memory_bytes: u64,
    /// An attempt that takes longer is killed and counts as failed.
    pub timeout: Option<Span>,
    /// Whether slots that the policy leaves idle try tasks a second time that take much longer than others of
    /// their phase.
    pub speculate: bool,
}

/// Memory for the buffers of an attempt where nothing else is asked for, bytes.
const MEMORY_BYTES: u64 = 64 << 20;

impl Settings {
    /// Attempts as processes that are started like this, with 64 MiB of buffers, no time limit and no second attempts
    /// beside slow ones.
    pub fn new(worker: WorkerCommand) -> Self {
        Self { worker, memory_bytes: MEMORY_BYTES, timeout: None, speculate: false }
    }

    /// With so much memory for the buffers of an attempt, bytes.
    #[must_use]
    pub fn with_memory_bytes(mut self, memory_bytes: u64) -> Self {
        self.memory_bytes = memory_bytes;
        self
    }

    /// With attempts that are killed after this long.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Span>) -> Self {
        self.timeout = timeout;
        self
    }

    /// With second attempts on idle slots; see [`Settings::speculate`].
    #[must_use]
    pub fn with_speculate(mut self, speculate: bool) -> Self {
        self.speculate = speculate;
        self
    }
}

/// What happens, for observers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// An attempt started.
    Started(TaskId),
    /// A task is done; after so many seconds.
    Done(TaskId, f64),
    /// An attempt failed, with the reason and the file that has what its commands said, if they did.
    Failed {
        /// The task.
        id: TaskId,
        /// What it says, in one or several lines.
        message: &'a str,
        /// Where the rest is.
        log: Option<&'a std::path::Path>,
        /// Whether another attempt of the task is still at work, so that this one does not count.
        goes_on: bool,
    },
    /// An attempt was stopped.
    Killed(TaskId),
    /// A job is done; its output is complete.
    JobDone {
        /// Its index.
        job: u32,
        /// Records that its tasks in this session could not use.
        skipped: u64,
    },
    /// Time goes by.
    Tick,
}

/// Watches a run.
pub trait Observer {
    /// Something happened at that time of the run.
    fn happened(&mut self, now: Time, what: Happening<'_>);
}

/// What an engine works on.
pub(crate) struct Work<'a> {
    /// The remaining instance.
    pub(crate) instance: &'a Instance,
    /// Where the run's files are.
    pub(crate) layout: &'a Layout,
    /// What the run has done.
    pub(crate) journal: &'a Journal,
    /// Its tasks in the run.
    pub(crate) numbers: Numbers,
    /// The jobs of the run.
    pub(crate) jobs: &'a [JobPlan],
    /// Tasks that are done already.
    pub(crate) done: BTreeSet<TaskId>,
    /// The number of the next attempt.
    pub(crate) next_number: u64,
}

/// A message to the engine's thread.
enum Message {
    Ended(process::Ended),
    Interrupt,
}

/// An attempt that runs, or waits for the maps of its job.
struct Running {
    number: u64,
    id: TaskId,
    slot: u32,
    /// Since when it has its slot.
    start: Time,
    /// Since when it is at work: a reduce that has its slot early waits for its maps.
    began: Time,
    worker: Option<Worker>,
    /// Why it was killed, if it was.
    killed: Option<String>,
    /// A second attempt of the same task, on a slot that the policy leaves idle.
    second: Option<Box<Running>>,
    /// Whether a second attempt has failed; another one is not worth its while.
    second_failed: bool,
}

impl Running {
    fn new(number: u64, id: TaskId, slot: u32, start: Time) -> Self {
        Self {
            number,
            id,
            slot,
            start,
            began: start,
            worker: None,
            killed: None,
            second: None,
            second_failed: false,
        }
    }

    fn kill(&self) {
        if let Some(worker) = &self.worker {
            worker.kill();
        }
    }
}

/// The local engine.
pub(crate) struct Local<'a> {
    work: Work<'a>,
    settings: Settings,
    clock: RunClock,
    observer: &'a mut dyn Observer,
    now: Time,
    running: BTreeMap<RowId, Running>,
    rows: BTreeMap<u64, RowId>,
    /// Flows by release, then id.
    arrivals: std::collections::VecDeque<FlowId>,
    wakes: BTreeSet<Time>,
    /// Reports that are due at the next poll.
    due: Vec<Report>,
    inbox: Receiver<Message>,
    outbox: Sender<Message>,
    ended: Sender<process::Ended>,
    /// By job and phase: how many tasks are done, and the microseconds they took together.
    took: BTreeMap<(u32, PhaseKind), (u32, u64)>,
    /// By job: records that its tasks could not use.
    skipped: BTreeMap<u32, u64>,
    /// Why nothing more can be done.
    fatal: Option<String>,
    interrupted: bool,
}

/// Stops a run from another thread, for a signal handler for example.
#[derive(Clone)]
pub struct Interrupt(Sender<Message>);

impl Interrupt {
    /// Asks the engine to stop; running attempts are killed.
    pub fn stop(&self) {
        // A run that has ended needs no stop.
        let _ = self.0.send(Message::Interrupt);
    }
}

impl<'a> Local<'a> {
    /// An engine for what is left of a run.
    pub(crate) fn new(
        work: Work<'a>,
        settings: Settings,
        clock: RunClock,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let mut arrivals: Vec<FlowId> = work.instance.flows().keys().collect();
        arrivals.sort_by_key(|&flow| (work.instance.flow(flow).release, flow));
        let (outbox, inbox) = channel();
        let (ended, watchers) = channel::<process::Ended>();
        let forward = outbox.clone();
        std::thread::spawn(move || {
            for message in watchers {
                if forward.send(Message::Ended(message)).is_err() {
                    return;
                }
            }
        });
        Self {
            work,
            settings,
            clock,
            observer,
            now: Time::ZERO,
            running: BTreeMap::new(),
            rows: BTreeMap::new(),
            arrivals: arrivals.into(),
            wakes: BTreeSet::new(),
            due: Vec::new(),
            inbox,
            outbox,
            ended,
            took: BTreeMap::new(),
            skipped: BTreeMap::new(),
            fatal: None,
            interrupted: false,
        }
    }

    /// What stops the engine from another thread.
    pub(crate) fn interrupt(&self) -> Interrupt {
        Interrupt(self.outbox.clone())
    }

    /// Whether it was stopped.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Why it stopped by itself, if it did.
    pub(crate) fn fatal(&self) -> Option<&str> {
        self.fatal.as_deref()
    }

    /// Starts the process of an attempt; one that cannot be started has failed.
    fn set_to_work(&mut self, row: RowId, mut running: Running) {
        running.began = self.now;
        match self.launch(running.number, running.id) {
            Ok(worker) => {
                running.worker = Some(worker);
                self.keep(row, running);
            }
            Err(error) => self.fail(row, &running, &error.to_string()),
        }
    }

    fn keep(&mut self, row: RowId, running: Running) {
        self.rows.insert(running.number, row);
        self.running.insert(row, running);
    }

    /// Starts the process of an attempt.
    fn launch(&self, number: u64, id: TaskId) -> io::Result<Worker> {
        let job = &self.work.jobs[id.job as usize];
        let directory = self.work.layout.attempt(job, id, number);
        fs::create_dir_all(&directory)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: cannot be made: {e}", directory.display())))?;
        fs::create_dir_all(self.work.layout.pids())?;
        let task = match id.phase {
            PhaseKind::Reduce => {
                let maps = (0..job.maps()).map(|map| self.work.layout.map_output(id.job, map)).collect();
                Task::Reduce { partition: id.task, maps }
            }
            PhaseKind::Map => Task::Map {
                index: id.task,
                maps: job.maps(),
                splits: job.inputs.maps[id.task as usize].clone(),
                partitions: job.reducers,
                prepared: self.prepared(job, id.job)?,
            },
        };
        let spec = Spec {
            durable: job.is_final(id),
            ..Spec::new(job.work.clone(), task, directory, self.settings.memory_bytes)
        };
        let pid_file = self.work.layout.pid(number);
        Worker::start(
            &self.settings.worker,
            Attempt { number, spec: &spec, pid_file: &pid_file },
            self.ended.clone(),
        )
    }

    /// What a job's program wants to know of all input; made before its first map.
    fn prepared(&self, job: &JobPlan, index: u32) -> io::Result<Option<std::path::PathBuf>> {
        if !job.prepare {
            return Ok(None);
        }
        let path = self.work.layout.prepared(index);
        if !path.exists() {
            let beside = path.with_extension("part");
            task::prepare(&job.work, &job.inputs.maps, job.reducers, &beside).map_err(io::Error::other)?;
            fs::rename(&beside, &path)?;
        }
        Ok(Some(path))
    }

    /// Time until something is due by itself.
    fn patience(&self) -> Duration {
        let arrival = self.arrivals.front().map(|&flow| self.work.instance.flow(flow).release);
        let next = [arrival, self.wakes.first().copied()].into_iter().flatten().min();
        let until = next.map(|at| Duration::from_micros(at.since(self.now.min(at)).0));
        until.map_or(TICK, |until| until.min(TICK))
    }

    /// Reports of what is due now.
    fn due(&mut self, reports: &mut Vec<Report>) {
        self.now = self.clock.now();
        reports.append(&mut self.due);
        while let Some(&flow) = self.arrivals.front()
            && self.work.instance.flow(flow).release <= self.now
        {
            reports.push(Report::Arrived(Box::new(self.work.instance.excerpt(flow))));
            self.arrivals.pop_front();
        }
        let later = self.wakes.split_off(&Time(self.now.0 + 1));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            reports.push(Report::Woken);
        }
    }
}

impl Engine for Local<'_> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: Batch::Task,
            faults: Faults::Never,
            offers: Offers::Immediate,
            lengths: Lengths::Guessed,
        }
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        loop {
            while let Ok(message) = self.inbox.try_recv() {
                self.take_in(message);
            }
            if self.interrupted || self.fatal.is_some() {
                return None;
            }
            self.due(reports);
            if !reports.is_empty() {
                return Some(self.now);
            }
            if self.running.is_empty() && self.arrivals.is_empty() && self.wakes.is_empty() {
                return None;
            }
            self.time_out();
            self.speculate();
            self.observer.happened(self.now, Happening::Tick);
            match self.inbox.recv_timeout(self.patience()) {
                Ok(message) => self.take_in(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        let id = self.work.numbers.id(live.phase_in(self.work.instance, start.phase), start.first);
        let number = self.work.next_number;
        self.work.next_number += 1;
        let slot = start.places[0].first;
        self.make_room(live.lane_of(start.phase), slot);
        let running = Running::new(number, id, slot, self.now);
        self.observer.happened(self.now, Happening::Started(id));
        if start.held {
            self.keep(start.row, running);
        } else {
            self.set_to_work(start.row, running);
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Go { row, .. } => {
                if self.running.get(&row).is_some_and(|running| running.worker.is_none())
                    && let Some(running) = self.running.remove(&row)
                {
                    self.rows.remove(&running.number);
                    self.set_to_work(row, running);
                }
            }
            // Map output on this machine is not lost while the machine is there, and nothing runs that was not ordered.
            Order::Hold(_) | Order::Refuse(_) => {}
            Order::Kill(row) => {
                let Some(mut running) = self.running.remove(&row) else { return };
                if let Some(second) = running.second.take() {
                    self.drop_attempt(&second);
                }
                self.drop_attempt(&running);
            }
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at.max(Time(self.now.0 + 1)));
    }

    fn may_bring_flows(&mut self) -> bool {
        !self.arrivals.is_empty()
    }
}
