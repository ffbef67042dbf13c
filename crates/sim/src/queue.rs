//! Pending events in a total order: time, class of event, id of what it happens to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{JobId, MachineId, Time};
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
    /// A job is known to the cluster.
    Submitted(JobId),
    /// The master of a job is up.
    MasterUp(JobId),
    /// The master of a job has left its slot, or that is reported.
    MasterGone(JobId),
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
            Self::Submitted(job) => (4, job.0),
            Self::MasterUp(job) => (5, job.0),
            Self::MasterGone(job) => (6, job.0),
            Self::Wake => (7, 0),
            Self::Offer(machine) => (8, machine.0),
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
            4 => Self::Submitted(JobId(id)),
            5 => Self::MasterUp(JobId(id)),
            6 => Self::MasterGone(JobId(id)),
            7 => Self::Wake,
            _ => Self::Offer(MachineId(id)),
        }
    }
}

/// A priority queue of pending events: a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990), which is several times faster
/// than a binary heap where many batches run, because nothing is pending earlier than what was taken last.
///
/// Adding is O(1); each event moves to a nearer bucket at most once for each bit of its time, all in sequence.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The time of what was taken last.
    last: u64,
    /// Words of the events at that time.
    due: BinaryHeap<Reverse<u64>>,
    /// Later events: those in bucket b differ from `last` in bit b of their time, and in none above it.
    buckets: [Bucket; u64::BITS as usize],
    /// Which buckets have an event.
    filled: u64,
}

/// Times and words of events, and the least of the times.
#[derive(Debug)]
struct Bucket {
    least: u64,
    events: Vec<(u64, u64)>,
}

impl Default for Queue {
    fn default() -> Self {
        let buckets = [const { Bucket { least: u64::MAX, events: Vec::new() } }; u64::BITS as usize];
        Self { last: 0, due: BinaryHeap::new(), buckets, filled: 0 }
    }
}

impl Queue {
    /// Adds an event, not earlier than the one taken last. Two equal events at one time are one fact; ids make all
    /// others distinct, so that no further sequence number is needed.
    pub(crate) fn push(&mut self, at: Time, what: Pending) {
        assert!(at.0 >= self.last, "an event in the past");
        self.enter(at.0, what.word());
    }

    fn enter(&mut self, at: u64, word: u64) {
        let differs = at ^ self.last;
        if differs == 0 {
            self.due.push(Reverse(word));
            return;
        }
        let bit = differs.ilog2();
        let bucket = &mut self.buckets[bit as usize];
        bucket.least = bucket.least.min(at);
        bucket.events.push((at, word));
        self.filled |= 1 << bit;
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if !self.due.is_empty() {
            return Some(Time(self.last));
        }
        let nearest = self.buckets.get(self.filled.trailing_zeros() as usize)?;
        Some(Time(nearest.least))
    }

    /// Takes the next event if it is at `now`.
    pub(crate) fn pop_at(&mut self, now: Time) -> Option<Pending> {
        if self.next_time() != Some(now) {
            return None;
        }
        if self.due.is_empty() {
            self.open(now.0);
        }
        self.due.pop().map(|Reverse(word)| Pending::of_word(word))
    }

    /// The events of the nearest bucket, the first of which is at `now`, become due or go to nearer buckets.
    fn open(&mut self, now: u64) {
        let nearest = self.filled.trailing_zeros() as usize;
        let Bucket { least, events } = &mut self.buckets[nearest];
        *least = u64::MAX;
        let mut events = std::mem::take(events);
        self.filled &= !(1 << nearest);
        self.last = now;
        for (at, word) in events.drain(..) {
            self.enter(at, word);
        }
        self.buckets[nearest].events = events;
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
    fn agrees_with_an_ordered_set() {
        let (mut queue, mut model) = (Queue::default(), std::collections::BTreeSet::new());
        let (mut now, mut id) = (0, 0);
        let mut x = 3u64;
        let mut draw = |below: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % below
        };
        for _ in 0..20_000 {
            let expected: Option<&(u64, u32)> = model.first();
            assert_eq!(queue.next_time(), expected.map(|&(at, _)| Time(at)));
            if draw(2) == 0 {
                // Near, far, at once, and all at one time.
                let at = now + [0, draw(10), draw(1_000_000), 1 << draw(50)][draw(4) as usize];
                queue.push(Time(at), Pending::End(RowId(id)));
                model.insert((at, id));
                id += 1;
            } else if let Some(&(at, id)) = expected {
                now = at;
                assert_eq!(queue.pop_at(Time(now)), Some(Pending::End(RowId(id))));
                model.pop_first();
            }
        }
        assert!(id > 9_000);
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
