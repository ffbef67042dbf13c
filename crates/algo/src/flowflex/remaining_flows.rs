//! What is left of the active flows, kept from one plan to the next.
//!
//! An order of flows reads a few numbers of each flow, and these change only with the flow's own tasks and
//! estimates. So a plan visits the phases of the flows that changed since the last one. The numbers are those of
//! [`Network::of`](super::network::Network::of) to the last digit.

use std::collections::BTreeSet;

use slackline_model::{FlowId, PhaseId};
use slackline_policy::{IdTable, View};

use super::network::{
    NetFlow, Node, NodeList, Remaining, Supply, binding_slot_kind, capacity, least_seconds,
};
use super::orders::Rule;

/// Tasks estimated to take no time still need a slot: this many seconds per task.
const LEAST_SECONDS: f64 = 1e-6;
/// Changes that are noted for few flows.
const SPARE: usize = 64;

/// What is left by the estimates.
pub(super) struct EstimatedWork<'a, 'v>(pub(super) &'a View<'v>);

impl Remaining for EstimatedWork<'_, '_> {
    fn work(&self, phase: PhaseId) -> Option<f64> {
        let state = self.0.phase(phase);
        let left = f64::from(state.unstarted() + state.running());
        (!state.is_done()).then(|| self.0.work_left(phase).max(LEAST_SECONDS * left))
    }

    fn cap(&self, phase: PhaseId) -> u32 {
        self.0.usable(phase)
    }
}

/// What is left of one flow.
#[derive(Clone, Debug)]
struct FlowWork {
    flow: FlowId,
    /// Each after those it waits for.
    nodes: Vec<Node>,
    /// The phases, the longest path to the end first.
    by_urgency: Vec<PhaseId>,
    /// Work by slot kind.
    work: [f64; 2],
    /// Work times its mean time to the end, by slot kind and of both.
    weighted: [f64; 3],
    /// The least seconds that it takes.
    least: f64,
    /// Its place in the last order.
    rank: u32,
}

/// What all numbers depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Basis {
    supply: Supply,
    estimates: u64,
}

/// The flows by id, and what is left of them.
#[derive(Clone, Debug, Default)]
pub(super) struct RemainingFlows {
    flows: Vec<NetFlow>,
    work: Vec<FlowWork>,
    /// The number of flows in the last order.
    n_ranked: usize,
    /// Flows that may have changed since the last update.
    changed: Vec<FlowId>,
    /// `None` before the first update.
    basis: Option<Basis>,
    /// Scratch: the flow that is being updated.
    list: NodeList,
}

impl RemainingFlows {
    /// A flow may have changed, arrived or finished.
    pub(super) fn change(&mut self, flow: FlowId) {
        if self.changed.len() > 2 * self.work.len() + SPARE {
            // To compute all of them costs no more.
            *self = Self { list: std::mem::take(&mut self.list), ..Self::default() };
        }
        if self.basis.is_some() && self.changed.last() != Some(&flow) {
            self.changed.push(flow);
        }
    }

    /// The number of phases that are left.
    pub(super) fn n_nodes(&self) -> usize {
        self.work.iter().map(|work| work.nodes.len()).sum()
    }

    /// Takes over all changes. O(phases of changed flows + active flows).
    pub(super) fn update(&mut self, active: &BTreeSet<FlowId>, supply: Supply, view: &View<'_>) {
        let basis = Basis { supply, estimates: view.estimates.revision };
        let mut changed = std::mem::take(&mut self.changed);
        if self.basis != Some(basis) {
            let list = std::mem::take(&mut self.list);
            *self = Self { basis: Some(basis), list, ..Self::default() };
            changed.clear();
            changed.extend(active);
        }
        changed.sort_unstable();
        changed.dedup();
        for flow in changed.drain(..) {
            self.refresh(flow, active.contains(&flow), supply, view);
        }
        self.changed = changed;
    }

    fn refresh(&mut self, flow: FlowId, is_active: bool, supply: Supply, view: &View<'_>) {
        let at = self.work.binary_search_by_key(&flow, |work| work.flow);
        if !is_active {
            if let Ok(at) = at {
                self.work.remove(at);
                self.flows.remove(at);
            }
            return;
        }
        self.list.clear();
        self.list.add(view.instance, flow, supply, &EstimatedWork(view));
        let at = at.unwrap_or_else(|at| {
            let (nodes, by_urgency) = (Vec::new(), Vec::new());
            let (work, weighted, least, rank) = ([0.0; 2], [0.0; 3], 0.0, u32::MAX);
            let empty = FlowWork { flow, nodes, by_urgency, work, weighted, least, rank };
            self.work.insert(at, empty);
            self.flows.insert(at, NetFlow::new(view.instance.flow(flow), 0..0, view.now.seconds()));
            at
        });
        self.work[at].measure(&mut self.list, supply.slots);
    }

