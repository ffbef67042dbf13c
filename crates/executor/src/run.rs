//! A run of a flow file that is open in this process, new or resumed.

pub(crate) mod claims;
pub mod clean;
pub mod error;
pub mod inspect;
pub(crate) mod limits;
pub mod opening;
mod record;
pub(crate) mod recover;
pub mod reuse;
pub(crate) mod reused;
pub(crate) mod selection;
mod user_text;

pub use record::{JobVerdict, LostOutput, Recovery, RunRecord};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use slackline_model::draft::MachineDraft;
use slackline_model::quota::UserQuota;
use slackline_model::{Draft, Instance, Span, Time, WallTime};
use slackline_task::base::clock::{ClockReading, RunClock};
use slackline_task::base::error::may_pass;
use slackline_task::base::files::clear_away;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::cgroups::{Groups, Linux};
use slackline_task::process::memory::{self, Memory};
use slackline_task::process::spec::Job;

use self::error::{EngineError, file};
use crate::run::reuse::UnfinishedRun;
use crate::spec::job_plan::JobPlan;
use crate::spec::preflight::Obstacle;
use crate::spec::remaining::remaining;
use crate::store::finished_jobs::{FinishedJobs, FinishedLog};
use crate::store::journal::{Attempt, Content, Head, JoinedMachine, Journal, done_tasks};
use crate::store::layout::Layout;
use crate::store::machine_names::former_name;
use crate::store::output_lock::OutputLocks;
use crate::store::publish::{KnownParts, PublishContext, PublishState, Publisher};

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

/// What would hold the memory of the commands of these jobs, for the user; none if none has a limit. Nothing
/// is written.
pub(crate) fn would_hold_memory<'a>(mut jobs: impl Iterator<Item = &'a JobPlan>) -> Option<String> {
    jobs.any(is_limited).then(|| memory::would_hold(Path::new("/"), &Linux))
}

/// The control groups that hold the memory of the commands of many runs, where they can be made; `kept` keeps
/// their names.
pub(crate) fn hold_memory_of_all(kept: &Path) -> Option<Groups> {
    memory::hold(true, kept, Path::new("/"), Linux).groups
}

/// A run on disk that is ready to be driven.
pub struct Session {
    pub(crate) layout: Layout,
    pub(crate) journal: Journal,
    pub(crate) made: FinishedJobs,
    pub(crate) made_log: FinishedLog,
    pub(crate) known_parts: KnownParts,
    pub(crate) publish_state: PublishState,
    pub(crate) head: Head,
    pub(crate) jobs: Vec<JobPlan>,
    /// By job: how many bytes it reads, as far as that is known when it is opened, or at its end.
    pub(crate) bytes_in: Vec<u64>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) recovered: Recovery,
    pub(crate) obstacles: Vec<Obstacle>,
    pub(crate) verdicts: Vec<JobVerdict>,
    pub(crate) lost: Vec<LostOutput>,
    pub(crate) memory: Memory,
}

impl Session {
    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The name by which its outputs are known, which no other run has.
    pub fn owner(&self) -> &str {
        &self.head.owner
    }

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

