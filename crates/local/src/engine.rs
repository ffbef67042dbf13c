//! The engine: attempts are processes, their output is committed by renaming, time is real.
//!
//! It takes no scheduling decision: it starts what it is told to, and reports what became of it. An attempt
//! that ended well is recorded in the journal, its output moved to its place, and only then reported; so
//! whatever starts after it finds its output.

mod speculation;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use slackline_model::{FlowId, Instance, Span, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Batch, Capabilities, Offers, Order, Report, RowId, Start};

use crate::clock::RunClock;
use crate::journal::{Attempt, Ended, Journal, TaskId};
use crate::layout::{Layout, is_final};
use crate::process::{self, Worker, WorkerCommand};
use crate::resolve::JobPlan;
use crate::rest::Numbers;
use crate::store::StoreError;
use crate::task::{self, Spec, Task};
use crate::worker::Report as Said;

/// The longest the engine sleeps, so that whoever watches sees time go by.
const TICK: Duration = Duration::from_millis(250);

/// How attempts are run.
#[derive(Clone, Debug)]
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

/// What happens, for whoever watches.
#[derive(Clone, Copy, Debug)]
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
    },
    /// An attempt was stopped.
    Killed(TaskId),
    /// A job is done; its output is complete.
    JobDone(u32),
    /// Time goes by.
    Tick,
}

/// Whoever watches a run.
pub trait Observer {
    /// Something happened at that time of the run.
    fn happened(&mut self, now: Time, what: Happening<'_>);
}

/// What an engine works on.
pub(crate) struct Work<'a> {
    /// The remaining instance.
    pub(crate) instance: &'a Instance,
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
    start: Time,
    worker: Option<Worker>,
    /// Why it was killed, if it was.
    killed: Option<String>,
    /// A second attempt of the same task, on a slot that nobody else wants.
    second: Option<Box<Running>>,
}

