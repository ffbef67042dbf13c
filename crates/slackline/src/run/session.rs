//! Functions that read a session by flows and jobs.

use std::collections::BTreeSet;

use slackline_executor::store::journal::AttemptOutcome;
use slackline_model::Draft;
use slackline_task::base::task_id::TaskId;

use super::Session;

/// The finished tasks of a run.
pub(super) fn done(session: &dyn Session) -> BTreeSet<TaskId> {
    let done = session.attempts().iter().filter(|attempt| matches!(attempt.ended, AttemptOutcome::Done(_)));
    done.map(|attempt| attempt.id).collect()
}

/// The names of a job and of its flow.
pub(super) struct JobAt<'a> {
    pub(super) flow: &'a str,
    pub(super) job: &'a str,
}

/// The jobs of a workload, in the order of the job numbers of [`TaskId`].
pub(super) fn jobs(workload: &Draft) -> impl Iterator<Item = JobAt<'_>> {
    workload
        .flows
        .iter()
        .flat_map(|flow| flow.jobs.iter().map(move |job| JobAt { flow: &flow.id, job: &job.id }))
}

/// The flows that cannot run.
pub(super) fn unrunnable(session: &dyn Session) -> BTreeSet<String> {
    let flows: Vec<&str> = jobs(session.workload()).map(|job| job.flow).collect();
    session.obstacles().iter().map(|obstacle| flows[obstacle.job].to_owned()).collect()
}
