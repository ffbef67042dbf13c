//! The thread that finishes a run: it writes the documents, updates the history, and reports the end.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use slackline::resident::Returned;
use slackline::run::{HistoryStore, PastRun, Run, RunEnd, RunError};
use slackline_task::base::activity::{self, Duty};
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::lock;
use crate::service::launcher::Past;
use crate::service::message::Message;
use crate::service::scheduler::DetachedRuns;
use crate::state::{HealthProblem, StateEvent};

/// The interval between two attempts to write the history and the documents that wait.
const EVERY: Duration = Duration::from_secs(2);

/// The longest wait for the lock of the history. Meanwhile no run is finalized.
const PATIENCE: Duration = Duration::from_secs(1);

/// The largest size of the history, bytes. A larger history loses its earliest runs.
const HISTORY_MAX: u64 = 16 << 20;

/// The most runs kept in memory while the history cannot be written, the latest first. It bounds the memory
/// while the disk is full.
const UNTOLD_MAX: usize = 1_000;

pub(crate) struct Finalizer {
    store: HistoryStore,
    past: Past,
    detached: DetachedRuns,
    /// Runs that have ended, and whose documents wait for disk space. The state does not know their end yet,
    /// so a restart repeats it.
    unwritten: Vec<(u64, Run)>,
    /// Runs that are not in the history yet.
    untold: Vec<PastRun>,
    /// The time of the next attempt to write the history and the documents that wait.
    due: Elapsed,
    messages: Sender<Message>,
}

impl Finalizer {
    pub(crate) fn new(
        store: HistoryStore,
        past: Past,
        detached: DetachedRuns,
        messages: Sender<Message>,
    ) -> Self {
        let store = store.with_patience(PATIENCE);
        Self {
            store,
            past,
            detached,
            unwritten: Vec::new(),
            untold: Vec::new(),
            due: Elapsed::default(),
            messages,
        }
    }

    /// Finalizes runs until the scheduler has ended.
    pub(crate) fn work(mut self, returned: &Receiver<Returned>) {
        activity::announce("the finalizer of runs", Duty::Sole);
        loop {
            match returned.recv_timeout(self.left()) {
                Ok(returned) => self.close(returned),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.remember(),
            }
            if self.left().is_zero() {
                self.catch_up();
            }
        }
    }

    fn tell(&self, message: Message) {
        // An event loop that is gone needs nothing.
        let _ = self.messages.send(message);
    }

    /// The time until the next attempt. Runs that end meanwhile do not delay it.
    fn left(&self) -> Duration {
        if self.untold.is_empty() && self.unwritten.is_empty() {
            return EVERY;
        }
        Duration::from_micros(self.due.since(ClockReading::read().elapsed))
    }

    /// Writes the history, and the documents that wait for disk space.
    fn catch_up(&mut self) {
        self.remember();
        self.retry();
        self.due = ClockReading::read().elapsed + EVERY.as_micros() as u64;
    }

    /// Queues the durations of a run for the history.
    fn note(&mut self, run: &Run) {
        if self.untold.is_empty() && self.unwritten.is_empty() {
            self.due = ClockReading::read().elapsed + EVERY.as_micros() as u64;
        }
        self.untold.push(run.to_remember());
        if self.untold.len() >= 100 {
            self.remember();
        }
    }

    /// Takes a run back from the engine, and reports its end to the state.
    fn close(&mut self, returned: Returned) {
        let Returned { number, end, session } = returned;
        let detached = lock(&self.detached).remove(&number);
        let run = detached.zip(session).map(|(run, session)| run.back(session));
        if let Some(run) = &run {
            self.note(run);
        }
        let stopped = match end {
            Ok(RunEnd::Interrupted) => Some("the service was stopped".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        match run {
            Some(run) if stopped.is_none() => self.end(number, run),
            _ => self.tell(Message::Event(StateEvent::Returned { number, stopped })),
        }
    }

    /// Writes the documents of a run that has ended, and reports its end to the state.
    fn end(&mut self, number: u64, run: Run) {
        if let Err(error) = write_documents(&run) {
            let message = format!("the documents of {number} are not written: {error}");
            if is_full(&error) {
                self.tell(Message::Problem(HealthProblem::Documents, Some(message)));
                return self.unwritten.push((number, run));
            }
            self.tell(Message::Happened("not_written", message));
        }
        self.tell(Message::Event(StateEvent::Returned { number, stopped: None }));
    }

    /// Finalizes the runs whose documents could not be written.
    fn retry(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        for (number, run) in std::mem::take(&mut self.unwritten) {
            self.end(number, run);
        }
        if self.unwritten.is_empty() {
            self.tell(Message::Problem(HealthProblem::Documents, None));
        }
    }

    /// Writes the queued runs to the history.
    fn remember(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        let (store, untold) = (&self.store, &self.untold);
        let stored = activity::during("write to history", store.path().display(), || {
            store.remember_all(untold)?;
            store.forget(None, Some(HISTORY_MAX))?;
            store.latest()
        });
        match stored {
            Ok(latest) => {
                self.untold.clear();
                self.tell(Message::Problem(HealthProblem::History, None));
                *lock(&self.past) = Arc::new(latest);
            }
            // The runs stay queued for the next attempt.
            Err(error) => {
                let too_many = self.untold.len().saturating_sub(UNTOLD_MAX);
                self.untold.drain(..too_many);
                self.tell(Message::Problem(HealthProblem::History, Some(error.to_string())));
            }
        }
    }
}

fn write_documents(run: &Run) -> Result<(), RunError> {
    let state = &run.request().state;
    activity::during("write documents to", state.display(), || run.outcome()).map(drop)
}

fn is_full(error: &RunError) -> bool {
    let RunError::File { problem, .. } = error else { return false };
    matches!(problem.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use slackline::run::JobHistory;
    use slackline_executor::store::history::Note;

    use super::*;

    #[test]
    fn records_missing_in_a_history_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let store = HistoryStore::existing(&dir.path().join("none/past.history"));
        let (sender, troubles) = std::sync::mpsc::channel();
        let mut finalizer = Finalizer::new(store, Past::default(), DetachedRuns::default(), sender);
        let note = Note { workload: "w".into(), policy: "p".into() };
        let run = |started| PastRun {
            started,
            note: note.clone(),
            jobs: JobHistory::new(),
            counts: slackline_executor::store::history::CountsOfJobs::new(),
        };
        assert_eq!(finalizer.left(), EVERY, "nothing is left to store");
        finalizer.untold = (0..UNTOLD_MAX as u64 + 5).map(run).collect();
        assert!(finalizer.left().is_zero(), "what came long ago is not put off by what comes");
        finalizer.catch_up();
        assert!(!finalizer.left().is_zero(), "a failed write is retried later");
        assert!(matches!(troubles.try_recv(), Ok(Message::Problem(HealthProblem::History, Some(_)))));
        assert_eq!(
            (finalizer.untold.len(), finalizer.untold[0].started),
            (UNTOLD_MAX, 5),
            "the latest are kept"
        );
    }
}
