//! Observations: polls the cluster and the reports of attempts, and tells the driver of changes.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::external_runs::tasks::ArrivingFlow;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::store::running_attempt::RunningAttempt;
use slackline_model::{FlowId, PhaseId, PhaseKind, Time};
use slackline_policy::engine::Report;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::report::Report as TaskReport;

use crate::clock::Stopwatch;
use crate::cluster::container_ledger::ContainerOutcome;
use crate::cluster::observer::{Change, phase_of};
use crate::flows::applications::JOB_TAG;
use crate::flows::attempt_reports::{AttemptReport, Destination, NewReports, ReportReader};
use crate::flows::engine::{FlowEngine, KILL_EVERY, THERE_EVERY};
use crate::flows::jobs::{FlowJob, JobStage};
use crate::rest::id::{AppId, TaskId as Task};
use crate::rest::resource_manager::{App, Container, FinalStatus};

impl FlowEngine {
    /// Polls the cluster, applies the changes, and gives reports for the driver.
    pub(in crate::flows) fn poll_cluster(&mut self, reports: &mut Vec<Report>) {
        self.now = self.runs.now();
        self.ledger.advance(self.now);
        self.polls.count += 1;
        let polled = self.cluster.poll_cluster();
        self.polls.answered_at = Stopwatch::start();
        let silence = match polled {
            Ok(changes) => {
                for change in changes {
                    self.apply_change(change);
                }
                self.poll_ams();
                self.end_programs();
                self.count_others();
                None
            }
            Err(error) => Some(error.to_string()),
        };
        self.trouble.is_silent = silence.is_some();
        for (ticket, answer) in self.cluster.answers() {
            self.handle_answer(&ticket, answer);
        }
        self.retry_unconfirmed();
        self.read_reports();
        self.kill_late_apps();
        if self.polls.count.is_multiple_of(KILL_EVERY) {
            self.kill_orphans();
        }
        let is_open = |stage: &JobStage| matches!(stage, JobStage::Running(_));
        let read_problem =
            || self.jobs.values().filter(|own| is_open(&own.stage)).find_map(|own| own.read_problem.clone());
        let is_left = |own: &&FlowJob| !matches!(own.stage, JobStage::Finished | JobStage::Failed);
        let retried =
            || self.jobs.values().filter(is_left).find_map(|own| Some(own.retry.as_ref()?.problem.clone()));
        let trouble = silence.or_else(read_problem).or_else(retried);
        self.trouble(trouble.as_deref());
        self.ledger.report(reports);
        self.arrive(reports);
        // Earlier progress of these flows has to reach the driver before it starts anything of them.
        self.ledger.report(reports);
        self.note_ams();
        self.explain_waits();
        self.write_note(false);
        self.runs.happened(RunEvent::Tick);
    }

    pub(super) fn apply_change(&mut self, change: Change) {
        match change {
            Change::Appeared(app) => self.app_appeared(app),
            Change::Started(container) => self.container_started(&container),
            Change::Ended(container) => self.container_ended(&container),
            Change::AppEnded { app, .. } => self.app_ended(app),
            Change::Gone(app) => self.app_gone(app),
            Change::Restarted | Change::State { .. } | Change::Attempt(_) | Change::Released(_) => {}
        }
    }

    /// An application of the run appeared.
    pub(super) fn app_appeared(&mut self, app: AppId) {
        let Some(known) = self.cluster.snapshot().app(app) else { return };
        if !known.state.is_over() {
            self.apps.active.insert(app);
        }
        let (priority, is_over) = (known.priority, known.state.is_over());
        let is_well = known.final_status == FinalStatus::Succeeded;
        let job = known.tag(JOB_TAG).and_then(|ticket| self.apps.by_ticket.get(ticket).copied());
        let has_reported = is_over && !is_well && job.is_some_and(|job| self.has_reported(job));
        let own = job.and_then(|job| self.jobs.get_mut(job));
        match (job, own) {
            // An application of an earlier session that was killed, or failed meanwhile, is retried.
            (Some(_), Some(own)) if is_over && !is_well && own.submissions == 0 && !has_reported => {}
            (Some(job), Some(own)) if own.app() == Some(app) || own.accepts_app() => {
                own.stage = JobStage::Running(app);
                own.unconfirmed = None;
                own.priority = priority;
                own.program.iter_mut().for_each(|program| program.add(app));
                self.apps.by_app.insert(app, job);
            }
            _ if is_over => {}
            _ => {
                // A session submitted it and was killed before it knew, or for a job with another definition.
                self.kill(app);
            }
        }
    }

