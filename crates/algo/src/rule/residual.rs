//! The estimated remaining work of every active flow, by which rules and rollouts order flows.
//!
//! The remaining work of a running task is its estimate less its run time, and that of a phase is its
//! estimate less its finished work. An overdue task or phase is not about to end, so either is at least a
//! tenth of the work that is done (`FLOOR`). If a flow exceeds its whole estimate, the estimate of the rest
//! is raised too ([`ResidualWork::overrun`]). Otherwise the flow would stay ahead of all others for as long
//! as it runs.

use slackline_model::cluster::Slots;
use slackline_model::{FlowId, PhaseId, PhaseKind, SlotKind, Time};
use slackline_policy::{Event, IdTable, View};

use super::lag::Plans;
use crate::estimated;

/// The least remaining work of a task or phase, as a share of its finished work.
const FLOOR: f64 = 0.1;

/// A flow has done more than it was believed to be from this share on, so that rounding does not count.
const OVER: f64 = 1.001;

/// What is left of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualWork {
    pub flow: FlowId,
    /// Work of its maps and of its reduces, each over the capacity of the slots that serve them: seconds.
    pub stages: [f64; 2],
    /// Seconds that the slots of the kind it needs most are busy with it, all of them.
    pub area: f64,
    /// Seconds until it is done if it has the whole cluster from now on: its longest path, or the area if
    /// that is more.
    pub rem: f64,
    /// How many times as long as believed its tasks take, once it has done more than all it was believed to
    /// be; else 1.
    pub overrun: f64,
    /// How many tasks it is behind its plan ([`Residual::with_plans`]); 0 where none are made.
    pub lag: f64,
}

/// What is left of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseLeft {
    /// Slot-seconds at speed 1.
    pub work: f64,
    /// Seconds of the longest path from now to the end of the flow that begins with this phase.
    pub tail: f64,
}

/// What is left, as of the last [`Residual::measure`].
#[derive(Clone, Debug, Default)]
pub struct Residual {
    /// The flows that are neither done nor abandoned, in the order of their ids.
    pub flows: Vec<ResidualWork>,
    /// Their phases; nothing is left of one that is done.
    pub phases: IdTable<PhaseId, PhaseLeft>,
    /// What finished tasks of each phase took, slot-seconds at speed 1.
    spent: IdTable<PhaseId, f64>,
    /// What running tasks of each phase that some run of have done and have left.
    running: IdTable<PhaseId, Running>,
    plans: Option<Plans>,
}

/// Tasks of a phase that run: slot-seconds at speed 1.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    done: f64,
    left: f64,
    /// Of the task that has most left.
    longest: f64,
}

impl Residual {
    /// One that also makes a plan for each flow, for rules that look at how far a flow is behind.
    pub fn with_plans() -> Self {
        Self { plans: Some(Plans::default()), ..Self::default() }
    }

    /// Learns from finished tasks, and forgets finished flows. Call it once with every event.
    pub fn note(&mut self, events: &[Event], view: &View<'_>) {
        for event in events {
            if let Event::TasksDone { phase, count, machine, took } = *event {
                let speed = view.estimates.speed[view.instance.cluster().group_id_of(machine)];
                self.spent[phase] += f64::from(count) * took.seconds() * speed;
            }
            if let Some(flow) = event.over() {
                self.phases.forget(view.instance.flow(flow).phases());
                self.spent.forget(view.instance.flow(flow).phases());
                self.plans.iter_mut().for_each(|plans| plans.forget(flow));
            }
        }
    }

