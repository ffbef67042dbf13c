//! The jobs of a workload by their numbers.

use slackline_model::Draft;

/// The names of the flow and the job of each job of a workload, in the order of the job numbers of
/// [`TaskId`](super::TaskId).
pub(super) fn jobs(workload: &Draft) -> impl Iterator<Item = (&str, &str)> {
    workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| (flow.id.as_str(), job.id.as_str())))
}
