//! One run whose jobs execute as a whole on another system, with the run's own job numbers and times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use slackline_model::draft::MachineDraft;
use slackline_model::{Instance, Time};
use slackline_task::base::task_id::TaskId;
use slackline_task::container::job_spec::{ContainerJob, JobSpec};

use crate::engine::arrivals::{Arrivals, PendingArrivals};
use crate::engine::backend::{FlowOverrides, RunConfig, RunId};
use crate::engine::event::RunEvent;
use crate::engine::external_runs::tasks::{ArrivingFlow, CannotFinish, FailedTask, FinishedTask};
use crate::engine::shared::flow::{FlowSource, RunDates};
use crate::run::Session;
use crate::run::error::EngineError;
use crate::spec::job_plan::JobPlan;
use crate::store::applications::{self, ExternalJob};
use crate::store::journal::{Attempt, AttemptOutcome};

/// The remaining work of a run.
pub(crate) struct ExternalRun {
    pub(crate) session: Session,
    /// Its remaining workload when it joined.
    instance: Instance,
    /// The tasks that are done.
    done: BTreeSet<TaskId>,
    /// The number of the segment that records attempts.
    segment: u32,
    /// The limit on failures of a task if its job has none.
    pub(crate) attempts_max: u16,
    pub(crate) coming: PendingArrivals,
    /// The number of the next attempt.
    next_number: u64,
    /// By job: whether its output is complete.
    pub(crate) is_done: Vec<bool>,
    /// Overrides of flows, by name.
    overrides: BTreeMap<String, FlowOverrides>,
    /// Flows that have arrived: they are released, and their inputs exist.
    came: BTreeSet<String>,
}

impl ExternalRun {
    pub(crate) fn new(session: Session, instance: Instance, rules: &RunConfig) -> Self {
        let done = session.done();
        let is_done = |(index, job): (u32, &JobPlan)| job.is_complete(index, &done);
        Self {
            coming: PendingArrivals::new(&instance, &session.waits()),
            next_number: session.attempts.last().map_or(0, |last| last.number + 1),
            is_done: (0..).zip(&session.jobs).map(is_done).collect(),
            segment: session.head.segments.len() as u32 - 1,
            attempts_max: rules.attempts_max,
            overrides: rules.overrides.clone(),
            came: BTreeSet::new(),
            session,
            instance,
            done,
        }
    }

    pub(crate) fn plans(&self) -> &[JobPlan] {
        &self.session.jobs
    }

    /// Whether an earlier session has recorded this failure of a task: its message names the attempt. Times
    /// do not identify it, as the clock of its machine may differ from this one.
    pub(crate) fn is_recorded(&self, id: TaskId, message: &str) -> bool {
        let is_it =
            |ended: &AttemptOutcome| matches!(ended, AttemptOutcome::Failed(known) if known == message);
        self.session.attempts.iter().any(|attempt| attempt.id == id && is_it(&attempt.ended))
    }

