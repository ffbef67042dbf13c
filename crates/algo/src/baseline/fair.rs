//! Fair: equal shares, with minima and maxima.
//!
//! **Paper**: FLEX §1 describes the allocation layer of Hadoop's Fair Scheduler (FAIR): every job gets
//! its minimum, and slack is divided by a water-line; WOHA §V-B ports it to workflows.
//!
//! **Problem**: any; shares are proportional to the weights of flows. **Idea**:
//! 1. Minima are normalised if they exceed the slots.
//! 2. The water-line gives each ready phase (or each flow, which divides its share among its ready
//!    phases) its max-min fair share between its minimum and what it can use.
//! 3. The shares, fractions included, become targets; the assignment layer serves the phase that is
//!    furthest below its own.
//!
//! **Guarantee**: minima and maxima are kept; none on cost. **Complexity**: only at instants at which
//! a share can have changed, for n ready phases: O(log n) for each changed phase and each phase that the
//! water-line passes; O(n log n) with minima, with weights, or by flow. **Deviations**: shares stay fractions and ties go to the phase served longest ago, so that more phases than slots still
//! take turns.

use slackline_model::{PhaseId, SlotKind};
use slackline_policy::{Action, Event, IdTable, Policy, Style, View, minima};

use super::shares::by_flow;
use super::{BY, ShareUnit, fluid, propose};
use crate::classic::{Claim, EvenLine, water_line_of};
use crate::epochs::Targets;
use crate::registry::{Capabilities, Planner, PolicyEntry};

/// Fair in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "flex, section 1; woha, section V-B",
    guarantee: "none on cost; minima",
    capabilities: Capabilities { minima: true, ..Capabilities::PLAIN },
    params: &[BY],
    planner: Planner::Allocations(|instance, settings, _| {
        propose(instance, fluid::Rule::Fair(ShareUnit::chosen(settings)))
    }),
    ..PolicyEntry::new(
        "fair",
        "equal shares by water filling, as Hadoop's Fair Scheduler; keeps minima and maxima",
        |_, _, settings| Box::new(Fair::new(ShareUnit::chosen(settings))),
    )
};

#[derive(Clone, Debug)]
pub struct Fair {
    by: ShareUnit,
    targets: Targets,
    slot_kinds: [Shares; 2],
}

/// The division of the slots of a kind.
#[derive(Clone, Debug)]
struct Shares {
    /// Whether the slots must be divided again.
    due: bool,
    /// Whether all claims must be computed again first.
    stale: bool,
    /// Phases whose claims may have changed.
    changed: Vec<PhaseId>,
    /// The water-line, while it is that of equal claims.
    even: Option<Even>,
    /// The claim of every ready phase, by id, while it is not.
    claims: Vec<(PhaseId, Claim)>,
    /// The number of slots that they can use together.
    most: f64,
    /// Claims that get at most their minimum, however many slots are left.
    weightless: usize,
    /// Whether every phase has all it can use and slots are left: then a changed claim affects no other
    /// claim.
    is_ample: bool,
}

/// Phases of weight 1 without minima.
#[derive(Clone, Debug, Default)]
struct Even {
    line: EvenLine,
    level: f64,
    /// The number of slots that each ready phase can use.
    most: IdTable<PhaseId, Option<u32>>,
    /// Phases that the water-line passed; empty between calls.
    passed: Vec<(PhaseId, u32)>,
}

impl Even {
    /// A phase can use this number of slots; `None` if it is not ready.
    fn set(&mut self, phase: PhaseId, most: Option<u32>) {
        let before = self.most[phase];
        if before == most {
            return;
        }
        if let Some(before) = before {
            self.line.remove(before, phase);
        }
        if let Some(most) = most {
            self.line.insert(most, phase);
            self.most[phase] = Some(most);
        } else {
            self.most.forget([phase]);
        }
    }

