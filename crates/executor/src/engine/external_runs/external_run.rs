//! One run whose jobs execute as a whole on another system, with the run's own job numbers and times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use self_cell::self_cell;
use slackline_model::Time;
use slackline_model::draft::MachineDraft;
use slackline_task::base::task_id::TaskId;
use slackline_task::container::job_spec::{ContainerJob, JobSpec};

use crate::engine::Work;
use crate::engine::arrivals::{Arrivals, PendingArrivals};
use crate::engine::backend::{FlowOverrides, RunId};
use crate::engine::event::{Observer, RunEvent};
use crate::engine::external_runs::tasks::{ArrivingFlow, CannotFinish, FailedTask, FinishedTask};
use crate::engine::shared::flow::{FlowSource, RunDates};
use crate::run::Owned;
use crate::run::error::EngineError;
use crate::spec::job_plan::JobPlan;
use crate::store::applications::{self, ExternalJob};
use crate::store::journal::{Attempt, AttemptOutcome};

self_cell!(
    /// What is left borrows from the session that it is of.
    pub(crate) struct Bench {
        owner: Owned,
        #[covariant]
        dependent: ExternalRun,
    }
);

/// A run that its driver lends, or one that the engine owns while it is there.
pub(crate) enum Held<'o> {
    Lent(Box<ExternalRun<'o>>),
    Own(Bench),
}

impl Held<'_> {
    pub(crate) fn own(owned: Owned, make: impl for<'a> FnOnce(&'a Owned) -> ExternalRun<'a>) -> Self {
        Self::Own(Bench::new(owned, make))
    }

    pub(crate) fn there(&self) -> &ExternalRun<'_> {
        match self {
            Self::Lent(there) => there,
            Self::Own(bench) => bench.borrow_dependent(),
        }
    }

    pub(crate) fn with<T>(&mut self, what: impl for<'a> FnOnce(&mut ExternalRun<'a>) -> T) -> T {
        match self {
            Self::Lent(there) => what(there),
            Self::Own(bench) => bench.with_dependent_mut(|_, there| what(there)),
        }
    }

    pub(crate) fn plans(&self) -> &[JobPlan] {
        self.there().work.jobs
    }
}

/// What is left of a run.
pub(crate) struct ExternalRun<'a> {
    pub(crate) work: Work<'a>,
    pub(crate) coming: PendingArrivals,
    /// The number of the next attempt.
    next_number: u64,
    /// By job: whether its output is complete.
    pub(crate) is_done: Vec<bool>,
    /// Flows that do not stand as their document says.
    overrides: BTreeMap<String, FlowOverrides>,
    /// Flows that have come: released, and what they read is there.
    came: BTreeSet<String>,
}

impl<'a> ExternalRun<'a> {
    pub(crate) fn new(work: Work<'a>, overrides: BTreeMap<String, FlowOverrides>) -> Self {
        let is_done = |(index, job): (u32, &JobPlan)| job.is_complete(index, &work.done);
        Self {
            coming: PendingArrivals::new(work.instance, &work.waits),
            next_number: work.attempts.last().map_or(0, |last| last.number + 1),
            is_done: (0..).zip(work.jobs).map(is_done).collect(),
            work,
            overrides,
            came: BTreeSet::new(),
        }
    }

    /// Whether an earlier session has recorded this failure of a task: its message names the attempt. Times
    /// do not identify it, as the clock of its machine may differ from this one.
    pub(crate) fn is_recorded(&self, id: TaskId, message: &str) -> bool {
        let is_it =
            |ended: &AttemptOutcome| matches!(ended, AttemptOutcome::Failed(known) if known == message);
        self.work.attempts.iter().any(|attempt| attempt.id == id && is_it(&attempt.ended))
    }

    pub(crate) fn describe(&self, job: u32, memory_bytes: u64) -> io::Result<JobSpec> {
        let plan = &self.work.jobs[job as usize];
        let prepared = self.work.layout.prepare(plan, job)?;
        let part = |path: &Path| self.work.publisher.part(path);
        let base = self.work.publisher.directory();
        let maps = (0..plan.maps()).map(|map| plan.splits(map, part)).collect::<io::Result<Vec<_>>>();
        let job = ContainerJob {
            work: &plan.work,
            maps: &maps.map_err(io::Error::other)?,
            reducers: plan.reducers,
            needs_preparation: plan.prepare,
            prepared: prepared.as_deref(),
            setting: &plan.setting,
            shuffle: &plan.shuffle,
            compress: plan.compress,
            limits: &plan.limits,
        };
        JobSpec::of(&job, base, memory_bytes).map_err(io::Error::other)
    }

