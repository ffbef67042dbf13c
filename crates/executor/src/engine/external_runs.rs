//! Runs whose jobs execute as a whole on another system (YARN). Tracks the remaining jobs, releases flows,
//! and records a finished job with one append to the journal.
//!
//! When all tasks of a job have succeeded, they are recorded with one append, the parts are moved to their
//! places, and the job is published like any other. If the process is killed before that, the run does not
//! know the tasks of the job, and collects the parts from the engine again. If it is killed after that, the
//! run finishes the job when it is resumed.
//!
//! There may be one run, or several that join and leave: for the engine they are one. Jobs are numbered
//! consecutively over all runs, and times are those of the engine. The records and events of a run have the
//! numbers and times of the run.

pub(crate) mod external_run;
pub mod tasks;

pub use crate::store::applications::ExternalJob;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use slackline_model::draft::MachineDraft;
use slackline_model::{Instance, Time, WallTime};
use slackline_task::base::clock::{RunClock, TimeOffset};
use slackline_task::base::task_id::TaskId;
use slackline_task::container::job_spec::JobSpec;

use crate::engine::backend::{FlowOverrides, RunConfig};
use crate::engine::event::{EventCallback, RunEvent};
use crate::engine::external_runs::external_run::ExternalRun;
use crate::engine::external_runs::tasks::{ArrivingFlow, CannotFinish, FailedTask, FinishedTask};
use crate::engine::shared::flow::RunDates;
use crate::run::error::EngineError;
use crate::run::{RunEnd, Session};
use crate::spec::job_plan::JobPlan;
use crate::store::machine_slots::WholeCluster;

/// The remaining work of one run or of several, for an engine that runs whole jobs.
pub struct ExternalRuns {
    clock: RunClock,
    /// By the number of its first job.
    runs: BTreeMap<u32, Member>,
    next_job: u32,
}

struct Member {
    run: ExternalRun,
    clock: RunClock,
    /// How much later its time begins than that of the engine.
    later: TimeOffset,
    /// When it began: microseconds since 1970.
    started: u64,
    on_event: EventCallback,
}

/// A run that leaves.
pub struct LeavingRun {
    pub end: Result<RunEnd, EngineError>,
    pub session: Session,
    pub on_event: EventCallback,
}

/// The result of a request of a run to join.
pub enum JoinOutcome {
    /// It has: the number of its first job.
    From(u32),
    /// No work of the run is left, or it cannot join: how the run ended.
    Ended(Box<Session>, Result<RunEnd, EngineError>),
}

impl ExternalRuns {
    /// No run yet, and a time that began this many microseconds after 1970 and has come to `seen` at least.
    pub fn none(started: u64, seen: Time) -> Self {
        Self { clock: RunClock::since(WallTime(started), seen, 0), runs: BTreeMap::new(), next_job: 0 }
    }

    /// No run yet, in the time of a run that is about to join alone.
    pub fn for_run(session: &Session) -> Self {
        Self { clock: session.clock(), runs: BTreeMap::new(), next_job: 0 }
    }

    /// Adds a run on these machines. The machines of the first run are used for all later runs. A run cannot
    /// join with other machines, with an invalid workload, or if its journal cannot be written.
    pub fn join(
        &mut self,
        mut session: Session,
        machines: &[MachineDraft],
        rules: &RunConfig,
        on_event: EventCallback,
    ) -> JoinOutcome {
        let Some(mut left) = session.left() else {
            let end = if session.obstacles().is_empty() { RunEnd::Done } else { RunEnd::Failed };
            return JoinOutcome::Ended(Box::new(session), Ok(end));
        };
        left.machines = machines.to_vec();
        let joined = session.join(machines, rules.quota.as_ref()).and_then(|()| Ok(Instance::new(&left)?));
        let instance = match joined {
            Ok(instance) => instance,
            Err(error) => return JoinOutcome::Ended(Box::new(session), Err(error)),
        };
        let (clock, started) = (session.clock(), session.started());
        let later = clock.offset_to(&self.clock);
        let (first, jobs) = (self.next_job, session.jobs().len() as u32);
        let run = ExternalRun::new(session, instance, rules);
        self.runs.insert(first, Member { run, clock, later, started, on_event });
        self.next_job += jobs;
        JoinOutcome::From(first)
    }

