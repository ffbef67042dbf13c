//! The plans of a workload's jobs, while they are made one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use slackline_model::draft::FlowDraft;

use crate::spec::estimate;
use crate::spec::job_cost::JobHistory;
use crate::spec::job_plan::JobPlan;

/// The plans so far, by flow.
pub(crate) struct Plans {
    flows: Vec<FlowPlans>,
    outputs: BTreeSet<PathBuf>,
}

/// The plans of a flow.
struct FlowPlans {
    /// Each after the jobs that it reads from.
    plans: Vec<JobPlan>,
    /// By the position of a job in the flow, the position of its plan.
    positions: Vec<Option<usize>>,
}

impl Plans {
    /// Without any plan.
    pub(crate) fn new(flows: &[FlowDraft]) -> Self {
        let empty = |flow: &FlowDraft| {
            let count = flow.jobs.len();
            FlowPlans { plans: Vec::with_capacity(count), positions: vec![None; count] }
        };
        Self { flows: flows.iter().map(empty).collect(), outputs: BTreeSet::new() }
    }

    /// Adds the plan of a job, after those of the jobs that it reads from.
    pub(crate) fn add(&mut self, flow: usize, job: usize, plan: JobPlan) {
        self.outputs.insert(plan.output.clone());
        let FlowPlans { plans, positions } = &mut self.flows[flow];
        positions[job] = Some(plans.len());
        plans.push(plan);
    }

    /// The plan of a job, if it was added.
    pub(crate) fn get(&self, flow: usize, job: usize) -> Option<&JobPlan> {
        let FlowPlans { plans, positions } = &self.flows[flow];
        positions[job].map(|position| &plans[position])
    }

    /// Whether one of the jobs writes a path. O(log jobs).
    pub(crate) fn write(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.outputs.contains(path))
    }

    /// All plans in the order of the flows and their jobs. The jobs get their phases, with estimated durations.
    pub(crate) fn into_jobs(self, flows: &mut [FlowDraft], past: &JobHistory) -> Vec<JobPlan> {
        let mut jobs = Vec::new();
        for (flow, FlowPlans { plans, positions }) in flows.iter_mut().zip(self.flows) {
            estimate::fill(flow, &plans, past);
            let mut plans: Vec<Option<JobPlan>> = plans.into_iter().map(Some).collect();
            jobs.extend(positions.into_iter().flatten().filter_map(|position| plans[position].take()));
        }
        jobs
    }
}