    pub(crate) fn describe(&self, job: u32, memory_bytes: u64) -> io::Result<JobSpec> {
        let plan = &self.session.jobs[job as usize];
        let prepared = self.session.layout.prepare(plan, job)?;
        let publisher = self.session.publisher();
        let part = |path: &Path| publisher.part(path);
        let base = publisher.directory();
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

    /// See [`crate::engine::external_runs::ExternalRuns::note`]; `started` is when the run did.
    pub(crate) fn note(
        &self,
        started: u64,
        jobs: Vec<(u32, ExternalJob, Vec<FinishedTask>)>,
    ) -> io::Result<()> {
        let path = self.session.layout.applications();
        let is_of_interest = |known: &ExternalJob| {
            let kept = self.session.head.kept.iter().map(|kept| (kept.started, &kept.flow, &kept.job));
            let own = self.session.jobs.iter().map(|plan| (started, &plan.flow, &plan.job));
            kept.chain(own).any(|(run, flow, job)| known.is(run, flow, job))
        };
        let mut all = applications::read(&path);
        all.retain(is_of_interest);
        for known in &mut all {
            // A job that is not named has ended.
            (known.failed, known.containers) = (false, 0);
            known.at_work.clear();
            known.made.clear();
        }
        for (index, there, made) in jobs {
            let plan = &self.session.jobs[index as usize];
            // They get other numbers when they are recorded.
            let numbers = (0..=u64::MAX).rev();
            let made = numbers.zip(made).map(|(number, task)| attempt(number, self.segment, task));
            let made = made.collect();
            let (flow, job) = (plan.flow.clone(), plan.job.clone());
            let earlier = all.extract_if(.., |known| known.is(started, &flow, &job));
            let mut applications: Vec<String> = earlier.flat_map(|known| known.applications).collect();
            applications.retain(|application| !there.applications.contains(application));
            applications.extend(there.applications);
            all.push(ExternalJob { flow, job, run: started, applications, made, ..there });
        }
        let place = |there: &ExternalJob| {
            self.session.jobs.iter().position(|plan| plan.flow == there.flow && plan.job == there.job)
        };
        all.sort_by_cached_key(place);
        applications::write(&path, &all)
    }

    /// Records a jump of the wall clock. False if it cannot.
    pub(crate) fn record_jump(&mut self, by: i64, at: Time) -> bool {
        let is_recorded = self.session.journal.jumped(by, at).is_ok();
        self.segment += u32::from(is_recorded);
        is_recorded
    }

    /// The flows that arrive by now. The on_event learns of flows that never will.
    pub(crate) fn arriving(&mut self, now: Time, on_event: &mut dyn FnMut(Time, &RunEvent)) -> Vec<String> {
        let Self { coming, instance, session, is_done, .. } = &mut *self;
        let Arrivals { flows, never } =
            coming.take_arrivals(now, instance, &session.jobs, |job| is_done[job as usize]);
        for (flow, job) in never {
            let flow = instance.flow(flow).id.clone();
            on_event(now, &RunEvent::FlowBlocked { flow, missing_job: job });
        }
        let flows: Vec<String> = flows.into_iter().map(|flow| instance.flow(flow).id.clone()).collect();
        self.came.extend(flows.iter().cloned());
        flows
    }

    pub(crate) fn next_release(&self) -> Option<Time> {
        self.coming.next_release(&self.instance)
    }

    /// See [`crate::engine::external_runs::ExternalRuns::comes`].
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
            workload: &self.session.head.workload,
            jobs: &self.session.jobs,
            done: &self.done,
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
            self.coming.cancel(flow, &self.instance);
        }
        is_open
    }

    pub(crate) fn fail(&mut self, job: u32) {
        self.coming.fail(&self.session.jobs[job as usize].flow);
    }

    /// Whether a flow is neither done nor has failed.
    fn is_open(&self, flow: &str) -> bool {
        !self.is_flow_done(flow) && !self.coming.has_failed(flow)
    }

    fn is_flow_done(&self, flow: &str) -> bool {
        let mut jobs = self.session.jobs.iter().zip(&self.is_done).filter(|(plan, _)| plan.flow == flow);
        jobs.all(|(_, &is_done)| is_done)
    }

    fn flows(&self) -> impl Iterator<Item = &str> {
        self.instance.flows().iter().map(|flow| flow.id.as_str())
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
        on_event: &mut dyn FnMut(Time, &RunEvent),
    ) -> Result<(), CannotFinish> {
        let FailedTask { id, slot, start, end, message } = *failed;
        let number = self.number();
        let ended = AttemptOutcome::Failed(message.to_owned());
        let (start, end) = (start.0, end.0.max(start.0));
        let attempt = Attempt { number, id, slot, segment: self.segment, start, began: start, end, ended };
        self.session.journal.record(std::slice::from_ref(&attempt))?;
        on_event(now, &RunEvent::AttemptRecorded(Box::new(attempt)));
        let (message, log, other_runs) = (message.to_owned(), None, false);
        on_event(now, &RunEvent::AttemptFailed { task: id, message, log, other_runs, is_final });
        if is_final {
            let flow = self.session.jobs[id.job as usize].flow.clone();
            on_event(now, &RunEvent::FlowFailed { flow });
        }
        Ok(())
    }

    /// See [`crate::engine::external_runs::ExternalRuns::finish`].
    pub(crate) fn finish(
        &mut self,
        job: u32,
        made: Vec<FinishedTask>,
        put: impl FnOnce(&JobPlan, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
        now: Time,
        on_event: &mut dyn FnMut(Time, &RunEvent),
    ) -> Result<(), CannotFinish> {
        let first = self.next_number;
        self.next_number += made.len() as u64;
        let plan = &self.session.jobs[job as usize];
        let output = |problem| CannotFinish::Output { output: plan.output.display().to_string(), problem };
        let mut attempts = Vec::with_capacity(made.len());
        for (number, task) in (first..).zip(made) {
            if let Some(part) = &task.part {
                let to = self.session.layout.attempt(plan, task.id, number);
                fs::create_dir_all(&to).map_err(output)?;
                lend(part, &to.join(plan.part(task.id.task))).map_err(output)?;
            }
            attempts.push(attempt(number, self.segment, task));
        }
        self.session.journal.record(&attempts)?;
        let ids: BTreeSet<TaskId> = attempts.iter().map(|attempt| attempt.id).collect();
        let mut warning = None;
        let mut publish = || {
            warning = self.put(job, &attempts)?;
            Ok(())
        };
        if let Err(problem) = put(plan, &mut publish) {
            self.session.journal.lost(&ids)?;
            return Err(output(problem));
        }
        self.is_done[job as usize] = true;
        self.done.extend(ids);
        for attempt in attempts {
            on_event(now, &RunEvent::AttemptRecorded(Box::new(attempt)));
        }
        if let Some(warning) = warning {
            on_event(now, &RunEvent::Warning(warning));
        }
        Ok(())
    }

    /// Moves recorded parts to their places, and the output of the job to its own. Gives a warning if a
    /// temporary file cannot be removed.
    fn put(&self, job: u32, attempts: &[Attempt]) -> io::Result<Option<String>> {
        let plan = &self.session.jobs[job as usize];
        let publisher = self.session.publisher();
        for attempt in attempts.iter().filter(|attempt| plan.is_final(attempt.id)) {
            let commit = || self.session.layout.commit(plan, attempt.id, attempt.number);
            publisher.stage(attempt.id, attempt.number, attempt.digest(), commit)?;
        }
        Ok(publisher.publish(job, self.next_number)?.1)
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
