//! The tasks that are running when a prediction starts. They hold their slots until they end, under every
//! policy. A simulation that restarted them would give their slots to the flow that the policy serves first.

use std::collections::BTreeMap;

use slackline_model::draft::{FlowDraft, PerPhase, PhaseDraft, TasksDraft};
use slackline_model::{FlowId, Instance, PhaseId, PhaseKind, SlotKind, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, MasterOrder, Order, Report, Running, Start};

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
    flows: Vec<Vec<Placed>>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The index of the phase within its flow.
    phase: u32,
    slot_kind: SlotKind,
    task: u32,
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
                Some(Placed { phase: phase.0 - first.0, slot_kind, task: task.task })
            };
            running.iter().filter_map(placed).collect()
        };
        Self { flows: instance.flows().keys().map(of).collect() }
    }
}

/// An engine on which tasks are running when their flows arrive. Each task gets the first slot that no other
/// one has, because the real slot is unknown here. A task without a free slot waits.
pub(super) struct OccupiedEngine<'s, E> {
    engine: E,
    running: &'s RunningTasks,
    /// The number of phases that have arrived.
    phases: u32,
    /// By slot kind: the next slot.
    slots: [u32; 2],
    names: u64,
}

impl<'s, E: Engine> OccupiedEngine<'s, E> {
    pub(super) fn new(engine: E, running: &'s RunningTasks) -> Self {
        Self { engine, running, phases: 0, slots: [0; 2], names: 0 }
    }

    /// Reports the running tasks of a flow that arrives.
    fn report_running(&mut self, flow: FlowId, n_phases: u32, since: Time, reports: &mut Vec<Report>) {
        for &Placed { phase, slot_kind, task } in self.running.flows.get(flow.index()).into_iter().flatten() {
            let slot = self.slots[slot_kind.index()];
            self.slots[slot_kind.index()] += 1;
            self.names += 1;
            let phase = PhaseId(self.phases + phase);
            reports.push(Report::Running(Running { name: self.names, phase, task, slot, since }));
        }
        self.phases += n_phases;
    }
}

impl<E: Engine> Engine for OccupiedEngine<'_, E> {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let before = reports.len();
        let now = self.engine.poll(reports)?;
        if reports[before..].iter().any(|report| matches!(report, Report::Arrived(_))) {
            for report in reports.split_off(before) {
                let arrived = match &report {
                    Report::Arrived(arrival) => Some((arrival.flow().place, arrival.n_phases() as u32)),
                    _ => None,
                };
                reports.push(report);
                if let Some((flow, n_phases)) = arrived {
                    self.report_running(flow, n_phases, now, reports);
                }
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        self.engine.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.engine.order(order);
    }

    fn master(&mut self, order: MasterOrder, live: &Instance) {
        self.engine.master(order, live);
    }

    fn wake_at(&mut self, at: Time) {
        self.engine.wake_at(at);
    }

    fn blocked_by_deadline(&mut self) {
        self.engine.blocked_by_deadline();
    }

    fn room(&mut self, flow: FlowId) -> u32 {
        self.engine.room(flow)
    }

    fn may_bring_flows(&mut self) -> bool {
        self.engine.may_bring_flows()
    }
}
