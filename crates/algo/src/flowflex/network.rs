//! The instances of FlowFlex: flows whose phases are nodes of one precedence graph.
//!
//! Map and reduce phases are nodes of their own; the first phase of a job comes after the last phases of
//! the jobs it waits for. Work is in slot-seconds at the cluster's speed, so that a slot does one a
//! second. Plan time is workload time in seconds.

use slackline_model::instance::Flow;
use slackline_model::{Combine, CostFn, FlowId, Instance, JobId, PhaseId};

use crate::classic::fluid::{Graph, Work};

/// A phase, or what is left of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    pub phase: PhaseId,
    /// Slot-seconds at the cluster's speed.
    pub work: f64,
    /// Most slots at a time; at least 1, at most those of its slot kind.
    pub cap: u32,
    /// Index of its slot kind: 0 or 1.
    pub slot_kind: usize,
    /// Longest path after it, in seconds.
    pub tail: f64,
}

impl Node {
    /// Seconds at its cap.
    pub fn seconds(&self) -> f64 {
        self.work / f64::from(self.cap)
    }

    /// Longest path from its start, in seconds.
    pub fn alone(&self) -> f64 {
        self.tail + self.seconds()
    }

    /// Its work times the longest path from the middle of it.
    pub(super) fn weighted(&self) -> f64 {
        self.work * (self.tail + self.seconds() / 2.0)
    }
}

impl Work for Node {
    fn work(&self) -> f64 {
        self.work
    }

    fn cap(&self) -> u32 {
        self.cap
    }

    fn slot_kind(&self) -> usize {
        self.slot_kind
    }
}

/// A flow of a [`Network`].
#[derive(Clone, Debug, PartialEq)]
pub struct NetFlow {
    /// Its nodes, each after those it waits for.
    pub nodes: std::ops::Range<usize>,
    /// Plan time before which nothing of it may run, in seconds.
    pub release: f64,
    /// What completing it at a time costs.
    pub cost: CostFn,
    /// Work of all its nodes (V), or of those in the slot kind that orders look at ([`Network::slot_kind`]).
    pub work: f64,
    /// The sum of each of these nodes' work times the longest path from its middle to the end.
    pub weighted: f64,
    /// The earliest completion by critical path and squashed area, from its release (Eq. (2), Q).
    pub earliest: f64,
}

impl NetFlow {
    /// A flow that is not measured yet.
    pub(super) fn new(flow: &Flow, nodes: std::ops::Range<usize>, now: f64) -> Self {
        let release = flow.release.seconds().max(now);
        Self { nodes, release, cost: flow.cost.clone(), work: 0.0, weighted: 0.0, earliest: 0.0 }
    }
}

/// A planning problem. Flows are in the order of the instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Slots of each slot kind; generic slots are slot kind 0.
    pub slots: [u32; 2],
    /// The slot kind that orders of flows look at; `None` for all together.
    pub slot_kind: Option<usize>,
    pub combine: Combine,
    /// The nodes and which wait for which.
    pub graph: Graph<Node>,
    pub flows: Vec<NetFlow>,
}

/// What there is to run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Supply {
    /// Slots of each slot kind; generic slots are slot kind 0.
    pub slots: [u32; 2],
    /// Speed of a slot.
    pub speed: f64,
    /// Whether orders of flows look at the slot kind that has most to do for its slots only, instead of at
    /// the sum of both.
    pub binding: bool,
}

/// How much of an instance is still to be done, as seen at some instant.
pub trait Remaining {
    /// Slot-seconds at speed 1 left in a phase; `None` if the phase is done.
    fn work(&self, phase: PhaseId) -> Option<f64>;
    /// Most slots the rest can use.
    fn cap(&self, phase: PhaseId) -> u32;
}

/// Everything is still to be done.
struct Whole<'a>(&'a Instance);