    /// Removes a run. Returns how it ended, and its observer. Its records are on disk.
    ///
    /// # Errors
    /// Its end cannot be written.
    pub fn leave(&mut self, first: u32, is_interrupted: bool) -> Option<LeavingRun> {
        let Member { run, on_event, .. } = self.runs.remove(&first)?;
        let all_done = run.all_done();
        let mut session = run.session;
        Some(LeavingRun { end: session.ended(all_done, is_interrupted), session, on_event })
    }

    fn member(&self, job: u32) -> (u32, &Member) {
        let (first, member) = self.runs.range(..=job).next_back().expect("invariant: it is a job of a run");
        (*first, member)
    }

    fn member_mut(&mut self, job: u32) -> (u32, &mut Member) {
        let (first, member) =
            self.runs.range_mut(..=job).next_back().expect("invariant: it is a job of a run");
        (*first, member)
    }

    /// The numbers of the first jobs of the runs that there are.
    pub fn runs(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.keys().copied()
    }

    /// The number of the first job of the run that a job is of.
    pub fn run_of(&self, job: u32) -> u32 {
        self.member(job).0
    }

    /// The numbers of the jobs of a run, and the jobs.
    pub fn jobs_of(&self, first: u32) -> impl Iterator<Item = (u32, &JobPlan)> {
        (first..).zip(self.plans_beside(first))
    }

    /// All jobs of the run that a job is of.
    pub fn plans_beside(&self, job: u32) -> &[JobPlan] {
        self.member(job).1.run.plans()
    }

    pub fn plan(&self, job: u32) -> &JobPlan {
        let (first, member) = self.member(job);
        &member.run.plans()[(job - first) as usize]
    }

