//! Pending events in a total order: time, class of event, id of what it happens to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{MachineId, Time};
use slackline_policy::engine::RowId;

/// What will happen. The order of the variants is the order within an instant: a task that ends when
/// its machine dies has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// A batch ends, or its end is reported (heartbeats).
    End(RowId),
    /// A machine dies.
    Crash(MachineId),
    /// A machine comes back.
    Recovery(MachineId),
    /// The driver asked to be woken.
    Wake,
    /// A machine asks for work.
    Offer(MachineId),
}

/// A priority queue of pending events.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Time, Pending)>>,
}

impl Queue {
    /// Adds an event. Two equal events at one time are one fact; ids make all others distinct, so
    /// that no further sequence number is needed.
    pub(crate) fn push(&mut self, at: Time, what: Pending) {
        self.heap.push(Reverse((at, what)));
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next event if it is at `now`.
    pub(crate) fn pop_at(&mut self, now: Time) -> Option<Pending> {
        if self.next_time() != Some(now) {
            return None;
        }
        self.heap.pop().map(|Reverse((_, what))| what)
    }
}
