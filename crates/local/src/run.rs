//! A run from its beginning to its end, or from where it was to its end.

mod clean;
mod error;
mod found;
mod look;

use std::collections::BTreeSet;
use std::fs;
use std::io;

use slackline_model::{Draft, Instance, PhaseKind, Time};
use slackline_policy::{Config, Policy};

pub use clean::{Clean, size};
pub use error::EngineError;
use error::file;
pub use found::{Found, discard, find};
use found::{fence, parts};
pub use look::{AtWork, Look, look};

use crate::clock::RunClock;
use crate::engine::{Interrupt, Local, Observer, Settings, Work};
use crate::files::remove;
use crate::job_cost::JobHistory;
use crate::job_plan::JobPlan;
use crate::journal::{Attempt, Ended, Head, Journal};
use crate::layout::Layout;
use crate::output_lock::OutputLocks;
use crate::preflight::Obstacle;
use crate::remaining::{Numbers, remaining};
use crate::run_schedule;
use crate::task_id::TaskId;

/// What resuming a run found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Tasks that were done already.
    pub done: usize,
    /// Attempts without an end, whose processes are gone now.
    pub cut_short: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnd {
    /// All flows are done.
    Done,
    /// Some flows failed, the others are done.
    Failed,
    /// It was stopped, and may be resumed.
    Interrupted,
}

/// What drives a run.
pub struct Drive<'a> {
    /// What is left to be scheduled: that of [`Session::remaining`].
    pub instance: &'a Instance,
    /// Says what starts where and when.
    pub policy: &'a mut dyn Policy,
    /// What the policy's driver is told.
    pub config: Config<'a>,
    /// Is told what happens.
    pub observer: &'a mut dyn Observer,
}

/// A run on disk that is ready to be driven.
pub struct Session {
    layout: Layout,
    journal: Journal,
    head: Head,
    jobs: Vec<JobPlan>,
    attempts: Vec<Attempt>,
    recovered: Recovered,
    obstacles: Vec<Obstacle>,
}

impl Session {
    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its jobs.
    pub fn jobs(&self) -> &[JobPlan] {
        &self.jobs
    }

    /// The resolved workload, with estimated durations.
    pub fn draft(&self) -> &Draft {
        &self.head.workload
    }

    /// When it started: microseconds since 1970.
    pub fn started(&self) -> u64 {
        self.head.started
    }

    /// What resuming it found.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// All attempts that have ended, by their numbers.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// What prevents unfinished jobs from running; their flows have failed from the start.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// The flows that cannot be run.
    pub fn unrunnable(&self) -> BTreeSet<&str> {
        self.obstacles.iter().map(|obstacle| self.jobs[obstacle.job].flow.as_str()).collect()
    }

    /// What the jobs took that are done, for a store of such.
    pub fn finished_jobs(&self) -> JobHistory {
        run_schedule::finished_jobs(&self.jobs, &self.attempts)
    }

