//! A simulated engine on which tasks run when their flows arrive, and on which users keep within their quotas
//! by the rule of the service ([`Engine::room`]).

use std::collections::BTreeMap;

use slackline_model::{FlowId, Instance, PhaseId, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{AmOrder, Capabilities, Order, Report, RowId, Running, Start};
use slackline_sim::{Options, Sim};

use crate::run::forecaster::flow_quotas::FlowQuotas;
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
    quotas: &'s FlowQuotas,
    /// By flow, as the driver numbers them (in order of arrival): its user.
    users: Vec<Option<usize>>,
    /// By user: the number of held slots.
    held: Vec<u32>,
    /// By running row: its user, and the number of slots that it holds.
    rows: BTreeMap<RowId, (usize, u32)>,
}

impl<'s> ForecastEngine<'s> {
    pub(super) fn new(instance: &'s Instance, running: &'s RunningTasks, quotas: &'s FlowQuotas) -> Self {
        Self {
            sim: Sim::new(instance, Options::exact()),
            running,
            phases: 0,
            slots: [0; 2],
            names: 0,
            quotas,
            users: Vec::new(),
            held: vec![0; quotas.slots.len()],
            rows: BTreeMap::new(),
        }
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

    /// Frees the slots of a row.
    fn release(&mut self, row: RowId) {
        if let Some((user, slots)) = self.rows.remove(&row) {
            self.held[user] -= slots;
        }
    }

    fn user(&self, flow: FlowId) -> Option<usize> {
        self.users.get(flow.index()).copied().flatten()
    }
}

impl Engine for ForecastEngine<'_> {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let before = reports.len();
        let now = self.sim.poll(reports)?;
        for report in &reports[before..] {
            if let Report::Finished { row, .. } | Report::Failed { row, .. } = report {
                self.release(*row);
            }
        }
        if reports[before..].iter().any(|report| matches!(report, Report::Arrived(_))) {
            for report in reports.split_off(before) {
                let arrived = match &report {
                    Report::Arrived(arrival) => Some((arrival.flow().place, arrival.n_phases() as u32)),
                    _ => None,
                };
                reports.push(report);
                if let Some((flow, n_phases)) = arrived {
                    self.users.push(self.quotas.users.get(flow.index()).copied().flatten());
                    self.report_running(flow, n_phases, now, reports);
                }
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        if let Some(user) = self.user(live.flow_of(start.phase)) {
            self.held[user] += start.count;
            self.rows.insert(start.row, (user, start.count));
        }
        self.sim.start(start, live);
    }

    fn order(&mut self, order: Order) {
        if let Order::Kill(row) = order {
            self.release(row);
        }
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

    /// O(1).
    fn room(&mut self, flow: FlowId) -> u32 {
        let own =
            self.user(flow).map_or(u32::MAX, |user| self.quotas.slots[user].saturating_sub(self.held[user]));
        own.min(self.sim.room(flow))
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}
