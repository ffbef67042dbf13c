//! The queues of tasks of all slots in one vector.

use slackline_model::{PhaseId, Span, Time};

/// A task in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) phase: PhaseId,
    pub(super) task: u32,
    /// Estimated size.
    pub(super) span: Span,
    /// The estimated time from which it can start.
    pub(super) ready: Time,
    /// Position in the list.
    pub(super) rank: u64,
}

/// A task in a queue, and the place of the next one.
#[derive(Clone, Copy, Debug)]
struct Link {
    queued: Queued,
    next: u32,
}

/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// The queues of all slots as linked lists in one vector, so that no queue allocates.
#[derive(Clone, Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    /// The first place that is not used: these are linked too.
    unused: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { links: Vec::new(), unused: NONE }
    }
}

impl Links {
    /// Appends to the queue with these first and last places.
    pub(super) fn push(&mut self, first: &mut u32, last: &mut u32, queued: Queued) {
        let link = Link { queued, next: NONE };
        let place = if self.unused == NONE {
            self.links.push(link);
            self.links.len() as u32 - 1
        } else {
            let place = self.unused;
            self.unused = std::mem::replace(&mut self.links[place as usize], link).next;
            place
        };
        if *first == NONE {
            *first = place;
        } else {
            self.links[*last as usize].next = place;
        }
        *last = place;
    }

    /// Removes the first of a queue, if there is one.
    pub(super) fn pop(&mut self, first: &mut u32) {
        if let Some(link) = self.links.get_mut(*first as usize) {
            let place = std::mem::replace(first, link.next);
            link.next = std::mem::replace(&mut self.unused, place);
        }
    }

    /// The tasks of a queue.
    pub(super) fn iter(&self, first: u32) -> impl Iterator<Item = &Queued> {
        let link = |place: u32| self.links.get(place as usize);
        std::iter::successors(link(first), move |at| link(at.next)).map(|link| &link.queued)
    }

    /// All queues are empty.
    pub(super) fn clear(&mut self) {
        self.links.clear();
        self.unused = NONE;
    }
}