    /// The slots that attempts of earlier sessions of a run have held, and when.
    pub fn held_before(&self, first: u32) -> impl Iterator<Item = (u32, (Time, Time))> + '_ {
        let (_, member) = self.member(first);
        let later = member.later;
        let session = &member.run.session;
        let now = WholeCluster::of(session.head.segments.last());
        // The slots of a machine that has left are of no use.
        session.attempts.iter().filter_map(move |attempt| {
            let slot = now.slot(&session.head.segments, attempt)?;
            Some((slot, (later.of(Time(attempt.start)), later.of(Time(attempt.end)))))
        })
    }

    /// Whether an earlier session has recorded this failure of a task; its message names the attempt.
    pub fn is_recorded(&self, id: TaskId, message: &str) -> bool {
        let (first, member) = self.member(id.job);
        member.run.is_recorded(own_id(first, id), message)
    }

    /// A directory for the files of a job on the other system. It stays when the run is killed and resumed,
    /// and is removed when the job is published.
    pub fn directory(&self, job: u32) -> PathBuf {
        let (first, member) = self.member(job);
        member.run.session.layout.elsewhere(job - first)
    }

    /// The name by which the outputs of the run of a job are known, which no other run has.
    pub fn owner(&self, job: u32) -> &str {
        self.member(job).1.run.session.owner()
    }

    /// Now, in the time of the engine.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The clock of the engine.
    pub fn clock(&self) -> RunClock {
        self.clock
    }

    /// A moment of a wall clock, in milliseconds since 1970, in the time of the engine.
    pub fn since_start(&self, millis: u64) -> Time {
        self.clock.measure().time(WallTime(millis.saturating_mul(1000)))
    }

    /// How often a task of a job may fail.
    pub fn attempts_of(&self, job: u32) -> u16 {
        let most = self.member(job).1.run.attempts_max;
        self.plan(job).limits.attempts.unwrap_or(most)
    }

    /// The directory that relative paths of a job start from.
    pub fn base(&self, job: u32) -> &Path {
        Path::new(&self.member(job).1.run.session.head.setup.directory)
    }

    /// The description of a job for its tasks in containers, with this memory for their buffers, in bytes. A
    /// program that reads all input in advance does so here.
    ///
    /// # Errors
    /// A job that cannot run in containers; input that cannot be read.
    pub fn describe(&self, job: u32, memory_bytes: u64) -> io::Result<JobSpec> {
        let (first, member) = self.member(job);
        member.run.describe(job - first, memory_bytes)
    }

    /// Writes the state of jobs on the cluster for viewers: each with its number, and its finished tasks that
    /// are not recorded yet. Jobs that are not named have ended; their ids stay. O(all of these).
    pub fn note(&self, jobs: impl IntoIterator<Item = (u32, ExternalJob, Vec<FinishedTask>)>) {
        let mut by_run: BTreeMap<u32, Vec<(u32, ExternalJob, Vec<FinishedTask>)>> =
            self.runs.keys().map(|&first| (first, Vec::new())).collect();
        for (job, there, made) in jobs {
            let (first, member) = self.member(job);
            let made = made.into_iter().map(|task| member.own_made(first, task)).collect();
            let there = member.own_there(first, there);
            by_run.entry(first).or_default().push((job - first, there, made));
        }
        for (first, jobs) in by_run {
            let (_, member) = self.member(first);
            // No process depends on it.
            let _ = member.run.note(member.started, jobs);
        }
    }

    /// Reports an event to the observer of its run, or to all observers.
    pub fn happened(&mut self, event: RunEvent) {
        let now = self.clock.now();
        let Some(job) = event.job() else {
            for member in self.runs.values_mut() {
                let at = member.own_time(now);
                (member.on_event)(at, &event);
            }
            return;
        };
        let (first, member) = self.member_mut(job);
        let at = member.own_time(now);
        (member.on_event)(at, &event.numbered_from(first));
    }

    /// Whether a job's output is complete.
    pub fn is_done(&self, job: u32) -> bool {
        let (first, member) = self.member(job);
        member.run.is_done[(job - first) as usize]
    }

    /// The flows that come now, by their runs and names.
    pub fn arriving(&mut self) -> Vec<(u32, String)> {
        let now = self.clock.now();
        let mut all = Vec::new();
        for (&first, member) in &mut self.runs {
            let at = member.own_time(now);
            let Member { run, clock, on_event, .. } = member;
            if let Some(by) = clock.jump().filter(|&by| run.record_jump(by, at)) {
                clock.set_recorded(by);
            }
            let flows = run.arriving(clock.by_date(at), &mut **on_event);
            all.extend(flows.into_iter().map(|flow| (first, flow)));
        }
        all
    }

    /// A flow as the driver receives it: its remaining work, with its overrides. `None` if no work is left,
    /// the flow has finished, or it is held.
    ///
    /// # Errors
    /// An invalid workload.
    pub fn arrival(
        &mut self,
        first: u32,
        flow: &str,
        machines: &[MachineDraft],
    ) -> Result<Option<ArrivingFlow>, EngineError> {
        let clock = self.clock;
        let (_, member) = self.member_mut(first);
        let dates = RunDates::of(&member.clock, &clock, clock.now(), member.later);
        let arriving = member.run.comes(flow, dates, machines)?;
        Ok(arriving.map(|mut arriving| {
            arriving.phases.iter_mut().for_each(|(job, ..)| *job += first);
            arriving
        }))
    }

    /// The overrides of a flow change. True if the driver has to know: it has come, and is not over.
    pub fn update_flow(&mut self, first: u32, flow: &str, overrides: FlowOverrides) -> bool {
        self.member_mut(first).1.run.stand(flow, overrides)
    }

    /// Whether nothing more of a flow is to start.
    pub fn is_held(&self, first: u32, flow: &str) -> bool {
        self.member(first).1.run.is_held(flow)
    }

    /// Cancels a flow: it does not arrive any more if it has not yet, and has failed. Returns false if it has
    /// finished already.
    pub fn cancel_flow(&mut self, first: u32, flow: &str) -> bool {
        self.member_mut(first).1.run.cancel(flow)
    }

    /// Whether all flows of a run are done or have failed.
    pub fn is_over(&self, first: u32) -> bool {
        self.member(first).1.run.is_over()
    }

    /// Whether all flows of a run are done.
    pub fn all_done(&self, first: u32) -> bool {
        self.member(first).1.run.all_done()
    }

    /// Whether flows may still come.
    pub fn may_bring_flows(&self) -> bool {
        self.runs.values().any(|member| member.run.coming.may_come())
    }

    /// When the next flow is released, if one is still to be.
    pub fn next_release(&self) -> Option<Time> {
        let next = |member: &Member| {
            let at = member.clock.reaches(member.run.next_release()?);
            Some(member.later.of(at))
        };
        self.runs.values().filter_map(next).min()
    }

    /// A job can never be done: flows that read from its flow do not come.
    pub fn fail(&mut self, job: u32) {
        let (first, member) = self.member_mut(job);
        member.run.fail(job - first);
    }

    /// Records and reports an attempt without output.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn record_failed(&mut self, failed: &FailedTask<'_>, is_final: bool) -> Result<(), CannotFinish> {
        let now = self.clock.now();
        let (first, member) = self.member_mut(failed.id.job);
        let FailedTask { id, slot, start, end, message } = *failed;
        let [now, start, end] = [now, start, end].map(|at| member.own_time(at));
        let own = FailedTask { id: own_id(first, id), slot, start, end, message };
        member.run.record_failed(&own, is_final, now, &mut *member.on_event)
    }

    /// Finishes a job whose tasks have all succeeded. `put` receives the job and a function that moves the
    /// output to its place, for engines that have work before and after it. O(tasks).
    ///
    /// # Errors
    /// Output that cannot be completed; a journal that cannot be written.
    pub fn finish(
        &mut self,
        job: u32,
        made: Vec<FinishedTask>,
        put: impl FnOnce(&JobPlan, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
    ) -> Result<(), CannotFinish> {
        let now = self.clock.now();
        let (first, member) = self.member_mut(job);
        let made = made.into_iter().map(|task| member.own_made(first, task)).collect();
        let now = member.own_time(now);
        member.run.finish(job - first, made, put, now, &mut *member.on_event)
    }
}

impl Member {
    /// Converts a time of the engine to the time of the run; earlier times become its start.
    fn own_time(&self, at: Time) -> Time {
        self.later.own(at)
    }

    fn own_made(&self, first: u32, task: FinishedTask) -> FinishedTask {
        let [start, began, end] = [task.start, task.began, task.end].map(|at| self.own_time(at));
        FinishedTask { id: own_id(first, task.id), start, began, end, ..task }
    }

    fn own_there(&self, first: u32, there: ExternalJob) -> ExternalJob {
        let own = |at: u64| self.own_time(Time(at)).0;
        ExternalJob {
            submitted: there.submitted.map(own),
            am: there.am.map(|at| at.map(own)),
            at_work: there.at_work.iter().map(|&(id, at)| (own_id(first, id), own(at))).collect(),
            ..there
        }
    }
}

/// A task with the number that its job has in its run.
fn own_id(first: u32, id: TaskId) -> TaskId {
    TaskId { job: id.job - first, ..id }
}

/// Removes a directory of an engine with its contents, if it exists.
///
/// # Errors
/// An error of the file system.
pub fn clear(directory: &Path) -> io::Result<()> {
    slackline_task::base::files::remove(directory)
}
