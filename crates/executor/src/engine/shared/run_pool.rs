//! Threads that do the work on the files of the runs of a shared engine. A few threads serve all runs. A
//! thread that a file system blocks is replaced, so that it stops only its own run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock::Stopwatch;
use slackline_task::base::system::with_remedy;

use crate::engine::backend::RunId;
use crate::engine::shared::hosted_run::{HostedRun, PanicReport, RunStart};
use crate::engine::shared::messages::{Outbox, RunCommand};
use crate::run::error::EngineError;

/// The number of threads, without those that are blocked.
const WORKERS: usize = 4;

/// A step of a run that takes longer counts as blocked.
const BLOCKED: Duration = Duration::from_millis(200);

/// The threads, and the runs that they work on. They end with it.
pub(crate) struct RunPool {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Stopwatch,
    state: Mutex<State>,
    /// There is another run to work on, or the pool has ended.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<RunId, PooledRun>,
    /// The runs with commands or due actions.
    ready: VecDeque<RunId>,
    /// When the other runs have something to do.
    due: BTreeSet<(Duration, RunId)>,
    /// The threads that work on a run, and since when.
    busy: BTreeMap<usize, Duration>,
    workers: usize,
    started: usize,
    is_over: bool,
}

/// A run of the pool.
struct PooledRun {
    /// `None` while a thread works on it.
    work: Option<Work>,
    commands: Vec<RunCommand>,
    due: Option<Duration>,
    is_ready: bool,
}

/// A run between two steps.
enum Work {
    New(Box<RunStart>, Outbox),
    Open(Box<HostedRun>),
}

impl RunPool {
    pub(crate) fn new() -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { clock: Stopwatch::start(), state, changed }) }
    }

    /// Adds a run. It starts at once.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn add(&self, id: RunId, start: RunStart, out: Outbox) -> Result<(), EngineError> {
        let work = Some(Work::New(Box::new(start), out));
        let mut state = self.shared.lock();
        state.runs.insert(id, PooledRun { work, commands: Vec::new(), due: None, is_ready: true });
        state.ready.push_back(id);
        self.shared.changed.notify_one();
        drop(state);
        self.keep_working().inspect_err(|_| drop(self.shared.lock().runs.remove(&id)))
    }

    /// Sends a command to a run. Nothing happens if the run has ended.
    pub(crate) fn send(&self, id: RunId, command: RunCommand) {
        let mut state = self.shared.lock();
        let State { runs, ready, due, .. } = &mut *state;
        let Some(run) = runs.get_mut(&id) else { return };
        run.commands.push(command);
        if let Some(at) = run.due.take() {
            due.remove(&(at, id));
        }
        if run.work.is_some() && !run.is_ready {
            run.is_ready = true;
            ready.push_back(id);
            self.shared.changed.notify_one();
        }
    }

    /// Starts another thread if runs wait for one, and if too few are not blocked.
    ///
    /// # Errors
    /// There is no thread, and the system has no more of them.
    pub(crate) fn keep_working(&self) -> Result<(), EngineError> {
        let number = {
            let mut state = self.shared.lock();
            let now = self.shared.clock.elapsed();
            let blocked = state.busy.values().filter(|&&since| now.saturating_sub(since) > BLOCKED).count();
            let is_waiting = !state.ready.is_empty() || state.due.first().is_some_and(|&(at, _)| at <= now);
            if is_waiting {
                // A thread that waits for another due time does not know of an earlier one.
                self.shared.changed.notify_one();
            }
            if !is_waiting || state.workers >= WORKERS + blocked {
                return Ok(());
            }
            state.workers += 1;
            state.started += 1;
            state.started
        };
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name("run".to_owned());
        let Err(error) = thread.spawn(move || shared.work(number)) else { return Ok(()) };
        let mut state = self.shared.lock();
        state.workers -= 1;
        if state.workers > 0 {
            return Ok(());
        }
        Err(EngineError::other(with_remedy(format!("cannot start a thread for runs: {error}"))))
    }
}

impl Drop for RunPool {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on runs until the pool ends, or until it has more threads than it needs.
    fn work(&self, worker: usize) {
        // A watchdog names the run of a blocked thread.
        let announce = |name| activity::announce(name, Duty::Helper);
        announce(format!("run worker {worker}"));
        while let Some((id, work, commands)) = self.next(worker) {
            announce(format!("the run in {}", work.root().display()));
            let rest = work.step(commands);
            announce(format!("run worker {worker}"));
            match rest {
                None => drop(self.lock().runs.remove(&id)),
                Some((run, patience)) => self.put_back(id, run, patience),
            }
        }
    }

    /// Waits for the next run with something to do.
    fn next(&self, worker: usize) -> Option<(RunId, Work, Vec<RunCommand>)> {
        let mut state = self.lock();
        state.busy.remove(&worker);
        loop {
            let now = self.clock.elapsed();
            let is_spare = state.workers - state.busy.len() > WORKERS;
            if state.is_over || is_spare {
                state.workers -= 1;
                // The last thread drops the runs.
                let left = if state.workers == 0 { mem::take(&mut state.runs) } else { BTreeMap::new() };
                drop(state);
                drop(left);
                return None;
            }
            if let Some(taken) = state.take(now) {
                state.busy.insert(worker, now);
                return Some(taken);
            }
            state = match state.due.first().map(|(at, _)| at.saturating_sub(now)) {
                Some(time) => {
                    let waited = self.changed.wait_timeout(state, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn put_back(&self, id: RunId, run: Box<HostedRun>, patience: Duration) {
        let mut state = self.lock();
        let at = self.clock.elapsed() + patience;
        let State { runs, ready, due, .. } = &mut *state;
        let Some(pooled) = runs.get_mut(&id) else { return };
        pooled.work = Some(Work::Open(run));
        if pooled.commands.is_empty() && !patience.is_zero() {
            pooled.due = Some(at);
            due.insert((at, id));
        } else {
            pooled.is_ready = true;
            ready.push_back(id);
        }
    }
}

impl State {
    /// Takes the first run with something to do.
    fn take(&mut self, now: Duration) -> Option<(RunId, Work, Vec<RunCommand>)> {
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            if let Some(run) = self.runs.get_mut(&id) {
                (run.due, run.is_ready) = (None, true);
                self.ready.push_back(id);
            }
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            run.is_ready = false;
            if let Some(work) = run.work.take() {
                return Some((id, work, mem::take(&mut run.commands)));
            }
        }
        None
    }
}

impl Work {
    fn root(&self) -> &Path {
        match self {
            Self::New(start, _) => start.session.layout().root(),
            Self::Open(run) => run.root(),
        }
    }

    /// Carries out commands and due actions. Returns the run, and how long it then waits; `None` once it has
    /// left.
    fn step(self, commands: Vec<RunCommand>) -> Option<(Box<HostedRun>, Duration)> {
        let _report = PanicReport(match &self {
            Self::New(_, out) => out.clone(),
            Self::Open(run) => run.outbox().clone(),
        });
        let mut run = match self {
            Self::New(start, out) => Box::new(start.ready(out)?),
            Self::Open(run) => run,
        };
        let Some(patience) = run.step(commands.into_iter()) else {
            run.leave();
            return None;
        };
        Some((run, patience))
    }
}
