//! The estimated remaining work of every active flow, by which rules and rollouts order flows.
//!
//! The remaining work of a running task is its estimate less its run time, and that of a phase is its
//! estimate less its finished work. An overdue task or phase is not about to end, so either is at least a
//! tenth of the work that is done (`FLOOR`). If a flow exceeds its whole estimate, the estimate of the rest
//! is raised too ([`ResidualWork::overrun`]). Otherwise the flow would stay ahead of all others for as long
//! as it runs.

use slackline_model::cluster::Slots;
use slackline_model::{FlowId, PhaseId, PhaseKind, SlotKind, Span, Time};
use slackline_policy::engine::RowId;
use slackline_policy::{Event, IdTable, View};

use super::lag::Plans;
use crate::estimated;

/// The least remaining work of a task or phase, as a share of its finished work.
const FLOOR: f64 = 0.1;

/// A flow has exceeded its estimate from this share on, so that rounding does not count.
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

/// What is left of each active flow. Only flows that changed or run are measured again: what is left of a
/// flow without running tasks does not depend on the time.
#[derive(Clone, Debug, Default)]
pub struct Residual {
    /// The flows that are neither done nor abandoned, in the order of their ids, as of the last
    /// [`Residual::measure`].
    pub flows: Vec<ResidualWork>,
    /// Their phases, as of the last measurement; nothing is left of one that is done.
    pub phases: IdTable<PhaseId, PhaseLeft>,
    progress: IdTable<PhaseId, Progress>,
    measured: IdTable<FlowId, Measured>,
    /// Flows that changed since the last measurement, and flows with running tasks; once each.
    moving: Vec<FlowId>,
    /// The flows of the last measurement.
    updated: Vec<FlowId>,
    basis: Basis,
    plans: Option<Plans>,
}

/// A flow as of its last measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    left: Option<ResidualWork>,
    /// Whether it is in [`Residual::moving`].
    is_moving: bool,
    /// Whether something other than the time changed since.
    is_changed: bool,
}

/// The progress of a phase as of the last change of its flow. Work in slot-seconds at speed 1.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// What its finished tasks took.
    spent: f64,
    /// The estimated work of all its tasks.
    all: f64,
    /// The estimated work of its unstarted tasks, and the longest of them.
    to_start: (f64, f64),
    /// The estimate of a task from which these were computed.
    task: Span,
    usable: u32,
    is_done: bool,
    is_instant: bool,
    /// Its running tasks, in the order of their starts; also some that have ended, if `has_ended`.
    batches: Vec<Batch>,
    has_ended: bool,
    /// The sums of `batches` at the last measurement.
    running: Running,
}

/// Tasks of a phase that started together.
#[derive(Clone, Copy, Debug)]
struct Batch {
    row: RowId,
    first: u32,
    count: f64,
    /// Since when they compute; `None` for reduces that wait for maps.
    since: Option<Time>,
    speed: f64,
    /// The estimated size of each, seconds.
    size: f64,
}

/// Tasks of a phase that run: slot-seconds at speed 1.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    done: f64,
    left: f64,
    /// Of the task that has most left.
    longest: f64,
}

/// What the measurements of all flows depend on.
#[derive(Clone, Debug, Default)]
struct Basis {
    /// Batches from this row on are not known yet.
    next_row: RowId,
    /// [`slackline_policy::BusySlots::changes`].
    row_changes: u64,
    /// [`slackline_policy::Estimates::revision`].
    revision: u64,
    speed: Vec<f64>,
    alive: [u32; 2],
    has_cluster_changed: bool,
    slot_kinds: [Speeds; 2],
}

impl Residual {
    /// One that also makes a plan for each flow, for rules that look at how far a flow is behind.
    pub fn with_plans() -> Self {
        Self { plans: Some(Plans::default()), ..Self::default() }
    }

    /// What is left of the flows of a view whose events were not seen. O(phases + rows of the log).
    pub fn of(view: &View<'_>) -> Self {
        let mut residual = Self::default();
        residual.note(&view.instance.flows().keys().map(Event::FlowArrived).collect::<Vec<_>>(), view);
        residual.measure(view);
        residual
    }

    /// Learns from events, and forgets finished flows. Call it once with every event.
    pub fn note(&mut self, events: &[Event], view: &View<'_>) {
        for event in events {
            match *event {
                Event::TasksDone { phase, count, machine, took } => {
                    let speed = view.estimates.speed[view.instance.cluster().group_id_of(machine)];
                    let progress = &mut self.progress[phase];
                    progress.spent += f64::from(count) * took.seconds() * speed;
                    progress.has_ended = true;
                    self.change(view.instance.flow_of(phase));
                }
                Event::TasksLost { phase, .. } => {
                    self.progress[phase].has_ended = true;
                    self.change(view.instance.flow_of(phase));
                }
                Event::TaskRuns { phase, .. } | Event::PhaseDone(phase) | Event::PhaseReady(phase) => {
                    self.change(view.instance.flow_of(phase));
                }
                Event::FlowArrived(flow) => self.change(flow),
                Event::MachineDown(_)
                | Event::MachineUp(_)
                | Event::MachineJoined(_)
                | Event::MachineLeft(_) => self.basis.has_cluster_changed = true,
                Event::JobDone(_) | Event::FlowDone(_) | Event::FlowFailed(_) | Event::Wake => {}
            }
        }
        for flow in events.iter().filter_map(Event::over) {
            self.phases.forget(view.instance.flow(flow).phases());
            self.progress.forget(view.instance.flow(flow).phases());
            self.measured.forget([flow]);
            self.plans.iter_mut().for_each(|plans| plans.forget(flow));
        }
    }

