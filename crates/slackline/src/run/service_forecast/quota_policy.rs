//! Limits on the slots of users in a simulation. The rule is that of the service ([`Engine::room`]).

use std::collections::BTreeMap;

use slackline_model::{FlowId, Instance, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{Capabilities, MasterOrder, Order, Report, RowId, Start};

/// The owners of flows and their slot limits.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Rations {
    /// By position of a flow in the document: the number of its owner.
    owners: Vec<Option<usize>>,
    /// By owner: the slot limit.
    most: Vec<u32>,
}

impl Rations {
    /// The limits for flows in document order: each with its owner and the owner's slot limit, if it has one.
    pub(super) fn new<'a>(flows: impl IntoIterator<Item = Option<(&'a str, u32)>>) -> Self {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut owners, mut all) = (Vec::new(), Vec::new());
        for flow in flows {
            owners.push(flow.map(|(owner, most)| {
                *numbers.entry(owner).or_insert_with(|| {
                    all.push(most);
                    all.len() - 1
                })
            }));
        }
        Self { owners, most: all }
    }
}

/// An engine that keeps users within their slot limits.
pub(super) struct Rationed<'r, E> {
    engine: E,
    rations: &'r Rations,
    /// By flow, as the driver numbers them (in order of arrival): its owner.
    flows: Vec<Option<usize>>,
    /// By owner: the number of held slots.
    held: Vec<u32>,
    /// By running row: its owner, and the number of slots that it holds.
    rows: BTreeMap<RowId, (usize, u32)>,
}

impl<'r, E: Engine> Rationed<'r, E> {
    pub(super) fn new(engine: E, rations: &'r Rations) -> Self {
        let held = vec![0; rations.most.len()];
        Self { engine, rations, flows: Vec::new(), held, rows: BTreeMap::new() }
    }

    /// Frees the slots of a row.
    fn release(&mut self, row: RowId) {
        if let Some((owner, slots)) = self.rows.remove(&row) {
            self.held[owner] -= slots;
        }
    }

    fn hear(&mut self, report: &Report) {
        match report {
            Report::Arrived(arrival) => {
                let owner = self.rations.owners.get(arrival.flow().place.index());
                self.flows.push(owner.copied().flatten());
            }
            Report::Finished { row, .. } | Report::Failed { row, .. } => self.release(*row),
            _ => {}
        }
    }

    fn owner(&self, flow: FlowId) -> Option<usize> {
        self.flows.get(flow.index()).copied().flatten()
    }
}

impl<E: Engine> Engine for Rationed<'_, E> {
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
        if let Some(owner) = self.owner(live.flow_of(start.phase)) {
            self.held[owner] += start.count;
            self.rows.insert(start.row, (owner, start.count));
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
        let own = self
            .owner(flow)
            .map_or(u32::MAX, |owner| self.rations.most[owner].saturating_sub(self.held[owner]));
        own.min(self.engine.room(flow))
    }

    fn may_bring_flows(&mut self) -> bool {
        self.engine.may_bring_flows()
    }
}