    /// Tasks that are done.
    pub fn done(&self) -> BTreeSet<TaskId> {
        let done = self.attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_)));
        done.map(|attempt| attempt.id).collect()
    }

    /// What is left to be scheduled, without flows that cannot be run; `None` if nothing is.
    ///
    /// # Errors
    /// A workload that is none.
    pub fn remaining(&self) -> Result<Option<Instance>, EngineError> {
        let mut left = remaining(self.draft(), &self.done());
        let unrunnable = self.unrunnable();
        left.flows.retain(|flow| !unrunnable.contains(flow.id.as_str()));
        if left.flows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Instance::new(&left)?))
    }

    /// Makes sure that nothing of an earlier session is at work, that what it recorded is in its place and
    /// that what it did not record is nowhere.
    fn recover(&mut self) -> Result<(), EngineError> {
        self.recovered.cut_short = fence(&self.layout)?;
        let done = self.done();
        self.recovered.done = done.len();
        for attempt in self.attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))) {
            let job = &self.jobs[attempt.id.job as usize];
            let is_needed = job.is_final(attempt.id) || !job.is_complete(attempt.id.job, &done);
            if !is_needed {
                continue;
            }
            let place = self.layout.committed(job, attempt.id);
            match self.layout.commit(job, attempt.id, attempt.number) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(EngineError::Gone { path: place.display().to_string() });
                }
                other => other.map_err(file(&place))?,
            }
        }
        remove(&self.layout.attempts()).map_err(file(&self.layout.attempts()))?;
        self.remove_unrecorded(&done)?;
        let locks = OutputLocks::of(&self.head.owner);
        for (index, job) in (0..).zip(&self.jobs) {
            if job.is_complete(index, &done) {
                self.layout.succeed(job, index).map_err(file(&job.output))?;
            } else {
                // Where even that cannot be done, nothing can be written, and that is an obstacle.
                let _ = locks.clear(job);
            }
        }
        Ok(())
    }

    /// Removes the output of maps that the journal does not know: it has lost its end.
    fn remove_unrecorded(&self, done: &BTreeSet<TaskId>) -> Result<(), EngineError> {
        for (job, plan) in (0..).zip(&self.jobs) {
            let maps = self.layout.maps(job);
            let entries = match fs::read_dir(&maps) {
                Ok(entries) => entries,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(file(&maps)(e)),
            };
            let is_done = |task| done.contains(&TaskId { job, phase: PhaseKind::Map, task });
            let known: BTreeSet<String> =
                (0..plan.maps()).filter(|&task| is_done(task)).map(|task| task.to_string()).collect();
            for entry in entries {
                let path = entry.map_err(file(&maps))?.path();
                if !path.file_name().is_some_and(|name| known.contains(&*name.to_string_lossy())) {
                    remove(&path).map_err(file(&path))?;
                }
            }
        }
        Ok(())
    }

    /// Locks the outputs of what is left again, where the run had released them; what is another's now is in the way.
    fn lock_again(&mut self) {
        let (locks, done) = (OutputLocks::of(&self.head.owner), self.done());
        for (index, job) in (0..).zip(&self.jobs) {
            let is_hindered = self.obstacles.iter().any(|obstacle| obstacle.job == index as usize);
            if is_hindered || job.is_complete(index, &done) {
                continue;
            }
            if let Err(error) = locks.acquire(job, &parts(job, index, &done)) {
                let output = job.output.display();
                let problem = match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        format!(
                            "output {output}: found it in use by another run, expected it as this one left it"
                        )
                    }
                    _ => format!("output {output}: cannot be made: {error}"),
                };
                self.obstacles.push(Obstacle { job: index as usize, problem });
            }
        }
    }

    /// Releases the outputs of jobs that have failed.
    fn release(&self) {
        let (locks, done) = (OutputLocks::of(&self.head.owner), self.done());
        let open = (0..).zip(&self.jobs).filter(|(index, job)| !job.is_complete(*index, &done));
        open.for_each(|(_, job)| locks.release(job));
    }

    /// Runs what is left. `stop` is given what stops the run from another thread.
    ///
    /// # Errors
    /// The engine could not continue; finished work stays finished.
    pub fn run(
        &mut self,
        drive: Drive<'_>,
        settings: Settings,
        stop: impl FnOnce(Interrupt),
    ) -> Result<RunEnd, EngineError> {
        let Drive { instance, policy, config, observer } = drive;
        let done = self.done();
        let work = Work {
            instance,
            layout: &self.layout,
            journal: &self.journal,
            numbers: Numbers::new(instance, &self.jobs, &done),
            jobs: &self.jobs,
            done,
            next_number: self.attempts.last().map_or(0, |last| last.number + 1),
        };
        let seen = self.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0);
        let clock = RunClock::since(self.head.started, Time(seen));
        let mut engine = Local::new(work, settings, clock, observer);
        stop(engine.interrupt());
        let run = slackline_policy::run(instance, policy, &mut engine, config);
        engine.close();
        let (interrupted, fatal) = (engine.was_interrupted(), engine.fatal().map(str::to_owned));
        drop(engine);
        self.attempts = self.journal.read()?.attempts;
        if let Some(reason) = fatal {
            return Err(EngineError::Stopped(reason));
        }
        if let Some(failure) = run.figures.failure {
            return Err(EngineError::Policy(failure));
        }
        if !interrupted {
            self.release();
        }
        Ok(match run.completions.iter().all(Option::is_some) {
            true if self.obstacles.is_empty() => RunEnd::Done,
            false if interrupted => RunEnd::Interrupted,
            _ => RunEnd::Failed,
        })
    }
}