    /// What is left of a flow as of the last measurement; `None` if it was not measured.
    pub(crate) fn of_flow(&self, flow: FlowId) -> Option<&ResidualWork> {
        self.measured[flow].left.as_ref()
    }

    /// Measures what is left of all flows now. O(flows + changed phases).
    pub fn measure(&mut self, view: &View<'_>) {
        self.update(view);
        self.flows.clear();
        for flow in view.instance.flows().keys().filter(|&flow| is_live(flow, view)) {
            let lag = self.plans.as_mut().map_or(0.0, |plans| plans.lag(flow, view));
            let left = self.measured[flow].left.expect("invariant: every flow is measured when it arrives");
            self.flows.push(ResidualWork { lag, ..left });
        }
    }

    /// Measures flows that changed or run. O(their phases and running batches), and O(all flows) when speeds,
    /// slots or all estimates changed.
    pub(crate) fn update(&mut self, view: &View<'_>) {
        self.note_basis(view);
        self.note_started(view);
        std::mem::swap(&mut self.moving, &mut self.updated);
        self.moving.clear();
        let mut updated = std::mem::take(&mut self.updated);
        // Others have ended.
        updated.retain(|&flow| self.measured.contains(flow));
        for &flow in &updated {
            let measured = &mut self.measured[flow];
            measured.is_moving = false;
            if std::mem::take(&mut measured.is_changed) {
                self.note_progress(flow, view);
            }
            let (left, runs) = self.measure_flow(flow, view);
            self.measured[flow].left = Some(left);
            if runs {
                self.measured[flow].is_moving = true;
                self.moving.push(flow);
            }
        }
        self.updated = updated;
    }

    /// The flows that the last [`Residual::update`] measured.
    pub(super) fn updated(&self) -> &[FlowId] {
        &self.updated
    }

    /// All flows and all batches are read again at the next measurement.
    #[cfg(test)]
    fn read_again(&mut self) {
        self.basis = Basis { has_cluster_changed: true, ..Basis::default() };
    }

    fn change(&mut self, flow: FlowId) {
        let measured = &mut self.measured[flow];
        measured.is_changed = true;
        if !std::mem::replace(&mut measured.is_moving, true) {
            self.moving.push(flow);
        }
    }

    /// All flows changed if what they all depend on has changed.
    fn note_basis(&mut self, view: &View<'_>) {
        let basis = &mut self.basis;
        let cluster = view.instance.cluster();
        let mut alive = [0; 2];
        for &slot_kind in cluster.slot_kinds() {
            alive[slot_kind.index()] = view.state.alive(slot_kind);
        }
        let has_speeds = basis.speed == view.estimates.speed.raw;
        if basis.row_changes != view.held.changes() || !has_speeds {
            basis.next_row = RowId(0);
        }
        basis.row_changes = view.held.changes();
        let is_known = has_speeds && basis.alive == alive && basis.revision == view.estimates.revision;
        if is_known && !std::mem::take(&mut basis.has_cluster_changed) {
            return;
        }
        basis.speed.clone_from(&view.estimates.speed.raw);
        (basis.alive, basis.revision) = (alive, view.estimates.revision);
        basis.slot_kinds = [PhaseKind::Map, PhaseKind::Reduce].map(|kind| Speeds::of(view, kind));
        let known: Vec<FlowId> = self.measured.iter_enumerated().map(|(flow, _)| flow).collect();
        for flow in known {
            self.change(flow);
        }
    }

    /// Takes in the batches that started since the last call, or all if some changed.
    fn note_started(&mut self, view: &View<'_>) {
        let from = std::mem::replace(&mut self.basis.next_row, view.held.next_row());
        if from == RowId(0) {
            let known: Vec<PhaseId> = self.progress.iter_enumerated().map(|(phase, _)| phase).collect();
            for phase in known {
                self.progress[phase].batches.clear();
            }
        }
        for (row, holding) in view.held.running_from(from) {
            let slot_kind = view.instance.slot_kind_of(holding.phase);
            let (machine, _) = view.instance.cluster().machine_of(slot_kind, holding.places[0].first);
            self.progress[holding.phase].batches.push(Batch {
                row,
                first: holding.first,
                count: f64::from(holding.count),
                since: holding.since,
                speed: view.estimates.speed[view.instance.cluster().group_id_of(machine)],
                size: estimated::size(view, holding.phase, holding.first).seconds(),
            });
            self.change(view.instance.flow_of(holding.phase));
        }
    }

