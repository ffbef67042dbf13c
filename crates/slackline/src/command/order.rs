//! Slots by the last order that the program gave.

use std::collections::BTreeMap;

use slackline_model::PhaseId;
use slackline_policy::{Ask, Event, Grant, ReadyQueue, View};

/// An order in force: named phases in their places, then all others by number.
#[derive(Default)]
pub(super) struct Order {
    places: BTreeMap<PhaseId, Place>,
    /// Runnable phases by their places.
    queue: ReadyQueue<u32>,
}

/// A phase in an order.
#[derive(Clone, Copy)]
struct Place {
    /// How many come before it.
    at: u32,
    /// It gets slots while it holds fewer than this.
    most: u32,
}

impl Place {
    /// That of phases that are not named.
    const LAST: Self = Self { at: u32::MAX, most: u32::MAX };
}

impl Order {
    /// Takes in the events of an instant, and the order that was the answer to them, if there was one:
    /// phases, each once, with the most slots that each may hold. O(log) an event; O(n log n) for n ready
    /// phases with a new order.
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

    /// The first phase that can run and holds fewer slots than it may, and how many more it may have.
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