    /// The phases in the order of this rule for flows, the most urgent of each flow first. O(active flows · log).
    pub(super) fn phases(&mut self, rule: Rule, supply: Supply, now: f64) -> impl Iterator<Item = PhaseId> {
        let nodes = self.work.iter().flat_map(|work| &work.nodes);
        let slot_kind = supply.binding.then(|| binding_slot_kind(nodes, supply.slots));
        for (flow, work) in self.flows.iter_mut().zip(&self.work) {
            flow.release = flow.release.max(now);
            flow.earliest = flow.release + work.least;
            (flow.work, flow.weighted) = match slot_kind {
                Some(slot_kind) => (work.work[slot_kind], work.weighted[slot_kind]),
                None => (work.work[0] + work.work[1], work.weighted[2]),
            };
        }
        let before = self.last_order();
        let order = rule.order_on(&self.flows, capacity(supply.slots, slot_kind), before);
        for (rank, &flow) in (0u32..).zip(&order) {
            self.work[flow].rank = rank;
        }
        self.n_ranked = order.len();
        order.into_iter().flat_map(|flow| &self.work[flow].by_urgency).copied()
    }

    /// The flows in the last order, then those that are new: most of them stay where they are.
    fn last_order(&self) -> Vec<usize> {
        let mut order = vec![usize::MAX; self.n_ranked + self.work.len()];
        for (flow, work) in self.work.iter().enumerate() {
            let place = if work.rank == u32::MAX { self.n_ranked + flow } else { work.rank as usize };
            order[place] = flow;
        }
        order.retain(|&flow| flow != usize::MAX);
        order
    }
}

impl FlowWork {
    /// Takes over the nodes of a list and computes the rest.
    fn measure(&mut self, list: &mut NodeList, slots: [u32; 2]) {
        let (path, work) = list.measure();
        (self.work, self.least) = (work, least_seconds(path, work, slots));
        self.nodes.clone_from(&list.nodes);
        let nodes = &self.nodes;
        let weighted = |is_counted: &dyn Fn(&Node) -> bool| {
            nodes.iter().filter(|node| is_counted(node)).map(Node::weighted).sum()
        };
        self.weighted = [
            weighted(&|node| node.slot_kind == 0),
            weighted(&|node| node.slot_kind == 1),
            weighted(&|_| true),
        ];
        list.nodes.sort_by(|a, b| b.alone().total_cmp(&a.alone()));
        self.by_urgency.clear();
        self.by_urgency.extend(list.nodes.iter().map(|node| node.phase));
    }
}

/// The slots that all ready phases can use together, by slot kind, without early reduces.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// What each ready phase can use.
    usable: IdTable<PhaseId, Option<u32>>,
    total: [u64; 2],
    n_ready: [usize; 2],
    /// Phases that may have changed since the last update.
    changed: Vec<PhaseId>,
    /// The slots of each slot kind; `None` before the first update.
    slots: Option<[u32; 2]>,
}

impl Demand {
    /// A phase may have changed.
    pub(super) fn change(&mut self, phase: PhaseId) {
        if self.slots.is_some() {
            self.changed.push(phase);
        }
    }

    /// Whether all ready phases can have all the slots that they can use. O(changed phases).
    pub(super) fn is_met(&mut self, slots: [u32; 2], view: &View<'_>) -> bool {
        let mut changed = std::mem::take(&mut self.changed);
        if self.slots == Some(slots) {
            for phase in changed.drain(..) {
                self.refresh(phase, slots, view);
            }
            self.changed = changed;
        }
        let slot_kinds = view.instance.cluster().slot_kinds();
        // A phase may stop being ready without an event.
        let is_current = |demand: &Self| {
            let n_ready = |kind: usize, slot_kind| demand.n_ready[kind] == view.state.n_ready(slot_kind);
            slot_kinds.iter().all(|&slot_kind| n_ready(slot_kind.index(), slot_kind))
        };
        if self.slots != Some(slots) || !is_current(self) {
            *self = Self { slots: Some(slots), ..Self::default() };
            for phase in slot_kinds.iter().flat_map(|&slot_kind| view.state.ready(slot_kind)) {
                self.refresh(phase, slots, view);
            }
        }
        slot_kinds.iter().all(|kind| self.total[kind.index()] <= u64::from(slots[kind.index()]))
    }

    fn refresh(&mut self, phase: PhaseId, slots: [u32; 2], view: &View<'_>) {
        if !view.state.knows(phase) {
            return;
        }
        let slot_kind = view.instance.slot_kind_of(phase).index();
        let usable = view.phase(phase).is_ready().then(|| {
            let is_early = view.state.has_early() && view.state.is_early(view.instance, phase);
            if is_early { 0 } else { EstimatedWork(view).cap(phase).min(slots[slot_kind]) }
        });
        let old = self.usable[phase];
        if old == usable {
            return;
        }
        self.total[slot_kind] -= u64::from(old.unwrap_or(0));
        self.total[slot_kind] += u64::from(usable.unwrap_or(0));
        self.n_ready[slot_kind] -= usize::from(old.is_some());
        self.n_ready[slot_kind] += usize::from(usable.is_some());
        self.usable[phase] = usable;
    }

    /// Forgets the phases of a flow that ended, which are known only at this instant.
    pub(super) fn forget(&mut self, phases: impl Iterator<Item = PhaseId> + Clone, view: &View<'_>) {
        for phase in phases.clone() {
            if let Some(usable) = self.usable[phase] {
                let slot_kind = view.instance.slot_kind_of(phase).index();
                self.total[slot_kind] -= u64::from(usable);
                self.n_ready[slot_kind] -= 1;
            }
        }
        self.usable.forget(phases);
    }
}
