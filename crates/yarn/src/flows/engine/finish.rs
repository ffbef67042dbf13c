//! Ends: failed tasks, finished and failed jobs, and applications to kill.

use slackline_executor::engine::event::RunEvent;
use slackline_executor::engine::external_runs::tasks::{CannotFinish, FailedTask, FinishedTask};
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;

use crate::clock::pause;
use crate::cluster::observer::{Change, phase_of};
use crate::flows::applications::{RUN_TAG, SubmitterEvent};
use crate::flows::attempt_reports::AttemptReport;
use crate::flows::engine::{FlowEngine, LATE_POLLS};
use crate::flows::jobs::{FlowJob, JobStage, by_end, recorded_task};
use crate::rest::id::AppId;
use crate::rest::resource_manager::AppState;

impl FlowEngine {
    pub(super) fn attempt_failed(
        &mut self,
        job: u32,
        phase: PhaseKind,
        task: u32,
        ended: &AttemptReport,
        message: &str,
        is_final: bool,
    ) {
        let most = u32::from(self.runs.attempts_of(job));
        let own = &mut self.jobs[job];
        own.last_failure = Some(message.to_owned());
        let message = &format!("{message}\n({})", log_command(ended));
        own.started.remove(&(phase, task));
        let failures = own.failures.entry((phase, task)).or_default();
        *failures += 1;
        let is_final = is_final || *failures >= most;
        let (id, since) = (TaskId { job, phase, task }, |ms| self.runs.since_start(ms).min(self.now));
        let (start, end) = (since(ended.started), since(ended.ended));
        if self.runs.is_recorded(id, message) && !is_final {
            return;
        }
        let (slot, start) = self.places.take(&ended.host, start, end);
        let failed = FailedTask { id, slot, start, end, message };
        if let Err(error) = self.runs.record_failed(&failed, is_final) {
            self.abort_run(job, &error);
        }
        if is_final {
            self.fail_flow_of(job);
        }
    }

    /// Publishes a job whose tasks have all finished, and ends its rows.
    pub(super) fn finish_if_complete(&mut self, job: u32) {
        let own = &self.jobs[job];
        let is_due = !own.waits_to_retry(self.now);
        if own.stage == JobStage::Failed || !own.is_complete(self.runs.plan(job)) || !is_due {
            return;
        }
        let places_before = self.places.clone();
        let since = |millis| self.runs.since_start(millis).min(self.now);
        let made = by_end(&own.made);
        let places = &mut self.places;
        let record = |((phase, task), attempt): &((PhaseKind, u32), AttemptReport)| {
            recorded_task(own, TaskId { job, phase: *phase, task: *task }, attempt, since, places)
        };
        let tasks: Vec<FinishedTask> = made.iter().filter_map(record).collect();
        let last = made.last().map(|((kind, task), attempt)| {
            let seconds = attempt.ended.saturating_sub(attempt.started) as f64 / 1e3;
            (TaskId { job, phase: *kind, task: *task }, seconds)
        });
        let skipped_records = tasks.iter().map(|task| task.outcome.counts.skipped).sum();
        let (submit, own) = (self.submission_of(job), &self.jobs[job]);
        match self.runs.finish(job, tasks, |plan, publish| submit.publish(plan, own, publish)) {
            Ok(()) => {
                self.write_note(true);
                self.jobs[job].end();
                if let Some((id, seconds)) = last {
                    self.runs.happened(RunEvent::TaskFinished { task: id, seconds });
                }
                self.runs.happened(RunEvent::JobFinished { job, skipped_records });
                self.ledger.finish_job(job);
            }
            Err(CannotFinish::Output { problem, .. }) if self.schedule_retry(job, &problem) => {
                self.places = places_before;
            }
            Err(CannotFinish::Output { output, problem }) => {
                self.fail(job, &format!("output {output}: cannot be completed: {problem}"));
            }
            Err(error) => {
                self.abort_run(job, &error);
            }
        }
    }

    /// The application of an unfinished job has ended.
    pub(super) fn fail_from_app(&mut self, app: AppId, job: u32) {
        let own = &self.jobs[job];
        let (state, diagnostics) = self.final_state(app);
        let how = match state {
            AppState::Killed => "was killed",
            AppState::Finished if diagnostics.is_empty() && own.last_failure.is_none() => {
                "ended before all of its tasks reported"
            }
            _ => "failed",
        };
        let message = match (&own.last_failure, diagnostics) {
            (Some(last_failure), _) => format!("{last_failure} ({app} {how})"),
            (None, "") => format!("{app} {how}"),
            (None, diagnostics) => format!("{app} {how}: {diagnostics}"),
        };
        let message = format!("{message}\n(logs of its containers: yarn logs -applicationId {app})");
        self.fail(job, &message);
    }