impl Remaining for Whole<'_> {
    fn work(&self, phase: PhaseId) -> Option<f64> {
        Some(self.0.phase(phase).work().slot_seconds())
    }

    fn cap(&self, phase: PhaseId) -> u32 {
        self.0.phase(phase).cap
    }
}

impl Network {
    /// The whole instance on machines of one `speed`. O(phases + precedences).
    pub fn whole(instance: &Instance, speed: f64) -> Self {
        let mut slots = [0; 2];
        for &slot_kind in instance.cluster().slot_kinds() {
            slots[slot_kind.index()] = instance.cluster().slots(slot_kind);
        }
        let flows = instance.flows().keys();
        Self::of(instance, flows, Supply { slots, speed, binding: false }, 0.0, &Whole(instance))
    }

    /// What is left of `flows` at `now`. O(phases + precedences).
    pub fn of(
        instance: &Instance,
        flows: impl Iterator<Item = FlowId>,
        supply: Supply,
        now: f64,
        remaining: &dyn Remaining,
    ) -> Self {
        let (mut list, mut planned) = (NodeList::default(), Vec::new());
        for id in flows {
            let first = list.nodes.len();
            list.add(instance, id, supply, remaining);
            planned.push(NetFlow::new(instance.flow(id), first..list.nodes.len(), now));
        }
        let mut flow = 0;
        // Nodes are asked for in order.
        let release = |node| {
            flow += planned[flow..].iter().take_while(|flow| flow.nodes.end <= node).count();
            planned[flow].release
        };
        let slots = supply.slots;
        let graph = Graph::new(slots, list.nodes, list.arcs, release);
        let combine = instance.objective().combine;
        let mut net = Self { slots, slot_kind: None, combine, graph, flows: planned };
        net.measure(supply.binding);
        net
    }

    /// Tails, work and earliest completions, backwards over the topological order.
    fn measure(&mut self, binding: bool) {
        if binding {
            self.slot_kind = Some(binding_slot_kind(self.nodes(), self.slots));
        }
        for flow in 0..self.flows.len() {
            let (mut path, mut work) = (0f64, [0f64; 2]);
            for k in self.flows[flow].nodes.clone().rev() {
                let tail = |&next: &u32| self.node(next as usize).alone();
                let tail = self.successors(k).iter().map(tail).fold(0.0, f64::max);
                self.graph.node_mut(k).tail = tail;
                let node = self.node(k);
                path = path.max(node.alone());
                work[node.slot_kind] += node.work;
            }
            let weighted = self.counted(&self.flows[flow]).map(Node::weighted).sum();
            let flow = &mut self.flows[flow];
            flow.work = self.slot_kind.map_or(work[0] + work[1], |slot_kind| work[slot_kind]);
            flow.weighted = weighted;
            flow.earliest = flow.release + least_seconds(path, work, self.slots);
        }
    }

    /// The nodes that wait for `node`.
    pub fn successors(&self, node: usize) -> &[u32] {
        self.graph.next(node)
    }

    pub fn node(&self, node: usize) -> &Node {
        self.graph.node(node)
    }

    /// All nodes, flow by flow, in topological order within each.
    pub fn nodes(&self) -> &[Node] {
        self.graph.nodes()
    }

    /// The slots that orders look at, of all slot kinds or of one: the machine of the relaxations.
    pub fn capacity(&self) -> f64 {
        capacity(self.slots, self.slot_kind)
    }

    /// The nodes of a flow that orders look at.
    pub fn counted(&self, flow: &NetFlow) -> impl Iterator<Item = &Node> {
        let nodes = self.nodes()[flow.nodes.clone()].iter();
        nodes.filter(|node| self.slot_kind.is_none_or(|slot_kind| slot_kind == node.slot_kind))
    }

    /// Whether all slots serve all phases, as the theory of the paper wants it.
    pub fn is_generic(&self) -> bool {
        self.slots[1] == 0
    }

