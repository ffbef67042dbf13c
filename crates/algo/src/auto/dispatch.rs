//! Serves flows between two decisions of `auto`: slots go by the order in force, flows that reached their
//! waiting limit go first, and long tasks leave some slots to others.

use std::collections::BTreeSet;

use slackline_model::{FlowId, PhaseId, Span, Time};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, ReadyQueue, View};

use crate::auto::reserved_slots::{Bar, Headroom};
use crate::machines::Machines;

/// When the flow of a phase went first, the rank of the flow, and the position of the phase by tail; the
/// smallest is served first.
type Place = (Time, u32, u32);

/// For flows that do not go first.
const NOT_YET: Time = Time(u64::MAX);

#[derive(Clone, Debug, Default)]
pub(super) struct Serving {
    place: IdTable<PhaseId, Place>,
    queue: ReadyQueue<Place>,
    /// The same queue with all long phases last.
    short: ReadyQueue<(bool, Place)>,
    machines: Machines,
    pub(super) headroom: Bar,
    pub(super) limits: Limits,
}

impl Serving {
    /// Applies the events of an instant, before a decision.
    pub(super) fn note(&mut self, events: &[Event], view: &View<'_>) {
        self.machines.look_again();
        self.headroom.note(events, view);
    }

    /// Serves by an order of flows from now on or, without one, only by tails. `live` are all active flows.
    pub(super) fn by(
        &mut self,
        order: Option<&[FlowId]>,
        live: &[FlowId],
        phases: &[PhaseId],
        view: &View<'_>,
    ) {
        for (rank, &flow) in (0..).zip(order.unwrap_or(live)) {
            let first = self.limits.passed(flow, view.now);
            let rank = if order.is_some() { rank } else { 0 };
            let class = first.map_or((NOT_YET, rank), |at| (at, flow.0));
            view.instance.flow(flow).phases().for_each(|phase| {
                (self.place[phase].0, self.place[phase].1) = class;
            });
        }
        for (at, &phase) in (0..).zip(phases) {
            self.place[phase].2 = at;
        }
    }

    /// A flow has arrived: it is last until the next decision.
    pub(super) fn admit(&mut self, flow: FlowId, headroom: &Headroom, view: &View<'_>) {
        for phase in view.instance.flow(flow).phases() {
            self.place[phase] = (NOT_YET, u32::MAX, phase.0);
            self.headroom.admit(phase, headroom, view);
        }
    }

    /// Whether the order of the flows matters now.
    pub(super) fn is_contended(&self, view: &View<'_>) -> bool {
        let cluster = view.instance.cluster();
        cluster.slot_kinds().iter().any(|&slot_kind| {
            // Of slots of several speeds, all flows want the fast ones.
            let free = if cluster.uniform_speed().is_some() { view.held.free(slot_kind) } else { 0 };
            let free = free.min(self.headroom.room(slot_kind, view));
            self.queue.is_contended(slot_kind, free, view)
        })
    }

    /// Applies the events of an instant.
    pub(super) fn update(&mut self, events: &[Event], view: &View<'_>) {
        let mut moved = false;
        for (at, flow) in self.limits.pass(view.now) {
            moved = true;
            view.instance.flow(flow).phases().for_each(|phase| {
                (self.place[phase].0, self.place[phase].1) = (at, flow.0);
            });
        }
        if moved {
            self.sort(view);
        }
        let Self { place, queue, short, headroom, .. } = self;
        queue.update(events, view, |phase| place[phase]);
        short.update(events, view, |phase| last(phase, place, headroom));
        for flow in events.iter().filter_map(Event::over) {
            self.place.forget(view.instance.flow(flow).phases());
            self.limits.forget(flow);
        }
    }

    /// Sorts the ready phases after a decision. O(n log n).
    pub(super) fn sort(&mut self, view: &View<'_>) {
        let Self { place, queue, short, headroom, .. } = self;
        queue.rekey(view, |phase| place[phase]);
        short.rekey(view, |phase| last(phase, place, headroom));
    }