    pub(super) fn container_started(&mut self, container: &Container) {
        let job = self.apps.by_app.get(&container.id.attempt.app).copied();
        let since = container.started_ms.map_or(self.now, |ms| self.runs.since_start(ms));
        if let Some(own) = job.and_then(|job| self.jobs.get_mut(job)) {
            // A poll takes time: maps may have ended since it began, and then YARN granted this reduce.
            own.granted.insert(container.id, since.min(self.runs.now()));
        }
        let since = since.min(self.now);
        let kind = phase_of(container.purpose);
        let is_open =
            job.is_some_and(|job| !matches!(self.jobs[job].stage, JobStage::Finished | JobStage::Failed));
        let work = job.filter(|_| is_open).map(|job| (job, kind));
        self.ledger.add_container(container.id, &container.host, since, work);
        if let Some((job, Some(kind))) = work {
            self.program_container_started(job, kind, container, since);
        }
    }

    pub(super) fn container_ended(&mut self, container: &Container) {
        // Its report was written before it ended.
        let job = self.apps.by_app.get(&container.id.attempt.app).copied();
        if let Some(job) = job {
            if self.jobs[job].runs_program() {
                return self.program_container_ended(job, container);
            }
            // The next polls read the rest.
            if self.polls.answered_at.elapsed() < self.timeouts.asks {
                self.read_reports_of(job, self.timeouts.asks);
            }
        }
        let is_well = job.is_some_and(|job| self.jobs[job].has_finished(container.id));
        let verdict = if is_well { ContainerOutcome::Finished } else { ContainerOutcome::Failed };
        self.ledger.remove_container(container.id, verdict);
        // It may have rerun a finished task, which leaves nothing for another to do.
        let kind = phase_of(container.purpose);
        if let Some((job, kind)) = job.zip(kind)
            && let Some(phase) = self.ledger.phase_of(job, kind)
        {
            self.report_finished(job, kind, phase);
        }
    }

    /// An application has ended: its job has finished or failed.
    pub(super) fn app_ended(&mut self, app: AppId) {
        self.apps.active.remove(&app);
        self.apps.orphans.remove(&app);
        let Some(&job) = self.apps.by_app.get(&app) else { return };
        if self.jobs[job].runs_program() {
            return self.program_app_ended(app, job);
        }
        let is_well = |known: &App| known.final_status == FinalStatus::Succeeded;
        if !self.cluster.snapshot().app(app).is_some_and(is_well) {
            // The job has failed, unless all reports are there.
            self.jobs[job].read_at = 0;
            self.read_reports_of(job, Duration::MAX);
        }
        let own = &mut self.jobs[job];
        // All tasks have finished; the output is published when the file system answers.
        if matches!(own.stage, JobStage::Finished | JobStage::Failed) || own.retry.is_some() {
            return;
        }
        let Some(known) = self.cluster.snapshot().app(app).filter(|known| is_well(known)) else {
            return self.fail_from_app(app, job);
        };
        // An application of an earlier session may have ended long ago.
        let ended = known.finished_ms.filter(|_| own.submissions == 0);
        let ended = ended.map_or(self.now, |ms| self.runs.since_start(ms)).min(self.now);
        own.late = Some(Time(ended.0 + self.timeouts.late.as_micros() as u64));
    }

    /// The ResourceManager has forgotten an application: the job is submitted again.
    pub(super) fn app_gone(&mut self, app: AppId) {
        self.apps.active.remove(&app);
        self.apps.orphans.remove(&app);
        let Some(&job) = self.apps.by_app.get(&app) else { return };
        if self.jobs[job].runs_program() {
            // The program learns it too, and decides.
            self.end_app(job, app, Ok(()));
        } else if self.jobs[job].app() == Some(app) && self.jobs[job].retry.is_none() {
            self.resubmit(job, &format!("{app}: it is unknown to the ResourceManager"));
        }
        self.apps.by_app.remove(&app);
    }

