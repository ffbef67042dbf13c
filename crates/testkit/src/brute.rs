//! The best cost of any non-preemptive task schedule of a tiny instance, by exhaustive search.
//!
//! Every cost function of the documents is regular (non-decreasing in completion times). So some best
//! schedule starts every task as early as the earlier tasks allow: with tasks and releases of whole seconds,
//! at whole seconds. At each second the search tries every number of tasks of every ready phase, including
//! none (deliberate idling can pay: Graham's anomalies). Equal tasks of a phase are interchangeable, and so
//! are slots of one speed. The remaining cost depends only on the second, on the number of unstarted tasks of
//! each kind, and on the remaining times of running tasks. The search remembers it.
//!
//! Minima are ignored: they are a guarantee of some policies, not a condition on schedules.

use std::collections::BTreeMap;

use slackline_model::time::MICROS;
use slackline_model::{Combine, Instance, PhaseId, PhaseKind, SlotKind};

/// The number of remembered states at which the search stops.
const STATES_MAX: usize = 400_000;
/// Counters of a state.
const COUNTERS_MAX: usize = 40;
/// Slot kinds times speeds.
const KINDS_MAX: usize = 4;

/// Equal tasks of one phase.
struct Class {
    phase: PhaseId,
    count: u8,
    /// The counter of its unstarted tasks.
    at: usize,
    /// The ways to run them.
    ways: std::ops::Range<usize>,
}

/// Tasks of a class on slots of one speed.
struct TaskPlacement {
    class: usize,
    kind: usize,
    /// Whole seconds on these slots.
    seconds: usize,
    /// The counters of running tasks with 1, 2, … `seconds - 1` seconds to go.
    at: usize,
}

impl TaskPlacement {
    fn running(&self, state: &State) -> u32 {
        state[self.at..self.at + self.seconds - 1].iter().map(|&n| u32::from(n)).sum()
    }
}

/// Slots of one slot kind and speed.
#[derive(Clone, Copy)]
struct Kind {
    serving: SlotKind,
    speed: f64,
    slots: u32,
}

type State = [u8; COUNTERS_MAX];
type Free = [u32; KINDS_MAX];

struct Search<'a> {
    instance: &'a Instance,
    kinds: Vec<Kind>,
    classes: Vec<Class>,
    ways: Vec<TaskPlacement>,
    /// Classes of each phase.
    of_phase: Vec<std::ops::Range<usize>>,
    /// Bits of each counter in a key.
    bits: Vec<u32>,
    releases: Vec<u64>,
    last_release: u64,
    memo: BTreeMap<u128, f64>,
}

/// The optimal value of the instance's objective over all non-preemptive schedules of its tasks.
///
/// `None` if the instance is out of reach: releases, or tasks on some slot, that are not whole seconds, tasks
/// without length beside others in their phase, many speeds, or too many states.
pub fn brute(instance: &Instance) -> Option<f64> {
    let mut search = Search::new(instance)?;
    let mut start = [0; COUNTERS_MAX];
    for class in &search.classes {
        start[class.at] = class.count;
    }
    if instance.flows().is_empty() {
        return Some(0.0);
    }
    let mut cost = search.best(0, &start)?;
    // In every schedule, flows without length are done at their release.
    for flow in instance.flows().iter().filter(|flow| flow.work.0 == 0) {
        cost = search.both(cost, flow.cost.eval(flow.release.seconds()));
    }
    Some(cost)
}

/// The slots of an instance by slot kind and speed.
fn kinds(instance: &Instance) -> Vec<Kind> {
    let cluster = instance.cluster();
    let mut kinds: Vec<Kind> = Vec::new();
    for &slot_kind in cluster.slot_kinds() {
        let mut slot = 0;
        while slot < cluster.slots(slot_kind) {
            let (speed, next) = cluster.speed_of(slot_kind, slot);
            let slots = next - slot;
            slot = next;
            match kinds.iter_mut().find(|kind| kind.serving == slot_kind && kind.speed == speed) {
                Some(kind) => kind.slots += slots,
                None => kinds.push(Kind { serving: slot_kind, speed, slots }),
            }
        }
    }
    kinds
}

