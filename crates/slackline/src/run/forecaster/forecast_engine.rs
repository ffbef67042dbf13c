//! A simulated engine on which tasks run when their flows arrive.

use slackline_model::{FlowId, Instance, PhaseId, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{AmOrder, Capabilities, Order, Report, Running, Start};
use slackline_sim::{Options, Sim};

use crate::run::forecaster::running_tasks::{PlacedTask, RunningTasks};

/// Each running task gets the first slot that no other one has, because the real slot is unknown here. A task
/// without a free slot waits.
pub(super) struct ForecastEngine<'s> {
    sim: Sim<'s>,
    running: &'s RunningTasks,
    /// The number of phases that have arrived.
    phases: u32,
    /// By slot kind: the next slot.
    slots: [u32; 2],
    names: u64,
}

impl<'s> ForecastEngine<'s> {
    pub(super) fn new(instance: &'s Instance, running: &'s RunningTasks) -> Self {
        Self { sim: Sim::new(instance, Options::exact()), running, phases: 0, slots: [0; 2], names: 0 }
    }

    /// Reports the running tasks of a flow that arrives.
    fn report_running(&mut self, flow: FlowId, n_phases: u32, since: Time, reports: &mut Vec<Report>) {
        let running = self.running.flows.get(flow.index()).into_iter().flatten();
        for &PlacedTask { phase, slot_kind, task } in running {
            let slot = self.slots[slot_kind.index()];
            self.slots[slot_kind.index()] += 1;
            self.names += 1;
            let phase = PhaseId(self.phases + phase);
            reports.push(Report::Running(Running { name: self.names, phase, task, slot, since }));
        }
        self.phases += n_phases;
    }
}

impl Engine for ForecastEngine<'_> {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let before = reports.len();
        let now = self.sim.poll(reports)?;
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
        self.sim.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.sim.order(order);
    }

    fn am(&mut self, order: AmOrder, live: &Instance) {
        self.sim.am(order, live);
    }

    fn wake_at(&mut self, at: Time) {
        self.sim.wake_at(at);
    }

    fn want_offers(&mut self, slot_kinds: [bool; 2]) {
        self.sim.want_offers(slot_kinds);
    }

    fn blocked_by_deadline(&mut self) {
        self.sim.blocked_by_deadline();
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}
