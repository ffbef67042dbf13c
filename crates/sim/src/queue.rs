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
    /// Machines join or leave: which change of the membership.
    Member(u32),
    /// The driver asked to be woken.
    Wake,
    /// A machine asks for work.
    Offer(MachineId),
}

impl Pending {
    /// Class and id in one word, in the order of the variants. What has no id has 0.
    fn word(self) -> u64 {
        let (class, id) = match self {
            Self::End(row) => (0, row.0),
            Self::Crash(machine) => (1, machine.0),
            Self::Recovery(machine) => (2, machine.0),
            Self::Member(change) => (3, change),
            Self::Wake => (4, 0),
            Self::Offer(machine) => (5, machine.0),
        };
        class << 32 | u64::from(id)
    }

    /// The event of a word.
    fn of_word(word: u64) -> Self {
        let id = word as u32;
        match word >> 32 {
            0 => Self::End(RowId(id)),
            1 => Self::Crash(MachineId(id)),
            2 => Self::Recovery(MachineId(id)),
            3 => Self::Member(id),
            4 => Self::Wake,
            _ => Self::Offer(MachineId(id)),
        }
    }
}

/// An event with its time as one number, so that the heap compares in one step: events are most of what a simulation of
/// small batches does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, what: Pending) -> Self {
        Self(u128::from(at.0) << 64 | u128::from(what.word()))
    }

    fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    fn what(self) -> Pending {
        Pending::of_word(self.0 as u64)
    }
}

/// A priority queue of pending events.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Queue {
    /// Adds an event. Two equal events at one time are one fact; ids make all others distinct, so
    /// that no further sequence number is needed.
    pub(crate) fn push(&mut self, at: Time, what: Pending) {
        self.heap.push(Reverse(Entry::new(at, what)));
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.time())
    }

    /// Takes the next event if it is at `now`.
    pub(crate) fn pop_at(&mut self, now: Time) -> Option<Pending> {
        if self.next_time() != Some(now) {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_class_then_id() {
        let mut queue = Queue::default();
        let (machine, other) = (MachineId(0), MachineId(1));
        let now = [
            Pending::End(RowId(2)),
            Pending::End(RowId(7)),
            Pending::Crash(machine),
            Pending::Crash(other),
            Pending::Recovery(machine),
            Pending::Wake,
            Pending::Offer(machine),
        ];
        queue.push(Time(6), Pending::End(RowId(0)));
        for &pending in now.iter().rev() {
            queue.push(Time(5), pending);
        }
        assert_eq!(queue.next_time(), Some(Time(5)));
        let order: Vec<Pending> = std::iter::from_fn(|| queue.pop_at(Time(5))).collect();
        assert_eq!(order, now);
        assert_eq!(queue.next_time(), Some(Time(6)));
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut queue = Queue::default();
        assert_eq!(queue.pop_at(Time(0)), None);
        queue.push(Time(3), Pending::Wake);
        assert_eq!((queue.pop_at(Time(2)), queue.pop_at(Time(4))), (None, None));
        assert_eq!(queue.pop_at(Time(3)), Some(Pending::Wake));
        assert_eq!(queue.next_time(), None);
    }
}
