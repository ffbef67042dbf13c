//! Slots that are reserved from long tasks, so that the next flow need not wait for the end of one of them.
//!
//! Nothing is preempted: if one flow of long tasks takes every slot, the next flow waits for a whole task,
//! however short it is. So tasks longer than *theta*, the median time alone of the last flows, hold at most a
//! share 1 − *rho* of a slot kind. The best rho depends on the arrivals: it is chosen by rollouts of the last
//! flows, as if they arrived again on an empty cluster, under each share. Future flows are never used.
//!
//! The share for a flow of very long tasks is chosen at its arrival, because later is too late: the last
//! flows are rolled out as if they arrived after it.

use std::borrow::Cow;
use std::collections::VecDeque;

use slackline_model::{FlowId, Objective, PhaseId, SlotKind, Span};
use slackline_policy::{Event, IdTable, View};

use crate::auto::evaluate::{Evaluator, Sequence};
use crate::auto::recurring::RecurringFlow;
use crate::auto::snapshot::long_max;

/// The candidate shares of a slot kind.
const SHARES: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7];

/// A flow is huge if it has tasks longer than this multiple of theta.
const HUGE: f64 = 10.0;

/// The largest reserved share if no huge flow arrived recently.
const USUAL: f64 = 0.2;

/// The reserved share until there are past flows to evaluate.
const FIRST_SHARE: f64 = 0.05;

/// The number of flows that must have arrived before theta is meaningful.
const FEW: usize = 10;

/// At most this number of past flows is rolled out.
const MANY: usize = 100;

/// The share is chosen again after this number of arrivals.
const EVERY: u64 = 10;

/// The share changes only if the new one would have cost less by this fraction.
const GAIN: f64 = 0.03;

/// The number of slots that are reserved, and from which tasks.
#[derive(Clone, Debug)]
pub(super) struct Headroom {
    /// The last flows.
    past: VecDeque<RecurringFlow>,
    /// Whether a huge flow has arrived since the last choice.
    is_huge: bool,
    /// The number of arrivals since the last choice.
    unseen: u64,
    /// Tasks longer than this are long; no task is long before there are past flows to evaluate.
    pub(super) theta: Span,
    /// The reserved share.
    pub(super) rho: f64,
    /// Whether theta and rho are fixed.
    is_fixed: bool,
    evaluator: Evaluator,
}

impl Headroom {
    /// A share that is chosen as flows arrive.
    pub(super) fn chosen() -> Self {
        Self {
            past: VecDeque::new(),
            is_huge: false,
            unseen: 0,
            theta: Span(u64::MAX),
            rho: FIRST_SHARE,
            is_fixed: false,
            evaluator: Evaluator::default(),
        }
    }

    /// A share of each slot kind that tasks longer than `theta` never hold.
    pub(super) fn fixed(theta: Span, rho: f64) -> Self {
        Self { theta, rho, is_fixed: true, ..Self::chosen() }
    }

    /// Records a flow that has arrived.
    pub(super) fn note(&mut self, known: RecurringFlow) {
        if !self.is_fixed {
            self.is_huge |= is_huge(&known, self.theta);
            self.past.truncate(MANY - 1);
            self.past.push_front(known);
            self.unseen += 1;
        }
    }

    /// The work of all rollouts of past flows so far.
    pub(super) fn work(&self) -> u64 {
        self.evaluator.work()
    }

    /// Chooses the share again, if enough flows have arrived since the last choice. Returns whether it did.
    pub(super) fn choose(&mut self, objective: Objective, view: &View<'_>) -> bool {
        if self.is_fixed || self.past.len() < FEW || self.unseen < EVERY && !self.is_huge {
            return false;
        }
        (self.unseen, self.is_huge) = (0, false);
        let mut alone: Vec<f64> = self.past.iter().map(|known| known.left.rem).collect();
        alone.sort_by(f64::total_cmp);
        self.theta = Span::from_seconds_nearest(alone[alone.len() / 2]);
        let is_huge = self.past.iter().any(|known| is_huge(known, self.theta));
        let most = if is_huge { 1.0 } else { USUAL };
        self.rho = self.rho.min(most);
        let flows = looked_back_at(&self.past, self.theta);
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        order.sort_by(|&a, &b| {
            let ratio = |at: u32| flows[at as usize].ratio();
            ratio(a).total_cmp(&ratio(b)).then(a.cmp(&b))
        });
        let Self { evaluator, theta, .. } = self;
        evaluator.look_back(view, flows.iter().map(|known| (&known.template, known.at)));
        let mut cost = |rho: f64| {
            evaluator.reserve(*theta, rho);
            let (_, completions) = evaluator.roll(Sequence::Flows(&order))?;
            let costs = flows.iter().zip(completions).map(|(known, at)| known.cost.eval(at.seconds()));
            Some(objective.combine.of(costs))
        };
        let Some(now) = cost(self.rho) else { return true };
        let mut least = now;
        for rho in SHARES.into_iter().filter(|&rho| rho <= most) {
            let would = cost(rho).unwrap_or(f64::INFINITY);
            if would < least && would < now - GAIN * now.abs() {
                (least, self.rho) = (would, rho);
            }
        }
        true
    }
}

