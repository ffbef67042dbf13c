//! Handles the end of an attempt: commit or discard its output, record it, retry or fail the task.
//!
//! Attempts that ended since the engine came round last are taken in together: all of them are recorded with
//! one append, then the output of those that ended well is moved, then they are reported. The files of
//! attempts without output are removed first, so that one that has filled the disk makes room for the record
//! of its failure.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use slackline_model::Span;
use slackline_policy::engine::{Report, RowId};
use slackline_task::base::error::TaskError;
use slackline_task::base::system::with_remedy;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Limits;
use slackline_task::process::report::{Report as Said, too_long};
use slackline_task::process::spec::Outcome;

use super::{Attempts, ProcessEngine, Running, Stage};
use crate::engine::event::RunEvent;
use crate::fleet::FleetEvent;
use crate::store::journal::{Attempt, AttemptOutcome};
use crate::store::layout::Layout;
use crate::store::log::LogError;

/// The longest that killed attempts are waited for at the end of a run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// An attempt that ended well.
pub(super) struct Finished {
    /// The row of the driver; none for a lost task that ran again.
    pub(super) row: Option<RowId>,
    pub(super) running: Running,
    pub(super) outcome: Outcome,
}

/// Why an attempt failed.
pub(super) struct Problem {
    pub(super) message: String,
    /// Whether no other attempt could end better.
    pub(super) is_final: bool,
}

impl Problem {
    /// One that may not be there the next time.
    pub(super) fn of(message: String) -> Self {
        Self { message, is_final: false }
    }

    /// Why an attempt could not start.
    pub(super) fn of_start(error: &io::Error) -> Self {
        let task = error.get_ref().and_then(|inner| inner.downcast_ref::<TaskError>());
        Self { message: error.to_string(), is_final: task.is_some_and(TaskError::is_final) }
    }

    /// What went wrong with an attempt; none if it ended well.
    pub(super) fn in_report(
        report: &Result<Said, String>,
        running: &Running,
        limits: &Limits,
    ) -> Option<Self> {
        match (report, &running.killed) {
            (_, Some(reason)) => Some(Self::of(reason.clone())),
            (Ok(Said::Failed { message, is_final, exit, .. }), None) => {
                let is_final = *is_final || exit.is_some_and(|code| limits.no_retry.contains(&code));
                Some(Self { message: message.clone(), is_final })
            }
            (Err(message), None) => Some(Self::of(message.clone())),
            (Ok(Said::Done(_)), None) => None,
        }
    }
}

impl ProcessEngine {
    /// Kills what still runs, and records it.
    pub(super) fn stop_all(&mut self) {
        if self.is_stopping || self.fatal.is_some() {
            self.work.session.publisher().leave();
        }
        self.now = self.clock.now();
        let seconds = |running: &mut Running| running.second.take().map(|second| *second);
        let mut attempts: Vec<Running> = std::mem::take(&mut self.attempts.running).into_values().collect();
        let seconds: Vec<Running> = attempts.iter_mut().filter_map(seconds).collect();
        attempts.extend(seconds);
        attempts.extend(self.lost.take_all());
        attempts.extend(std::mem::take(&mut self.handover.attempts).into_values());
        attempts.sort_by_key(|running| running.number);
        for running in &attempts {
            self.drop_attempt(running);
        }
        for number in std::mem::take(&mut self.handover.ended).into_keys() {
            self.is_gone(number);
        }
        // They had no output; a resumed run does not miss them.
        let _ = self.work.session.journal.record(&std::mem::take(&mut self.attempts.records));
    }

    /// Handles the events of the fleet.
    pub(crate) fn take(&mut self, event: Vec<FleetEvent>) {
        self.now = self.clock.now();
        let mut done = Vec::new();
        for event in event {
            match event {
                FleetEvent::Ended { attempt, report } => self.take_in(attempt, report, &mut done),
                of_machine => self.take_in_machine(of_machine),
            }
        }
        self.commit(done);
    }

    /// Takes in the end of an attempt; one that ended well is added to `done`.
    fn take_in(&mut self, number: u64, report: Result<Said, String>, done: &mut Vec<Finished>) {
        if self.attempts.leaving.contains_key(&number) {
            return self.is_gone(number);
        }
        if let Some(running) = self.lost.take(number) {
            return self.end_of_lost(running, report, done);
        }
        if self.handover.attempts.contains_key(&number) {
            self.handover.ended.insert(number, report);
            return;
        }
        let Some(row) = self.attempts.rows.remove(&number) else { return };
        let Some(first) = self.attempts.running.remove(&row) else { return };
        let Some(running) = self.settle_twins(row, number, first, &report) else { return };
        let limits = &self.work.session.jobs[running.id.job as usize].limits;
        let problem = Problem::in_report(&report, &running, limits);
        match (report, problem) {
            (Ok(Said::Failed { lost: Some(directory), message, .. }), Some(_))
                if let Some(map) =
                    self.map_in(running.id, &directory).filter(|_| running.killed.is_none()) =>
            {
                self.lose(Some(row), &running, map, &message);
            }
            (_, Some(problem)) => self.fail(row, &running, &problem),
            (Ok(Said::Done(outcome)), None) => done.push(Finished { row: Some(row), running, outcome }),
            (_, None) => {}
        }
    }

