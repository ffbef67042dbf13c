//! Runs that join and leave one engine.

use std::sync::Arc;

use slackline_executor::engine::backend::{FlowOverrides, RunConfig};
use slackline_executor::engine::event::{EventCallback, RunEvent};
use slackline_executor::engine::external_runs::{self, JoinOutcome};
use slackline_executor::run::error::EngineError;
use slackline_executor::run::{RunEnd, Session};
use slackline_policy::engine::Report;

use crate::clock::pause;
use crate::cluster::table::Rows;
use crate::flows::engine::{FlowEngine, JobSubmission};
use crate::flows::jobs::{FlowJob, JobStage};
use crate::rest::id::AppId;

/// A run that the engine no longer drives.
pub(in crate::flows) struct LeavingRun {
    pub(in crate::flows) run: u32,
    pub(in crate::flows) end: Result<RunEnd, EngineError>,
    pub(in crate::flows) session: Session,
}

impl FlowEngine {
    /// Adds a run, with the applications of its earlier sessions. It does not join if the machines changed, or
    /// its workload is invalid.
    pub(in crate::flows) fn join(
        &mut self,
        session: Session,
        rules: &RunConfig,
        on_event: EventCallback,
        submit: Arc<dyn JobSubmission>,
        earlier: Vec<AppId>,
    ) -> JoinOutcome {
        let owner = session.owner().to_owned();
        self.cluster.expect(&owner, earlier);
        let joined = self.runs.join(session, &self.machines, rules, on_event);
        match &joined {
            JoinOutcome::From(run) => self.add_run(*run, submit),
            JoinOutcome::Ended(..) => self.cluster.forget(&owner),
        }
        joined
    }

    /// Changes the overrides of a flow: the driver withdraws it, and it arrives again unless it is held.
    pub(in crate::flows) fn update_flow(
        &mut self,
        run: u32,
        flow: &str,
        overrides: FlowOverrides,
        reports: &mut Vec<Report>,
    ) {
        if self.runs.update_flow(run, flow, overrides) {
            self.withdraw(run, flow, reports);
            self.report_arrival(run, flow, reports);
        }
    }

    /// Cancels a flow: stops its jobs, and fails it.
    pub(in crate::flows) fn cancel_flow(&mut self, run: u32, flow: &str, reports: &mut Vec<Report>) {
        if !self.runs.cancel_flow(run, flow) {
            return;
        }
        self.withdraw(run, flow, reports);
        if let Some(&job) = self.jobs_of(run, flow).first() {
            self.fail_flow_of(job);
        }
    }

    /// The driver withdraws a flow.
    fn withdraw(&mut self, run: u32, flow: &str, reports: &mut Vec<Report>) {
        if let Some(number) = self.driver_ids.flows.remove(&(run, flow.to_owned())) {
            self.ledger.withdraw(&self.jobs_of(run, flow));
            reports.push(Report::Withdrawn(number));
        }
    }

    /// Applications of held flows get no more containers.
    pub(super) fn hold_rows(&self, rows: &mut Rows) {
        for (app, row) in rows.iter_mut() {
            let job = app.and_then(|app| self.apps.by_app.get(&app));
            let is_held = |&job: &u32| self.runs.is_held(self.runs.run_of(job), &self.runs.plan(job).flow);
            if job.is_some_and(is_held) {
                (row.maps, row.reduces) = (Some(0), Some(0));
            }
        }
    }

    pub(in crate::flows) fn is_up(&self, host: &str) -> bool {
        self.ledger.is_up(host)
    }

