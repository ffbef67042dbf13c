//! Phases, tasks, slots and tables, by their names in the documents.

use std::fmt;

use slackline_model::{Cluster, FlowId, Instance, JobId, PhaseId, PhaseKind, SlotKind};

/// A phase or one of its tasks, by its names in the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Name of the flow.
    pub flow: Box<str>,
    /// Name of the job.
    pub job: Box<str>,
    /// Map or reduce.
    pub kind: PhaseKind,
    /// The number of the task, if the subject is a task.
    pub task: Option<u32>,
}

impl Subject {
    pub(crate) fn phase(instance: &Instance, id: PhaseId) -> Self {
        let phase = instance.phase(id);
        let job = instance.job(phase.job);
        let flow = instance.flow(job.flow);
        Self { flow: flow.id.as_str().into(), job: job.id.as_str().into(), kind: phase.kind, task: None }
    }

    pub(crate) fn task(instance: &Instance, phase: PhaseId, task: u32) -> Self {
        Self { task: Some(task), ..Self::phase(instance, phase) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {}, job {}, {} ", self.flow, self.job, self.kind)?;
        match self.task {
            Some(task) => write!(f, "task {task}"),
            None => f.write_str("phase"),
        }
    }
}

/// A slot of a machine, by its names in the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the machine.
    pub machine: Box<str>,
    /// Number of the slot within the machine.
    pub slot: u32,
}

impl Place {
    pub(crate) fn new(cluster: &Cluster, slot_kind: SlotKind, slot: u32) -> Self {
        let (machine, slot) = cluster.machine_of(slot_kind, slot);
        Self { machine: cluster.machine_name(machine).into(), slot }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slot {}", self.machine, self.slot)
    }
}

slackline_model::named_enum! {
    /// The table of the schedule that has the row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Table {
        /// `flows`.
        Flows = "flows",
        /// `tasks`.
        Tasks = "tasks",
        /// `allocations`.
        Allocations = "allocations",
        /// `ams`.
        Ams = "ams",
    }
}

pub(crate) fn flow_name(instance: &Instance, flow: FlowId) -> Box<str> {
    instance.flow(flow).id.as_str().into()
}

pub(crate) fn job_name(instance: &Instance, job: JobId) -> Box<str> {
    instance.job(job).id.as_str().into()
}