    /// Nothing of an attempt that was stopped is left: its files are removed.
    pub(super) fn is_gone(&mut self, number: u64) {
        if let Some((id, _)) = self.attempts.leaving.remove(&number) {
            self.clear(id, number);
        }
    }

    /// Records all ended attempts, and moves the output of successful attempts to its place. If either fails,
    /// the run stops and all files stay for the next session, which reads the record.
    fn commit(&mut self, done: Vec<Finished>) {
        let ended = |f: &Finished| self.attempt(&f.running, AttemptOutcome::Done(f.outcome.clone()));
        let ended: Vec<Attempt> = done.iter().map(ended).collect();
        self.attempts.records.extend(ended);
        if self.attempts.records.is_empty() || self.fatal.is_some() {
            return;
        }
        let stale = self.stale_reduces(&done);
        let reduces = stale.iter().flat_map(|(_, reduces)| reduces).copied().collect();
        if let Err(error) = self.work.session.journal.record_loss(&reduces, &self.attempts.records) {
            return self.lose_journal(&error);
        }
        self.attempts.records.clear();
        self.note_maps(&done);
        for (map, reduces) in stale {
            self.lose_stale(map, &reduces);
        }
        for finished in done {
            self.finish(finished);
            if self.fatal.is_some() {
                return;
            }
        }
    }

    /// Moves the output of an attempt that was recorded, and reports its end. Output that cannot be moved, or
    /// a job that cannot be completed, is a failure of its flow alone.
    fn finish(&mut self, finished: Finished) {
        let Finished { row, running, outcome } = finished;
        self.keep_said(&running);
        let (end, id) = (self.now, running.id);
        if let Err(problem) = self.put(&running, &outcome) {
            if let Err(error) = self.work.session.journal.lost(&BTreeSet::from([id])) {
                return self.lose_journal(&error);
            }
            return match row {
                Some(row) => self.fail(row, &running, &problem),
                None => self.cannot_run_again(&running, &problem),
            };
        }
        self.work.done.insert(id);
        let seconds = end.since(running.began);
        let took = self.counts.took.entry((id.job, id.phase)).or_default();
        *took = (took.0 + 1, took.1 + seconds.0);
        *self.counts.skipped.entry(id.job).or_default() += outcome.counts.skipped;
        let recorded = self.attempt(&running, AttemptOutcome::Done(outcome));
        (self.on_event)(end, &RunEvent::AttemptRecorded(Box::new(recorded)));
        (self.on_event)(end, &RunEvent::TaskFinished { task: id, seconds: seconds.seconds() });
        if self.work.session.jobs[id.job as usize].is_final(id) {
            self.open.parts[id.job as usize] -= 1;
            if self.open.parts[id.job as usize] == 0 {
                let skipped_records = self.counts.skipped.get(&id.job).copied().unwrap_or(0);
                (self.on_event)(self.now, &RunEvent::JobFinished { job: id.job, skipped_records });
            }
        }
        match row {
            Some(row) if self.is_withheld(id) => {
                self.attempts.running.insert(row, Running { stage: Stage::Finished, ..running });
            }
            Some(row) => self.due.push(Report::Finished { row, at: end }),
            None => self.ran_again(id),
        }
    }

    /// Moves the output of an attempt to its place, and if it was the last of its job, the output of the job
    /// to its own, unless parts of that are damaged.
    fn put(&mut self, running: &Running, outcome: &Outcome) -> Result<(), Problem> {
        let id = running.id;
        let job = &self.work.session.jobs[id.job as usize];
        let layout = &self.work.session.layout;
        let put = if self.settings.spread { Layout::put_when_seen } else { Layout::put };
        let put = || put(layout, job, id, running.number);
        if let Err(error) =
            self.work.session.publisher().stage(id, running.number, outcome.output.as_ref(), put)
        {
            let to = layout.committed(job, id);
            let message = format!("{}: cannot move the output of the task there: {error}", to.display());
            return Err(Problem::of(message));
        }
        if !job.is_final(id) {
            return Ok(());
        }
        if self.open.parts[id.job as usize] > 1 {
            self.spares.keep(id.job, layout.attempt(job, id, running.number));
            return Ok(());
        }
        self.lose_damaged_parts(id)?;
        if self.open.parts[id.job as usize] > 1 {
            return Ok(());
        }
        self.spares.forget(id.job);
        let session = &self.work.session;
        session.publisher().publish_soon(id.job, self.attempts.next_number).map_err(|error| {
            let output = session.jobs[id.job as usize].output.display();
            Problem { message: format!("output {output}: cannot be completed: {error}"), is_final: true }
        })
    }

    /// Reports what could not be removed.
    pub(super) fn warn(&mut self) {
        for warning in self.work.session.publish_state.warnings() {
            (self.on_event)(self.now, &RunEvent::Warning(warning));
        }
    }

