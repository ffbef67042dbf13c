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
//! **Guarantee**: minima and maxima are kept; none on cost. **Complexity**: O(n log n) for n ready
//! phases, only at instants at which a share can have changed; O(log n) while slots are left over. **Deviations**: shares stay fractions
//! and ties go to the phase served longest ago, so that more phases than slots still take turns.

use std::collections::BTreeMap;

use slackline_model::{Lane, PhaseId};
use slackline_policy::minima;
use slackline_policy::{Action, Event, Policy, Style, View};

use super::shares::by_flow;
use super::{BY, By, CAPABILITIES, fluid, propose};
use crate::classic::{Claim, water_line};
use crate::epochs::Targets;
use crate::registry::{Capabilities, Planner, PolicyEntry};

/// Fair in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    name: "fair",
    summary: "equal shares by the water-line of Hadoop's Fair Scheduler; keeps minima and maxima",
    source: "flex, section 1; woha, section V-B",
    guarantee: "none on cost; minima",
    capabilities: Capabilities { minima: true, ..CAPABILITIES },
    params: &[BY],
    make: |_, _, settings| Box::new(Fair::new(By::chosen(settings))),
    planner: Planner::Allocations(|instance, settings, _| {
        propose(instance, fluid::Rule::Fair(By::chosen(settings)))
    }),
};

/// The Fair policy.
#[derive(Clone, Debug)]
pub struct Fair {
    by: By,
    targets: Targets,
    lanes: [Shares; 2],
}

/// How the slots of a lane were shared out last.
#[derive(Clone, Debug)]
struct Shares {
    /// Whether they have to be shared out again.
    stale: bool,
    /// If every ready phase has all it can use and slots are left: what each uses. Then a phase that changes concerns
    /// nobody else.
    ample: Option<Ample>,
    /// Ready phases whose use may have changed since.
    changed: Vec<PhaseId>,
}

/// What ready phases use where there are slots for all of them.
#[derive(Clone, Debug, Default)]
struct Ample {
    used: BTreeMap<PhaseId, u32>,
    total: u64,
}

impl Ample {
    fn set(&mut self, phase: PhaseId, slots: u32) {
        let before = if slots > 0 { self.used.insert(phase, slots) } else { self.used.remove(&phase) };
        self.total = self.total + u64::from(slots) - u64::from(before.unwrap_or(0));
    }
}

impl Fair {
    /// Fair shares for jobs or for flows.
    pub fn new(by: By) -> Self {
        let shares = || Shares { stale: true, ample: None, changed: Vec::new() };
        Self { by, targets: Targets::default(), lanes: [shares(), shares()] }
    }

    /// Marks what may change by an event.
    fn note(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            // Finished tasks matter once a phase can use less than it was given.
            Event::TasksDone { phase, .. } => {
                let state = view.phase(phase);
                let left = f64::from(state.unstarted() + state.running());
                if left < self.targets.of(phase) || state.is_done() {
                    self.shares(phase, view).change(phase);
                }
            }
            // Without weight a phase gets no more than its minimum, however many slots are left.
            Event::PhaseReady(phase) if weight(phase, view) > 0.0 => self.shares(phase, view).change(phase),
            Event::PhaseDone(phase) => self.shares(phase, view).change(phase),
            Event::PhaseReady(phase) | Event::TasksLost { phase, .. } => {
                self.shares(phase, view).stale = true
            }
            Event::MachineDown(_) | Event::MachineUp(_) | Event::MachineJoined(_) | Event::FlowFailed(_) => {
                self.lanes.iter_mut().for_each(|shares| shares.stale = true);
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
        &mut self.lanes[view.instance.lane_of(phase).index()]
    }

    /// Gives phases that changed what they can use now, if slots are ample and remain so; whether they do.
    fn adjust(&mut self, lane: Lane, view: &View<'_>, out: &mut Vec<Action>) -> bool {
        let Self { targets, lanes, .. } = self;
        let Shares { ample: Some(ample), changed, .. } = &mut lanes[lane.index()] else { return false };
        let use_of = |phase| if view.phase(phase).is_ready() { view.usable(phase) } else { 0 };
        for &phase in &*changed {
            ample.set(phase, use_of(phase));
        }
        if ample.total >= u64::from(view.state.alive(lane)) {
            return false;
        }
        for phase in changed.drain(..).filter(|&phase| view.phase(phase).is_ready()) {
            targets.push(phase, f64::from(view.usable(phase)), out);
        }
        true
    }

    fn share_out(&mut self, lane: Lane, view: &View<'_>, out: &mut Vec<Action>) {
        let mut minima = minima::effective(view.instance, view.state, lane).into_iter().peekable();
        // Both come in the order of ids.
        let mut min = |phase| minima.next_if(|&(of, _)| of == phase).map_or(0, |(_, min)| min);
        let claims: Vec<(PhaseId, Claim)> =
            view.state.ready(lane).map(|phase| (phase, claim(phase, min(phase), view))).collect();
        let capacity = f64::from(view.state.alive(lane));
        let shares = match self.by {
            By::Job => {
                let only: Vec<Claim> = claims.iter().map(|&(_, claim)| claim).collect();
                water_line(&only, capacity)
            }
            By::Flow => by_flow(&claims, capacity, view.instance),
        };
        let is_ample = self.by == By::Job
            && claims.iter().map(|(_, claim)| claim.max).sum::<f64>() < capacity
            && claims.iter().all(|(_, claim)| claim.weight > 0.0);
        let mut ample = Ample::default();
        for (&(phase, claim), slots) in claims.iter().zip(shares) {
            self.targets.push(phase, slots, out);
            if is_ample {
                ample.set(phase, claim.max as u32);
            }
        }
        let lane = &mut self.lanes[lane.index()];
        lane.ample = is_ample.then_some(ample);
        lane.changed.clear();
    }
}

impl Shares {
    /// A phase can use more or less than before.
    fn change(&mut self, phase: PhaseId) {
        if self.ample.is_some() {
            self.changed.push(phase);
        } else {
            self.stale = true;
        }
    }
}

fn weight(phase: PhaseId, view: &View<'_>) -> f64 {
    view.instance.flow(view.instance.flow_of(phase)).weight
}

/// What a phase may get: its minimum, and no more than it can use.
fn claim(phase: PhaseId, min: u32, view: &View<'_>) -> Claim {
    Claim { min: f64::from(min), max: f64::from(view.usable(phase).max(min)), weight: weight(phase, view) }
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
        for &lane in view.instance.cluster().lanes() {
            let shares = &mut self.lanes[lane.index()];
            let (stale, changed) = (std::mem::take(&mut shares.stale), !shares.changed.is_empty());
            if stale || changed && !self.adjust(lane, view, out) {
                self.share_out(lane, view, out);
            }
        }
    }
}