    /// Counts the slots of applications of other users.
    pub(super) fn count_others(&mut self) {
        self.cluster.control.count_others(&mut self.ledger, self.rules.slot_mb, 0);
    }

    /// Reads reports of attempts within the time limit; the next poll continues with the rest.
    pub(super) fn read_reports(&mut self) {
        let is_turn_of_all = self.polls.count.is_multiple_of(THERE_EVERY);
        let is_open = |own: &FlowJob| matches!(own.stage, JobStage::Running(_)) && own.program.is_none();
        let open = self.jobs.iter().filter(|(_, own)| is_open(own));
        let is_due = |&(job, own): &(u32, &FlowJob)| {
            let destination = || self.submission_of(job).destination(self.runs.plan(job), own);
            is_turn_of_all || !own.reports.is_complete() || matches!(destination(), Destination::Local(_))
        };
        let due: Vec<u32> = open.clone().filter(is_due).map(|(job, _)| job).collect();
        let open: Vec<u32> = open.map(|(job, _)| job).collect();
        let mut round = self.turns.reports.round(due, self.timeouts.asks);
        while let Some(job) = round.next(&mut self.turns.reports) {
            self.read_reports_of(job, self.timeouts.asks);
            self.resubmit_if_late(job);
        }
        for job in open {
            // Results of containers that ended without a row.
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.ledger.phase_of(job, kind) {
                    self.report_finished(job, kind, phase);
                }
            }
        }
    }

    /// Resubmits a job whose application succeeded some time ago without all reports.
    fn resubmit_if_late(&mut self, job: u32) {
        let own = &self.jobs[job];
        let is_late = own.late.is_some_and(|until| until <= self.now) && own.retry.is_none();
        if let JobStage::Running(app) = own.stage
            && is_late
            && own.reports.is_complete()
        {
            self.resubmit(job, &format!("{app} ended before all of its tasks reported"));
        }
    }

    /// Whether all tasks of a job have finished, by the reports of its attempts.
    fn has_reported(&self, job: u32) -> bool {
        let (plan, own) = (self.runs.plan(job), &self.jobs[job]);
        let destination = self.submission_of(job).destination(plan, own);
        let mut news = NewReports::default();
        let read = ReportReader::default().read(&destination, makes_part(plan), Duration::MAX, &mut news);
        if read.is_err() {
            return false;
        }
        let done = news.ended.iter().filter(|ended| matches!(ended.report, TaskReport::Done(_)));
        let done: BTreeSet<_> = done.map(|ended| ended.attempt.task).collect();
        done.len() as u64 == u64::from(plan.maps()) + u64::from(plan.reducers)
    }

    /// Applies the new reports of a job within the time limit, once per poll: containers that ended since the
    /// last poll had reported before this one.
    pub(super) fn read_reports_of(&mut self, job: u32, lasts: Duration) {
        let destination = self.submission_of(job).destination(self.runs.plan(job), &self.jobs[job]);
        let (plan, own) = (self.runs.plan(job), &mut self.jobs[job]);
        if matches!(own.stage, JobStage::Finished | JobStage::Failed) || own.read_at == self.polls.count {
            return;
        }
        own.read_at = self.polls.count;
        let mut news = NewReports::default();
        let read = own.reports.read(&destination, makes_part(plan), lasts, &mut news);
        // The next poll may be able to read it.
        own.read_problem = read.as_ref().err().map(io::Error::to_string);
        for attempt in news.begun {
            self.report_started(job, attempt.task.kind, attempt.task.number);
        }
        for ended in news.ended {
            self.attempt_ended(job, ended);
        }
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => self.fail(job, &error.to_string()),
            _ => self.finish_if_complete(job),
        }
    }

    pub(super) fn report_started(&mut self, job: u32, phase: PhaseKind, task: u32) {
        let started = &mut self.jobs[job].started;
        if started.insert((phase, task), self.now).is_none() {
            self.runs.happened(RunEvent::AttemptStarted(RunningAttempt::unnumbered(
                TaskId { job, phase, task },
                self.now.0,
            )));
        }
    }

    pub(super) fn attempt_ended(&mut self, job: u32, ended: AttemptReport) {
        let (kind, number) = (ended.attempt.task.kind, ended.attempt.task.number);
        if self.jobs[job].made.contains_key(&(kind, number)) {
            return;
        }
        self.report_started(job, kind, number);
        match ended.report.clone() {
            TaskReport::Done(_) => {
                let seconds = ended.ended.saturating_sub(ended.started) as f64 / 1e3;
                let own = &mut self.jobs[job];
                own.made.insert((kind, number), ended);
                let phase = self.ledger.phase_of(job, kind);
                // Tasks of the last phase finish with the output.
                let is_last = self.jobs[job].is_complete(self.runs.plan(job));
                if !is_last {
                    self.runs.happened(RunEvent::TaskFinished {
                        task: TaskId { job, phase: kind, task: number },
                        seconds,
                    });
                }
                if let Some(phase) = phase.filter(|_| !is_last) {
                    self.report_finished(job, kind, phase);
                }
            }
            TaskReport::Failed { message, is_final, .. } => {
                self.attempt_failed(job, kind, number, &ended, &message, is_final);
            }
        }
    }

    /// The driver learns of finished tasks whose container it does not know.
    pub(super) fn report_finished(&mut self, job: u32, kind: PhaseKind, phase: PhaseId) {
        let own = &self.jobs[job];
        // Tasks of live containers finish with these.
        let live = own.made.iter().filter(|((phase, _), made)| {
            *phase == kind && made.container.is_some_and(|container| self.ledger.is_live(container))
        });
        let known = self.ledger.done(phase) + live.count() as u32;
        let more = own.done(kind).saturating_sub(known);
        if more > 0 {
            self.ledger.add_finished(phase, more);
        }
    }

    /// Flows arrive, and their phases get the next ids of the driver.
    pub(super) fn arrive(&mut self, reports: &mut Vec<Report>) {
        for (run, flow) in self.runs.arriving() {
            self.report_arrival(run, &flow, reports);
        }
    }

    /// A flow arrives, unless it is held or has no job left.
    pub(super) fn report_arrival(&mut self, run: u32, flow: &str, reports: &mut Vec<Report>) {
        // The workload was valid when the run joined, so its rest is valid too.
        let comer = self.runs.arrival(run, flow, &self.machines);
        let comer = comer.expect("invariant: what is left of a workload is one");
        let Some(ArrivingFlow { arrival, phases }) = comer else { return };
        reports.push(Report::Arrived(Box::new(arrival)));
        self.driver_ids.flows.insert((run, flow.to_owned()), FlowId(self.driver_ids.next_flow));
        self.driver_ids.next_flow += 1;
        let mut jobs = BTreeSet::new();
        for (job, kind, tasks) in phases {
            self.ledger.add_phase(PhaseId(self.driver_ids.next_phase), job, kind, tasks);
            self.driver_ids.next_phase += 1;
            jobs.insert(job);
        }
        self.report_earlier(&jobs);
    }

    /// Reports earlier progress of an arrived flow: its jobs may have run without a driver.
    pub(super) fn report_earlier(&mut self, jobs: &BTreeSet<u32>) {
        if let Some(&failed) = jobs.iter().find(|&&job| self.jobs[job].stage == JobStage::Failed) {
            return self.ledger.fail_flow(&self.flow_jobs_of(failed));
        }
        for &job in jobs {
            if self.jobs[job].stage == JobStage::Finished {
                self.ledger.finish_job(job);
                continue;
            }
            for kind in [PhaseKind::Map, PhaseKind::Reduce] {
                if let Some(phase) = self.ledger.phase_of(job, kind) {
                    self.report_finished(job, kind, phase);
                }
            }
        }
    }
}

/// Whether a task writes a part; `None` without such a task.
fn makes_part(plan: &JobPlan) -> impl Fn(Task) -> Option<bool> {
    move |task| {
        let kind = task.kind;
        let makes_part = kind == PhaseKind::Reduce || plan.reducers == 0;
        (task.number < plan.tasks(kind)).then_some(makes_part)
    }
}
