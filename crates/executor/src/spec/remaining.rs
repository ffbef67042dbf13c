//! The remaining workload of a run: the workload without the finished tasks.
//!
//! A resumed run is scheduled as its remaining workload: policies see a workload whose phases have fewer
//! tasks, and need not know journals.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{FlowDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, Instance, PhaseId, PhaseKind};
use slackline_task::base::task_id::TaskId;

use crate::spec::job_plan::JobPlan;

/// The workload without the tasks in `done`; jobs of tasks are those of the draft, in its order.
pub fn remaining(mut draft: Draft, done: &BTreeSet<TaskId>) -> Draft {
    let mut next = 0;
    draft.flows.retain_mut(|flow| {
        let first = next;
        next += flow.jobs.len() as u32;
        keep_open(flow, first, done)
    });
    draft
}

/// A flow of the workload without the tasks in `done`; `None` if no task remains. O(flows + its tasks · log
/// done).
pub(crate) fn flow_left(draft: &Draft, flow: &str, done: &BTreeSet<TaskId>) -> Option<FlowDraft> {
    let index = draft.flows.iter().position(|known| known.id == flow)?;
    let first = draft.flows[..index].iter().map(|flow| flow.jobs.len() as u32).sum();
    let mut left = draft.flows[index].clone();
    keep_open(&mut left, first, done).then_some(left)
}

/// Removes the tasks in `done` from a flow whose jobs have numbers from `first` on. Returns whether a task
/// remains.
fn keep_open(flow: &mut FlowDraft, first: u32, done: &BTreeSet<TaskId>) -> bool {
    let (mut job, jobs) = (first, flow.jobs.len());
    flow.jobs.retain_mut(|draft| {
        keep_open_tasks(&mut draft.map, |task| !done.contains(&TaskId { job, phase: PhaseKind::Map, task }));
        keep_open_tasks(&mut draft.reduce, |task| {
            !done.contains(&TaskId { job, phase: PhaseKind::Reduce, task })
        });
        job += 1;
        draft.map.is_some() || draft.reduce.is_some()
    });
    if flow.jobs.len() < jobs {
        let names: BTreeSet<String> = flow.jobs.iter().map(|job| job.id.clone()).collect();
        flow.jobs.iter_mut().for_each(|job| job.after.retain(|name| names.contains(name)));
    }
    !flow.jobs.is_empty()
}

/// Keeps only the open tasks of a phase, or no phase if there are none.
fn keep_open_tasks(phase: &mut Option<PhaseDraft>, is_open: impl Fn(u32) -> bool) {
    let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { return };
    let mut tasks = 0..;
    seconds.retain(|_| tasks.next().is_some_and(&is_open));
    if seconds.is_empty() {
        *phase = None;
    }
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