    /// Warnings since the last call.
    pub(in crate::flows) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trouble.notices)
    }

    /// Runs to end: those whose flows have ended and whose applications are gone, and those with an error.
    pub(in crate::flows) fn ended_runs(&mut self, reports: &mut Vec<Report>) -> Vec<LeavingRun> {
        let runs: Vec<u32> = self.runs.runs().collect();
        let mut left = Vec::new();
        for run in runs {
            if self.fatal.contains_key(&run) {
                self.stop_run(run, reports);
            } else if !self.runs.is_over(run) {
                continue;
            }
            let since = *self.over_since.entry(run).or_insert(self.now);
            let is_late = self.now.since(since.min(self.now)).0 >= self.timeouts.end.as_micros() as u64;
            if is_late || !self.has_something_left(run) {
                left.extend(self.remove_run(run, self.fatal.contains_key(&run)));
            }
        }
        left
    }

    /// Stops all jobs of a run.
    fn stop_run(&mut self, run: u32, reports: &mut Vec<Report>) {
        let flows = self.driver_ids.flows.keys().filter(|(of, _)| *of == run).map(|(_, flow)| flow.clone());
        for flow in flows.collect::<Vec<String>>() {
            self.withdraw(run, &flow, reports);
        }
        for job in self.jobs_of_run(run) {
            if matches!(self.jobs[job].stage, JobStage::Finished | JobStage::Failed) {
                continue;
            }
            let app = self.jobs[job].app();
            self.jobs[job].stage = JobStage::Failed;
            self.stop_program(job);
            if let Some(app) = app {
                self.kill(app);
            }
        }
    }

    fn jobs_of_run(&self, run: u32) -> Vec<u32> {
        self.runs.jobs_of(run).map(|(job, _)| job).collect()
    }

    /// Whether applications of a run are active, or may still appear.
    fn has_something_left(&self, run: u32) -> bool {
        let jobs = self.jobs_of_run(run);
        let is_its = |job: &u32| jobs.contains(job);
        let is_open = |own: &FlowJob| own.unconfirmed.is_some() || own.has_program();
        self.apps.orphans.iter().any(|app| self.apps.by_app.get(app).is_some_and(is_its))
            || self.apps.unanswered.iter().any(|ticket| is_its(&ticket.job))
            || jobs.iter().any(|&job| is_open(&self.jobs[job]))
    }

    fn remove_run(&mut self, run: u32, is_interrupted: bool) -> Option<LeavingRun> {
        let jobs = self.jobs_of_run(run);
        let fatal = self.fatal.remove(&run);
        self.over_since.remove(&run);
        self.driver_ids.flows.retain(|(of, _), _| *of != run);
        self.apps.by_ticket.retain(|_, job| !jobs.contains(job));
        let its_apps = self.apps.by_app.iter().filter(|(_, job)| jobs.contains(job)).map(|(&app, _)| app);
        let end_alone: Vec<_> = its_apps.filter(|app| self.is_of_finished_job(app)).collect();
        self.apps.active.retain(|app| !end_alone.contains(app));
        self.apps.by_app.retain(|_, job| !jobs.contains(job));
        self.ledger.withdraw(&jobs);
        for &job in &jobs {
            self.jobs.remove(job);
        }
        let owner = self.runs.owner(run).to_owned();
        self.cluster.forget(&owner);
        let submit = self.submissions.remove(&run);
        let external_runs::LeavingRun { end, session, mut on_event } =
            self.runs.leave(run, is_interrupted)?;
        if !is_interrupted
            && let Some(warning) = submit.and_then(|submit| submit.close(session.jobs(), &owner))
        {
            self.trouble.notices.push(warning.clone());
            on_event(session.clock().now(), &RunEvent::Warning(warning));
        }
        let end = fatal.map_or(end, |reason| Err(EngineError::Stopped(reason)));
        Some(LeavingRun { run, end, session })
    }

    /// Ends all applications, and gives all runs, to be resumed later.
    pub(in crate::flows) fn stop(&mut self) -> Vec<LeavingRun> {
        self.end_applications();
        pause(self.timeouts.cycle);
        let runs: Vec<u32> = self.runs.runs().collect();
        runs.into_iter().filter_map(|run| self.remove_run(run, !self.runs.is_over(run))).collect()
    }
}
