//! An instance as the exact search sees it: classes of equal tasks, and pools of slots, in whole ticks.

use std::ops::Range;

use slackline_model::instance::Phase;
use slackline_model::{Combine, Instance, Objective, PhaseId, Span, Time};

use super::{TASKS_MAX, TaskStart};

/// The partial schedule of a state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// The number of unstarted tasks of each class.
    pub(super) unstarted: Box<[u8]>,
    /// The start of the last task; then the instants from which the slots of each pool are free, sorted by pool;
    /// then the last end of the started tasks of each phase. Nothing else starts before the first of these, so
    /// all are at least as late.
    times: Box<[u32]>,
    /// The phase of the last task: of tasks that start together, none of a phase before it starts next.
    last: u32,
    /// The cost of the flows whose tasks have all started.
    pub(super) cost: f64,
}

impl State {
    /// The start of the last task.
    pub(super) fn now(&self) -> u32 {
        self.times[0]
    }

    /// Whether no schedule that starts with `other`, which has the same unstarted tasks, costs less than the
    /// best that starts with this one.
    pub(super) fn is_as_good_as(&self, other: &Self) -> bool {
        self.cost <= other.cost
            && (self.last <= other.last || self.now() < other.now())
            && self.times.iter().zip(&other.times).all(|(mine, theirs)| mine <= theirs)
    }
}

/// Equal tasks of a phase.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) phase: usize,
    span: Span,
    pub(super) ticks: u32,
    count: u8,
}

#[derive(Clone, Debug)]
pub(super) struct PhaseNode {
    pub(super) flow: usize,
    pub(super) release: u32,
    /// The pool of its slots.
    pub(super) pool: usize,
    /// The pool that stands for its cap, if it has one below the number of slots and of tasks.
    cap: Option<usize>,
    /// The number of its tasks that can run at a time.
    pub(super) at_once: u32,
    pub(super) before: Vec<usize>,
    /// Of the phases after it, the one with the longest path to the end of the flow.
    pub(super) next: Option<usize>,
    pub(super) classes: Range<usize>,
}

/// The instance.
pub(super) struct Problem<'a> {
    pub(super) instance: &'a Instance,
    /// Microseconds; all lengths and releases are multiples of it.
    tick: u64,
    pub(super) classes: Vec<Class>,
    pub(super) phases: Vec<PhaseNode>,
    /// The phases of each flow, each after its predecessors.
    pub(super) flows: Vec<Vec<usize>>,
    /// The positions in the times of a state of each pool, kinds of slots first.
    pub(super) pools: Vec<Range<usize>>,
    /// The number of pools that are kinds of slots.
    pub(super) slot_kinds: usize,
}

impl<'a> Problem<'a> {
    /// The problem; `None` if the instance is not covered.
    pub(super) fn of(instance: &'a Instance) -> Option<Self> {
        let cluster = instance.cluster();
        let speed = cluster.uniform_speed()?;
        if instance.n_tasks() > TASKS_MAX || instance.phases().iter().any(Phase::is_without_length) {
            return None;
        }
        let tick = tick(instance, speed)?;
        let (mut classes, mut phases) = (Vec::new(), Vec::new());
        let sizes: Vec<u32> = cluster.slot_kinds().iter().map(|&kind| cluster.slots(kind)).collect();
        let mut all_sizes = sizes.clone();
        for (id, phase) in instance.phases().iter_enumerated() {
            let kind = instance.slot_kind_of(id);
            let pool = cluster.slot_kinds().iter().position(|&other| other == kind)?;
            let of_phase = classes_of(instance, id, speed, tick)?;
            let count: u32 = of_phase.iter().map(|class| u32::from(class.count)).sum();
            let at_once = phase.cap.min(sizes[pool]).min(count);
            let is_capped = phase.cap < sizes[pool].min(count);
            let cap = is_capped.then(|| {
                all_sizes.push(phase.cap);
                all_sizes.len() - 1
            });
            let release = u32::try_from(instance.flow(phase.flow).release.0 / tick).ok()?;
            let own = classes.len()..classes.len() + of_phase.len();
            classes.extend(of_phase);
            let (flow, before, next) = (phase.flow.index(), before(instance, id), None);
            phases.push(PhaseNode { flow, release, pool, cap, at_once, before, next, classes: own });
        }
        let mut from = 1;
        let pool = |&size: &u32| {
            from += size as usize;
            from - size as usize..from
        };
        let pools = all_sizes.iter().map(pool).collect();
        let in_order = |flow| {
            let jobs = instance.topological_of(flow).iter();
            jobs.flat_map(|&job| instance.job(job).phases().map(PhaseId::index)).collect()
        };
        let flows = instance.flows().keys().map(in_order).collect();
        let mut problem = Self { instance, tick, classes, phases, flows, pools, slot_kinds: sizes.len() };
        problem.choose_successors();
        Some(problem)
    }

