//! The ready phases of a slot kind in the order of Smith's rule, kept from one plan to the next.
//!
//! With linear costs the ratio of a phase changes only with its own tasks and estimates. The first interval of
//! the packing then follows from the head of this order: O(changed phases · log + phases with slots) a plan
//! instead of O(ready phases · log).

use std::collections::BTreeSet;

use slackline_model::{Key, PhaseId, SlotKind};
use slackline_policy::{IdTable, View};

/// The work of a phase as a job of FLEX, on slots of this mean speed.
pub(super) fn work(phase: PhaseId, speed: f64, view: &View<'_>) -> f64 {
    let state = view.phase(phase);
    // Work that is estimated as zero still needs its slots once.
    (view.work_left(phase) / speed).max(1e-6 * f64::from(state.unstarted() + state.running()))
}

/// The mean speed of the slots of a kind.
pub(super) fn mean_speed(slot_kind: SlotKind, view: &View<'_>) -> f64 {
    let cluster = view.instance.cluster();
    cluster.capacity(slot_kind) / f64::from(cluster.slots(slot_kind))
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// Work over slope; `None` if the cost is not linear.
    ratio: Option<Key>,
    most: u32,
}

/// What all entries depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Basis {
    slots: u32,
    speed: f64,
    estimates: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SmithOrder {
    order: BTreeSet<(Key, PhaseId)>,
    entries: IdTable<PhaseId, Option<Entry>>,
    n: usize,
    /// The slots that all phases together can use.
    wanted: u64,
    /// The number of phases whose cost is not linear.
    curved: usize,
    /// Phases that may have changed since the last update.
    changed: Vec<PhaseId>,
    /// Phases whose target may be above 0.
    given: Vec<PhaseId>,
    /// `None` while the order is not kept.
    basis: Option<Basis>,
}

impl SmithOrder {
    /// A phase may have changed.
    pub(super) fn change(&mut self, phase: PhaseId) {
        if self.basis.is_some() {
            self.changed.push(phase);
        }
    }

    /// Stops keeping the order until the next update.
    pub(super) fn drop_all(&mut self) {
        if self.basis.is_some() {
            *self = Self::default();
        }
    }

    /// Any phase may have a target.
    pub(super) fn give_all(&mut self) {
        self.given.clear();
        self.given.extend(self.order.iter().map(|&(_, phase)| phase));
    }

    /// The slots that all phases together can use.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Whether all costs are linear.
    pub(super) fn is_linear(&self) -> bool {
        self.curved == 0
    }

    /// Takes over all changes.
    pub(super) fn update(&mut self, slot_kind: SlotKind, view: &View<'_>) {
        let basis = Basis {
            slots: view.state.alive(slot_kind),
            speed: mean_speed(slot_kind, view),
            estimates: view.estimates.revision,
        };
        if self.basis == Some(basis) {
            let mut changed = std::mem::take(&mut self.changed);
            changed.sort_unstable();
            changed.dedup();
            for phase in changed.drain(..) {
                self.refresh(phase, basis, view);
            }
            self.changed = changed;
        }
        // A phase may stop being ready without an event.
        if self.basis != Some(basis) || self.n != view.state.n_ready(slot_kind) {
            *self = Self { basis: Some(basis), ..Self::default() };
            for phase in view.state.ready(slot_kind) {
                self.refresh(phase, basis, view);
            }
        }
    }

    fn refresh(&mut self, phase: PhaseId, basis: Basis, view: &View<'_>) {
        let is_ready = view.state.knows(phase) && view.phase(phase).is_ready();
        let entry = is_ready.then(|| {
            let cost = &view.instance.flow(view.instance.flow_of(phase)).cost;
            let work = || work(phase, basis.speed, view);
            let ratio = |(slope, _)| Key::new(if slope > 0.0 { work() / slope } else { f64::INFINITY });
            Entry {
                ratio: cost.as_linear().map(ratio),
                most: view.usable(phase).clamp(1, basis.slots.max(1)),
            }
        });
        let old = self.entries[phase];
        if old == entry {
            return;
        }
        if let Some(Entry { ratio, most }) = old {
            self.n -= 1;
            self.wanted -= u64::from(most);
            self.curved -= usize::from(ratio.is_none());
            ratio.map(|ratio| self.order.remove(&(ratio, phase)));
            self.entries.forget([phase]);
        }
        if let Some(Entry { ratio, most }) = entry {
            self.n += 1;
            self.wanted += u64::from(most);
            self.curved += usize::from(ratio.is_none());
            ratio.map(|ratio| self.order.insert((ratio, phase)));
            self.entries[phase] = entry;
            if old.is_none() {
                self.given.push(phase);
            }
        }
    }

    /// The slots of the first interval, for the phases whose target may change, in the order of their ids.
    pub(super) fn first_interval(&mut self, slots: u32) -> Vec<(PhaseId, u32)> {
        let entries = &self.entries;
        let mut targets: Vec<(PhaseId, u32)> = Vec::with_capacity(2 * self.given.len());
        targets
            .extend(self.given.drain(..).filter(|&phase| entries[phase].is_some()).map(|phase| (phase, 0)));
        let mut slack = slots;
        for &(_, phase) in &self.order {
            if slack == 0 {
                break;
            }
            let more = slack.min(entries[phase].map_or(0, |entry| entry.most));
            slack -= more;
            targets.push((phase, more));
            self.given.push(phase);
        }
        // Of each phase the larger.
        targets.sort_unstable_by_key(|&(phase, slots)| (phase, std::cmp::Reverse(slots)));
        targets.dedup_by_key(|&mut (phase, _)| phase);
        targets
    }
}
