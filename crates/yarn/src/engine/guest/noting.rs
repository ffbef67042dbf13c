//! Noting: what those are told who look at the run from outside.

use std::collections::BTreeMap;
use std::time::Duration;

use slackline_executor::engine::external_runs::tasks::FinishedTask;
use slackline_executor::store::applications::ExternalJob;
use slackline_model::Time;

use super::{Guest, phase_of};
use crate::clock::Stopwatch;
use crate::engine::jobs::{OwnJob, Stage, in_order, made_task};
use crate::rest::AppState;

/// At least so many looks between two notes, and this many times as long as one takes.
const LOOKS: u64 = 4;
const SHARE: u64 = 50;

impl Guest<'_> {
    /// Since when ApplicationMasters have containers, and ask for others.
    pub(super) fn note_masters(&mut self) {
        let Self { jobs, cluster, now, .. } = self;
        for own in jobs.values_mut() {
            let Some(watched) = own.app().and_then(|app| cluster.snapshot().watched.get(&app)) else {
                continue;
            };
            let is_up = watched.app.state == AppState::Running;
            if watched.app.state == AppState::Accepted && watched.app.master.is_none() {
                let app = watched.app.id;
                own.accepted = own.accepted.filter(|(before, _)| *before == app).or(Some((app, *now)));
            }
            if own.master[0].is_none() && (is_up || watched.app.master.is_some()) {
                own.master[0] = Some(*now);
            }
            if own.master[1].is_none() && is_up {
                own.master[1] = Some(*now);
            }
        }
    }

    /// Warns once of each job that waits long for an ApplicationMaster, with the reason that YARN gives.
    pub(super) fn explain_waits(&mut self) {
        let mut warnings = Vec::new();
        for (job, own) in self.jobs.iter_mut() {
            let (Some((app, since)), None, false) = (own.accepted, own.master[0], own.wait_is_explained)
            else {
                continue;
            };
            let waited = Duration::from_micros(self.now.since(since).0);
            if own.app() != Some(app) || waited < self.pace.queued {
                continue;
            }
            let Some(watched) = self.cluster.snapshot().watched.get(&app) else { continue };
            own.wait_is_explained = true;
            let (plan, queue) = (self.left.plan(job), &watched.app.queue);
            let reason = match watched.app.diagnostics.trim() {
                "" => "YARN gives no reason",
                reason => reason,
            };
            warnings.push(format!(
                "{}/{}: {app} in queue {queue} has had no ApplicationMaster for {} s: {reason}",
                plan.flow,
                plan.job,
                waited.as_secs()
            ));
        }
        for warning in warnings {
            self.warn(&warning);
        }
    }

    /// Writes down what the cluster does, if it is time to or `at_once`.
    pub(super) fn note(&mut self, at_once: bool) {
        if self.now < self.note_at && !at_once {
            return;
        }
        let watch = Stopwatch::start();
        let mut places = self.places.clone();
        let since = |millis| self.left.since_start(millis).min(self.now);
        let mut apps: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (app, &job) in &self.by_app {
            apps.entry(job).or_default().push(app.to_string());
        }
        let mut there: Vec<(u32, ExternalJob, Vec<FinishedTask>)> = Vec::new();
        for (job, own) in self.jobs.iter() {
            if !matches!(own.stage, Stage::Submitted | Stage::Runs(_) | Stage::Failed) {
                continue;
            }
            let made = in_order(&own.made);
            let tasks = made.iter().map(|(task, attempt)| (*task, attempt));
            let made = tasks.filter_map(|task| made_task((own, job), task, since, &mut places)).collect();
            let applications = apps.remove(&job).unwrap_or_default();
            let containers = self.task_containers(own);
            there.push((job, ExternalJob { applications, containers, ..own.there(job) }, made));
        }
        self.left.note(there);
        let micros = |span: Duration| span.as_micros() as u64;
        let pause = (micros(self.pace.cycle) * LOOKS).max(micros(watch.elapsed()) * SHARE);
        self.note_at = Time(self.now.0 + pause);
    }

    /// How many containers a job has for tasks.
    fn task_containers(&self, own: &OwnJob) -> u32 {
        let watched = own.app().and_then(|app| self.cluster.snapshot().watched.get(&app));
        let tasks = |all: &crate::observe::Watched| {
            all.containers.values().filter(|container| phase_of(container.purpose).is_some()).count()
        };
        watched.map_or(0, tasks) as u32
    }
}