    /// Without a journal nothing can be committed any more: the run stops, and can be resumed later.
    pub(super) fn lose_journal(&mut self, error: &LogError) {
        let reason =
            format!("{error}; finished tasks are kept: fix this, then run the same command to resume");
        self.fatal.get_or_insert(reason);
    }

    /// An attempt failed, and so did the row that the policy started.
    pub(super) fn fail(&mut self, row: RowId, running: &Running, problem: &Problem) {
        let is_final = self.count_failure(running.id, problem.is_final);
        self.give_up(running, &problem.message, false, is_final);
        let is_final = is_final && self.job_failed(row, running.id.job);
        self.due.push(Report::Failed { row, at: self.now, is_final });
    }

    /// How often a task of a job may fail.
    pub(super) fn attempts_of(&self, job: u32) -> u16 {
        self.work.session.jobs[job as usize].limits.attempts.unwrap_or(self.work.attempts_max)
    }

    /// Counts a failure of a task; true if it was the last.
    pub(super) fn count_failure(&mut self, id: TaskId, is_final: bool) -> bool {
        let most = self.attempts_of(id.job);
        let failures = self.counts.failures.entry(id).or_default();
        *failures = failures.saturating_add(1);
        let is_final = is_final || *failures >= most;
        if let Some(delay) = self.work.session.jobs[id.job as usize].limits.delay(*failures) {
            self.counts.not_before.insert(id, self.now + Span::from_seconds_nearest(delay));
        }
        is_final
    }

    /// Reports and records that an attempt failed, and removes its files. `other_runs` if another attempt of
    /// the task is running, `is_final` if there will be none.
    pub(super) fn give_up(&mut self, running: &Running, message: &str, other_runs: bool, is_final: bool) {
        let message = with_remedy(message.to_owned());
        let log = self.record_failed(running, &message);
        let task = running.id;
        let event = RunEvent::AttemptFailed { task, message, log, other_runs, is_final };
        (self.on_event)(self.now, &event);
    }

    /// Records that an attempt failed, keeps the output of its commands, and removes its files.
    pub(super) fn record_failed(&mut self, running: &Running, message: &str) -> Option<PathBuf> {
        let said = self.said_by(running);
        self.clear(running.id, running.number);
        self.record(self.attempt(running, AttemptOutcome::Failed(message.to_owned())));
        self.write_log(running, &said)
    }

    /// Has the end of an attempt without output recorded with what ends next.
    fn record(&mut self, ended: Attempt) {
        self.attempts.records.push(ended.clone());
        (self.on_event)(self.now, &RunEvent::AttemptRecorded(Box::new(ended)));
    }

    /// Kills an attempt whose result is no longer needed, and records it.
    pub(super) fn drop_attempt(&mut self, running: &Running) {
        if running.stage == Stage::Finished {
            return;
        }
        self.attempts.rows.remove(&running.number);
        if running.is_at_work() {
            self.fleet.stop(running.number);
            self.attempts.leaving.insert(running.number, (running.id, running.slot));
        } else if running.stage == Stage::Gone {
            self.leave_behind(self.machine_of(running.id, running.slot), running.id, running.number);
        }
        // One that waited for maps had its slot, but they may have had it.
        if running.stage != Stage::Starved {
            self.record(self.attempt(running, AttemptOutcome::Killed));
        }
        let event = RunEvent::AttemptStopped { task: running.id, attempt: Some(running.number) };
        (self.on_event)(self.now, &event);
    }

    /// Kills attempts that take too long.
    pub(super) fn time_out(&mut self) {
        let Self { attempts: Attempts { running, .. }, lost, settings, work, now, .. } = self;
        let mut late = Vec::new();
        let mut look = |running: &mut Running| {
            let own = work.session.jobs[running.id.job as usize].limits.timeout;
            let limit = own.map(Span::from_seconds_nearest).or(settings.timeout);
            if let Some(limit) = limit
                && running.is_at_work()
                && running.killed.is_none()
                && now.since(running.began) > limit
            {
                running.killed = Some(too_long(limit));
                late.push(running.number);
            }
        };
        for first in running.values_mut() {
            if let Some(second) = first.second.as_deref_mut() {
                look(second);
            }
            look(first);
        }
        lost.attempts_mut().for_each(look);
        for number in late {
            self.fleet.stop(number);
        }
    }

    /// Removes the files of an attempt without output.
    pub(super) fn clear(&self, id: TaskId, number: u64) {
        let job = &self.work.session.jobs[id.job as usize];
        // What cannot be removed now is removed when the job is done, or the run is resumed.
        let _ = slackline_task::base::files::remove(&self.work.session.layout.attempt(job, id, number));
    }

    /// An attempt that ends now, as it is recorded.
    fn attempt(&self, running: &Running, ended: AttemptOutcome) -> Attempt {
        let Running { number, id, slot, start, began, .. } = *running;
        let (began, segment) = (began.max(start), self.work.segment);
        Attempt {
            number,
            id,
            slot,
            segment,
            start: start.0,
            began: began.0,
            end: self.now.0.max(began.0),
            ended,
        }
    }
}