    /// See [`crate::engine::external_runs::Elsewhere::note`]; `started` is when the run did.
    pub(crate) fn note(
        &self,
        started: u64,
        jobs: Vec<(u32, ExternalJob, Vec<FinishedTask>)>,
    ) -> io::Result<()> {
        let path = self.work.layout.applications();
        let is_of_interest = |known: &ExternalJob| {
            let kept = self.work.kept.iter().map(|kept| (kept.started, &kept.flow, &kept.job));
            let own = self.work.jobs.iter().map(|plan| (started, &plan.flow, &plan.job));
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
            let made = numbers.zip(made).map(|(number, task)| attempt(number, self.work.segment, task));
            let made = made.collect();
            let (flow, job) = (plan.flow.clone(), plan.job.clone());
            let earlier = all.extract_if(.., |known| known.is(started, &flow, &job));
            let mut applications: Vec<String> = earlier.flat_map(|known| known.applications).collect();
            applications.retain(|application| !there.applications.contains(application));
            applications.extend(there.applications);
            all.push(ExternalJob { flow, job, run: started, applications, made, ..there });
        }
        let place = |there: &ExternalJob| {
            self.work.jobs.iter().position(|plan| plan.flow == there.flow && plan.job == there.job)
        };
        all.sort_by_cached_key(place);
        applications::write(&path, &all)
    }

    /// Records a jump of the wall clock. False if it cannot.
    pub(crate) fn record_jump(&mut self, by: i64, at: Time) -> bool {
        let is_recorded = self.work.journal.jumped(by, at).is_ok();
        self.work.segment += u32::from(is_recorded);
        is_recorded
    }

    /// The flows that arrive by now. The observer learns of flows that never will.
    pub(crate) fn arriving(&mut self, now: Time, observer: &mut dyn Observer) -> Vec<String> {
        let Self { coming, work, is_done, .. } = &mut *self;
        let Arrivals { flows, never } =
            coming.take_arrivals(now, work.instance, work.jobs, |job| is_done[job as usize]);
        for (flow, job) in never {
            let flow = work.instance.flow(flow).id.clone();
            observer.happened(now, &RunEvent::FlowBlocked { flow, missing_job: job });
        }
        let flows: Vec<String> = flows.into_iter().map(|flow| work.instance.flow(flow).id.clone()).collect();
        self.came.extend(flows.iter().cloned());
        flows
    }

    pub(crate) fn next_release(&self) -> Option<Time> {
        self.coming.next_release(self.work.instance)
    }

    /// See [`crate::engine::external_runs::Elsewhere::comes`].
    pub(crate) fn comes(
        &mut self,
        flow: &str,
        dates: RunDates,
        machines: &[MachineDraft],
    ) -> Result<Option<ArrivingFlow>, EngineError> {
        let overrides = self.overrides.get(flow).copied().unwrap_or_default();
        if overrides.held || !self.is_open(flow) {
            return Ok(None);
        }
        let source = FlowSource {
            run: RunId(0),
            workload: self.work.workload,
            jobs: self.work.jobs,
            done: &self.work.done,
            dates,
        };
        let Some((arrived, arrival)) = source.arrival(flow, overrides, &[], machines)? else {
            return Ok(None);
        };
        Ok(Some(ArrivingFlow { phases: arrived.phases().collect(), arrival }))
    }

    pub(crate) fn stand(&mut self, flow: &str, overrides: FlowOverrides) -> bool {
        let before = self.overrides.insert(flow.to_owned(), overrides).unwrap_or_default();
        before != overrides && self.came.contains(flow) && self.is_open(flow)
    }

    pub(crate) fn is_held(&self, flow: &str) -> bool {
        self.overrides.get(flow).is_some_and(|overrides| overrides.held)
    }

    pub(crate) fn cancel(&mut self, flow: &str) -> bool {
        let is_open = self.is_open(flow);
        if is_open {
            self.coming.cancel(flow, self.work.instance);
        }
        is_open
    }

    pub(crate) fn fail(&mut self, job: u32) {
        self.coming.fail(&self.work.jobs[job as usize].flow);
    }

