//! Progress notes in the journal, for `status` and other observers outside of the process.

use std::collections::BTreeMap;
use std::time::Duration;

use slackline_executor::engine::external_runs::tasks::FinishedTask;
use slackline_executor::store::applications::ExternalJob;
use slackline_model::{PhaseKind, Time};
use slackline_task::base::task_id::TaskId;

use crate::clock::Stopwatch;
use crate::cluster::observer::phase_of;
use crate::flows::attempt_reports::AttemptReport;
use crate::flows::engine::FlowEngine;
use crate::flows::jobs::{AppTimes, FlowJob, JobStage, by_end, recorded_task};
use crate::rest::resource_manager::AppState;

/// The fewest polls between two notes, and the fewest times the duration of one.
const POLLS_BETWEEN: u64 = 4;
const SHARE: u64 = 50;

impl FlowEngine {
    /// Records when AMs got their containers and began to request others.
    pub(super) fn note_ams(&mut self) {
        let Self { jobs, cluster, now, .. } = self;
        for own in jobs.values_mut() {
            let Some(watched) = own.app().and_then(|app| cluster.snapshot().watched.get(&app)) else {
                continue;
            };
            let times = &mut own.app_times;
            let is_up = watched.app.state == AppState::Running;
            if watched.app.state == AppState::Accepted && watched.app.am_container.is_none() {
                let app = watched.app.id;
                times.accepted = times.accepted.filter(|(before, _)| *before == app).or(Some((app, *now)));
            }
            if times.am_started[0].is_none() && (is_up || watched.app.am_container.is_some()) {
                times.am_started[0] = Some(*now);
            }
            if times.am_started[1].is_none() && is_up {
                times.am_started[1] = Some(*now);
            }
        }
    }

    /// Warns once of each job that waits long for an AM, with YARN's reason.
    pub(super) fn explain_waits(&mut self) {
        let mut warnings = Vec::new();
        for (job, own) in self.jobs.iter_mut() {
            let AppTimes {
                accepted: Some((app, since)),
                am_started: [None, _],
                wait_is_explained: false,
                ..
            } = own.app_times
            else {
                continue;
            };
            let waited = Duration::from_micros(self.now.since(since).0);
            if own.app() != Some(app) || waited < self.timeouts.queued {
                continue;
            }
            let Some(watched) = self.cluster.snapshot().watched.get(&app) else { continue };
            own.app_times.wait_is_explained = true;
            let (plan, queue) = (self.runs.plan(job), &watched.app.queue);
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

    /// Writes a note of all jobs, if it is due or `at_once`.
    pub(super) fn write_note(&mut self, at_once: bool) {
        if self.now < self.note_at && !at_once {
            return;
        }
        let watch = Stopwatch::start();
        let mut places = self.places.clone();
        let since = |millis| self.runs.since_start(millis).min(self.now);
        let mut apps: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (app, &job) in &self.apps.by_app {
            apps.entry(job).or_default().push(app.to_string());
        }
        let mut there: Vec<(u32, ExternalJob, Vec<FinishedTask>)> = Vec::new();
        for (job, own) in self.jobs.iter() {
            if !matches!(own.stage, JobStage::Submitted | JobStage::Running(_) | JobStage::Failed) {
                continue;
            }
            let made = by_end(&own.made);
            let record = |((phase, task), attempt): &((PhaseKind, u32), AttemptReport)| {
                recorded_task(own, TaskId { job, phase: *phase, task: *task }, attempt, since, &mut places)
            };
            let made = made.iter().filter_map(record).collect();
            let applications = apps.remove(&job).unwrap_or_default();
            let containers = self.task_containers(own);
            there.push((job, ExternalJob { applications, containers, ..own.progress(job) }, made));
        }
        self.runs.note(there);
        let micros = |span: Duration| span.as_micros() as u64;
        let pause = (micros(self.timeouts.cycle) * POLLS_BETWEEN).max(micros(watch.elapsed()) * SHARE);
        self.note_at = Time(self.now.0 + pause);
    }

    fn task_containers(&self, own: &FlowJob) -> u32 {
        let watched = own.app().and_then(|app| self.cluster.snapshot().watched.get(&app));
        let tasks = |all: &crate::cluster::observer::WatchedApp| {
            all.containers.values().filter(|container| phase_of(container.purpose).is_some()).count()
        };
        watched.map_or(0, tasks) as u32
    }
}
