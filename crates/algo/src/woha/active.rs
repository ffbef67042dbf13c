//! The phases of each flow that may be runnable, in the order of the flow's plan.
//!
//! As in [`slackline_policy::ReadyQueue`], phases that turn out not to be runnable are dropped when
//! they are met, and an event that could make them runnable again brings them back.

use std::collections::BTreeSet;

use slackline_model::{FlowId, Instance, JobId, PhaseId};
use slackline_policy::{Ask, IdTable, View};

/// Phases that may be runnable, by flow and slot kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Active {
    /// By place of the job in its flow's plan, then by id.
    phases: IdTable<FlowId, [BTreeSet<(u32, PhaseId)>; 2]>,
    /// Place of each job in its flow's plan.
    place: IdTable<JobId, u32>,
    /// Early reduces that were barred from taking a slot when they were met.
    barred: Vec<PhaseId>,
}

impl Active {
    /// Sets the order of a flow's jobs, numbered from 0 within the flow, before any phase is added.
    pub(super) fn set_order(&mut self, flow: FlowId, order: &[u32], instance: &Instance) {
        let first = instance.flow(flow).jobs().next().map_or(0, |job| job.0);
        for (place, &job) in (0..).zip(order) {
            self.place[JobId(first + job)] = place;
        }
    }

    /// Forgets a flow that has ended.
    pub(super) fn forget(&mut self, flow: FlowId, instance: &Instance) {
        self.phases.forget([flow]);
        self.place.forget(instance.flow(flow).jobs());
        self.barred.retain(|&phase| instance.flow_of(phase) != flow);
    }

    /// A phase may be runnable; false if it is certainly not.
    pub(super) fn insert(&mut self, phase: PhaseId, view: &View<'_>) -> bool {
        let state = view.phase(phase);
        if !state.is_ready() || state.unstarted() == 0 {
            return false;
        }
        let place = self.place[view.instance.phase(phase).job];
        let flow = view.instance.flow_of(phase);
        self.phases[flow][view.instance.slot_kind_of(phase).index()].insert((place, phase));
        true
    }

    /// Early reduces that may be let in now.
    pub(super) fn take_barred(&mut self) -> Vec<PhaseId> {
        std::mem::take(&mut self.barred)
    }

    /// The first phase of a flow that can run on the free slot, without those in `ask.skip`.
    pub(super) fn first(&mut self, flow: FlowId, ask: &Ask<'_>, view: &View<'_>) -> Option<PhaseId> {
        let slot_kind = &mut self.phases[flow][ask.slot_kind.index()];
        let mut from = None;
        loop {
            let (place, phase) = match from {
                None => *slot_kind.first()?,
                Some(passed) => *slot_kind
                    .range((std::ops::Bound::Excluded(passed), std::ops::Bound::Unbounded))
                    .next()?,
            };
            if view.runnable(phase) == 0 {
                slot_kind.remove(&(place, phase));
                if view.state.is_early(view.instance, phase) && view.phase(phase).unstarted() > 0 {
                    self.barred.push(phase);
                }
            } else if ask.skip.contains(&phase) {
                from = Some((place, phase));
            } else {
                return Some(phase);
            }
        }
    }

    /// Whether a flow has no phase left that may run in the slot kind of the free slot.
    pub(super) fn is_empty(&self, flow: FlowId, ask: &Ask<'_>) -> bool {
        self.phases[flow][ask.slot_kind.index()].is_empty()
    }
}
