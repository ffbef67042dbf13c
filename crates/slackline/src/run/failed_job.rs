//! The failed job that prevented a flow from finishing.

use std::collections::BTreeSet;

use slackline_executor::run::RunRecord;
use slackline_executor::run::inspect::RunInspection;
use slackline_executor::spec::preflight::Obstacle;
use slackline_executor::store::journal::{Attempt, AttemptOutcome, done_tasks};
use slackline_model::Draft;

use super::flow_events::summary;
use super::jobs;

/// A job that failed, of the flow itself or of a flow whose output it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedJob {
    /// Its flow.
    pub flow: String,
    /// Its name.
    pub job: String,
    /// The reason in one line.
    pub reason: String,
}

/// The data of a run that failures follow from.
struct Failures<'a> {
    workload: &'a Draft,
    attempts: &'a [Attempt],
    obstacles: &'a [Obstacle],
}

impl FailedJob {
    /// The cause of a failed flow of a run; `None` if no attempt of a job failed.
    pub fn of_record(record: &RunRecord<'_>, flow: &str) -> Option<Self> {
        let &RunRecord { workload, attempts, obstacles, .. } = record;
        Failures { workload, attempts, obstacles }.cause(flow)
    }

    /// As [`Self::of_record`], for an inspected run.
    pub fn of_inspection(look: &RunInspection, flow: &str) -> Option<Self> {
        Failures { workload: &look.head.workload, attempts: &look.attempts, obstacles: &[] }.cause(flow)
    }
}

impl Failures<'_> {
    fn cause(&self, flow: &str) -> Option<FailedJob> {
        let mut seen = BTreeSet::new();
        let mut flow = self.workload.flows.iter().find(|one| one.id == flow)?;
        while seen.insert(flow.id.as_str()) {
            if let Some(found) = self.own(&flow.id) {
                return Some(found);
            }
            let failed = flow.foreign_inputs().find(|(other, job)| !self.is_done(other, job))?;
            flow = self.workload.flows.iter().find(|one| one.id == failed.0)?;
        }
        None
    }

    /// The job of a flow whose task failed last and was not retried with success, or that cannot run.
    fn own(&self, flow: &str) -> Option<FailedJob> {
        let jobs: Vec<(&str, &str)> = jobs::jobs(self.workload).collect();
        let is_its = |job: usize| jobs.get(job).is_some_and(|(of, _)| *of == flow);
        let done = done_tasks(self.attempts);
        let failed = self.attempts.iter().filter_map(|attempt| match &attempt.ended {
            AttemptOutcome::Failed(message) if !done.contains(&attempt.id) => Some((attempt, message)),
            _ => None,
        });
        let failed = failed.filter(|(attempt, _)| is_its(attempt.id.job as usize));
        let obstacle = self.obstacles.iter().find(|obstacle| is_its(obstacle.job));
        let (job, message) = match failed.max_by_key(|(attempt, _)| attempt.end) {
            Some((attempt, message)) => (attempt.id.job as usize, message),
            None => obstacle.map(|obstacle| (obstacle.job, &obstacle.problem))?,
        };
        Some(FailedJob { flow: flow.to_owned(), job: jobs[job].1.to_owned(), reason: summary(message) })
    }

    fn is_done(&self, flow: &str, job: &str) -> bool {
        let figures = super::JobFigures::all(self.workload, self.attempts);
        // The output of a job of another run is there.
        figures.iter().find(|one| one.flow == flow && one.job == job).is_none_or(super::JobFigures::is_done)
    }
}
