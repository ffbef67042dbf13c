//! What is left of a run: the workload without the tasks that are done.
//!
//! A run that is taken up again is scheduled as what remains of it: policies see a workload whose phases have
//! fewer tasks, and need to know nothing of journals.

use std::collections::BTreeSet;

use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, Instance, PhaseId, PhaseKind};

use crate::journal::TaskId;
use crate::resolve::JobPlan;

/// The workload without what is done; `jobs` are those of the draft, in its order.
pub fn rest(draft: &Draft, done: &BTreeSet<TaskId>) -> Draft {
    let mut index = 0;
    let mut flows = Vec::new();
    for flow in &draft.flows {
        let mut jobs: Vec<JobDraft> = Vec::new();
        for job in &flow.jobs {
            let map = left(job.map.as_ref(), (index, false), done);
            let reduce = left(job.reduce.as_ref(), (index, true), done);
            index += 1;
            if map.is_some() || reduce.is_some() {
                jobs.push(JobDraft { map, reduce, ..job.clone() });
            }
        }
        let names: BTreeSet<String> = jobs.iter().map(|job| job.id.clone()).collect();
        for job in &mut jobs {
            job.after.retain(|name| names.contains(name));
        }
        if !jobs.is_empty() {
            flows.push(FlowDraft { jobs, ..flow.clone() });
        }
    }
    Draft { flows, ..draft.clone() }
}

/// A phase without its finished tasks; `None` if nothing is left of it.
fn left(
    phase: Option<&PhaseDraft>,
    (job, reduce): (u32, bool),
    done: &BTreeSet<TaskId>,
) -> Option<PhaseDraft> {
    let phase = phase?;
    let TasksDraft::Each(seconds) = &phase.tasks else { return Some(phase.clone()) };
    let kept: Vec<f64> = (0..)
        .zip(seconds)
        .filter(|(task, _)| !done.contains(&TaskId { job, reduce, task: *task }))
        .map(|(_, s)| *s)
        .collect();
    (!kept.is_empty()).then(|| PhaseDraft { tasks: TasksDraft::Each(kept), ..phase.clone() })
}

/// Which task of the run each task of the remaining instance is.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// By phase: the job, whether it is its reduce phase, and the numbers of its tasks.
    phases: Vec<(u32, bool, Vec<u32>)>,
}

impl Numbers {
    /// The numbers for the instance of [`rest`].
    ///
    /// # Panics
    /// If the instance is of another run.
    pub(crate) fn new(instance: &Instance, jobs: &[JobPlan], done: &BTreeSet<TaskId>) -> Self {
        let of = |phase: PhaseId| {
            let info = instance.phase(phase);
            let job = instance.job(info.job);
            let flow = &instance.flow(job.flow).id;
            let index = jobs.iter().position(|plan| plan.flow == *flow && plan.job == job.id);
            let index = index.expect("invariant: jobs of the rest are jobs of the run");
            let reduce = info.kind == PhaseKind::Reduce;
            let total = if reduce { jobs[index].reducers } else { jobs[index].maps.len() as u32 };
            let id = |task| TaskId { job: index as u32, reduce, task };
            (index as u32, reduce, (0..total).filter(|&task| !done.contains(&id(task))).collect())
        };
        Self { phases: instance.phases().keys().map(of).collect() }
    }

    /// The task of the run that is task `task` of `phase`.
    pub(crate) fn id(&self, phase: PhaseId, task: u32) -> TaskId {
        let (job, reduce, numbers) = &self.phases[phase.index()];
        TaskId { job: *job, reduce: *reduce, task: numbers[task as usize] }
    }
}
