//! Runs that come and go, under one driver.

use std::rc::Rc;

use slackline_executor::engine::Observer;
use slackline_executor::engine::backend::{FlowOverrides, RunConfig};
use slackline_executor::engine::external_runs::JoinOutcome;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::{RunEnd, Session};
use slackline_model::FlowId;
use slackline_policy::engine::Report;

use super::{Guest, Submit};
use crate::clock::pause;
use crate::engine::jobs::{OwnJob, Stage};
use crate::rest::ResourceManager;
use crate::table::Rows;

/// A run that has left: its number, how it ended, and its session.
pub(in crate::engine) type Parted = (u32, Result<RunEnd, EngineError>, Session);

impl<'o> Guest<'o> {
    /// The same, where runs come and go.
    pub(in crate::engine) fn staying(self) -> Self {
        Self { said: Some(Vec::new()), ..self }
    }

    /// A run joins. `submit` says how its jobs are submitted, and `manager` is asked for what earlier sessions have left of it.
    ///
    /// # Errors
    /// Other machines than those that it knows; a workload that is none; a cluster that does not answer.
    pub(in crate::engine) fn join(
        &mut self,
        session: Session,
        (rules, observer): (&RunConfig, Box<dyn Observer + 'o>),
        (submit, manager): (Rc<dyn Submit + 'o>, &ResourceManager),
    ) -> Result<JoinOutcome, EngineError> {
        let owner = session.owner().to_owned();
        self.cluster.expect(&owner, manager).map_err(EngineError::other)?;
        let joined = self.left.join(session, &self.machines, rules, observer);
        match &joined {
            Ok(JoinOutcome::From(run)) => self.take(*run, submit),
            Ok(JoinOutcome::NothingLeft(..)) | Err(_) => self.cluster.forget(&owner),
        }
        joined
    }

    /// A flow stands in another way: the driver gives it up, and it comes again as it stands now, unless it is held.
    pub(in crate::engine) fn stand(
        &mut self,
        (run, flow): (u32, &str),
        standing: FlowOverrides,
        reports: &mut Vec<Report>,
    ) {
        if self.left.update_flow(run, flow, standing) {
            self.withdraw((run, flow), reports);
            self.bring((run, flow), reports);
        }
    }

    /// A flow is not to go on: what runs of it is stopped, and it has failed.
    pub(in crate::engine) fn cancel(&mut self, (run, flow): (u32, &str), reports: &mut Vec<Report>) {
        if !self.left.cancel_flow(run, flow) {
            return;
        }
        self.withdraw((run, flow), reports);
        if let Some(&job) = self.jobs_of((run, flow)).first() {
            self.give_up(job);
        }
    }

    /// The driver gives up a flow, if it has it.
    fn withdraw(&mut self, (run, flow): (u32, &str), reports: &mut Vec<Report>) {
        if let Some(number) = self.flows.remove(&(run, flow.to_owned())) {
            self.books.withdraw(&self.jobs_of((run, flow)));
            reports.push(Report::Withdrawn(number));
        }
    }

    /// Applications of flows that are held get no more containers.
    pub(super) fn hold_rows(&self, rows: &mut Rows) {
        if self.said.is_none() {
            return;
        }
        for (app, row) in rows.iter_mut() {
            let job = app.and_then(|app| self.by_app.get(&app));
            let is_held = |&job: &u32| self.left.is_held(self.left.run_of(job), &self.left.plan(job).flow);
            if job.is_some_and(is_held) {
                (row.maps, row.reduces) = (Some(0), Some(0));
            }
        }
    }

    /// The run that a flow of the driver's is of.
    pub(in crate::engine) fn run_of(&self, flow: FlowId) -> Option<u32> {
        self.flows.iter().find(|(_, number)| **number == flow).map(|((run, _), _)| *run)
    }

    /// The runs whose rows are open, one by one.
    pub(in crate::engine) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.books.held().map(|job| self.left.run_of(job))
    }

    /// Whether a host is there.
    pub(in crate::engine) fn is_up(&self, host: &str) -> bool {
        self.books.is_up(host)
    }

    /// What somebody should know, since this was asked last.
    pub(in crate::engine) fn said(&mut self) -> Vec<String> {
        self.said.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Runs whose flows are over and of which nothing is to be ended on the cluster any more, and those that cannot go on.
    pub(in crate::engine) fn leaving(&mut self, reports: &mut Vec<Report>) -> Vec<Parted> {
        let runs: Vec<u32> = self.left.runs().collect();
        let mut left = Vec::new();
        for run in runs {
            if self.fatal.contains_key(&run) {
                self.give_up_run(run, reports);
            } else if !self.left.is_over(run) {
                continue;
            }
            let since = *self.over_since.entry(run).or_insert(self.now);
            let is_late = self.now.since(since.min(self.now)).0 >= self.pace.end.as_micros() as u64;
            if is_late || !self.has_something_left(run) {
                left.extend(self.part(run, self.fatal.contains_key(&run)));
            }
        }
        left
    }

    /// What runs of a run is stopped.
    fn give_up_run(&mut self, run: u32, reports: &mut Vec<Report>) {
        let flows = self.flows.keys().filter(|(of, _)| *of == run).map(|(_, flow)| flow.clone());
        for flow in flows.collect::<Vec<String>>() {
            self.withdraw((run, &flow), reports);
        }
        for job in self.jobs_of_run(run) {
            if matches!(self.jobs[job].stage, Stage::Done | Stage::Failed) {
                continue;
            }
            let app = self.jobs[job].app();
            self.jobs[job].stage = Stage::Failed;
            self.stop_program(job);
            if let Some(app) = app {
                self.kill(app);
            }
        }
    }

    fn jobs_of_run(&self, run: u32) -> Vec<u32> {
        self.left.jobs_of(run).map(|(job, _)| job).collect()
    }

    /// Whether something of a run is still to end on the cluster, or may still come there.
    fn has_something_left(&self, run: u32) -> bool {
        let jobs = self.jobs_of_run(run);
        let is_its = |job: &u32| jobs.contains(job);
        let is_open = |own: &OwnJob| own.doubt.is_some() || own.has_program();
        self.strays.iter().any(|app| self.by_app.get(app).is_some_and(is_its))
            || self.unanswered.iter().any(|ticket| is_its(&ticket.job))
            || jobs.iter().any(|&job| is_open(&self.jobs[job]))
    }

    fn part(&mut self, run: u32, is_interrupted: bool) -> Option<Parted> {
        let jobs = self.jobs_of_run(run);
        let fatal = self.fatal.remove(&run);
        self.over_since.remove(&run);
        self.flows.retain(|(of, _), _| *of != run);
        self.by_ticket.retain(|_, job| !jobs.contains(job));
        self.by_app.retain(|_, job| !jobs.contains(job));
        self.books.withdraw(&jobs);
        for &job in &jobs {
            self.jobs.remove(job);
        }
        let owner = self.left.owner(run).to_owned();
        self.cluster.forget(&owner);
        let submit = self.submits.remove(&run);
        let (end, session) = self.left.leave(run, is_interrupted)?;
        if !is_interrupted
            && let Some(warning) = submit.and_then(|submit| submit.close(session.jobs(), &owner))
        {
            self.warn(&warning);
        }
        let end = fatal.map_or(end, |reason| Err(EngineError::Stopped(reason)));
        Some((run, end, session))
    }

    /// Ends what is left on the cluster, and gives all runs, to be resumed some day.
    pub(in crate::engine) fn stop(&mut self) -> Vec<Parted> {
        self.end_applications(false);
        pause(self.pace.cycle);
        let runs: Vec<u32> = self.left.runs().collect();
        runs.into_iter().filter_map(|run| self.part(run, !self.left.is_over(run))).collect()
    }
}
