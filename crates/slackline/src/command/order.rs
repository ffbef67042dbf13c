//! Assigns slots by the last order of the program.

use std::collections::BTreeMap;

use slackline_model::PhaseId;
use slackline_policy::{Ask, Event, Grant, ReadyQueue, View};

/// The current order: named phases in their order, then all others by number.
#[derive(Default)]
pub(super) struct Order {
    places: BTreeMap<PhaseId, Place>,
    /// Runnable phases in this order.
    queue: ReadyQueue<u32>,
}

/// The position of a phase in an order.
#[derive(Clone, Copy)]
struct Place {
    /// The number of phases before it.
    at: u32,
    /// It gets slots while it holds fewer than this.
    most: u32,
}

impl Place {
    /// The position of phases that are not named.
    const LAST: Self = Self { at: u32::MAX, most: u32::MAX };
}

impl Order {
    /// Processes the events of an instant, and the new order in the answer if there is one: each phase at
    /// most once, with the maximum number of slots that it may hold. O(log) per event; O(n log n) for a new
    /// order with n ready phases.
    pub(super) fn update(&mut self, events: &[Event], view: &View<'_>, new: Option<Vec<(PhaseId, u32)>>) {
        let Self { places, queue } = self;
        let is_new = new.is_some();
        if let Some(new) = new {
            *places = (0..).zip(new).map(|(at, (phase, most))| (phase, Place { at, most })).collect();
        }
        let at = |phase| places.get(&phase).unwrap_or(&Place::LAST).at;
        queue.update(events, view, at);
        if is_new {
            queue.rekey(view, at);
        }
    }

    /// The first phase that can run and holds fewer slots than its maximum, and the number of further slots
    /// that it may have.
    pub(super) fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let mut full = ask.skip.to_vec();
        loop {
            let phase = self.queue.first(&Ask { skip: &full, ..*ask }, view)?;
            let most = self.places.get(&phase).unwrap_or(&Place::LAST).most;
            let tasks = most.saturating_sub(view.phase(phase).running());
            if tasks > 0 {
                return Some(Grant { phase, tasks });
            }
            full.push(phase);
        }
    }
}
