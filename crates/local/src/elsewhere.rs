//! What an engine of another kind needs of a run: what is left of it, the flows that come, and the end of jobs whose tasks
//! ran where no journal sees them one by one.
//!
//! A cluster that runs whole jobs by its own means commits them as wholes: when all tasks of a job have ended well, they
//! are recorded with one append, the parts are put in their places, and the job is published as any other. Killed
//! before, the run does not know of the job's tasks, and takes the parts where the engine has them once more; killed
//! after, it finishes the job when it is resumed.

mod applications;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use slackline_model::{FlowId, Instance, PhaseId, Time};

use crate::clock::RunClock;
use crate::engine::coming::{Arriving, Coming};
use crate::engine::{Happening, Observer, Work};
use crate::guest::JobSpec;
use crate::job_plan::JobPlan;
use crate::journal::{Attempt, Ended};
use crate::log::LogError;
use crate::task::Outcome;
use crate::task_id::TaskId;

pub use applications::JobThere;
pub(crate) use applications::read as read_applications;

/// What is left of a run, for an engine that runs jobs as wholes.
pub struct Elsewhere<'a> {
    work: Work<'a>,
    clock: RunClock,
    started: u64,
    observer: &'a mut dyn Observer,
    coming: Coming,
    /// The number of the next attempt.
    next_number: u64,
    /// By job: whether its output is complete.
    is_done: Vec<bool>,
}

/// A task that ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeTask {
    /// The task.
    pub id: TaskId,
    /// The slot it ran on, of the lane that serves it.
    pub slot: u32,
    /// Since when it had its slot.
    pub start: Time,
    /// Since when it was at work.
    pub began: Time,
    /// When it ended.
    pub end: Time,
    /// What it reported.
    pub outcome: Outcome,
    /// The part file that it wrote, of a task that writes one.
    pub part: Option<PathBuf>,
}

/// Why a job whose tasks have all ended well is not done.
#[derive(Debug, thiserror::Error)]
pub enum CannotFinish {
    /// Its output cannot be completed: its flow has failed.
    #[error("output {output}: cannot be completed: {problem}")]
    Output {
        /// The directory.
        output: String,
        /// What the file system says.
        problem: io::Error,
    },
    /// Nothing can be recorded any more: the run has to stop, and can be resumed.
    #[error("{0}; nothing that was done is lost: the same command resumes the run once it can be written")]
    Journal(#[from] LogError),
}

impl<'a> Elsewhere<'a> {
    pub(crate) fn new(
        work: Work<'a>,
        (clock, started): (RunClock, u64),
        observer: &'a mut dyn Observer,
    ) -> Self {
        let is_done = |(index, job): (u32, &JobPlan)| job.is_complete(index, &work.done);
        Self {
            coming: Coming::new(work.instance, &work.waits),
            next_number: work.attempts.last().map_or(0, |last| last.number + 1),
            is_done: (0..).zip(work.jobs).map(is_done).collect(),
            work,
            clock,
            started,
            observer,
        }
    }

    /// What is left to be scheduled.
    pub fn instance(&self) -> &'a Instance {
        self.work.instance
    }