    /// Chooses the successor of each phase with the longest path to the end of the flow.
    fn choose_successors(&mut self) {
        let mut path = vec![0; self.phases.len()];
        for &phase in self.flows.iter().flat_map(|order| order.iter().rev()) {
            let node = &self.phases[phase];
            let of_class = |class: &Class| u32::from(class.count).div_ceil(node.at_once) * class.ticks;
            let length = self.classes[node.classes.clone()].iter().map(of_class).max().unwrap_or(0);
            path[phase] += length;
            for before in node.before.clone() {
                if self.phases[before].next.is_none_or(|next| path[next] < path[phase]) {
                    self.phases[before].next = Some(phase);
                    path[before] = path[phase];
                }
            }
        }
    }

    pub(super) fn objective(&self) -> Objective {
        self.instance.objective()
    }

    /// Seconds of an instant.
    pub(super) fn seconds(&self, at: u32) -> f64 {
        Time(u64::from(at) * self.tick).seconds()
    }

    pub(super) fn task_start(&self, class: u16, at: u32) -> TaskStart {
        let Class { phase, span, .. } = self.classes[usize::from(class)];
        TaskStart { phase: PhaseId(phase as u32), span, start: Time(u64::from(at) * self.tick) }
    }

    /// Nothing has started.
    pub(super) fn root(&self) -> State {
        let combine = self.objective().combine;
        let idle = self.instance.flows().iter().filter(|flow| flow.phases().len() == 0);
        let none = if combine == Combine::Sum { 0.0 } else { f64::NEG_INFINITY };
        State {
            unstarted: self.classes.iter().map(|class| class.count).collect(),
            times: vec![0; self.first_end() + self.phases.len()].into(),
            last: 0,
            cost: idle.map(|flow| flow.cost.eval(flow.release.seconds())).fold(none, |a, b| match combine {
                Combine::Sum => a + b,
                Combine::Max => a.max(b),
            }),
        }
    }

    /// The position of the end of the first phase in the times of a state.
    fn first_end(&self) -> usize {
        self.pools.last().map_or(1, |pool| pool.end)
    }

    /// The last end of the started tasks of a phase, or the start of the last task if that is later.
    pub(super) fn end(&self, state: &State, phase: usize) -> u32 {
        state.times[self.first_end() + phase]
    }

    /// Whether all tasks of a phase have started.
    pub(super) fn is_started(&self, state: &State, phase: usize) -> bool {
        state.unstarted[self.phases[phase].classes.clone()].iter().all(|&count| count == 0)
    }