    /// The phase that gets the next slots.
    pub(super) fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let Self { place, queue, short, machines, headroom, .. } = self;
        headroom.count_granted(view);
        let room = headroom.room(ask.slot_kind, view);
        let is_barred = |phase: PhaseId| headroom.is_long(phase) && place[phase].0 == NOT_YET;
        let mut grant = machines.grant(ask, view, |ask| {
            let phase = queue.first(ask, view)?;
            if room > 0 || !is_barred(phase) {
                return Some(phase);
            }
            short.first(ask, view).filter(|&phase| !is_barred(phase))
        })?;
        if is_barred(grant.phase) {
            grant.tasks = grant.tasks.min(room);
        }
        headroom.grant(grant.phase);
        Some(grant)
    }
}

/// The place of a phase if all long phases come last.
fn last(phase: PhaseId, place: &IdTable<PhaseId, Place>, headroom: &Bar) -> (bool, Place) {
    (headroom.is_long(phase) && place[phase].0 == NOT_YET, place[phase])
}

/// The waiting limits: when active flows go first.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    at: IdTable<FlowId, Option<Time>>,
    by_time: BTreeSet<(Time, FlowId)>,
    /// The last limit that has passed.
    passed: Option<(Time, FlowId)>,
    /// The instant of the next decision that no event triggers.
    wake: Option<Time>,
}

impl Limits {
    /// Sets the instant from which a flow goes first: `seconds` after its release.
    pub(super) fn set(&mut self, flow: FlowId, release: Time, seconds: f64) {
        let at = release + Span::from_seconds_nearest(seconds);
        if let Some(before) = self.at[flow].replace(at) {
            self.by_time.remove(&(before, flow));
        }
        self.by_time.insert((at, flow));
    }

    /// As [`Limits::set`], if that is later than the limit of the flow. O(log n).
    pub(super) fn defer(&mut self, flow: FlowId, release: Time, seconds: f64) {
        if self.at[flow].is_some_and(|at| at < release + Span::from_seconds_nearest(seconds)) {
            self.set(flow, release, seconds);
        }
    }

    /// When a flow went first, if it does now.
    pub(super) fn passed(&self, flow: FlowId, now: Time) -> Option<Time> {
        self.at[flow].filter(|&at| at <= now)
    }

    /// All limits, the earliest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Time, FlowId)> {
        self.by_time.iter().copied()
    }

    /// The limits that have passed since the last call.
    fn pass(&mut self, now: Time) -> Vec<(Time, FlowId)> {
        let from = self.passed.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let until = std::ops::Bound::Included((now, FlowId(u32::MAX)));
        let passed: Vec<_> = self.by_time.range((from, until)).copied().collect();
        self.passed = Some((now, FlowId(u32::MAX)));
        passed
    }

    /// Requests a wake-up at the next limit, if there is none yet.
    pub(super) fn wake(&mut self, now: Time) -> Option<Action> {
        let next = self.by_time.range((now, FlowId(u32::MAX))..).next().map(|&(at, _)| at);
        let next = next.filter(|&at| at < NOT_YET && Some(at) != self.wake)?;
        self.wake = Some(next);
        Some(Action::WakeAt(next))
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(at) = self.at[flow] {
            self.by_time.remove(&(at, flow));
            self.at.forget([flow]);
        }
    }
}

/// The order in force without finished flows; new flows are inserted before the first flow that follows them
/// in the order of the rule. O(n · new flows).
pub(super) fn kept(flows: &[FlowId], rule: &[u32], live: &[FlowId]) -> Vec<u32> {
    let mut rank = vec![0; rule.len()];
    (0..).zip(rule).for_each(|(at, &flow)| rank[flow as usize] = at);
    let number = |flow: &FlowId| live.binary_search(flow).ok().map(|at| at as u32);
    let mut order: Vec<u32> = flows.iter().filter_map(number).collect();
    let mut is_there = vec![false; rule.len()];
    for &flow in &order {
        is_there[flow as usize] = true;
    }
    for &new in rule.iter().filter(|&&flow| !is_there[flow as usize]) {
        let behind = |&flow: &u32| rank[flow as usize] > rank[new as usize];
        let at = order.iter().position(behind).unwrap_or(order.len());
        order.insert(at, new);
    }
    order
}
