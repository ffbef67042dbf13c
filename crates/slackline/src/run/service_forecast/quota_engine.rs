//! Limits on the slots of users in a simulation. The rule is that of the service ([`Engine::room`]).

use std::collections::BTreeMap;

use slackline_executor::engine::backend::UserQuota;
use slackline_model::{FlowId, Instance, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, MasterOrder, Order, Report, RowId, Start};

/// The users of flows and their quotas.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct FlowQuotas {
    /// By position of a flow in the document: the number of its user.
    users: Vec<Option<usize>>,
    /// By user.
    slots: Vec<u32>,
}

impl FlowQuotas {
    /// The quotas for flows in document order: each with that of its user, if there is one.
    pub(super) fn new<'a>(flows: impl IntoIterator<Item = Option<&'a UserQuota>>) -> Self {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut users, mut slots) = (Vec::new(), Vec::new());
        for flow in flows {
            users.push(flow.map(|quota| {
                *numbers.entry(&quota.user).or_insert_with(|| {
                    slots.push(quota.slots);
                    slots.len() - 1
                })
            }));
        }
        Self { users, slots }
    }
}

/// An engine that keeps users within their slot limits.
pub(super) struct QuotaEngine<'r, E> {
    engine: E,
    quotas: &'r FlowQuotas,
    /// By flow, as the driver numbers them (in order of arrival): its user.
    flows: Vec<Option<usize>>,
    /// By user: the number of held slots.
    held: Vec<u32>,
    /// By running row: its user, and the number of slots that it holds.
    rows: BTreeMap<RowId, (usize, u32)>,
}

impl<'r, E: Engine> QuotaEngine<'r, E> {
    pub(super) fn new(engine: E, quotas: &'r FlowQuotas) -> Self {
        let held = vec![0; quotas.slots.len()];
        Self { engine, quotas, flows: Vec::new(), held, rows: BTreeMap::new() }
    }

    /// Frees the slots of a row.
    fn release(&mut self, row: RowId) {
        if let Some((user, slots)) = self.rows.remove(&row) {
            self.held[user] -= slots;
        }
    }

    fn hear(&mut self, report: &Report) {
        match report {
            Report::Arrived(arrival) => {
                let user = self.quotas.users.get(arrival.flow().place.index());
                self.flows.push(user.copied().flatten());
            }
            Report::Finished { row, .. } | Report::Failed { row, .. } => self.release(*row),
            _ => {}
        }
    }

    fn user(&self, flow: FlowId) -> Option<usize> {
        self.flows.get(flow.index()).copied().flatten()
    }
}

impl<E: Engine> Engine for QuotaEngine<'_, E> {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let before = reports.len();
        let now = self.engine.poll(reports);
        reports[before..].iter().for_each(|report| self.hear(report));
        now
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        if let Some(user) = self.user(live.flow_of(start.phase)) {
            self.held[user] += start.count;
            self.rows.insert(start.row, (user, start.count));
        }
        self.engine.start(start, live);
    }

    fn order(&mut self, order: Order) {
        if let Order::Kill(row) = order {
            self.release(row);
        }
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

    /// O(1).
    fn room(&mut self, flow: FlowId) -> u32 {
        let own =
            self.user(flow).map_or(u32::MAX, |user| self.quotas.slots[user].saturating_sub(self.held[user]));
        own.min(self.engine.room(flow))
    }

    fn may_bring_flows(&mut self) -> bool {
        self.engine.may_bring_flows()
    }
}
