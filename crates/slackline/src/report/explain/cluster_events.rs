//! Explains what a flow waited for on a Hadoop cluster: the submission of its jobs, their ApplicationMasters
//! and their containers.

use std::collections::BTreeMap;

use slackline_executor::store::applications::ExternalJob;
use slackline_model::{JobId, PhaseId};

use crate::explain::{PhaseStory, Waits};
use crate::report::number::{Unit, column, instants};
use crate::report::table::{Column, Table, View};

use crate::report::explain::ExplainInput;

/// The events of a run on a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterEvents {
    /// Its submitted jobs.
    pub jobs: BTreeMap<JobId, ExternalJob>,
    /// By phase: when the first task started to execute its own code, seconds since the start of the run.
    pub began: BTreeMap<PhaseId, f64>,
}

/// How the time of the phases on the chain is divided, seconds. It is the division of their waits, without
/// delays that no slot would shorten.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Starts {
    /// The jobs were not submitted yet.
    pub(super) submission: f64,
    /// The ApplicationMasters of these jobs were starting.
    pub(super) ams: f64,
    /// The first container of each phase was starting.
    pub(super) containers: f64,
    /// The phases had no slot.
    pub(super) none: f64,
    /// The phases had too few slots.
    pub(super) below: f64,
    /// The phases had all slots that they could use.
    pub(super) cap: f64,
    /// Only the last tasks were running.
    pub(super) last: f64,
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl ExplainInput<'_> {
    pub(super) fn job_there(&self, story: &PhaseStory) -> Option<&ExternalJob> {
        self.there?.jobs.get(&self.instance.phase(story.phase).job)
    }

    /// The division of the time. For a run on this machine it follows from the waits alone.
    pub(super) fn starts(&self) -> Starts {
        let Waits { none, below, cap, last, .. } = self.explanation.waits;
        let mut starts = Starts { none, below, cap, last, ..Starts::default() };
        for story in self.explanation.steps() {
            let known = (self.job_there(story), story.ready, story.started);
            let (Some(there), Some(ready), Some(started)) = known else { continue };
            if there.submitted.is_some_and(|at| seconds(at) > started) {
                // The job was submitted again, and its first start belongs to an earlier submission.
                continue;
            }
            let within = |at: Option<u64>| at.map_or(ready, seconds).clamp(ready, started.max(ready));
            let (submitted, up) = (within(there.submitted), within(there.am[1].or(there.submitted)));
            starts.submission += submitted - ready;
            starts.ams += (up - submitted).max(0.0);
            starts.containers += self.first_startup(story).unwrap_or(0.0);
        }
        starts.none = (starts.none - starts.submission - starts.ams).max(0.0);
        // Slots are held while containers start.
        let mut rest = starts.containers;
        for part in [&mut starts.cap, &mut starts.last, &mut starts.below] {
            let less = rest.min(*part);
            (*part, rest) = (*part - less, rest - less);
        }
        starts.containers -= rest;
        starts
    }

    /// The time from the first slot of a phase until its first task executes its own code.
    fn first_startup(&self, story: &PhaseStory) -> Option<f64> {
        Some((self.there?.began.get(&story.phase)? - story.started?).max(0.0))
    }

    /// The times of the events, phase by phase; empty for a run on this machine.
    pub(super) fn starts_text(&self, view: &View) -> String {
        let known = self.explanation.steps().filter_map(|story| Some((story, self.job_there(story)?)));
        let steps: Vec<(&PhaseStory, &ExternalJob)> = known.collect();
        if steps.is_empty() {
            return String::new();
        }
        let at = |name: &str, of: &dyn Fn(&PhaseStory, &ExternalJob) -> Option<f64>| {
            let values: Vec<Option<f64>> = steps.iter().map(|(story, job)| of(story, job)).collect();
            Column::written(name.replace('\n', " "), &values, instants(&values, self.instance.start()))
                .heading(name)
        };
        let startup: Vec<Option<f64>> = steps.iter().map(|(story, _)| self.first_startup(story)).collect();
        let table = Table::of(vec![
            Column::words("on the cluster", steps.iter().map(|(story, _)| self.phase_name(story.phase))),
            at("ready", &|story, _| story.ready).rank(5),
            at("submitted", &|_, job| job.submitted.map(seconds)).rank(1),
            at("ApplicationMaster\ngranted", &|_, job| job.am[0].map(seconds)).rank(6),
            at("ApplicationMaster\nup", &|_, job| job.am[1].map(seconds)).rank(2),
            at("first slot", &|story, _| story.started).rank(3),
            Column::written("container startup", &startup, column(&startup, Unit::Seconds)).rank(4),
            Column::words("application", steps.iter().map(|(_, job)| job.applications.join(", "))).rank(7),
        ]);
        format!("\n{}", table.render(view))
    }
}
