//! How attempts end: well, with an error, or killed; and what is recorded, moved, kept and removed then.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use slackline_model::Time;
use slackline_policy::engine::{Report, RowId};

use super::{Happening, Local, Message, Running};
use crate::job_plan::JobPlan;
use crate::journal::{Attempt, Ended};
use crate::log::LogError;
use crate::task;
use crate::worker::Report as Said;

/// The longest that killed processes are waited for at the end of a run.
const PATIENCE: Duration = Duration::from_secs(5);

impl Local<'_> {
    /// Kills what still runs, records it, and waits until it is gone. To be called when the run is over, however
    /// it ended.
    pub(crate) fn close(&mut self) {
        self.now = self.clock.now();
        let (mut attempts, mut going) = (Vec::new(), BTreeSet::new());
        for (_, mut running) in std::mem::take(&mut self.running) {
            for running in running.second.take().map(|second| *second).into_iter().chain([running]) {
                running.kill();
                going.extend(running.worker.is_some().then_some(running.number));
                attempts.push(running);
            }
        }
        while !going.is_empty() {
            match self.inbox.recv_timeout(PATIENCE) {
                Ok(Message::Ended(ended)) => {
                    going.remove(&ended.number);
                }
                Ok(Message::Interrupt) => {}
                // Their files stay; resuming the run removes them.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        attempts.sort_by_key(|running| running.number);
        let killed: Vec<Attempt> =
            attempts.iter().map(|running| attempt(running, self.now, Ended::Killed)).collect();
        if !killed.is_empty() {
            // They had no output; a resumed run does not miss them.
            let _ = self.work.journal.record(&killed);
        }
        for running in attempts.iter().filter(|running| !going.contains(&running.number)) {
            self.clear(running);
        }
    }

    /// Takes in what another thread has to say.
    pub(super) fn take_in(&mut self, message: Message) {
        let ended = match message {
            Message::Interrupt => {
                self.interrupted = true;
                return;
            }
            Message::Ended(ended) => ended,
        };
        let Some(row) = self.rows.remove(&ended.number) else { return };
        let Some(first) = self.running.remove(&row) else { return };
        self.now = self.clock.now();
        let Some(running) = self.settle_twins(row, ended.number, first, &ended.report) else { return };
        match (ended.report, &running.killed) {
            (_, Some(reason)) => self.fail(row, &running, &reason.clone()),
            (Ok(Said::Done(outcome)), None) => self.commit(row, &running, outcome),
            (Ok(Said::Failed { message, .. }) | Err(message), None) => self.fail(row, &running, &message),
        }
    }

    /// Records an attempt that ended well and moves its output to its place. If either cannot be done the run
    /// stops, and everything stays as it is for the next session, which knows what the record says.
    fn commit(&mut self, row: RowId, running: &Running, outcome: task::Outcome) {
        let (end, id) = (self.now, running.id);
        let job = &self.work.jobs[id.job as usize];
        let skipped = outcome.skipped;
        let recorded = attempt(running, end, Ended::Done(outcome));
        if let Err(error) = self.work.journal.record(std::slice::from_ref(&recorded)) {
            return self.lose_journal(&error);
        }
        if let Err(error) = self.work.layout.commit(job, id, running.number) {
            let to = self.work.layout.committed(job, id);
            self.fatal = Some(format!(
                "{}: the output of a finished task cannot be moved there: {error}; run the same command again when it can",
                to.display()
            ));
            return;
        }
        // A file that stays says of a process that is gone that it is gone.
        let _ = crate::files::remove(&self.work.layout.pid(running.number));
        self.work.done.insert(id);
        let seconds = end.since(running.began);
        let took = self.took.entry((id.job, id.phase)).or_default();
        *took = (took.0 + 1, took.1 + seconds.0);
        *self.skipped.entry(id.job).or_default() += skipped;
        self.observer.happened(end, Happening::Recorded(&recorded));
        self.observer.happened(end, Happening::Done(id, seconds.seconds()));
        self.close_job(id.job);
        self.due.push(Report::Finished { row, at: end });
    }

    /// Without a journal nothing can be committed any more: the run stops, and can be resumed later.
    fn lose_journal(&mut self, error: &LogError) {
        let reason = format!(
            "{error}; nothing that was done is lost: the same command resumes the run once it can be written"
        );
        self.fatal.get_or_insert(reason);
    }

    /// If all tasks of a job are done, says so in its output.
    fn close_job(&mut self, index: u32) {
        let job = &self.work.jobs[index as usize];
        if !job.is_complete(index, &self.work.done) {
            return;
        }
        match self.work.layout.succeed(job, index) {
            Ok(()) => {
                let skipped = self.skipped.get(&index).copied().unwrap_or(0);
                self.observer.happened(self.now, Happening::JobDone { job: index, skipped });
            }
            Err(error) => {
                self.fatal = Some(format!("{}: cannot be completed: {error}", job.output.display()));
            }
        }
    }

    /// An attempt failed, and with it what the policy started.
    pub(super) fn fail(&mut self, row: RowId, running: &Running, message: &str) {
        self.give_up(running, message, false);
        self.due.push(Report::Failed { row, at: self.now });
    }

    /// Says and records that an attempt failed, and removes what it leaves.
    pub(super) fn give_up(&mut self, running: &Running, message: &str, goes_on: bool) {
        let log = self.keep_log(&self.work.jobs[running.id.job as usize], running);
        let (id, log) = (running.id, log.as_deref());
        let failed = attempt(running, self.now, Ended::Failed(message.to_owned()));
        self.observer.happened(self.now, Happening::Recorded(&failed));
        self.observer.happened(self.now, Happening::Failed { id, message, log, goes_on });
        if let Err(error) = self.work.journal.record(&[failed]) {
            self.lose_journal(&error);
        }
        self.clear(running);
    }

    /// Keeps what the commands of a failed attempt said.
    fn keep_log(&self, job: &JobPlan, running: &Running) -> Option<PathBuf> {
        let said = task::log::read(&self.work.layout.attempt(job, running.id, running.number)).ok()?;
        if said.is_empty() {
            return None;
        }
        let path = self.work.layout.log(job, running.id, running.number);
        fs::create_dir_all(path.parent()?).ok()?;
        fs::write(&path, said).ok()?;
        Some(path)
    }

    /// Kills an attempt whose result is no longer needed, and records it.
    pub(super) fn drop_attempt(&mut self, running: &Running) {
        self.rows.remove(&running.number);
        running.kill();
        let killed = attempt(running, self.now, Ended::Killed);
        if let Err(error) = self.work.journal.record(std::slice::from_ref(&killed)) {
            self.lose_journal(&error);
        }
        self.clear(running);
        self.observer.happened(self.now, Happening::Recorded(&killed));
        self.observer.happened(self.now, Happening::Killed(running.id));
    }

    /// Kills attempts that take too long.
    pub(super) fn time_out(&mut self) {
        let Some(limit) = self.settings.timeout else { return };
        let now = self.now;
        let too_long = |running: &Running| {
            running.worker.is_some() && running.killed.is_none() && now.since(running.began) > limit
        };
        for first in self.running.values_mut() {
            let second = first.second.take().map(|mut second| {
                second.stop_if(too_long(&second), limit);
                second
            });
            first.stop_if(too_long(first), limit);
            first.second = second;
        }
    }

    /// Removes what an attempt leaves when it has no output.
    pub(super) fn clear(&self, running: &Running) {
        let job = &self.work.jobs[running.id.job as usize];
        // What cannot be removed now is removed when the job is done, or the run is resumed.
        let _ = crate::files::remove(&self.work.layout.pid(running.number));
        let _ = crate::files::remove(&self.work.layout.attempt(job, running.id, running.number));
    }
}

impl Running {
    fn stop_if(&mut self, is_too_long: bool, limit: slackline_model::Span) {
        if is_too_long {
            self.killed = Some(format!("found no end after {limit}, expected one: it was killed"));
            self.kill();
        }
    }
}

fn attempt(running: &Running, end: Time, ended: Ended) -> Attempt {
    let Running { number, id, slot, start, began, .. } = *running;
    Attempt { number, id, slot, start: start.0, began: began.0, end: end.0.max(began.0), ended }
}