    /// The instants from which the slots of a kind are free.
    pub(super) fn free<'s>(&self, state: &'s State, pool: usize) -> &'s [u32] {
        &state.times[self.pools[pool].clone()]
    }

    /// The earliest start of the next task of a phase; `None` if a phase before it has unstarted tasks.
    fn earliest(&self, state: &State, phase: usize) -> Option<u32> {
        let node = &self.phases[phase];
        let mut at = node.release.max(state.now());
        for &before in &node.before {
            if !self.is_started(state, before) {
                return None;
            }
            at = at.max(self.end(state, before));
        }
        let pools = [Some(node.pool), node.cap].into_iter().flatten();
        Some(pools.map(|pool| self.free(state, pool)[0]).fold(at, u32::max))
    }

    /// The classes of which a task may start next, and its start.
    pub(super) fn choices(&self, state: &State) -> Vec<(u16, u32)> {
        let mut choices = Vec::new();
        let mut first_end = vec![u32::MAX; self.slot_kinds];
        for (phase, node) in self.phases.iter().enumerate() {
            if self.is_started(state, phase) {
                continue;
            }
            let Some(start) = self.earliest(state, phase) else { continue };
            if start == state.now() && phase < state.last as usize {
                continue;
            }
            for class in node.classes.clone().filter(|&class| state.unstarted[class] > 0) {
                let end = start + self.classes[class].ticks;
                first_end[node.pool] = first_end[node.pool].min(end);
                choices.push((class as u16, start));
            }
        }
        choices.retain(|&(class, start)| {
            start < first_end[self.phases[self.classes[usize::from(class)].phase].pool]
        });
        choices
    }

    /// The state after the start of a task.
    pub(super) fn started(&self, state: &State, class: u16, start: u32) -> State {
        let mut state = state.clone();
        let Class { phase, ticks, .. } = self.classes[usize::from(class)];
        let (node, end) = (&self.phases[phase], start + ticks);
        state.unstarted[usize::from(class)] -= 1;
        for pool in [Some(node.pool), node.cap].into_iter().flatten() {
            let free = &mut state.times[self.pools[pool].clone()];
            free[0] = end;
            free.sort_unstable();
        }
        let at = self.first_end() + phase;
        state.times[at] = state.times[at].max(end);
        for at in &mut state.times {
            *at = (*at).max(start);
        }
        state.last = phase as u32;
        let flow = &self.flows[node.flow];
        if flow.iter().all(|&phase| self.is_started(&state, phase)) {
            let end = flow.iter().map(|&phase| self.end(&state, phase)).max().unwrap_or(start);
            let cost = self.cost(node.flow, end);
            state.cost = match self.objective().combine {
                Combine::Sum => state.cost + cost,
                Combine::Max => state.cost.max(cost),
            };
        }
        state
    }

    /// The cost of a flow that completes at an instant.
    pub(super) fn cost(&self, flow: usize, at: u32) -> f64 {
        self.instance.flow(flow.into()).cost.eval(self.seconds(at))
    }

    /// Whether a flow has unstarted tasks.
    pub(super) fn is_open(&self, state: &State, flow: usize) -> bool {
        self.flows[flow].iter().any(|&phase| !self.is_started(state, phase))
    }

    /// Writes the earliest start of the unstarted tasks and the earliest end of each phase of a flow.
    pub(super) fn measure(&self, state: &State, flow: usize, heads: &mut [u32], ends: &mut [u32]) {
        for &phase in &self.flows[flow] {
            let node = &self.phases[phase];
            let ready = node.before.iter().map(|&before| ends[before]).max().unwrap_or(0);
            heads[phase] = ready.max(node.release).max(state.now());
            let of_class = |class: usize| {
                let waves = u32::from(state.unstarted[class]).div_ceil(node.at_once);
                if waves > 0 { heads[phase] + waves * self.classes[class].ticks } else { 0 }
            };
            let last = node.classes.clone().map(of_class).max().unwrap_or(0);
            ends[phase] = last.max(self.end(state, phase));
        }
    }

    /// A lower bound on the maximum of the costs.
    pub(super) fn least_maximum(&self, state: &State) -> f64 {
        let (mut heads, mut ends) = (vec![0; self.phases.len()], vec![0; self.phases.len()]);
        let open: Vec<usize> = (0..self.flows.len()).filter(|&flow| self.is_open(state, flow)).collect();
        let mut least = state.cost;
        for &flow in &open {
            self.measure(state, flow, &mut heads, &mut ends);
            let end = self.flows[flow].iter().map(|&phase| ends[phase]).max().unwrap_or(0);
            least = least.max(self.cost(flow, end));
        }
        for pool in 0..self.slot_kinds {
            let free = self.free(state, pool);
            let of_pool = |phase: usize| self.phases[phase].pool == pool;
            let work =
                |class: &usize| u64::from(state.unstarted[*class]) * u64::from(self.classes[*class].ticks);
            let left = (0..self.classes.len()).filter(|&class| of_pool(self.classes[class].phase));
            let busy: u64 = free.iter().map(|&at| u64::from(at)).sum::<u64>()
                + left.map(|class| work(&class)).sum::<u64>();
            let last = u32::try_from(busy.div_ceil(free.len().max(1) as u64)).unwrap_or(u32::MAX);
            let is_served = |&&flow: &&usize| {
                self.flows[flow].iter().any(|&phase| of_pool(phase) && !self.is_started(state, phase))
            };
            // The last task belongs to one of these flows.
            let costs = open.iter().filter(is_served).map(|&flow| self.cost(flow, last));
            least = least.max(costs.reduce(f64::min).unwrap_or(f64::NEG_INFINITY));
        }
        least
    }
}

/// The greatest common divisor of all lengths and releases in microseconds; `None` if a task has no length or
/// the sum of all is too long.
fn tick(instance: &Instance, speed: f64) -> Option<u64> {
    let mut tick = 0;
    let mut sum = 0_u64;
    for flow in instance.flows().iter() {
        tick = gcd(tick, flow.release.0);
        sum = sum.max(flow.release.0);
    }
    for phase in instance.phases().iter() {
        for run in phase.tasks()?.runs() {
            let length = run.span.at_speed_nearest(speed).0;
            if length == 0 {
                return None;
            }
            tick = gcd(tick, length);
            sum = sum.saturating_add(length.saturating_mul(u64::from(run.count)));
        }
    }
    (tick > 0 && sum / tick < u64::from(u32::MAX) / 2).then_some(tick)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The tasks of a phase by their length; `None` if there are too many.
fn classes_of(instance: &Instance, id: PhaseId, speed: f64, tick: u64) -> Option<Vec<Class>> {
    let mut runs: Vec<(Span, u32)> =
        instance.phase(id).tasks()?.runs().iter().map(|run| (run.span, run.count)).collect();
    runs.sort_unstable();
    let of_span = |runs: &[(Span, u32)]| {
        let span = runs[0].0;
        let ticks = u32::try_from(span.at_speed_nearest(speed).0 / tick).ok()?;
        let count = u8::try_from(runs.iter().map(|&(_, count)| count).sum::<u32>()).ok()?;
        Some(Class { phase: id.index(), span, ticks, count })
    };
    runs.chunk_by(|a, b| a.0 == b.0).map(of_span).collect()
}

/// The phases that must end before a phase starts.
fn before(instance: &Instance, id: PhaseId) -> Vec<usize> {
    let job = instance.job(instance.phase(id).job);
    if let Some(map) = job.map.filter(|&map| map != id) {
        return vec![map.index()];
    }
    let last = |&before: &slackline_model::JobId| instance.job(before).phases().last().map(PhaseId::index);
    job.after.iter().filter_map(last).collect()
}