impl Running {
    fn new(number: u64, id: TaskId, slot: u32, start: Time) -> Self {
        Self { number, id, slot, start, worker: None, killed: None, second: None }
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
    layout: &'a Layout,
    journal: &'a Journal,
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
    took: BTreeMap<(u32, bool), (u32, u64)>,
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
        (layout, journal): (&'a Layout, &'a Journal),
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
            layout,
            journal,
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

    /// Kills what still runs, and records it. To be called when the run is over, however it ended.
    pub(crate) fn close(&mut self) {
        self.now = self.clock.now();
        let mut attempts = Vec::new();
        for (_, mut running) in std::mem::take(&mut self.running) {
            for running in running.second.take().map(|second| *second).into_iter().chain([running]) {
                running.kill();
                attempts.push(attempt(&running, self.now, Ended::Killed));
                self.clear(&running);
            }
        }
        attempts.sort_by_key(|attempt| attempt.number);
        if !attempts.is_empty() {
            // They had no output; a run that is taken up again does not miss them.
            let _ = self.journal.record(&attempts);
        }
    }

    /// Removes what an attempt leaves when it has no output.
    fn clear(&self, running: &Running) {
        let job = &self.work.jobs[running.id.job as usize];
        // What cannot be removed now is removed when the job is done, or the run is taken up again.
        let _ = crate::layout::remove(&self.layout.pid(running.number));
        let _ = crate::layout::remove(&self.layout.attempt(job, running.id, running.number));
    }

    fn take_in(&mut self, message: Message) {
        match message {
            Message::Interrupt => self.interrupted = true,
            Message::Ended(process::Ended { number, report }) => {
                let Some(row) = self.rows.remove(&number) else { return };
                let Some(first) = self.running.remove(&row) else { return };
                self.now = self.clock.now();
                let Some(running) = self.settle_twins(row, number, first, &report) else { return };
                let failure = match (report, &running.killed) {
                    (_, Some(reason)) => reason.clone(),
                    (Ok(Said::Done(outcome)), None) => match self.commit(&running, outcome) {
                        Ok(at) => {
                            self.due.push(Report::Finished { row, at });
                            return;
                        }
                        Err(reason) => reason,
                    },
                    (Ok(Said::Failed { message, .. }) | Err(message), None) => message,
                };
                self.fail(row, &running, &failure);
            }
        }
    }

    /// Records an attempt that ended well and moves its output to its place.
    fn commit(&mut self, running: &Running, outcome: task::Outcome) -> Result<Time, String> {
        let job = &self.work.jobs[running.id.job as usize];
        let end = self.now;
        let done = attempt(running, end, Ended::Done(outcome));
        self.journal.record(&[done]).map_err(|error| self.lose_journal(&error))?;
        let moved = self.layout.commit(job, running.id, running.number);
        if let Err(error) = moved {
            let to = self.layout.committed(job, running.id);
            self.fatal = Some(format!(
                "{}: the output of a finished task cannot be moved there: {error}; run the same command again when it can",
                to.display()
            ));
            return Ok(end);
        }
        // A file that stays says of a process that is gone that it is gone.
        let _ = crate::layout::remove(&self.layout.pid(running.number));
        self.work.done.insert(running.id);
        let took = self.took.entry((running.id.job, running.id.reduce)).or_default();
        *took = (took.0 + 1, took.1 + end.since(running.start).0);
        self.observer.happened(end, Happening::Done(running.id, end.since(running.start).seconds()));
        self.close_job(running.id.job);
        Ok(end)
    }

    /// Without a journal nothing can be committed any more: the run stops, and goes on another time.
    fn lose_journal(&mut self, error: &StoreError) -> String {
        let reason = format!(
            "{error}; nothing that was done is lost: the same command goes on once it can be written"
        );
        self.fatal.get_or_insert(reason).clone()
    }

    /// If all tasks of a job are done, says so in its output.
    fn close_job(&mut self, index: u32) {
        let job = &self.work.jobs[index as usize];
        if !is_complete(job, index, &self.work.done) {
            return;
        }
        match self.layout.succeed(job, index) {
            Ok(()) => self.observer.happened(self.now, Happening::JobDone(index)),
            Err(error) => {
                self.fatal = Some(format!("{}: cannot be completed: {error}", job.output.display()));
            }
        }
    }

    fn fail(&mut self, row: RowId, running: &Running, message: &str) {
        let job = &self.work.jobs[running.id.job as usize];
        let log = self.keep_log(job, running);
        self.observer.happened(self.now, Happening::Failed { id: running.id, message, log: log.as_deref() });
        let failed = attempt(running, self.now, Ended::Failed(message.to_owned()));
        if let Err(error) = self.journal.record(&[failed]) {
            self.lose_journal(&error);
        }
        self.clear(running);
        self.due.push(Report::Failed { row, at: self.now });
    }

    /// Keeps what the commands of a failed attempt said.
    fn keep_log(&self, job: &JobPlan, running: &Running) -> Option<std::path::PathBuf> {
        let said = task::log::read(&self.layout.attempt(job, running.id, running.number)).ok()?;
        if said.is_empty() {
            return None;
        }
        let path = self.layout.log(job, running.id, running.number);
        fs::create_dir_all(path.parent()?).ok()?;
        fs::write(&path, said).ok()?;
        Some(path)
    }

    /// Starts the process of an attempt.
    fn launch(&self, number: u64, id: TaskId) -> io::Result<Worker> {
        let job = &self.work.jobs[id.job as usize];
        let directory = self.layout.attempt(job, id, number);
        fs::create_dir_all(&directory)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: cannot be made: {e}", directory.display())))?;
        fs::create_dir_all(self.layout.pids())?;
        let task = if id.reduce {
            let maps = (0..job.maps.len() as u32).map(|map| self.layout.map_output(id.job, map)).collect();
            Task::Reduce { partition: id.task, maps }
        } else {
            Task::Map {
                index: id.task,
                maps: job.maps.len() as u32,
                splits: job.maps[id.task as usize].clone(),
                partitions: job.reducers,
                prepared: self.prepared(job, id.job)?,
            }
        };
        let spec = Spec {
            job: job.work.clone(),
            task,
            directory,
            memory_bytes: self.settings.memory_bytes,
            durable: is_final(job, id),
        };
        let pid_file = self.layout.pid(number);
        Worker::start(&self.settings.worker, (number, &spec), &pid_file, self.ended.clone())
    }

    /// What a job's program wants to know of all input; made before its first map.
    fn prepared(&self, job: &JobPlan, index: u32) -> io::Result<Option<std::path::PathBuf>> {
        if !job.prepare {
            return Ok(None);
        }
        let path = self.layout.prepared(index);
        if !path.exists() {
            let beside = path.with_extension("part");
            task::prepare(&job.work, &job.maps, job.reducers, &beside).map_err(io::Error::other)?;
            fs::rename(&beside, &path)?;
        }
        Ok(Some(path))
    }

    /// Kills an attempt that nobody waits for any more, and records it.
    fn drop_attempt(&mut self, running: &Running) {
        self.rows.remove(&running.number);
        running.kill();
        // It had no output; a run that is taken up again does not miss it.
        let _ = self.journal.record(&[attempt(running, self.now, Ended::Killed)]);
        self.clear(running);
    }

    /// Kills attempts that take too long.
    fn time_out(&mut self) {
        let Some(limit) = self.settings.timeout else { return };
        for running in self.running.values_mut() {
            if running.killed.is_none() && self.now.since(running.start) > limit {
                running.killed = Some(format!("found no end after {limit}, expected one: it was killed"));
                running.kill();
            }
        }
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
            reports.push(Report::Arrived(flow));
            self.arrivals.pop_front();
        }
        let later = self.wakes.split_off(&Time(self.now.0 + 1));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            reports.push(Report::Woken);
        }
    }
}