    /// All attempts that have ended, by their numbers.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// What prevents unfinished jobs from running; their flows have failed from the start.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// The record of the opened run.
    pub fn record(&self) -> RunRecord<'_> {
        RunRecord {
            workload: &self.head.workload,
            bytes_in: &self.bytes_in,
            started: self.head.started,
            attempts: &self.attempts,
            segments: &self.head.segments,
            recovered: self.recovered,
            verdicts: &self.verdicts,
            lost: &self.lost,
            obstacles: &self.obstacles,
            memory: self.memory.said.as_deref(),
        }
    }

    /// Settles what holds the memory of commands that have a limit: control groups where they can be made,
    /// resource limits elsewhere and where this is not called.
    pub fn hold_memory(&mut self) {
        let is_limited = self.jobs.iter().any(is_limited);
        self.memory = memory::hold(is_limited, &self.layout.memory(), Path::new("/"), Linux);
    }

    /// The flows that cannot be run.
    pub fn unrunnable(&self) -> BTreeSet<&str> {
        self.obstacles.iter().map(|obstacle| self.jobs[obstacle.job].flow.as_str()).collect()
    }

    /// Tasks that are done.
    pub fn done(&self) -> BTreeSet<TaskId> {
        done_tasks(&self.attempts)
    }

    /// The remaining work to schedule, without flows that cannot run; `None` if there is none.
    ///
    /// # Errors
    /// An invalid workload.
    pub fn remaining(&self) -> Result<Option<Instance>, EngineError> {
        Ok(self.left().map(|left| Instance::new(&left)).transpose()?)
    }

    /// The same as a workload.
    pub(crate) fn left(&self) -> Option<Draft> {
        let mut left = remaining(self.draft().clone(), &self.done());
        let unrunnable = self.unrunnable();
        left.flows.retain(|flow| !unrunnable.contains(flow.id.as_str()));
        (!left.flows.is_empty()).then_some(left)
    }

    /// Machines that have joined since it was opened; `all` are those of now, the first of which it knows.
    /// They are in its journal when this returns.
    ///
    /// # Errors
    /// It knows others; the journal cannot be written.
    pub(crate) fn join(
        &mut self,
        all: &[MachineDraft],
        quota: Option<&UserQuota>,
    ) -> Result<(), EngineError> {
        self.head.workload.flows.iter_mut().for_each(|flow| flow.quota = quota.cloned());
        let known = &self.head.workload.machines;
        let is_same = |(a, b): (&MachineDraft, &MachineDraft)| {
            former_name(a) == former_name(b) && (a.count, a.slots) == (b.count, b.slots)
        };
        if let Some((found, _)) = known.iter().zip(all).find(|&pair| !is_same(pair)) {
            let problem = format!(
                "the run was started with machine {}, which the current machines do not have",
                found.name
            );
            return Err(EngineError::other(problem));
        }
        let at = self.clock().now().0;
        for machine in all.iter().skip(known.len()) {
            self.journal.joined(&JoinedMachine::of(machine), at)?;
            self.head.join(machine.clone(), at);
        }
        Ok(())
    }

    /// Removes unrecorded output, except for files of jobs on other systems that continue (`resumed`).
    fn recover(&mut self, resumed: &BTreeSet<u32>) -> Result<(), EngineError> {
        let last = self.attempts.iter().map(|attempt| attempt.end).max();
        let now = self.head.time_base().time(ClockReading::read().wall);
        self.recovered.paused = last.map_or(Span::ZERO, |last| now.since(Time(last)));
        let done = self.done();
        self.recovered.done = done.len();
        clear_away(&self.layout.attempts()).map_err(file(&self.layout.attempts()))?;
        self.remove_unrecorded(&done)?;
        self.remove_elsewhere(&done, resumed)?;
        let has_begun = |job| done.range(TaskId::map(job, 0)..=TaskId::map(job, u32::MAX)).next().is_some();
        self.layout.remove_prepared(has_begun).map_err(file(&self.layout.journal()))?;
        let logs = self.layout.logs_of(&self.head.kept, &self.jobs, &self.attempts, |_| true);
        self.layout.remove_logs(&logs.into_iter().collect()).map_err(file(&self.layout.journal()))?;
        let locks = OutputLocks::of(&self.head.owner);
        for (index, job) in (0..).zip(&self.jobs) {
            if job.is_complete(index, &done) {
                // The run that finished the job has warned of files that cannot be removed.
                let _ = self.layout.clear_up(job, index);
            } else {
                let is_done = |name: &str| parts(job, index, &done).any(|part| job.part(part) == name);
                // Where even that cannot be done, nothing can be written, and that is an obstacle.
                let _ = locks.clear(job, is_done);
            }
        }
        Ok(())
    }

    /// Removes the output of maps that the journal does not know: it has lost its end, or they are of jobs
    /// that are not continued.
    fn remove_unrecorded(&self, done: &BTreeSet<TaskId>) -> Result<(), EngineError> {
        let all = self.layout.all_maps();
        let mut known: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for (job, plan) in (0..).zip(&self.jobs) {
            let tasks = (0..plan.maps()).filter(|&task| done.contains(&TaskId::map(job, task)));
            known.insert(self.layout.maps(job), tasks.map(|task| task.to_string()).collect());
        }
        for directory in entries(&all)? {
            let Some(known) = known.get(&directory) else {
                clear_away(&directory).map_err(file(&directory))?;
                continue;
            };
            for path in entries(&directory)? {
                if !path.file_name().is_some_and(|name| known.contains(&*name.to_string_lossy())) {
                    clear_away(&path).map_err(file(&path))?;
                }
            }
        }
        Ok(())
    }

    /// Removes files on other systems of jobs that do not continue, or are done. A job with the same name may
    /// now be another one, or read other inputs.
    fn remove_elsewhere(&self, done: &BTreeSet<TaskId>, resumed: &BTreeSet<u32>) -> Result<(), EngineError> {
        let is_open =
            |(index, job): &(u32, &JobPlan)| resumed.contains(index) && !job.is_complete(*index, done);
        let open = (0..).zip(&self.jobs).filter(is_open).map(|(index, _)| self.layout.elsewhere(index));
        let open: BTreeSet<PathBuf> = open.collect();
        let entries = entries(&self.layout.all_elsewhere())?;
        entries
            .iter()
            .filter(|path| !open.contains(*path))
            .try_for_each(|path| clear_away(path).map_err(file(path)))
    }

    /// Releases the outputs of an earlier run of the state directory that are not outputs of this one.
    fn release_outputs_of(&self, earlier: &UnfinishedRun) {
        let (locks, base) = (OutputLocks::of(&self.head.owner), Path::new(&earlier.head.setup.directory));
        let own: BTreeSet<PathBuf> = self.jobs.iter().map(|job| job.definition.output()).collect();
        let others = earlier.jobs.iter().filter(|job| !own.contains(&job.definition.output()));
        others.for_each(|job| locks.release(&base.join(&job.output)));
    }

    /// Locks the outputs of the remaining jobs. A lock of another run blocks jobs of a resumed run, and fails
    /// a new run. A run that can be opened again later waits for what may pass.
    fn lock_outputs(&mut self, resumes: bool, waits: bool) -> Result<(), EngineError> {
        let (locks, done) = (OutputLocks::of(&self.head.owner), self.done());
        for (index, job) in (0..).zip(&self.jobs) {
            let is_hindered = self.obstacles.iter().any(|obstacle| obstacle.job == index as usize);
            if is_hindered || job.is_complete(index, &done) {
                continue;
            }
            let Err(error) = locks.acquire(job, &self.made) else { continue };
            let output = job.output.display();
            let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
            if resumes && waits && !is_taken && may_pass(&error) {
                return Err(file(&job.output)(error));
            }
            if !resumes {
                self.release();
                return Err(if is_taken {
                    EngineError::Claimed { path: output.to_string() }
                } else {
                    file(&job.output)(error)
                });
            }
            let problem = if is_taken {
                format!("output {output}: another run uses it now: wait for that run, then resume this one")
            } else {
                format!("output {output}: cannot be made: {error}")
            };
            self.obstacles.push(Obstacle::lasting(index as usize, problem));
        }
        Ok(())
    }

    /// Releases the outputs of jobs that have failed.
    pub(crate) fn release(&self) {
        let (locks, done) = (OutputLocks::of(&self.head.owner), self.done());
        let open = (0..).zip(&self.jobs).filter(|(index, job)| !job.is_complete(*index, &done));
        open.for_each(|(_, job)| locks.release_failed(job));
    }

    /// By flow that reads from other flows: the jobs that it waits for.
    pub(crate) fn waits(&self) -> BTreeMap<String, BTreeSet<u32>> {
        let index = |flow: &str, job: &str| {
            (0..).zip(&self.jobs).find(|(_, plan)| plan.flow == flow && plan.job == job).map(|(at, _)| at)
        };
        let flows = self.head.workload.flows.iter();
        let waits = flows.map(|flow| {
            let jobs = flow.foreign_inputs().filter_map(|(flow, job)| index(flow, job));
            (flow.id.clone(), jobs.collect::<BTreeSet<u32>>())
        });
        waits.filter(|(_, jobs)| !jobs.is_empty()).collect()
    }

    pub(crate) fn publisher(&self) -> Publisher<'_> {
        let directory = Path::new(&self.head.setup.directory);
        let place = PublishContext {
            layout: &self.layout,
            jobs: &self.jobs,
            directory,
            started: self.head.started,
            attempts: &self.attempts,
            known: &self.known_parts,
            state: &self.publish_state,
        };
        Publisher::new(place, &self.made, &self.made_log)
    }

    /// Its time.
    pub fn clock(&self) -> RunClock {
        let seen = self.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0);
        let jumped = self.head.segments.iter().map(|segment| segment.jumped).sum();
        RunClock::since(WallTime(self.head.started), Time(seen.max(self.head.last_segment().start)), jumped)
    }

    /// The records of the engine: the attempts, and machines that joined.
    pub(crate) fn read_again(&mut self) -> Result<(), EngineError> {
        let Content { head, attempts } = self.journal.read()?;
        self.attempts = attempts;
        self.head = head.unwrap_or_else(|| self.head.clone());
        Ok(())
    }
}

/// Whether commands of a job may take only so much memory.
fn is_limited(job: &JobPlan) -> bool {
    job.limits.memory.is_some() && !matches!(job.work, Job::Program { .. })
}

/// The parts of a job that are done.
fn parts<'a>(job: &'a JobPlan, index: u32, done: &'a BTreeSet<TaskId>) -> impl Iterator<Item = u32> + 'a {
    done.iter().filter(move |id| id.job == index && job.is_final(**id)).map(|id| id.task)
}

/// The entries of a directory; empty if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let entries = match fs::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(file(directory))?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    paths.map_err(file(directory))
}