fn is_huge(known: &RecurringFlow, theta: Span) -> bool {
    known.template.longest().seconds() > HUGE * theta.seconds()
}

/// Past flows in the order of their arrivals. The flows after a huge flow are mostly still to come, so the
/// last huge flow is put before all others.
fn looked_back_at(past: &VecDeque<RecurringFlow>, theta: Span) -> Vec<Cow<'_, RecurringFlow>> {
    let mut flows: Vec<Cow<'_, RecurringFlow>> = past.iter().map(Cow::Borrowed).collect();
    flows.sort_by_key(|known| known.at);
    if let Some(at) = flows.iter().rposition(|known| is_huge(known, theta)) {
        flows[at] = Cow::Owned(flows[at].again(flows[0].at));
        flows[..=at].rotate_right(1);
    }
    flows
}

/// The number of slots that long tasks hold, and so the number that they may still take.
#[derive(Clone, Debug, Default)]
pub(super) struct Bar {
    rho: f64,
    is_long: IdTable<PhaseId, bool>,
    /// The number of tasks of each long phase that are counted in `held`.
    counted: IdTable<PhaseId, u32>,
    held: [u32; 2],
    /// A phase that was granted slots, for which the number of taken slots is not known yet.
    granted: Option<PhaseId>,
}

impl Bar {
    /// From now on, phases with tasks longer than `theta` are long. O(phases).
    pub(super) fn set(
        &mut self,
        headroom: &Headroom,
        phases: impl IntoIterator<Item = PhaseId>,
        view: &View<'_>,
    ) {
        (self.rho, self.held, self.granted) = (headroom.rho, [0; 2], None);
        for phase in phases {
            self.admit(phase, headroom, view);
        }
    }

    /// A phase has arrived, or was not counted yet.
    pub(super) fn admit(&mut self, phase: PhaseId, headroom: &Headroom, view: &View<'_>) {
        self.is_long[phase] = view.estimates.task[phase] > headroom.theta;
        self.counted[phase] = 0;
        self.count(phase, view);
    }

    /// Whether the tasks of a phase are long.
    pub(super) fn is_long(&self, phase: PhaseId) -> bool {
        self.is_long[phase]
    }

    /// Applies the events of an instant.
    pub(super) fn note(&mut self, events: &[Event], view: &View<'_>) {
        self.count_granted(view);
        for event in events {
            match *event {
                Event::TasksDone { phase, .. }
                | Event::TasksLost { phase, .. }
                | Event::TaskRuns { phase, .. } => self.count(phase, view),
                Event::FlowDone(flow) | Event::FlowFailed(flow) => self.forget(flow, view),
                _ => {}
            }
        }
    }

    fn forget(&mut self, flow: FlowId, view: &View<'_>) {
        for phase in view.instance.flow(flow).phases() {
            self.count(phase, view);
            self.is_long.forget([phase]);
            self.counted.forget([phase]);
        }
    }

    /// A phase was granted slots.
    pub(super) fn grant(&mut self, phase: PhaseId) {
        self.granted = Some(phase);
    }

    /// Counts the slots of the last grant. Call this before any other query.
    pub(super) fn count_granted(&mut self, view: &View<'_>) {
        if let Some(phase) = self.granted.take() {
            self.count(phase, view);
        }
    }

    fn count(&mut self, phase: PhaseId, view: &View<'_>) {
        if self.is_long[phase] {
            let held = &mut self.held[view.instance.slot_kind_of(phase).index()];
            *held = *held - self.counted[phase] + view.phase(phase).running();
            self.counted[phase] = view.phase(phase).running();
        }
    }

    /// The number of slots of a kind that long tasks may still take.
    pub(super) fn room(&self, slot_kind: SlotKind, view: &View<'_>) -> u32 {
        long_max(view.state.alive(slot_kind), self.rho).saturating_sub(self.held[slot_kind.index()])
    }
}

#[cfg(test)]
mod tests;
