//! The jobs of a workload by their numbers.

use slackline_model::Draft;

/// The names of a job and of its flow.
pub(super) struct JobAt<'a> {
    pub(super) flow: &'a str,
    pub(super) job: &'a str,
}

/// The jobs of a workload, in the order of the job numbers of [`TaskId`](super::TaskId).
pub(super) fn jobs(workload: &Draft) -> impl Iterator<Item = JobAt<'_>> {
    workload
        .flows
        .iter()
        .flat_map(|flow| flow.jobs.iter().map(move |job| JobAt { flow: &flow.id, job: &job.id }))
}