    /// Divides the slots, and pushes the targets of changed phases and of those that the water-line passed.
    fn share_out(
        &mut self,
        slot_kind: SlotKind,
        changed: &[PhaseId],
        view: &View<'_>,
        targets: &mut Targets,
        out: &mut Vec<Action>,
    ) {
        for &phase in changed {
            self.set(phase, view.phase(phase).is_ready().then(|| view.usable(phase)));
        }
        let Self { line, most, passed, .. } = self;
        let level = line.settle(view.state.alive(slot_kind), |phase, max| passed.push((phase, max)));
        let changed = changed.iter().filter_map(|&phase| Some((phase, most[phase]?)));
        for (phase, most) in passed.drain(..).chain(changed) {
            if line.is_full(most) {
                targets.push(phase, f64::from(most), out);
            } else {
                targets.share(phase, out);
            }
        }
        if level != self.level && level.is_finite() {
            out.push(Action::Level { slot_kind, slots: level });
        }
        self.level = level;
    }
}

impl Shares {
    fn new() -> Self {
        let (changed, claims, even) = (Vec::new(), Vec::new(), None);
        Self { due: true, stale: true, changed, even, claims, most: 0.0, weightless: 0, is_ample: false }
    }

    /// A phase may claim more or less than before.
    fn change(&mut self, phase: PhaseId) {
        let ready = self.even.as_ref().map_or(self.claims.len(), |even| even.line.len());
        if self.changed.len() > 2 * ready {
            // Computing all of them costs no more.
            self.stale = true;
            self.changed.clear();
        }
        self.changed.push(phase);
    }

    fn change_all(&mut self) {
        (self.due, self.stale) = (true, true);
    }

    /// Recomputes every claim. O(ready phases).
    fn renew(&mut self, slot_kind: SlotKind, view: &View<'_>) {
        let mut minima = minima::effective(view.instance, view.state, slot_kind).into_iter().peekable();
        // Both are in the order of ids.
        let mut min = |phase| minima.next_if(|&(of, _)| of == phase).map_or(0, |(_, min)| min);
        self.claims.clear();
        self.claims.extend(view.state.ready(slot_kind).map(|phase| (phase, claim(phase, min(phase), view))));
        self.most = self.claims.iter().map(|(_, claim)| claim.max).sum();
        self.weightless = self.claims.iter().filter(|(_, claim)| claim.weight == 0.0).count();
        self.is_ample = false;
        self.even = None;
        // A minimum depends on all other claims.
        self.stale = self.claims.iter().any(|(_, claim)| claim.min > 0.0);
    }

    /// Keeps the water-line as that of equal claims from now on, if the claims are equal.
    fn become_even(&mut self) -> bool {
        let is_even = self.claims.iter().all(|(_, claim)| claim.min == 0.0 && claim.weight == 1.0);
        if is_even {
            let mut even = Even { level: f64::NAN, ..Even::default() };
            self.changed.clear();
            for &(phase, claim) in &self.claims {
                even.set(phase, Some(claim.max as u32));
                self.changed.push(phase);
            }
            self.claims.clear();
            self.even = Some(even);
        }
        is_even
    }

    /// Recomputes the claims of changed phases, if nothing is guaranteed. O(log n) each, plus moving the
    /// claims behind inserted or removed ones.
    fn update(&mut self, view: &View<'_>) {
        for &phase in &self.changed {
            let at = self.claims.binary_search_by_key(&phase, |&(other, _)| other);
            let now = view.phase(phase).is_ready().then(|| claim(phase, 0, view));
            if let Ok(at) = at {
                self.most -= self.claims[at].1.max;
                self.weightless -= usize::from(self.claims[at].1.weight == 0.0);
            }
            if let Some(now) = now {
                self.most += now.max;
                self.weightless += usize::from(now.weight == 0.0);
            }
            match (at, now) {
                (Ok(at), Some(now)) => self.claims[at].1 = now,
                (Ok(at), None) => {
                    self.claims.remove(at);
                }
                (Err(at), Some(now)) => self.claims.insert(at, (phase, now)),
                (Err(_), None) => {}
            }
        }
    }
}

impl Fair {
    /// Fair shares for jobs or for flows.
    pub fn new(by: ShareUnit) -> Self {
        Self { by, targets: Targets::default(), slot_kinds: [Shares::new(), Shares::new()] }
    }

