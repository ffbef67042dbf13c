//! What a run would do, before it does anything.

use std::collections::BTreeSet;

use slackline_local::{JobVerdict, Verdict};
use slackline_model::{Draft, Instance};

use super::{Prediction, Request, RunError, policy};

/// What would become of each job, and how the run would go.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The jobs of the flow file, in its order.
    pub jobs: Vec<JobVerdict>,
    /// How what has to be done and can be would go, from now on; none if nothing of that is left.
    pub prediction: Option<Prediction>,
}

impl Preview {
    pub(super) fn new(request: &Request, workload: &Draft, jobs: Vec<JobVerdict>) -> Result<Self, RunError> {
        let is_idle =
            |verdict: &Verdict| matches!(verdict, Verdict::Kept | Verdict::Left | Verdict::Prevented(_));
        let idle = jobs.iter().filter(|job| is_idle(&job.verdict));
        let idle: BTreeSet<(&str, &str)> = idle.map(|job| (job.flow.as_str(), job.job.as_str())).collect();
        let mut draft = workload.clone();
        for flow in &mut draft.flows {
            flow.jobs.retain(|job| !idle.contains(&(flow.id.as_str(), job.id.as_str())));
            let names: BTreeSet<String> = flow.jobs.iter().map(|job| job.id.clone()).collect();
            flow.jobs.iter_mut().for_each(|job| job.after.retain(|name| names.contains(name)));
        }
        draft.flows.retain(|flow| !flow.jobs.is_empty());
        if draft.flows.is_empty() {
            return Ok(Self { jobs, prediction: None });
        }
        let instance = Instance::new(&draft)?;
        let simulated =
            policy::simulated(&request.policy, &instance, request.slowstart).map_err(RunError::Prediction)?;
        Ok(Self { jobs, prediction: Some(Prediction { instance, simulated }) })
    }
}