    /// Takes in the progress of the phases of a flow.
    fn note_progress(&mut self, flow: FlowId, view: &View<'_>) {
        for phase in view.instance.flow(flow).phases() {
            let (state, progress) = (view.phase(phase), &mut self.progress[phase]);
            let task = view.estimates.task[phase];
            if std::mem::replace(&mut progress.task, task) != task {
                for batch in &mut progress.batches {
                    batch.size = estimated::size(view, phase, batch.first).seconds();
                }
            }
            progress.all = f64::from(state.total()) * task.seconds();
            progress.to_start = estimated::left(view, phase);
            progress.usable = view.usable(phase);
            (progress.is_done, progress.is_instant) = (state.is_done(), view.is_instant(phase));
        }
    }

    /// From the jobs that nothing comes after to the first. Returns also whether some of its tasks run.
    fn measure_flow(&mut self, flow: FlowId, view: &View<'_>) -> (ResidualWork, bool) {
        let mut runs = false;
        let mut overrun = Overrun::default();
        for phase in view.instance.flow(flow).phases() {
            let progress = &mut self.progress[phase];
            if std::mem::take(&mut progress.has_ended) {
                progress.batches.retain(|batch| view.held.is_running(batch.row));
            }
            runs |= !progress.batches.is_empty();
            progress.running = Running::of(&progress.batches, view.now);
            overrun.add(progress);
        }
        let overrun = overrun.factor();
        let (mut stages, mut longest_path) = ([0.0; 2], 0.0_f64);
        for &job in view.instance.topological_of(flow).iter().rev() {
            let info = view.instance.job(job);
            let first = |next| view.instance.job(next).phases().next();
            let tails =
                info.before.iter().filter_map(|&next| first(next)).map(|phase| self.phases[phase].tail);
            let mut tail = tails.fold(0.0, f64::max);
            for phase in [info.reduce, info.map].into_iter().flatten() {
                let kind = view.instance.phase(phase).kind as usize;
                let slot_kind = &self.basis.slot_kinds[kind];
                let (work, seconds) = self.progress[phase].left(overrun, slot_kind);
                tail += seconds;
                stages[kind] += work / slot_kind.capacity;
                self.phases[phase] = PhaseLeft { work, tail };
            }
            longest_path = longest_path.max(tail);
        }
        let [map, reduce] = stages;
        let area = if view.instance.cluster().is_map_reduce() { map.max(reduce) } else { map + reduce };
        (ResidualWork { flow, stages, area, rem: area.max(longest_path), overrun, lag: 0.0 }, runs)
    }
}

impl Running {
    /// What tasks that run now have done and have left. O(batches).
    fn of(batches: &[Batch], now: Time) -> Self {
        let mut running = Self::default();
        for &Batch { count, since, speed, size, .. } in batches {
            let done = since.map_or(0.0, |since| now.since(since).seconds() * speed);
            let left = (size - done).max(FLOOR * done);
            running.done += count * done;
            running.left += count * left;
            running.longest = running.longest.max(left);
        }
        running
    }
}

impl Progress {
    /// Work left in slot-seconds, and the seconds it takes at least.
    fn left(&self, overrun: f64, slot_kind: &Speeds) -> (f64, f64) {
        if self.is_done || self.is_instant {
            return (0.0, 0.0);
        }
        let (to_start, longest) = self.to_start;
        let (to_start, longest) = (to_start * overrun, longest * overrun);
        let running = self.running;
        let work = (to_start + running.left).max(FLOOR * (self.spent + running.done));
        let longest = longest.max(running.longest);
        let usable = slot_kind.fastest(self.usable);
        (work, (work / usable).max(longest / slot_kind.fastest(1)))
    }
}

/// How far a flow has exceeded its estimate.
#[derive(Default)]
struct Overrun {
    done: f64,
    estimated: f64,
    estimated_done: f64,
}

impl Overrun {
    fn add(&mut self, phase: &Progress) {
        if !phase.is_instant {
            self.done += phase.spent + phase.running.done;
            self.estimated += phase.all;
            self.estimated_done += phase.all - phase.to_start.0;
        }
    }

    /// How many times as long as estimated the tasks of a flow take that has done more than its estimate.
    fn factor(&self) -> f64 {
        if self.done > self.estimated * OVER && self.estimated_done > 0.0 {
            (self.done / self.estimated_done).max(1.0)
        } else {
            1.0
        }
    }
}

/// Whether a flow is neither done nor abandoned.
pub(crate) fn is_live(flow: FlowId, view: &View<'_>) -> bool {
    view.state.completion(flow).is_none() && !view.state.has_failed(flow)
}

/// The estimated speeds of the slots of a kind that are up.
#[derive(Clone, Debug, Default)]
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
            (Slots::Generic(n), _) => n,
            (Slots::MapReduce { map, .. }, SlotKind::Map | SlotKind::Any) => map,
            (Slots::MapReduce { reduce, .. }, SlotKind::Reduce) => reduce,
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