    /// Measures what is left now. O(phases of live flows + what runs).
    pub fn measure(&mut self, view: &View<'_>) {
        let slot_kinds = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| Speeds::of(view, kind));
        self.note_running(view);
        self.flows.clear();
        let flows = view.instance.flows().keys();
        for flow in flows.filter(|&flow| is_live(flow, view)) {
            let left = self.measure_flow(flow, view, &slot_kinds);
            self.flows.push(left);
        }
        self.running = IdTable::default();
    }

    fn note_running(&mut self, view: &View<'_>) {
        for holding in view.held.running() {
            let slot_kind = view.instance.slot_kind_of(holding.phase);
            let (machine, _) = view.instance.cluster().machine_of(slot_kind, holding.places[0].first);
            let speed = view.estimates.speed[view.instance.cluster().group_id_of(machine)];
            let done = holding.since.map_or(0.0, |since| view.now.since(since).seconds() * speed);
            let size = estimated::size(view, holding.phase, holding.first).seconds();
            let left = (size - done).max(FLOOR * done);
            let count = f64::from(holding.count);
            let running = &mut self.running[holding.phase];
            running.done += count * done;
            running.left += count * left;
            running.longest = running.longest.max(left);
        }
    }

    /// From the jobs that nothing comes after to the first.
    fn measure_flow(&mut self, flow: FlowId, view: &View<'_>, slot_kinds: &[Speeds; 2]) -> ResidualWork {
        let overrun = self.overrun(flow, view);
        let (mut stages, mut longest_path) = ([0.0; 2], 0.0_f64);
        for &job in view.instance.topological_of(flow).iter().rev() {
            let info = view.instance.job(job);
            let first = |next| view.instance.job(next).phases().next();
            let tails =
                info.before.iter().filter_map(|&next| first(next)).map(|phase| self.phases[phase].tail);
            let mut tail = tails.fold(0.0, f64::max);
            for phase in [info.reduce, info.map].into_iter().flatten() {
                let kind = view.instance.phase(phase).kind as usize;
                let (work, seconds) = self.measure_phase(phase, overrun, view, &slot_kinds[kind]);
                tail += seconds;
                stages[kind] += work / slot_kinds[kind].capacity;
                self.phases[phase] = PhaseLeft { work, tail };
            }
            longest_path = longest_path.max(tail);
        }
        let [map, reduce] = stages;
        let area = if view.instance.cluster().is_typed() { map.max(reduce) } else { map + reduce };
        let lag = self.plans.as_mut().map_or(0.0, |plans| plans.lag(flow, view));
        ResidualWork { flow, stages, area, rem: area.max(longest_path), overrun, lag }
    }

    /// How many times as long as believed the tasks of a flow take that has done more than all it was
    /// believed to be.
    fn overrun(&self, flow: FlowId, view: &View<'_>) -> f64 {
        let (mut done, mut said, mut said_done) = (0.0, 0.0, 0.0);
        for phase in view.instance.flow(flow).phases().filter(|&phase| !view.is_instant(phase)) {
            let all = f64::from(view.phase(phase).total()) * view.estimates.task[phase].seconds();
            done += self.spent[phase] + self.running[phase].done;
            said += all;
            said_done += all - estimated::left(view, phase).0;
        }
        if done > said * OVER && said_done > 0.0 { (done / said_done).max(1.0) } else { 1.0 }
    }

    /// Work left of a phase in slot-seconds, and the seconds it takes at least.
    fn measure_phase(&self, phase: PhaseId, overrun: f64, view: &View<'_>, slot_kind: &Speeds) -> (f64, f64) {
        let state = view.phase(phase);
        if state.is_done() || view.is_instant(phase) {
            return (0.0, 0.0);
        }
        let (to_start, longest) = estimated::left(view, phase);
        let (to_start, longest) = (to_start * overrun, longest * overrun);
        let running = self.running[phase];
        let work = (to_start + running.left).max(FLOOR * (self.spent[phase] + running.done));
        let longest = longest.max(running.longest);
        let usable = slot_kind.fastest(view.usable(phase));
        (work, (work / usable).max(longest / slot_kind.fastest(1)))
    }
}

/// Whether a flow is neither done nor abandoned.
pub(crate) fn is_live(flow: FlowId, view: &View<'_>) -> bool {
    view.state.completion(flow).is_none() && !view.state.has_failed(flow)
}

/// The believed speeds of the slots of a kind that are up.
struct Speeds {
    /// Speed and how many slots have it, the fastest first.
    slots: Vec<(f64, f64)>,
    /// Work they do in a second.
    capacity: f64,
}

impl Speeds {
    /// Those of the slots that serve phases of `kind`. If some are away, as many of each speed as of the
    /// others; if all are away, one of each speed, so that orders are still orders.
    fn of(view: &View<'_>, kind: PhaseKind) -> Self {
        let slot_kind = view.instance.cluster().slot_kind_of(kind);
        let of_group = |group: &slackline_model::cluster::Group| match (group.slots, slot_kind) {
            (Slots::Universal(n), _) => n,
            (Slots::Typed { map, .. }, SlotKind::Map | SlotKind::Any) => map,
            (Slots::Typed { reduce, .. }, SlotKind::Reduce) => reduce,
        };
        let groups = view.instance.cluster().groups().iter_enumerated();
        let counted =
            groups.map(|(id, group)| (view.estimates.speed[id], f64::from(of_group(group) * group.count)));
        let mut slots: Vec<(f64, f64)> = counted.filter(|&(_, n)| n > 0.0).collect();
        slots.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Sums are the same to the last bit in every order of groups of one speed.
        slots.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        let all: f64 = slots.iter().map(|&(_, n)| n).sum();
        let up = f64::from(view.state.alive(slot_kind).max(1)) / all.max(1.0);
        for (_, n) in &mut slots {
            *n *= up;
        }
        let capacity = slots.iter().map(|&(speed, n)| speed * n).sum();
        // A slot kind without slots serves no phases: any capacity will do.
        Self { capacity: if slots.is_empty() { 1.0 } else { capacity }, slots }
    }

    /// Work that the fastest `n` slots do in a second.
    fn fastest(&self, n: u32) -> f64 {
        let mut left = f64::from(n.max(1));
        let mut sum = 0.0;
        for &(speed, count) in &self.slots {
            sum += speed * count.min(left);
            left -= count.min(left);
        }
        sum.max(f64::MIN_POSITIVE)
    }
}

/// The instant of a flow's due date: its deadline or, without one, when its cost begins to rise; infinite if
/// it has neither. Seconds.
pub(crate) fn due(flow: FlowId, view: &View<'_>) -> f64 {
    let flow = view.instance.flow(flow);
    let rises = || flow.cost.breakpoints().first().copied().unwrap_or(f64::INFINITY);
    flow.deadline.map_or_else(rises, Time::seconds)
}

#[cfg(test)]
mod tests;