    /// The final state of an application, and its diagnostics.
    pub(super) fn final_state(&self, app: AppId) -> (AppState, &str) {
        let known = self.cluster.snapshot().app(app);
        known.map_or((AppState::Failed, ""), |app| (app.state, app.diagnostics.trim()))
    }

    /// Fails a job for good, with a message.
    pub(super) fn fail(&mut self, job: u32, message: &str) {
        let kind = if self.runs.plan(job).maps() > 0 { PhaseKind::Map } else { PhaseKind::Reduce };
        let id = TaskId { job, phase: kind, task: 0 };
        self.report_started(job, kind, 0);
        let message = &self.submission_of(job).user_text(message);
        let failed = FailedTask { id, slot: 0, start: self.now, end: self.now, message };
        if let Err(error) = self.runs.record_failed(&failed, true) {
            self.abort_run(job, &error);
        }
        self.fail_flow_of(job);
    }

    /// Stops the flow of a job that has failed for good.
    pub(super) fn fail_flow_of(&mut self, job: u32) {
        self.runs.fail(job);
        let jobs = self.flow_jobs_of(job);
        for &other in &jobs {
            let own = &mut self.jobs[other];
            if !matches!(own.stage, JobStage::Finished | JobStage::Failed) {
                let app = own.app();
                own.stage = JobStage::Failed;
                self.stop_program(other);
                if let Some(app) = app {
                    self.kill(app);
                }
            }
        }
        self.ledger.fail_flow(&jobs);
        self.write_note(true);
    }

    /// A job and the others of its flow.
    pub(super) fn flow_jobs_of(&self, job: u32) -> Vec<u32> {
        let (run, flow) = (self.runs.run_of(job), &self.runs.plan(job).flow);
        self.jobs_of(run, flow)
    }

    pub(super) fn jobs_of(&self, run: u32, flow: &str) -> Vec<u32> {
        let of_flow = self.runs.jobs_of(run).filter(|(_, plan)| plan.flow == flow);
        of_flow.map(|(job, _)| job).collect()
    }

    /// Kills an active application. A failed kill is retried until the application has ended.
    pub(super) fn kill(&mut self, app: AppId) {
        if self.apps.active.contains(&app) {
            self.apps.orphans.insert(app);
            self.send_kill(app);
        }
    }

    /// Kills applications of finished jobs that keep running tasks, such as rerun maps: nothing reads the
    /// output, and they hold slots.
    pub(super) fn kill_late_apps(&mut self) {
        if self.trouble.is_silent {
            return;
        }
        let has_tasks = |app: &AppId| {
            let watched = self.cluster.snapshot().watched.get(app);
            watched.is_some_and(|it| it.containers.values().any(|it| phase_of(it.purpose).is_some()))
        };
        let late = self.apps.active.iter().filter(|app| self.is_of_finished_job(app) && has_tasks(app));
        let polls = |app: &AppId| self.apps.late_tasks.get(app).copied().unwrap_or(0) + 1;
        self.apps.late_tasks = late.map(|app| (*app, polls(app))).collect();
        let apps: Vec<AppId> = self
            .apps
            .late_tasks
            .iter()
            .filter(|(_, polls)| **polls == LATE_POLLS)
            .map(|(&app, _)| app)
            .collect();
        for app in apps {
            self.kill(app);
        }
    }

    /// Kills orphans within the time limit; the next call continues with the rest.
    pub(super) fn kill_orphans(&mut self) {
        let mut round = self.turns.kills.round(self.apps.orphans.iter().copied(), self.timeouts.asks);
        while let Some(app) = round.next(&mut self.turns.kills) {
            self.send_kill(app);
        }
    }

    fn send_kill(&mut self, app: AppId) {
        if let Some(warning) = self.cluster.kill(app) {
            self.warn(&warning);
        }
    }

