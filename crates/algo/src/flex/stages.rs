//! The packing scheme for instances of the model: phases that become ready one after the other.
//!
//! A job's reduces start when its maps are done, flows arrive, and guarantees move with what is ready
//! (pools, minima above the slots). So the allocation is rebuilt at every event as Fig. 3 does: the
//! minima in force to every ready phase, the slack in the order of the flows. For flows of one job.

use slackline_model::id::TiVec;
use slackline_model::schedule::Allocation;
use slackline_model::{FlowId, Instance, Lane, PhaseId};
use slackline_policy::minima;

use super::plan::Mode;

/// Packs one instance in any number of orders.
#[derive(Clone, Debug)]
pub struct Stages<'a> {
    instance: &'a Instance,
    phases: TiVec<PhaseId, Stage>,
    /// Flows by release.
    arrivals: Vec<FlowId>,
    mode: Mode,
}

/// What packing needs to know of a phase. Times are seconds on the machines there are.
#[derive(Clone, Copy, Debug)]
struct Stage {
    lane: Lane,
    flow: FlowId,
    /// Slot-seconds.
    work: f64,
    /// Its longest task; `None` for work without tasks.
    longest: Option<f64>,
    cap: u32,
    /// Whether anything is ever guaranteed to it.
    guaranteed: bool,
    next: Option<PhaseId>,
}

/// A packing.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// Who holds how many slots when, by phase and start.
    pub allocations: Vec<Allocation>,
    /// When each flow is done, seconds of workload time.
    pub completions: TiVec<FlowId, f64>,
}

/// Work below this part of a phase's is rounding: the phase is done.
const ROUNDING: f64 = 1e-12;

impl<'a> Stages<'a> {
    /// Prepares an instance whose flows have one job each, on machines of speed `speed`. Moldable phases
    /// keep the slots they start with; minima are not for them.
    pub fn new(instance: &'a Instance, speed: f64, mode: Mode) -> Self {
        let stage = |(id, phase): (PhaseId, &slackline_model::instance::Phase)| {
            let lane = instance.lane_of(id);
            let flow = instance.flow_of(id);
            Stage {
                lane,
                flow,
                work: phase.work().slot_seconds() / speed,
                longest: phase.tasks().map(|tasks| tasks.longest().seconds() / speed),
                cap: phase.cap.min(instance.cluster().slots(lane)),
                guaranteed: phase.min_slots > 0 || instance.flow(flow).pool.is_some(),
                next: instance.job(phase.job).phases().find(|&other| other > id),
            }
        };
        let mut arrivals: Vec<FlowId> = instance.flows().keys().collect();
        arrivals.sort_by_key(|&flow| (instance.flow(flow).release, flow));
        let phases = instance.phases().iter_enumerated().map(stage).collect();
        Self { instance, phases, arrivals, mode }
    }

    /// Packs the flows in this order, first in priority first. O(n) an event, O(n) events unless minima
    /// exceed the slots (then one for each task that frees a part of a minimum).
    pub fn pack(&self, order: &[FlowId]) -> Packed {
        let mut rank: TiVec<FlowId, usize> = vec![0; order.len()].into();
        order.iter().enumerate().for_each(|(at, &flow)| rank[flow] = at);
        let n = self.phases.len();
        let mut run = Run {
            stages: self,
            rank,
            now: 0.0,
            ready: Vec::new(),
            left: self.phases.iter().map(|stage| stage.work).collect(),
            slots: vec![0; n].into(),
            since: vec![0.0; n].into(),
            crowded: [false; 2],
            packed: Packed { allocations: Vec::new(), completions: vec![0.0; order.len()].into() },
        };
        run.all();
        run.packed.allocations.sort_by(|a, b| a.phase.cmp(&b.phase).then(a.start.total_cmp(&b.start)));
        run.packed
    }
}

/// A packing in progress.
struct Run<'a, 'b> {
    stages: &'b Stages<'a>,
    rank: TiVec<FlowId, usize>,
    now: f64,
    /// Ready phases by priority.
    ready: Vec<PhaseId>,
    left: TiVec<PhaseId, f64>,
    slots: TiVec<PhaseId, u32>,
    /// Since when each phase holds its slots.
    since: TiVec<PhaseId, f64>,
    /// Lanes whose minima exceed their slots.
    crowded: [bool; 2],
    packed: Packed,
}

impl Run<'_, '_> {
    fn all(&mut self) {
        let stages = self.stages;
        let mut arrivals = stages.arrivals.iter().copied().peekable();
        let release = |flow: FlowId| stages.instance.flow(flow).release.seconds();
        loop {
            if self.ready.is_empty() {
                let Some(&flow) = arrivals.peek() else { return };
                self.now = self.now.max(release(flow));
            }
            while let Some(flow) = arrivals.next_if(|&flow| release(flow) <= self.now) {
                for job in stages.instance.flow(flow).jobs() {
                    self.open(stages.instance.job(job).phases().next(), flow);
                }
            }
            for &lane in stages.instance.cluster().lanes() {
                match stages.mode {
                    Mode::Malleable => self.allocate(lane),
                    Mode::Moldable => self.begin(lane),
                }
            }
            let until = arrivals.peek().map_or(f64::INFINITY, |&flow| release(flow));
            self.advance(until);
        }
    }