    /// Whether a flow is neither done nor has failed.
    fn is_open(&self, flow: &str) -> bool {
        !self.is_flow_done(flow) && !self.coming.has_failed(flow)
    }

    fn is_flow_done(&self, flow: &str) -> bool {
        let mut jobs = self.work.jobs.iter().zip(&self.is_done).filter(|(plan, _)| plan.flow == flow);
        jobs.all(|(_, &is_done)| is_done)
    }

    fn flows(&self) -> impl Iterator<Item = &str> {
        self.work.instance.flows().iter().map(|flow| flow.id.as_str())
    }

    pub(crate) fn is_over(&self) -> bool {
        !self.flows().any(|flow| self.is_open(flow))
    }

    pub(crate) fn all_done(&self) -> bool {
        self.flows().all(|flow| self.is_flow_done(flow))
    }

    pub(crate) fn record_failed(
        &mut self,
        failed: &FailedTask<'_>,
        is_final: bool,
        now: Time,
        observer: &mut dyn Observer,
    ) -> Result<(), CannotFinish> {
        let FailedTask { id, slot, start, end, message } = *failed;
        let number = self.number();
        let ended = AttemptOutcome::Failed(message.to_owned());
        let (start, end) = (start.0, end.0.max(start.0));
        let attempt =
            Attempt { number, id, slot, segment: self.work.segment, start, began: start, end, ended };
        self.work.journal.record(std::slice::from_ref(&attempt))?;
        observer.happened(now, &RunEvent::AttemptRecorded(Box::new(attempt)));
        let (message, log, other_runs) = (message.to_owned(), None, false);
        observer.happened(now, &RunEvent::AttemptFailed { task: id, message, log, other_runs, is_final });
        Ok(())
    }

    /// See [`crate::engine::external_runs::Elsewhere::finish`].
    pub(crate) fn finish(
        &mut self,
        job: u32,
        made: Vec<FinishedTask>,
        put: impl FnOnce(&JobPlan, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
        now: Time,
        observer: &mut dyn Observer,
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
            attempts.push(attempt(number, self.work.segment, task));
        }
        self.work.journal.record(&attempts)?;
        let ids: BTreeSet<TaskId> = attempts.iter().map(|attempt| attempt.id).collect();
        let mut warning = None;
        let mut publish = || {
            warning = self.put(job, &attempts)?;
            Ok(())
        };
        if let Err(problem) = put(plan, &mut publish) {
            self.work.journal.lost(&ids)?;
            return Err(output(problem));
        }
        self.is_done[job as usize] = true;
        self.work.done.extend(ids);
        for attempt in attempts {
            observer.happened(now, &RunEvent::AttemptRecorded(Box::new(attempt)));
        }
        if let Some(warning) = warning {
            observer.happened(now, &RunEvent::Warning(warning));
        }
        Ok(())
    }

    /// Moves recorded parts to their places, and the output of the job to its own. Gives a warning if a
    /// temporary file cannot be removed.
    fn put(&self, job: u32, attempts: &[Attempt]) -> io::Result<Option<String>> {
        let plan = &self.work.jobs[job as usize];
        for attempt in attempts.iter().filter(|attempt| plan.is_final(attempt.id)) {
            let commit = || self.work.layout.commit(plan, attempt.id, attempt.number);
            self.work.publisher.stage(attempt.id, attempt.number, attempt.digest(), commit)?;
        }
        Ok(self.work.publisher.publish(job, self.next_number)?.1)
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }
}

fn attempt(number: u64, segment: u32, task: FinishedTask) -> Attempt {
    let FinishedTask { id, slot, start, began, end, outcome, part: _ } = task;
    let began = began.max(start);
    let end = end.max(began);
    let ended = AttemptOutcome::Done(outcome);
    Attempt { number, id, slot, segment, start: start.0, began: began.0, end: end.0, ended }
}

/// Has a file at a second place, also on another file system. The first stays until the job is published, so
/// that a publication that was cut short can be rerun.
fn lend(from: &Path, to: &Path) -> io::Result<()> {
    slackline_task::base::files::remove(to)?;
    match fs::hard_link(from, to) {
        // Not every file system has links, nor may every file be linked.
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            fs::copy(from, to)?;
            fs::File::open(to)?.sync_all()
        }
        other => other,
    }
}