    /// Forgets jobs whose end the driver knows.
    pub(super) fn forget_finished_jobs(&mut self) {
        for (job, own) in self.jobs.iter() {
            let phases = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| self.ledger.phase_of(job, kind));
            let is_known = phases.iter().flatten().all(|&phase| self.ledger.is_done(phase));
            if own.stage == JobStage::Finished && is_known && phases.iter().any(Option::is_some) {
                self.ledger.forget_job(job);
            }
        }
    }

    /// Ends the applications on the cluster but for those of finished jobs, which end by themselves and tell
    /// Hadoop that they succeeded. Warns of those that it could not end.
    pub(super) fn end_applications(&mut self) {
        // Programs first, since they would submit more.
        self.stop_programs();
        self.apps.orphans =
            self.apps.active.iter().copied().filter(|app| !self.is_of_finished_job(app)).collect();
        let until = Time(self.runs.now().0 + self.timeouts.end.as_micros() as u64);
        while self.has_leftovers() && self.runs.now() < until {
            self.kill_orphans();
            pause(self.timeouts.cycle);
            self.poll_ends();
        }
        self.warn_of_leftovers();
    }

    /// Polls for ended applications, and for new ones to end.
    fn poll_ends(&mut self) {
        self.now = self.runs.now();
        let polled = self.cluster.poll_cluster();
        self.trouble.is_silent = polled.is_err();
        if !self.trouble.is_silent {
            // Their applications have been observed.
            self.forget_programs();
        }
        for change in polled.unwrap_or_default() {
            match change {
                Change::Appeared(app) => {
                    let known = self.cluster.snapshot().app(app);
                    if known.is_some_and(|known| !known.state.is_over()) {
                        self.expect_end(app);
                    }
                }
                Change::AppEnded { app, .. } | Change::Gone(app) => {
                    self.apps.active.remove(&app);
                    self.apps.orphans.remove(&app);
                }
                _ => {}
            }
        }
        for (ticket, answer) in self.cluster.answers() {
            self.apps.unanswered.remove(&ticket);
            if self.belongs_to_no_run(&ticket, &answer) {
                continue;
            }
            match answer {
                Ok(SubmitterEvent::Submitted(app)) => self.expect_end(app),
                Ok(SubmitterEvent::Began(process)) => self.program_started(&ticket, process),
                Ok(SubmitterEvent::Ended(state)) => self.program_exited(&ticket, state),
                Err(_) if self.jobs[ticket.job].has_program() => {
                    self.jobs[ticket.job].program = None;
                }
                Err(error) => self.jobs[ticket.job].unconfirmed = Some((self.now, error.to_string())),
            }
        }
        self.drop_unconfirmed();
    }

    fn expect_end(&mut self, app: AppId) {
        if !self.is_of_finished_job(&app) {
            self.apps.active.insert(app);
            self.apps.orphans.insert(app);
        }
    }

    pub(super) fn is_of_finished_job(&self, app: &AppId) -> bool {
        self.apps.by_app.get(app).is_some_and(|&job| self.jobs[job].stage == JobStage::Finished)
    }

    /// Unconfirmed submissions that no poll has shown for some time never happened.
    fn drop_unconfirmed(&mut self) {
        let (now, unseen) = (self.now, self.timeouts.unseen.as_micros() as u64);
        for own in self.jobs.values_mut().filter(|_| !self.trouble.is_silent) {
            own.unconfirmed.take_if(|(since, _)| now.since(now.min(*since)).0 >= unseen);
        }
    }

    fn has_leftovers(&self) -> bool {
        let is_unconfirmed = self.jobs.values().any(|own| own.unconfirmed.is_some());
        let has_programs = self.jobs.values().any(FlowJob::has_program);
        !self.apps.orphans.is_empty() || !self.apps.unanswered.is_empty() || is_unconfirmed || has_programs
    }

    /// Warns of remaining applications, with the command that ends each.
    fn warn_of_leftovers(&mut self) {
        let name = |job: u32| {
            let plan = self.runs.plan(job);
            format!("{}/{}", plan.flow, plan.job)
        };
        let named = |app: &AppId| match self.apps.by_app.get(app) {
            Some(&job) => format!("{app} ({})", name(job)),
            None => app.to_string(),
        };
        let mut warnings = Vec::new();
        if !self.apps.orphans.is_empty() {
            let named: Vec<String> = self.apps.orphans.iter().map(named).collect();
            let ids: Vec<String> = self.apps.orphans.iter().map(AppId::to_string).collect();
            warnings.push(format!(
                "still on the cluster: {}; kill them with: yarn application -kill {}",
                named.join(", "),
                ids.join(" ")
            ));
        }
        let unanswered = self.apps.unanswered.iter().map(|ticket| ticket.job);
        let is_open = |own: &FlowJob| own.unconfirmed.is_some() || own.has_program();
        let unconfirmed = self.jobs.iter().filter(|(_, own)| is_open(own)).map(|(job, _)| job);
        let process = |job: u32| self.jobs[job].program.as_ref().and_then(|program| program.process);
        let with_process = |job: u32| match process(job) {
            Some(process) => format!("{} (by process {} of this machine)", name(job), process.pid),
            None => name(job),
        };
        let open: Vec<u32> = unanswered.chain(unconfirmed).collect();
        let owner = open.first().map(|&job| self.runs.owner(job).to_owned());
        let open: Vec<String> = open.into_iter().map(with_process).collect();
        if let Some(owner) = owner.filter(|_| !open.is_empty()) {
            warnings.push(format!(
                "may still be submitted: {}; list them with: yarn application -list -appTags {RUN_TAG}={}",
                open.join(", "),
                owner.to_lowercase()
            ));
        }
        for warning in warnings {
            self.warn(&warning);
        }
    }
}

/// The attempt, and the command that shows its whole log.
fn log_command(ended: &AttemptReport) -> String {
    let AttemptReport { attempt, container, host, .. } = ended;
    let container = container.map_or_else(String::new, |container| format!(" -containerId {container}"));
    format!("{attempt} on {host}: yarn logs -applicationId {}{container}", attempt.task.app)
}