    /// The jobs of the run.
    pub fn jobs(&self) -> &'a [JobPlan] {
        self.work.jobs
    }

    /// All attempts of earlier sessions.
    pub fn attempts(&self) -> &'a [Attempt] {
        self.work.attempts
    }

    /// A directory for what is made of a job elsewhere: it stays when the run is killed and resumed, and goes when the
    /// job is published.
    pub fn directory(&self, job: u32) -> PathBuf {
        self.work.layout.elsewhere(job)
    }

    /// The name by which the outputs of this run are known, which no other run has.
    pub fn owner(&self) -> &'a str {
        self.work.owner
    }

    /// Now, since the run began.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A moment of a wall clock, in milliseconds since 1970, since the run began.
    pub fn since_start(&self, millis: u64) -> Time {
        Time(millis.saturating_mul(1000).saturating_sub(self.started))
    }

    /// The task of the run that is task `task` of a phase of the instance.
    pub fn id(&self, phase: PhaseId, task: u32) -> TaskId {
        self.work.numbers.id(phase, task)
    }

    /// How often a task of a job may fail.
    pub fn attempts_of(&self, job: u32) -> u16 {
        self.work.jobs[job as usize].limits.attempts.unwrap_or(self.work.attempts_max)
    }

    /// The directory that relative paths start from.
    pub fn base(&self) -> &Path {
        self.work.publisher.directory()
    }

    /// What the tasks of a job are told in a container, with so much memory for their buffers, in bytes. A program that
    /// wants to look at all input first does so here.
    ///
    /// # Errors
    /// A job that cannot be run so; input that cannot be read.
    pub fn describe(&self, job: u32, memory_bytes: u64) -> io::Result<JobSpec> {
        let plan = &self.work.jobs[job as usize];
        let prepared = self.work.layout.prepare(plan, job)?;
        let part = |path: &Path| self.work.publisher.part(path);
        JobSpec::of(plan, self.base(), memory_bytes, prepared.as_deref(), part).map_err(io::Error::other)
    }

    /// Writes down what the cluster does of jobs, for those who look on from outside: each with its index, and the tasks of it
    /// that are done and not recorded. Of jobs that are not named, which have ended, it stays what they were called. O(all of that).
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn note(&self, jobs: impl IntoIterator<Item = (u32, JobThere, Vec<MadeTask>)>) -> io::Result<()> {
        let path = self.work.layout.applications();
        let is_of_interest = |known: &JobThere| {
            let kept = self.work.kept.iter().map(|kept| (kept.started, &kept.flow, &kept.job));
            let own = self.work.jobs.iter().map(|plan| (self.started, &plan.flow, &plan.job));
            kept.chain(own).any(|(run, flow, job)| known.is(run, flow, job))
        };
        let mut all = applications::read(&path);
        all.retain(is_of_interest);
        for known in &mut all {
            // What is not named has ended.
            (known.failed, known.containers) = (false, 0);
            known.at_work.clear();
            known.made.clear();
        }
        for (index, there, made) in jobs {
            let plan = &self.work.jobs[index as usize];
            // They get other numbers when they are recorded.
            let numbers = (0..=u64::MAX).rev();
            let made = numbers.zip(made).map(|(number, task)| attempt(number, task)).collect();
            let (flow, job) = (plan.flow.clone(), plan.job.clone());
            let earlier = all.extract_if(.., |known| known.is(self.started, &flow, &job));
            let mut applications: Vec<String> = earlier.flat_map(|known| known.applications).collect();
            applications.retain(|application| !there.applications.contains(application));
            applications.extend(there.applications);
            all.push(JobThere { flow, job, run: self.started, applications, made, ..there });
        }
        let place = |there: &JobThere| {
            self.work.jobs.iter().position(|plan| plan.flow == there.flow && plan.job == there.job)
        };
        all.sort_by_cached_key(place);
        applications::write(&path, &all)
    }

    /// Says that something happened.
    pub fn happened(&mut self, what: Happening<'_>) {
        let now = self.clock.now();
        self.observer.happened(now, what);
    }

    /// Whether a job's output is complete.
    pub fn is_done(&self, job: u32) -> bool {
        self.is_done[job as usize]
    }

    /// The flows that arrive by now, of the instance.
    pub fn arriving(&mut self) -> Vec<FlowId> {
        let (now, Self { coming, work, is_done, .. }) = (self.clock.now(), &mut *self);
        let Arriving { flows, never } =
            coming.arriving(now, (work.instance, work.jobs), |job| is_done[job as usize]);
        for (flow, job) in never {
            let flow = self.work.instance.flow(flow).id.as_str();
            self.observer.happened(now, Happening::NeverComes { flow, job });
        }
        flows
    }

    /// Whether flows may still come.
    pub fn may_bring_flows(&self) -> bool {
        self.coming.may_come()
    }

    /// When the next flow is released, if one is still to be.
    pub fn next_release(&self) -> Option<Time> {
        self.coming.next_release(self.work.instance)
    }

    /// A job can never be done: flows that read from its flow do not come.
    pub fn fail(&mut self, job: u32) {
        self.coming.fail(&self.work.jobs[job as usize].flow);
    }

    /// Records an attempt without output, and says so.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn record_failed(&mut self, failed: &FailedTask<'_>, is_final: bool) -> Result<(), CannotFinish> {
        let FailedTask { id, slot, start, end, message } = *failed;
        let number = self.number();
        let ended = Ended::Failed(message.to_owned());
        let (start, end) = (start.0, end.0.max(start.0));
        let attempt = Attempt { number, id, slot, start, began: start, end, ended };
        self.work.journal.record(std::slice::from_ref(&attempt))?;
        self.happened(Happening::Recorded(&attempt));
        self.happened(Happening::Failed { id, message, log: None, goes_on: false, is_final });
        Ok(())
    }

    /// Finishes a job all of whose tasks ended well. `put` is given what puts the output in its place, for engines that have
    /// something to do before and after. O(tasks).
    ///
    /// # Errors
    /// Output that cannot be completed; a journal that cannot be written.
    pub fn finish(
        &mut self,
        job: u32,
        made: Vec<MadeTask>,
        put: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
    ) -> Result<(), CannotFinish> {
        let plan = &self.work.jobs[job as usize];
        let output = |problem| CannotFinish::Output { output: plan.output.display().to_string(), problem };
        let mut attempts = Vec::with_capacity(made.len());
        for task in made {
            let number = self.number();
            if let Some(part) = &task.part {
                let to = self.work.layout.attempt(plan, task.id, number);
                fs::create_dir_all(&to).map_err(output)?;
                lend(part, &to.join(plan.part(task.id.task))).map_err(output)?;
            }
            attempts.push(attempt(number, task));
        }
        self.work.journal.record(&attempts)?;
        let ids: BTreeSet<TaskId> = attempts.iter().map(|attempt| attempt.id).collect();
        if let Err(problem) = put(&mut || self.put(job, &attempts)) {
            self.work.journal.lost(&ids)?;
            return Err(output(problem));
        }
        self.is_done[job as usize] = true;
        self.work.done.extend(ids);
        for attempt in &attempts {
            self.happened(Happening::Recorded(attempt));
        }
        Ok(())
    }

    /// Moves recorded parts to their places, and the output of the job to its own.
    fn put(&self, job: u32, attempts: &[Attempt]) -> io::Result<()> {
        let plan = &self.work.jobs[job as usize];
        for attempt in attempts.iter().filter(|attempt| plan.is_final(attempt.id)) {
            self.work.layout.commit(plan, attempt.id, attempt.number)?;
        }
        self.work.publisher.publish(job, self.next_number).map(drop)
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }
}