/// The start of a second: the state, and the number of tasks that start now in each way.
struct Second<'a> {
    now: u64,
    state: &'a State,
    starts: Vec<u8>,
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance) -> Option<Self> {
        let kinds = kinds(instance);
        if kinds.len() > KINDS_MAX {
            return None;
        }
        let whole = |micros: u64| micros.is_multiple_of(MICROS).then_some(micros / MICROS);
        let (mut classes, mut ways): (Vec<Class>, Vec<TaskPlacement>) = (Vec::new(), Vec::new());
        let mut of_phase = Vec::new();
        let mut bits = Vec::new();
        for (phase, info) in instance.phases().iter_enumerated() {
            let first = classes.len();
            let mut counts = BTreeMap::new();
            for run in info.tasks()?.runs().iter().filter(|_| info.work().0 > 0) {
                *counts.entry(run.span).or_insert(0u32) += run.count;
            }
            for (span, count) in counts {
                let count = u8::try_from(count).ok()?;
                let (at, first, of_count) = (bits.len(), ways.len(), u8::BITS - count.leading_zeros());
                bits.push(of_count);
                let slot_kind = instance.slot_kind_of(phase);
                for (kind, slots) in kinds.iter().enumerate().filter(|(_, kind)| kind.serving == slot_kind) {
                    let seconds = whole(span.at_speed_nearest(slots.speed).0)?;
                    let seconds = usize::try_from(seconds).ok().filter(|s| (1..=20).contains(s))?;
                    ways.push(TaskPlacement { class: classes.len(), kind, seconds, at: bits.len() });
                    bits.extend(std::iter::repeat_n(of_count, seconds - 1));
                }
                classes.push(Class { phase, count, at, ways: first..ways.len() });
            }
            of_phase.push(first..classes.len());
        }
        let releases: Option<Vec<u64>> = instance.flows().iter().map(|flow| whole(flow.release.0)).collect();
        let releases = releases?;
        let fits = bits.len() <= COUNTERS_MAX && bits.iter().sum::<u32>() + 16 <= u128::BITS;
        let last_release = releases.iter().copied().max().unwrap_or(0);
        fits.then(|| Self {
            instance,
            kinds,
            classes,
            ways,
            of_phase,
            bits,
            releases,
            last_release,
            memo: BTreeMap::new(),
        })
    }

    fn key(&self, now: u64, state: &State) -> u128 {
        self.bits.iter().zip(state).fold(u128::from(now), |key, (&bits, &n)| key << bits | u128::from(n))
    }

    /// The least cost of the flows that are not complete at `now`; `None` beyond the limit.
    fn best(&mut self, now: u64, state: &State) -> Option<f64> {
        if state.iter().all(|&n| n == 0) {
            return Some(self.nothing());
        }
        let key = self.key(now, state);
        if let Some(&known) = self.memo.get(&key) {
            return Some(known);
        }
        if self.memo.len() >= STATES_MAX || now >= 1 << 15 {
            return None;
        }
        let is_ready = |&w: &usize| self.is_ready(now, state, self.classes[self.ways[w].class].phase);
        let ready: Vec<usize> = (0..self.ways.len()).filter(is_ready).collect();
        let mut free = [0; KINDS_MAX];
        for (free, kind) in free.iter_mut().zip(&self.kinds) {
            *free = kind.slots;
        }
        for way in &self.ways {
            free[way.kind] -= way.running(state);
        }
        let mut least = f64::INFINITY;
        let mut second = Second { now, state, starts: vec![0; self.ways.len()] };
        self.choose(&mut second, &ready, free, &mut least)?;
        self.memo.insert(key, least);
        Some(least)
    }

    /// Tries every number of tasks in each of the ways in `ready`, then advances by a second.
    fn choose(
        &mut self,
        second: &mut Second<'_>,
        ready: &[usize],
        free: Free,
        least: &mut f64,
    ) -> Option<()> {
        let Some((&w, rest)) = ready.split_first() else {
            return self.pass(second, least);
        };
        let (way, state) = (&self.ways[w], second.state);
        let class = &self.classes[way.class];
        let starts =
            |class: &Class| second.starts[class.ways.clone()].iter().map(|&n| u32::from(n)).sum::<u32>();
        let running =
            |class: &Class| self.ways[class.ways.clone()].iter().map(|way| way.running(state)).sum::<u32>();
        let of_phase = &self.classes[self.of_phase[class.phase.index()].clone()];
        let held: u32 = of_phase.iter().map(|class| running(class) + starts(class)).sum();
        let (kind, cap) = (way.kind, self.instance.phase(class.phase).cap);
        let most = (u32::from(state[class.at]) - starts(class)).min(free[kind]).min(cap - held);
        for n in (0..=most).rev() {
            second.starts[w] = n as u8;
            let mut left = free;
            left[kind] -= n;
            self.choose(second, rest, left, least)?;
        }
        second.starts[w] = 0;
        Some(())
    }

    /// Starts tasks, advances by a second, and adds the cost of the flows that are complete then.
    fn pass(&mut self, second: &Second<'_>, least: &mut f64) -> Option<()> {
        let &Second { now, state, ref starts } = second;
        let mut next = [0; COUNTERS_MAX];
        let mut running = false;
        for class in &self.classes {
            next[class.at] = state[class.at];
        }
        for (way, &n) in self.ways.iter().zip(starts) {
            next[self.classes[way.class].at] -= n;
            running |= n > 0 || way.running(state) > 0;
            let to_go = way.at..way.at + way.seconds - 1;
            if let Some(last) = to_go.clone().next_back() {
                next[to_go.start..last].copy_from_slice(&state[to_go.start + 1..=last]);
                next[last] = n;
            }
        }
        // Idling without a reason is never better than a start one second earlier.
        if !running && now >= self.last_release {
            return Some(());
        }
        let mut cost = self.nothing();
        for flow in self.instance.flows().keys() {
            if !self.is_complete(state, flow) && self.is_complete(&next, flow) {
                let of_flow = self.instance.flow(flow).cost.eval((now + 1) as f64);
                cost = self.both(cost, of_flow);
            }
        }
        let later = self.best(now + 1, &next)?;
        *least = least.min(self.both(cost, later));
        Some(())
    }

    fn nothing(&self) -> f64 {
        if self.instance.objective().combine == Combine::Sum { 0.0 } else { f64::NEG_INFINITY }
    }

    fn both(&self, a: f64, b: f64) -> f64 {
        if self.instance.objective().combine == Combine::Sum { a + b } else { a.max(b) }
    }

    /// A phase without length is done when all its predecessors are. Only phases with tasks wait for the
    /// release of their flow.
    fn is_phase_done(&self, state: &State, phase: PhaseId) -> bool {
        if self.of_phase[phase.index()].is_empty() {
            return self.follows_what_is_done(state, phase);
        }
        let is_done = |class: &Class| {
            let ways = &self.ways[class.ways.clone()];
            state[class.at] == 0 && ways.iter().all(|way| way.running(state) == 0)
        };
        self.classes[self.of_phase[phase.index()].clone()].iter().all(is_done)
    }

    fn is_complete(&self, state: &State, flow: slackline_model::FlowId) -> bool {
        let jobs = self.instance.flow(flow).jobs();
        jobs.flat_map(|job| self.instance.job(job).phases()).all(|phase| self.is_phase_done(state, phase))
    }

    fn is_ready(&self, now: u64, state: &State, phase: PhaseId) -> bool {
        self.releases[self.instance.flow_of(phase).index()] <= now && self.follows_what_is_done(state, phase)
    }

    fn follows_what_is_done(&self, state: &State, phase: PhaseId) -> bool {
        let info = self.instance.phase(phase);
        let job = self.instance.job(info.job);
        let done = |p: PhaseId| self.is_phase_done(state, p);
        job.after.iter().all(|&a| self.instance.job(a).phases().all(done))
            && (info.kind == PhaseKind::Map || job.map.is_none_or(done))
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, TasksDraft};
    use slackline_model::{Metric, Objective};

    use super::*;
    use crate::instances::{generic, job, machines as machines_of};

    fn best(draft: &Draft) -> f64 {
        brute(&Instance::new(draft).unwrap()).unwrap()
    }

    fn draft(slots: u32, metric: Metric, combine: Combine, flows: Vec<FlowDraft>) -> Draft {
        Draft {
            machines: generic(slots),
            objective: Objective::new(metric, combine),
            flows,
            ..Draft::default()
        }
    }

    fn maps(seconds: &[f64]) -> TasksDraft {
        TasksDraft::Each(seconds.to_vec())
    }

    #[test]
    fn two_slots_pack_the_long_task_beside_the_short_ones() {
        let flow = || FlowDraft::new("f", vec![job("j", &[], Some(maps(&[1.0, 1.0, 2.0])), None)]);
        assert_eq!(best(&draft(2, Metric::Makespan, Combine::Max, vec![flow()])), 2.0);
        assert_eq!(best(&draft(1, Metric::Makespan, Combine::Max, vec![flow()])), 4.0);
        assert_eq!(best(&draft(3, Metric::Makespan, Combine::Max, vec![flow()])), 2.0);
    }

    #[test]
    fn shortest_first_and_weights_by_hand() {
        let one = |id: &str, seconds: f64, weight: f64| FlowDraft {
            weight,
            ..FlowDraft::new(id, vec![job("j", &[], Some(maps(&[seconds])), None)])
        };
        // Smith's rule on one slot: a (2 s, weight 3), c (1 s, weight 1), b (2 s, weight 1):
        // 3·2 + 1·3 + 1·5.
        let flows = || vec![one("b", 2.0, 1.0), one("a", 2.0, 3.0), one("c", 1.0, 1.0)];
        assert_eq!(best(&draft(1, Metric::Completion, Combine::Sum, flows())), 14.0);
        // max w·C: a first (6), then 3 and 5.
        assert_eq!(best(&draft(1, Metric::Completion, Combine::Max, flows())), 6.0);
    }

    #[test]
    fn reduces_wait_for_maps_and_caps_hold() {
        let both = || job("j", &[], Some(maps(&[1.0, 1.0])), Some(maps(&[1.0, 1.0])));
        let flows = vec![FlowDraft::new("f", vec![both()])];
        assert_eq!(best(&draft(3, Metric::Makespan, Combine::Max, flows)), 2.0);
        let mut capped = both();
        capped.max_slots.map = Some(1);
        let flows = vec![FlowDraft::new("f", vec![capped])];
        assert_eq!(best(&draft(3, Metric::Makespan, Combine::Max, flows)), 3.0);
    }

    #[test]
    fn the_long_task_goes_to_the_fast_machine_undivided() {
        let flow = |seconds: &[f64]| FlowDraft::new("f", vec![job("j", &[], Some(maps(seconds)), None)]);
        let on = |seconds: &[f64], slow: u32| {
            let machines = [("fast", 4.0, 1), ("slow", 1.0, slow)];
            let machine = |(name, speed, slots)| machines_of(name, 1, speed, Slots::Generic(slots));
            best(&Draft {
                machines: machines.map(machine).into(),
                objective: Objective::new(Metric::Completion, Combine::Sum),
                flows: vec![flow(seconds)],
                ..Draft::default()
            })
        };
        assert_eq!(on(&[8.0, 4.0], 1), 3.0, "both on the fast one");
        assert_eq!(on(&[8.0, 8.0, 8.0], 1), 6.0);
        assert_eq!(on(&[16.0, 4.0, 4.0], 1), 5.0, "one on the slow one");
        assert_eq!(on(&[16.0, 4.0, 4.0], 2), 4.0);
    }

    #[test]
    fn idling_pays_when_something_heavy_is_about_to_arrive() {
        let light = FlowDraft::new("light", vec![job("j", &[], Some(maps(&[2.0])), None)]);
        let heavy = FlowDraft {
            release: 1.0,
            weight: 10.0,
            ..FlowDraft::new("heavy", vec![job("j", &[], Some(maps(&[1.0])), None)])
        };
        // Idle for a second: heavy ends at 2 and light at 4. Without idling: 2 + 10·3 = 32.
        assert_eq!(best(&draft(1, Metric::Completion, Combine::Sum, vec![light, heavy])), 24.0);
    }

    #[test]
    fn grahams_anomaly() {
        // Graham 1969, figure 1: nine tasks of 3, 2, 2, 2, 4, 4, 4, 4 and 9 on three processors, 9
        // after 1 and 5 to 8 after 4. List scheduling gives 12, which is optimal; with every task a
        // second shorter it gives 13, where another order gives 10.
        let flow = |less: f64| {
            let task = |k: usize, after: &[&str], s: f64| {
                job(&format!("t{k}"), after, Some(maps(&[s - less])), None)
            };
            let mut jobs = vec![task(1, &[], 3.0), task(2, &[], 2.0), task(3, &[], 2.0), task(4, &[], 2.0)];
            jobs.extend((5..9).map(|k| task(k, &["t4"], 4.0)));
            jobs.push(task(9, &["t1"], 9.0));
            FlowDraft::new("graham", jobs)
        };
        let value = |less| best(&draft(3, Metric::Makespan, Combine::Max, vec![flow(less)]));
        assert_eq!([value(0.0), value(1.0)], [12.0, 10.0]);
    }

    #[test]
    fn phases_without_length_take_no_slot_but_keep_the_order() {
        let nothing = || Some(maps(&[0.0, 0.0]));
        let jobs = vec![
            job("a", &[], Some(maps(&[2.0])), nothing()),
            job("b", &["a"], nothing(), None),
            job("c", &["b"], nothing(), Some(maps(&[1.0]))),
        ];
        let empty = |release: f64| FlowDraft {
            release,
            ..FlowDraft::new("e", vec![job("j", &[], nothing(), nothing())])
        };
        let flows = |release| vec![FlowDraft::new("f", jobs.clone()), empty(release)];
        // Two slots: c waits for a through b. The empty flow is done at its release, even on no free slot.
        assert_eq!(best(&draft(2, Metric::Completion, Combine::Sum, flows(1.0))), 4.0);
        assert_eq!(best(&draft(1, Metric::Makespan, Combine::Max, flows(1.0))), 3.0);
        assert_eq!(best(&draft(1, Metric::Makespan, Combine::Max, flows(9.0))), 9.0);
    }

    #[test]
    fn too_large_instances_are_refused() {
        let flow = |s: f64| vec![FlowDraft::new("f", vec![job("j", &[], Some(maps(&[s, 1.0])), None)])];
        for seconds in [0.0, 0.5, 400.0] {
            let instance = Instance::new(&draft(1, Metric::Makespan, Combine::Max, flow(seconds))).unwrap();
            assert_eq!(brute(&instance), None);
        }
    }
}
