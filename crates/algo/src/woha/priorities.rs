//! The order of the jobs within a flow (section V-C): highest level, longest path, most dependents.

use slackline_model::{JobId, Span};

use super::request::Request;

/// How the jobs of a flow are put in order; ties by job id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// HLF: the most jobs on the longest chain of dependents.
    HighestLevel,
    /// LPF: the longest chain of dependents in seconds, a job's length being the estimated time of one
    /// of its maps plus one of its reduces.
    LongestPath,
    /// MPF: the most direct dependents.
    MaximumParallelism,
}

impl JobOrder {
    pub const ALL: [Self; 3] = [Self::HighestLevel, Self::LongestPath, Self::MaximumParallelism];

    /// The jobs of the flow, the one to be served first in front. O(J log J + edges).
    pub fn sorted(self, request: &Request<'_>) -> Vec<JobId> {
        let key = self.keys(request);
        let mut jobs: Vec<JobId> = request.instance.flow(request.flow).jobs().collect();
        let first = jobs[0].0;
        jobs.sort_by_key(|&job| (std::cmp::Reverse(key[(job.0 - first) as usize]), job));
        jobs
    }

    /// A number for each job of the flow, in the order of their ids; larger goes first.
    fn keys(self, request: &Request<'_>) -> Vec<u64> {
        let (instance, flow) = (request.instance, request.flow);
        let n_jobs = instance.flow(flow).jobs().len();
        let first = instance.flow(flow).jobs().next().map_or(0, |job| job.0);
        let mut keys = vec![0u64; n_jobs];
        for &job in instance.topological_of(flow).iter().rev() {
            let info = instance.job(job);
            let longest = |more: u64| {
                let chain = |next: &JobId| keys[(next.0 - first) as usize].saturating_add(more);
                info.before.iter().map(chain).max().unwrap_or(0)
            };
            let key = match self {
                Self::HighestLevel => longest(1),
                Self::LongestPath => {
                    let own: u64 = info.phases().map(|phase| request.span(phase)).map(|Span(us)| us).sum();
                    longest(0).saturating_add(own)
                }
                Self::MaximumParallelism => info.before.len() as u64,
            };
            keys[(job.0 - first) as usize] = key;
        }
        keys
    }
}