    /// Makes a phase ready, or what comes after it if there is nothing to do.
    fn open(&mut self, mut phase: Option<PhaseId>, flow: FlowId) {
        while let Some(id) = phase {
            let stage = &self.stages.phases[id];
            if stage.work > 0.0 {
                let key = (self.rank[flow], id);
                let at = self.ready.partition_point(|&p| (self.rank[self.stages.phases[p].flow], p) < key);
                self.ready.insert(at, id);
                return;
            }
            phase = stage.next;
        }
        let done = &mut self.packed.completions[flow];
        *done = done.max(self.now);
    }

    /// Tasks left of a phase, as the judge counts them.
    fn tasks_left(&self, phase: PhaseId) -> u32 {
        let stage = &self.stages.phases[phase];
        let Some(longest) = stage.longest else { return u32::MAX };
        let tolerance = 2e-6 + 1e-6 * stage.work;
        let left = self.left[phase] - tolerance;
        if left <= 0.0 || longest <= 0.0 { 0 } else { (left / longest).ceil() as u32 }
    }

    /// Minima first, then slack by priority.
    fn allocate(&mut self, lane: Lane) {
        let stages = self.stages;
        let mine = |p: &PhaseId| stages.phases[*p].lane == lane;
        let mut guaranteed: Vec<(PhaseId, u32)> = (self.ready.iter().copied())
            .filter(|p| mine(p) && stages.phases[*p].guaranteed)
            .map(|p| (p, self.tasks_left(p)))
            .collect();
        guaranteed.sort_unstable();
        let minima = minima::among(stages.instance, lane, &guaranteed);
        let total = stages.instance.cluster().slots(lane);
        let mut slack = total - minima.iter().map(|m| m.1).sum::<u32>();
        self.crowded[lane.index()] = slack == 0;
        let ready: Vec<PhaseId> = self.ready.iter().copied().filter(mine).collect();
        for phase in ready {
            let minimum = minima.binary_search_by_key(&phase, |m| m.0).map_or(0, |at| minima[at].1);
            let more = slack.min(stages.phases[phase].cap.saturating_sub(minimum));
            slack -= more;
            self.set(phase, minimum + more);
        }
    }

    /// What is free to the phases that have not started, by priority.
    fn begin(&mut self, lane: Lane) {
        let stages = self.stages;
        let ready: Vec<PhaseId> =
            self.ready.iter().copied().filter(|&p| stages.phases[p].lane == lane).collect();
        let held: u32 = ready.iter().map(|&p| self.slots[p]).sum();
        let mut free = stages.instance.cluster().slots(lane) - held;
        for phase in ready {
            if self.slots[phase] == 0 {
                let slots = free.min(stages.phases[phase].cap);
                free -= slots;
                self.set(phase, slots);
            }
        }
    }

    fn set(&mut self, phase: PhaseId, slots: u32) {
        if self.slots[phase] != slots {
            self.emit(phase);
            self.slots[phase] = slots;
            self.since[phase] = self.now;
        }
    }

    fn emit(&mut self, phase: PhaseId) {
        let (start, end, slots) = (self.since[phase], self.now, self.slots[phase]);
        if slots > 0 && end > start {
            self.packed.allocations.push(Allocation { phase, start, end, slots });
        }
    }

    /// Goes on to the next completion, to `until`, or to where a task less changes crowded minima.
    fn advance(&mut self, until: f64) {
        let mut next = until;
        let mut done: Option<PhaseId> = None;
        for &phase in &self.ready {
            let slots = f64::from(self.slots[phase]);
            if slots > 0.0 {
                let end = self.now + self.left[phase] / slots;
                if end < next {
                    (next, done) = (end, Some(phase));
                }
            }
        }
        for &phase in &self.ready {
            let stage = &self.stages.phases[phase];
            let tasks = self.tasks_left(phase);
            if self.crowded[stage.lane.index()]
                && stage.guaranteed
                && let Some(longest) = stage.longest
                && tasks > 1
                && self.slots[phase] > 0
            {
                let over = self.left[phase] - f64::from(tasks - 1) * longest;
                let at = self.now + over / f64::from(self.slots[phase]);
                if at > self.now && at < next {
                    (next, done) = (at, None);
                }
            }
        }
        for &phase in &self.ready {
            self.left[phase] -= f64::from(self.slots[phase]) * (next - self.now);
        }
        self.now = next;
        let finished: Vec<PhaseId> = (self.ready.iter().copied())
            .filter(|&p| done == Some(p) || self.left[p] <= ROUNDING * self.stages.phases[p].work)
            .collect();
        for phase in finished {
            self.emit(phase);
            self.slots[phase] = 0;
            self.ready.retain(|&p| p != phase);
            let stage = &self.stages.phases[phase];
            let flow = stage.flow;
            self.open(stage.next, flow);
        }
    }
}
