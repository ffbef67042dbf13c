//! Shows what a run would do, before it starts.

use std::collections::BTreeSet;

use slackline_executor::run::JobVerdict;
use slackline_executor::run::reuse::Verdict;
use slackline_model::{Draft, Instance, Time};

use super::outcome::unknown_flows;
use super::policy::{self, Setting};
use super::{Prediction, RunError};
use crate::policy_spec::PolicySpec;

/// The verdict on each job, and the simulated run.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The jobs of the flow file, in its order.
    pub jobs: Vec<JobVerdict>,
    /// The simulation of the jobs that have to run and can run, from now on; `None` if there are none.
    pub prediction: Option<Prediction>,
}

impl Preview {
    /// `now` is relative to the start of the run, which may be long ago.
    pub(super) fn new(
        policy: &PolicySpec,
        setting: &Setting,
        workload: &Draft,
        now: Time,
        jobs: Vec<JobVerdict>,
    ) -> Result<Self, RunError> {
        let is_idle =
            |verdict: &Verdict| matches!(verdict, Verdict::Kept | Verdict::Left | Verdict::Prevented(_));
        let idle = jobs.iter().filter(|job| is_idle(&job.verdict));
        let idle: BTreeSet<(&str, &str)> = idle.map(|job| (job.flow.as_str(), job.job.as_str())).collect();
        let mut draft = workload.clone();
        // A flow with an unrunnable job does not run at all.
        let prevented = prevented_flows(&jobs);
        draft.flows.retain(|flow| !prevented.contains(flow.id.as_str()));
        for flow in &mut draft.flows {
            flow.release = flow.release.max(now.seconds());
            if idle.is_empty() {
                continue;
            }
            flow.jobs.retain(|job| !idle.contains(&(flow.id.as_str(), job.id.as_str())));
            let names: BTreeSet<String> = flow.jobs.iter().map(|job| job.id.clone()).collect();
            flow.jobs.iter_mut().for_each(|job| job.after.retain(|name| names.contains(name)));
        }
        draft.flows.retain(|flow| !flow.jobs.is_empty());
        if draft.flows.is_empty() {
            return Ok(Self { jobs, prediction: None });
        }
        let instance = Instance::new(&draft)?;
        let simulated = policy::simulated(policy, &instance, setting).map_err(RunError::Prediction)?;
        let unknown = unknown_flows(&draft);
        Ok(Self { jobs, prediction: Some(Prediction { instance, simulated, unknown }) })
    }

    /// The flows that cannot run because one of their jobs cannot, in the order of the flow file.
    pub fn prevented_flows(&self) -> Vec<&str> {
        let mut flows: Vec<&str> = self.jobs.iter().map(|job| job.flow.as_str()).collect();
        flows.dedup();
        let prevented = prevented_flows(&self.jobs);
        flows.retain(|flow| prevented.contains(flow));
        flows
    }
}

/// The flows with an unrunnable job.
fn prevented_flows(jobs: &[JobVerdict]) -> BTreeSet<&str> {
    let prevented = jobs.iter().filter(|job| matches!(job.verdict, Verdict::Prevented(_)));
    prevented.map(|job| job.flow.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use slackline_executor::run::reuse::Reason;
    use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};

    use super::*;
    use crate::run::Backend;
    use crate::run::tests::{fake::Fake, request};

    /// A flow of one job with a map of 1 s, and the verdict on it.
    fn job(flow: &str, verdict: Verdict) -> (FlowDraft, JobVerdict) {
        let map = Some(TasksDraft::Each(vec![1.0]).into());
        let job = JobDraft { id: "j".to_owned(), map, ..JobDraft::default() };
        let said = JobVerdict {
            flow: flow.to_owned(),
            job: "j".to_owned(),
            maps: 1,
            reduces: 0,
            verdict,
            resumes: false,
        };
        (FlowDraft::new(flow, vec![job]), said)
    }

    #[test]
    fn runnable_jobs_are_predicted_from_now_on() {
        let all = [job("kept", Verdict::Kept), job("cannot", Verdict::Prevented("no".to_owned()))];
        let all = all.into_iter().chain([job("f", Verdict::Run(Reason::New))]);
        let (flows, jobs) = all.unzip();
        let workload = Draft { machines: Fake::new().description().machines, flows, ..Draft::default() };
        let request = request(std::path::Path::new("state"));
        let setting = request.setting(&Fake::new());
        // The resumed run started long ago.
        let now = Time::from_seconds_nearest(100.0);
        let preview = Preview::new(&request.policy, &setting, &workload, now, jobs).unwrap();
        let predicted = preview.prediction.as_ref().unwrap().completions();
        assert_eq!(predicted.into_iter().collect::<Vec<_>>(), [("f", 101.0)]);
        assert_eq!(preview.prevented_flows(), ["cannot"]);
    }
}
