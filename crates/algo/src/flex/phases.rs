//! The packing scheme for instances of the model: phases that become ready one after the other.
//!
//! A job's reduces start when its maps are done, flows arrive, and guarantees change with the set of ready
//! phases (pools, minima above the slots). So the allocation is rebuilt at every event as in Fig. 3: every
//! ready phase gets its minimum in force, and the slack goes by the order of the flows. This is a rule of
//! [`fluid`], for flows of one job.

use slackline_model::id::TiVec;
use slackline_model::instance::Phase;
use slackline_model::schedule::Allocation;
use slackline_model::{FlowId, Instance, PhaseId};
use slackline_policy::minima;

use super::plan::Mode;
use crate::classic::fluid::{self, Graph, Node, Progress, Rounding, by_slot_kind, execute};
use crate::phase_graph;

/// Packs one instance in any number of orders.
#[derive(Clone, Debug)]
pub struct Phases<'a> {
    instance: &'a Instance,
    graph: Graph,
    /// Whether a phase ever has a guarantee.
    guaranteed: Vec<bool>,
    mode: Mode,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The slots of each phase over time, by phase and start.
    pub allocations: Vec<Allocation>,
    /// When each flow is done, seconds of workload time.
    pub completions: TiVec<FlowId, f64>,
}

impl<'a> Phases<'a> {
    /// Prepares an instance whose flows have one job each, on machines of speed `speed`. Moldable phases
    /// keep the slots they start with; minima are not for them, and for others only if they are to be kept.
    pub fn new(instance: &'a Instance, speed: f64, mode: Mode, minima: bool) -> Self {
        let guaranteed = |(id, phase): (PhaseId, &Phase)| {
            minima && (phase.min_slots > 0 || instance.flow(instance.flow_of(id)).pool.is_some())
        };
        let guaranteed = instance.phases().iter_enumerated().map(guaranteed).collect();
        Self { instance, graph: phase_graph::of(instance, speed), guaranteed, mode }
    }

    /// Packs the flows in this order, first in priority first. O(n) an event, O(n) events unless minima
    /// exceed the slots (then one for each task that frees a part of a minimum).
    pub fn pack(&self, order: &[FlowId]) -> Packed {
        let mut rank: TiVec<FlowId, usize> = vec![0; order.len()].into();
        order.iter().enumerate().for_each(|(at, &flow)| rank[flow] = at);
        let held = vec![0; self.graph.nodes().len()];
        let executed = execute(&self.graph, &mut Packing { phases: self, rank, held, crowded: [false; 2] });
        let mut completions: TiVec<FlowId, f64> = vec![0.0; order.len()].into();
        for (phase, end) in executed.ends.into_iter().enumerate() {
            let done = &mut completions[self.instance.flow_of(PhaseId::from(phase))];
            *done = done.max(end);
        }
        Packed { allocations: phase_graph::allocations(executed.rows), completions }
    }
}

/// Fig. 3 as a rule.
struct Packing<'a> {
    phases: &'a Phases<'a>,
    rank: TiVec<FlowId, usize>,
    /// The slots that moldable phases hold from their start on.
    held: Vec<u32>,
    /// Slot kinds whose minima take all slots.
    crowded: [bool; 2],
}

impl Packing<'_> {
    /// Minima first, then slack by priority.
    fn malleable(&mut self, slot_kind: usize, ready: &[u32], progress: &Progress<'_>) -> Vec<u32> {
        let Phases { instance, graph, guaranteed, .. } = self.phases;
        let mut tasks: Vec<(PhaseId, u32)> = (ready.iter().filter(|&&node| guaranteed[node as usize]))
            .map(|&node| (PhaseId(node), progress.tasks(node as usize)))
            .collect();
        tasks.sort_unstable();
        let minima = minima::among(instance, instance.cluster().slot_kinds()[slot_kind], &tasks);
        let mut slack = graph.slots()[slot_kind] - minima.iter().map(|m| m.1).sum::<u32>();
        self.crowded[slot_kind] = slack == 0;
        let give = |&node: &u32| {
            let phase = PhaseId(node);
            let minimum = minima.binary_search_by_key(&phase, |m| m.0).map_or(0, |at| minima[at].1);
            let more = slack.min(graph.node(node as usize).cap.saturating_sub(minimum));
            slack -= more;
            minimum + more
        };
        ready.iter().map(give).collect()
    }

    /// The slots that are free for unstarted phases, by priority.
    fn moldable(&mut self, slot_kind: usize, ready: &[u32]) -> Vec<u32> {
        let graph = &self.phases.graph;
        let mut free =
            graph.slots()[slot_kind] - ready.iter().map(|&node| self.held[node as usize]).sum::<u32>();
        let give = |&node: &u32| {
            let held = &mut self.held[node as usize];
            if *held == 0 {
                *held = free.min(graph.node(node as usize).cap);
                free -= *held;
            }
            *held
        };
        ready.iter().map(give).collect()
    }
}

impl fluid::Rule for Packing<'_> {
    type Node = Node;
    type Key = usize;
    const ROUNDING: Rounding = Rounding::Instants;

    fn key(&mut self, node: usize, _: f64) -> usize {
        self.rank[self.phases.instance.flow_of(PhaseId::from(node))]
    }

    fn grant(&mut self, ready: &[u32], progress: &Progress<'_>, given: &mut Vec<u32>) {
        let phases = self.phases;
        by_slot_kind(&phases.graph, ready, given, |slot_kind, ready| match phases.mode {
            Mode::Malleable => self.malleable(slot_kind, ready, progress),
            Mode::Moldable => self.moldable(slot_kind, ready),
        });
    }

    /// When one task less changes crowded minima.
    fn look(&self, ready: &[u32], given: &[u32], progress: &Progress<'_>) -> f64 {
        let Phases { graph, guaranteed, .. } = self.phases;
        let moves = |&(node, _): &(usize, &u32)| self.crowded[graph.node(node).slot_kind] && guaranteed[node];
        let nodes = ready.iter().map(|&node| node as usize).zip(given);
        let looks = nodes.filter(moves).filter_map(|(node, &slots)| progress.task_less(node, slots));
        looks.fold(f64::INFINITY, f64::min)
    }
}
