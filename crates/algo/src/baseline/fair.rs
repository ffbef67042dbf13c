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
//! phases, only at instants at which a share can have changed. **Deviations**: shares stay fractions
//! and ties go to the phase served longest ago, so that more phases than slots still take turns.

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
    stale: [bool; 2],
}

impl Fair {
    /// Fair shares for jobs or for flows.
    pub fn new(by: By) -> Self {
        Self { by, targets: Targets::default(), stale: [true; 2] }
    }

    /// Marks the lanes whose shares may change.
    fn note(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            // Finished tasks matter once a phase can use less than it was given.
            Event::TasksDone { phase, .. } => {
                let state = view.phase(phase);
                let left = f64::from(state.unstarted() + state.running());
                if left < self.targets.of(phase) || state.is_done() {
                    self.stale[view.instance.lane_of(phase).index()] = true;
                }
            }
            Event::PhaseReady(phase) | Event::PhaseDone(phase) | Event::TasksLost { phase, .. } => {
                self.stale[view.instance.lane_of(phase).index()] = true;
            }
            Event::MachineDown(_) | Event::MachineUp(_) | Event::MachineJoined(_) | Event::FlowFailed(_) => {
                self.stale = [true; 2];
            }
            Event::JobDone(_)
            | Event::FlowDone(_)
            | Event::FlowArrived(_)
            | Event::MachineLeft(_)
            | Event::Wake => {}
        }
        self.targets.note(event, view.instance);
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
        for (&(phase, _), slots) in claims.iter().zip(shares) {
            self.targets.push(phase, slots, out);
        }
    }
}

/// What a phase may get: its minimum, and no more than it can use.
fn claim(phase: PhaseId, min: u32, view: &View<'_>) -> Claim {
    let state = view.phase(phase);
    let usable = (state.unstarted() + state.running()).min(view.instance.phase(phase).cap);
    let weight = view.instance.flow(view.instance.flow_of(phase)).weight;
    Claim { min: f64::from(min), max: f64::from(usable.max(min)), weight }
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
            if std::mem::take(&mut self.stale[lane.index()]) {
                self.share_out(lane, view, out);
            }
        }
    }
}