/// Whether all tasks of a job that make its output are done.
pub(crate) fn is_complete(job: &JobPlan, index: u32, done: &BTreeSet<TaskId>) -> bool {
    let reduce = job.reducers > 0;
    (0..job.parts()).all(|task| done.contains(&TaskId { job: index, reduce, task }))
}

fn attempt(running: &Running, end: Time, ended: Ended) -> Attempt {
    let Running { number, id, slot, start, .. } = *running;
    Attempt { number, id, slot, start: start.0, end: end.0.max(start.0), ended }
}

impl Engine for Local<'_> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { batch: Batch::Task, faults: false, offers: Offers::Immediate }
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

    fn start(&mut self, start: &Start<'_>) {
        let id = self.work.numbers.id(start.phase, start.first);
        let number = self.work.next_number;
        self.work.next_number += 1;
        let slot = start.places[0].first;
        self.make_room(self.work.instance.lane_of(start.phase), slot);
        let mut running = Running::new(number, id, slot, self.now);
        self.observer.happened(self.now, Happening::Started(id));
        if !start.held {
            match self.launch(number, id) {
                Ok(worker) => running.worker = Some(worker),
                Err(error) => return self.fail(start.row, &running, &error.to_string()),
            }
        }
        self.rows.insert(number, start.row);
        self.running.insert(start.row, running);
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Go { row, .. } => {
                let Some(running) = self.running.get(&row).filter(|r| r.worker.is_none()) else { return };
                match self.launch(running.number, running.id) {
                    Ok(worker) => {
                        if let Some(running) = self.running.get_mut(&row) {
                            running.worker = Some(worker);
                        }
                    }
                    Err(error) => {
                        if let Some(running) = self.running.remove(&row) {
                            self.rows.remove(&running.number);
                            self.fail(row, &running, &error.to_string());
                        }
                    }
                }
            }
            // Map output on this machine is not lost while the machine is there.
            Order::Hold(_) => {}
            Order::Kill(row) => {
                let Some(mut running) = self.running.remove(&row) else { return };
                if let Some(second) = running.second.take() {
                    self.drop_attempt(&second);
                }
                self.drop_attempt(&running);
                self.observer.happened(self.now, Happening::Killed(running.id));
            }
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at.max(Time(self.now.0 + 1)));
    }
}
