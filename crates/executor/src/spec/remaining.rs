//! The remaining workload of a run: the workload without the finished tasks.
//!
//! A resumed run is scheduled as its remaining workload: policies see a workload whose phases have fewer
//! tasks, and need not know journals.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, Instance, PhaseId, PhaseKind};
use slackline_task::base::task_id::TaskId;

use crate::spec::job_plan::JobPlan;

/// The workload without the tasks in `done`; jobs of tasks are those of the draft, in its order.
pub fn remaining(draft: &Draft, done: &BTreeSet<TaskId>) -> Draft {
    let flows = numbered(draft).filter_map(|(flow, first)| left_of(flow, first, done)).collect();
    Draft { flows, ..draft.clone() }
}

/// A flow of the workload without the tasks in `done`; `None` if no task remains. O(flows + its tasks · log
/// done).
pub(crate) fn flow_left(draft: &Draft, flow: &str, done: &BTreeSet<TaskId>) -> Option<FlowDraft> {
    let (flow, first) = numbered(draft).find(|(known, _)| known.id == flow)?;
    left_of(flow, first, done)
}

/// The flows, each with the number of its first job.
fn numbered(draft: &Draft) -> impl Iterator<Item = (&FlowDraft, u32)> {
    draft.flows.iter().scan(0, |next, flow| {
        let first = *next;
        *next += flow.jobs.len() as u32;
        Some((flow, first))
    })
}

/// A flow without the tasks in `done`; its jobs have numbers from `first` on.
fn left_of(flow: &FlowDraft, first: u32, done: &BTreeSet<TaskId>) -> Option<FlowDraft> {
    let mut jobs: Vec<JobDraft> = Vec::new();
    for (index, job) in (first..).zip(&flow.jobs) {
        let is_open = |phase, task| !done.contains(&TaskId { job: index, phase, task });
        let map = left(job.map.as_ref(), |task| is_open(PhaseKind::Map, task));
        let reduce = left(job.reduce.as_ref(), |task| is_open(PhaseKind::Reduce, task));
        if map.is_some() || reduce.is_some() {
            let JobDraft { id, after, min_slots, max_slots, run, recorded, .. } = job;
            let (min_slots, max_slots) = (*min_slots, *max_slots);
            let (id, after, run, recorded) = (id.clone(), after.clone(), run.clone(), recorded.clone());
            jobs.push(JobDraft { id, after, map, reduce, min_slots, max_slots, run, recorded });
        }
    }
    let names: BTreeSet<String> = jobs.iter().map(|job| job.id.clone()).collect();
    for job in &mut jobs {
        job.after.retain(|name| names.contains(name));
    }
    (!jobs.is_empty()).then(|| FlowDraft { jobs, ..flow.clone() })
}

/// A phase with its open tasks only; `None` if there are none.
fn left(phase: Option<&PhaseDraft>, is_open: impl Fn(u32) -> bool) -> Option<PhaseDraft> {
    let phase = phase?;
    let TasksDraft::Each(seconds) = &phase.tasks else { return Some(phase.clone()) };
    let kept: Vec<f64> = (0..).zip(seconds).filter(|(task, _)| is_open(*task)).map(|(_, s)| *s).collect();
    (!kept.is_empty()).then(|| PhaseDraft { tasks: TasksDraft::Each(kept), ..phase.clone() })
}

/// Maps each task of the remaining instance to the task of the run.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// For each phase, its tasks in the run.
    phases: Vec<PhaseNumbers>,
}

#[derive(Clone, Debug)]
struct PhaseNumbers {
    job: u32,
    kind: PhaseKind,
    tasks: Vec<u32>,
}

impl Numbers {
    /// The numbers for the instance of [`remaining`].
    ///
    /// # Panics
    /// If the instance is of another run.
    pub(crate) fn new(instance: &Instance, jobs: &[JobPlan], done: &BTreeSet<TaskId>) -> Self {
        let names = jobs.iter().map(|plan| (plan.flow.as_str(), plan.job.as_str()));
        let indices: BTreeMap<(&str, &str), u32> = names.zip(0..).collect();
        let of = |phase: PhaseId| {
            let info = instance.phase(phase);
            let (job, kind) = (instance.job(info.job), info.kind);
            let name = (instance.flow(job.flow).id.as_str(), job.id.as_str());
            let job = *indices.get(&name).expect("invariant: remaining jobs are jobs of the run");
            let is_open = |&task: &u32| !done.contains(&TaskId { job, phase: kind, task });
            let tasks = (0..jobs[job as usize].tasks(kind)).filter(is_open).collect();
            PhaseNumbers { job, kind, tasks }
        };
        Self { phases: instance.phases().keys().map(of).collect() }
    }

    /// The phase and task of the remaining instance for a task of the run; `None` if the task does not
    /// remain.
    pub(crate) fn place(&self, id: TaskId) -> Option<(PhaseId, u32)> {
        let is_of = |numbers: &PhaseNumbers| numbers.job == id.job && numbers.kind == id.phase;
        let phase = self.phases.iter().position(is_of)?;
        let task = self.phases[phase].tasks.binary_search(&id.task).ok()?;
        Some((PhaseId::from(phase), task as u32))
    }

    /// The phases, in their order: the job and the number of tasks.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (u32, PhaseKind, u32)> + '_ {
        self.phases.iter().map(|numbers| (numbers.job, numbers.kind, numbers.tasks.len() as u32))
    }

    /// The task of the run that is task `task` of `phase`.
    pub(crate) fn id(&self, phase: PhaseId, task: u32) -> TaskId {
        let numbers = &self.phases[phase.index()];
        TaskId { job: numbers.job, phase: numbers.kind, task: numbers.tasks[task as usize] }
    }
}