/// A task whose attempt failed.
#[derive(Clone, Copy, Debug)]
pub struct FailedTask<'a> {
    /// The task.
    pub id: TaskId,
    /// The slot it ran on.
    pub slot: u32,
    /// Since when.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Why, in words for a person.
    pub message: &'a str,
}

fn attempt(number: u64, task: MadeTask) -> Attempt {
    let MadeTask { id, slot, start, began, end, outcome, part: _ } = task;
    let began = began.max(start);
    let end = end.max(began);
    Attempt { number, id, slot, start: start.0, began: began.0, end: end.0, ended: Ended::Done(outcome) }
}

/// Has a file at a second place, also on another file system. The first stays until the job is published, so that a
/// publication that was cut short can be made again.
fn lend(from: &Path, to: &Path) -> io::Result<()> {
    crate::files::remove(to)?;
    match fs::hard_link(from, to) {
        // Not every file system has links, nor may every file be linked.
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            fs::copy(from, to)?;
            fs::File::open(to)?.sync_all()
        }
        other => other,
    }
}

/// How an engine that runs jobs as wholes ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Over {
    /// Whether every flow that was left is done.
    pub all_done: bool,
    /// Whether somebody asked it to stop.
    pub interrupted: bool,
    /// Why the policy could not go on, if it could not.
    pub policy_failed: Option<String>,
}

/// Removes a directory of an engine and all that is in it, if it is there.
///
/// # Errors
/// Whatever the file system says.
pub fn clear(directory: &Path) -> io::Result<()> {
    crate::files::remove(directory)
}
