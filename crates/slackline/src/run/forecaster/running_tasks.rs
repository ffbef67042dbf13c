//! The tasks that are running when a prediction starts. They hold their slots until they end, under every
//! policy. A simulation that restarted them would give their slots to the flow that the policy serves first.

use std::collections::BTreeMap;

use slackline_model::draft::{FlowDraft, PerPhase, PhaseDraft, TasksDraft};
use slackline_model::{FlowId, Instance, PhaseKind, SlotKind};

/// A running task.
#[derive(Clone, Debug)]
pub(in crate::run) struct RunningTask {
    pub(in crate::run) job: String,
    pub(in crate::run) phase: PhaseKind,
    /// Its position among the unfinished tasks of its phase.
    pub(in crate::run) task: u32,
}

/// By flow: its running tasks.
pub(in crate::run) type TasksByFlow = BTreeMap<String, Vec<RunningTask>>;

/// The running tasks of a held flow, as a separate flow: they hold their slots until they end. Renumbers the
/// tasks in `running` for the new flow. O(running tasks · jobs).
pub(super) fn alone(mut flow: FlowDraft, running: &mut [RunningTask]) -> FlowDraft {
    for job in &mut flow.jobs {
        (job.after, job.min_slots) = (Vec::new(), PerPhase::default());
        for (phase, kind) in [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL) {
            let Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }) = phase else { continue };
            let mut at_work = Vec::new();
            for task in running.iter_mut().filter(|task| task.job == job.id && task.phase == kind) {
                let place = at_work.len() as u32;
                at_work.extend(each.get(task.task as usize));
                task.task = place;
            }
            *phase = (!at_work.is_empty()).then(|| TasksDraft::Each(at_work).into());
        }
    }
    flow.jobs.retain(|job| job.map.is_some() || job.reduce.is_some());
    FlowDraft { deadline: None, ..flow }
}

/// The running tasks of an instance.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct RunningTasks {
    /// By position of a flow in the document.
    pub(super) flows: Vec<Vec<PlacedTask>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedTask {
    /// The index of the phase within its flow.
    pub(super) phase: u32,
    pub(super) slot_kind: SlotKind,
    pub(super) task: u32,
}

impl RunningTasks {
    /// The running tasks of the flows of the instance. O(flows · log + running tasks · jobs of their flow).
    pub(in crate::run) fn new(instance: &Instance, at_work: &TasksByFlow) -> Self {
        let of = |flow: FlowId| {
            let flow = instance.flow(flow);
            let (Some(running), Some(first)) = (at_work.get(&flow.id), flow.phases().next()) else {
                return Vec::new();
            };
            let placed = |task: &RunningTask| {
                let job = flow.jobs().find(|&job| instance.job(job).id == task.job)?;
                let phase = instance.job(job).phase(task.phase)?;
                let slot_kind = instance.slot_kind_of(phase);
                Some(PlacedTask { phase: phase.0 - first.0, slot_kind, task: task.task })
            };
            running.iter().filter_map(placed).collect()
        };
        Self { flows: instance.flows().keys().map(of).collect() }
    }
}