    /// A time by which some order has everything done: the last release plus all work one after another.
    pub fn horizon(&self) -> f64 {
        let last = self.flows.iter().map(|f| f.release).fold(0.0, f64::max);
        last + self.flows.iter().map(|f| f.earliest - f.release).sum::<f64>()
    }

    /// The objective's value for one completion per flow.
    pub fn cost(&self, completions: &[f64]) -> f64 {
        self.combine.of(self.flows.iter().zip(completions).map(|(flow, &c)| flow.cost.eval(c)))
    }
}

/// Nodes of flows and which wait for which; keeps its memory for the next ones.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeList {
    pub(super) nodes: Vec<Node>,
    /// Of each pair the second waits for the first, in the order of the second.
    arcs: Vec<(u32, u32)>,
    /// Scratch: the nodes before the next one, and the last node of each job of a flow.
    before: Vec<u32>,
    last: Vec<Option<u32>>,
}

impl NodeList {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.arcs.clear();
    }

    /// Adds what is left of a flow, without tails.
    pub(super) fn add(&mut self, instance: &Instance, id: FlowId, supply: Supply, remaining: &dyn Remaining) {
        let Self { nodes, arcs, before, last } = self;
        let flow = instance.flow(id);
        // The node that is last of each job of the flow, if any of the job is left. A job waits only for others
        // of its flow, whose ids are consecutive.
        last.clear();
        last.resize(flow.jobs().len(), None);
        let first_job = flow.jobs().next().map_or(0, JobId::index);
        let place = |job: JobId| job.index() - first_job;
        for &job_id in instance.topological_of(id) {
            let job = instance.job(job_id);
            before.clear();
            before.extend(job.after.iter().filter_map(|a| last[place(*a)]));
            for phase in job.phases() {
                let Some(work) = remaining.work(phase) else { continue };
                let slot_kind = instance.slot_kind_of(phase).index();
                let node = nodes.len() as u32;
                let cap = remaining.cap(phase).min(supply.slots[slot_kind]).max(1);
                nodes.push(Node { phase, work: work / supply.speed, cap, slot_kind, tail: 0.0 });
                arcs.extend(before.iter().map(|&b| (b, node)));
                before.clear();
                before.push(node);
                last[place(job_id)] = Some(node);
            }
        }
    }

    /// Computes the tails of all nodes. Returns the longest path and the work of each slot kind.
    pub(super) fn measure(&mut self) -> (f64, [f64; 2]) {
        for &(before, after) in self.arcs.iter().rev() {
            let tail = self.nodes[after as usize].alone();
            let before = &mut self.nodes[before as usize];
            before.tail = before.tail.max(tail);
        }
        let (mut path, mut work) = (0f64, [0f64; 2]);
        for node in self.nodes.iter().rev() {
            path = path.max(node.alone());
            work[node.slot_kind] += node.work;
        }
        (path, work)
    }
}

/// Seconds that a slot kind takes for its part of some work.
fn area(work: [f64; 2], slots: [u32; 2], slot_kind: usize) -> f64 {
    work[slot_kind] / f64::from(slots[slot_kind].max(1))
}

/// The least seconds that work with this longest path takes alone.
pub(super) fn least_seconds(path: f64, work: [f64; 2], slots: [u32; 2]) -> f64 {
    path.max(area(work, slots, 0)).max(area(work, slots, 1))
}

/// The slot kind that has most to do for its slots.
pub(super) fn binding_slot_kind<'a>(nodes: impl IntoIterator<Item = &'a Node>, slots: [u32; 2]) -> usize {
    let mut work = [0.0; 2];
    nodes.into_iter().for_each(|node| work[node.slot_kind] += node.work);
    usize::from(area(work, slots, 1) > area(work, slots, 0))
}

/// The slots of a slot kind, or of both.
pub(super) fn capacity(slots: [u32; 2], slot_kind: Option<usize>) -> f64 {
    let slots = slots.map(f64::from);
    slot_kind.map_or(slots[0] + slots[1], |slot_kind| slots[slot_kind])
}