    /// Marks the claims that an event may change.
    fn note(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            // Finished tasks matter once a phase can use fewer slots than its share.
            Event::TasksDone { phase, .. } => {
                let state = view.phase(phase);
                let left = f64::from(state.unstarted() + state.running());
                let target = self.targets.of(phase);
                let shares = self.shares(phase, view);
                let level = || shares.even.as_ref().map_or(0.0, |even| even.level);
                shares.due |= left < target.unwrap_or_else(level) || state.is_done();
                shares.change(phase);
            }
            Event::PhaseReady(phase) | Event::PhaseDone(phase) => {
                let shares = self.shares(phase, view);
                shares.due = true;
                shares.change(phase);
            }
            Event::TasksLost { phase, .. } => self.shares(phase, view).change_all(),
            Event::MachineDown(_) | Event::MachineUp(_) | Event::MachineJoined(_) | Event::FlowFailed(_) => {
                self.slot_kinds.iter_mut().for_each(Shares::change_all);
            }
            Event::JobDone(_)
            | Event::FlowDone(_)
            | Event::FlowArrived(_)
            | Event::MachineLeft(_)
            | Event::TaskRuns { .. }
            | Event::Wake => {}
        }
        self.targets.note(event, view.instance);
    }

    fn shares(&mut self, phase: PhaseId, view: &View<'_>) -> &mut Shares {
        &mut self.slot_kinds[view.instance.slot_kind_of(phase).index()]
    }

    fn share_out(&mut self, slot_kind: SlotKind, view: &View<'_>, out: &mut Vec<Action>) {
        let Self { by, targets, slot_kinds } = self;
        let shares = &mut slot_kinds[slot_kind.index()];
        shares.due = false;
        let weight = |phase| view.instance.flow(view.instance.flow_of(phase)).weight;
        let is_uneven = |&phase: &PhaseId| view.phase(phase).is_ready() && weight(phase) != 1.0;
        let guaranteed = view.state.guaranteed(slot_kind).next().is_some();
        let is_stale =
            shares.stale || guaranteed || (shares.even.is_some() && shares.changed.iter().any(is_uneven));
        if is_stale {
            shares.renew(slot_kind, view);
        }
        let is_even = if is_stale {
            *by == ShareUnit::Job && !guaranteed && shares.become_even()
        } else {
            shares.even.is_some()
        };
        if is_even && let Some(even) = &mut shares.even {
            even.share_out(slot_kind, &shares.changed, view, targets, out);
            shares.changed.clear();
            return;
        }
        if !is_stale {
            shares.update(view);
        }
        let capacity = f64::from(view.state.alive(slot_kind));
        let was_ample = shares.is_ample;
        shares.is_ample = *by == ShareUnit::Job && shares.weightless == 0 && shares.most < capacity;
        if shares.is_ample && was_ample {
            for &phase in shares.changed.iter().filter(|&&phase| view.phase(phase).is_ready()) {
                targets.push(phase, f64::from(view.usable(phase)), out);
            }
        } else {
            let claims = || shares.claims.iter();
            let mut push = |(&(phase, _), slots): (&(PhaseId, Claim), f64)| targets.push(phase, slots, out);
            match by {
                ShareUnit::Job => {
                    claims()
                        .zip(water_line_of(claims().map(|(_, claim)| claim), capacity))
                        .for_each(&mut push);
                }
                ShareUnit::Flow => {
                    claims().zip(by_flow(&shares.claims, capacity, view.instance)).for_each(&mut push);
                }
            }
        }
        shares.changed.clear();
    }
}

/// The claim of a phase: its minimum, and at most what it can use.
fn claim(phase: PhaseId, min: u32, view: &View<'_>) -> Claim {
    let weight = view.instance.flow(view.instance.flow_of(phase)).weight;
    Claim { min: f64::from(min), max: f64::from(view.usable(phase).max(min)), weight }
}

impl Policy for Fair {
    fn name(&self) -> &'static str {
        "fair"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        Style::Targets
    }

    fn keeps_minima(&self) -> bool {
        true
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        for event in events {
            self.note(event, view);
        }
        for &slot_kind in view.instance.cluster().slot_kinds() {
            if self.slot_kinds[slot_kind.index()].due {
                self.share_out(slot_kind, view, out);
            }
        }
    }
}
