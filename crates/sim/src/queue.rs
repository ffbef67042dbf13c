//! Pending events in a total order: by time, class of event, and id of their subject.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::{JobId, MachineId, Time};
use slackline_policy::engine::RowId;

/// A future event. The order of the variants is the order within an instant: a task that ends when its
/// machine fails has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// A batch ends, or its end is reported (heartbeats).
    End(RowId),
    Crash(MachineId),
    /// A machine comes back.
    Recovery(MachineId),
    /// Machines join or leave: the index of the change.
    Member(u32),
    /// A job is known to the cluster.
    Submitted(JobId),
    /// The ApplicationMaster of a job is up.
    AmUp(JobId),
    /// The ApplicationMaster of a job has left its slot, or its leave is reported.
    AmGone(JobId),
    /// The driver requested to be woken.
    Wake,
    /// A machine asks for work.
    Offer(MachineId),
    /// The ApplicationMaster of a job checks for slow attempts, after all other reports of the instant.
    Look(JobId),
}

impl Pending {
    /// Class and id in one word, in the order of the variants. Events without an id have 0.
    fn word(self) -> u64 {
        let (class, id) = match self {
            Self::End(row) => (0, row.0),
            Self::Crash(machine) => (1, machine.0),
            Self::Recovery(machine) => (2, machine.0),
            Self::Member(change) => (3, change),
            Self::Submitted(job) => (4, job.0),
            Self::AmUp(job) => (5, job.0),
            Self::AmGone(job) => (6, job.0),
            Self::Wake => (7, 0),
            Self::Offer(machine) => (8, machine.0),
            Self::Look(job) => (9, job.0),
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
            5 => Self::AmUp(JobId(id)),
            6 => Self::AmGone(JobId(id)),
            7 => Self::Wake,
            8 => Self::Offer(MachineId(id)),
            _ => Self::Look(JobId(id)),
        }
    }
}

/// Bits of a time that a level of buckets tells apart.
const DIGIT_BITS: u32 = 4;
const DIGITS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = (u64::BITS / DIGIT_BITS) as usize;

/// A bucket with at most this number of events goes into the heap directly.
const FEW: usize = 64;

/// A priority queue of pending events: a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990) whose nearest
/// events are in a small binary heap. It is several times faster than a binary heap of all events where many
/// batches run, because nothing is pending earlier than what was taken last.
///
/// Each event moves to a nearer bucket at most once for each digit of its time, all in sequence, and then
/// through a heap of few.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The time of the last event that was taken.
    last: u64,
    /// Times and words of the events until `horizon`; empty only if there are none later either.
    near: BinaryHeap<Reverse<(u64, u64)>>,
    horizon: u64,
    /// The reference time of the buckets, at most `horizon`.
    base: u64,
    /// Later events, [`DIGITS`] buckets a level. Level l has the events whose time differs from `base` first
    /// in digit l, where it is larger; this digit is the number of their bucket.
    buckets: Vec<Vec<(u64, u64)>>,
    /// Which buckets of each level have an event, as bits.
    filled: [u32; LEVELS],
    /// Which levels have an event, as bits.
    levels: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            last: 0,
            near: BinaryHeap::new(),
            horizon: 0,
            base: 0,
            buckets: vec![Vec::new(); LEVELS * DIGITS],
            filled: [0; LEVELS],
            levels: 0,
        }
    }
}

impl Queue {
    /// Adds an event, not earlier than the one taken last. Two equal events at one time are one fact; ids
    /// make all others distinct, so that no further sequence number is needed.
    pub(crate) fn push(&mut self, at: Time, what: Pending) {
        assert!(at.0 >= self.last, "an event in the past");
        self.enter(at.0, what.word());
        if self.near.is_empty() {
            self.come_near();
        }
    }

    fn enter(&mut self, at: u64, word: u64) {
        if at <= self.horizon {
            self.near.push(Reverse((at, word)));
            return;
        }
        let level = (at ^ self.base).ilog2() / DIGIT_BITS;
        let digit = (at >> (level * DIGIT_BITS)) as usize % DIGITS;
        self.buckets[level as usize * DIGITS + digit].push((at, word));
        self.filled[level as usize] |= 1 << digit;
        self.levels |= 1 << level;
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.near.peek().map(|&Reverse((at, _))| Time(at))
    }

    /// Takes the next event if it is at `now`.
    pub(crate) fn pop_at(&mut self, now: Time) -> Option<Pending> {
        if self.next_time() != Some(now) {
            return None;
        }
        let Reverse((at, word)) = self.near.pop()?;
        self.last = at;
        if self.near.is_empty() {
            self.come_near();
        }
        Some(Pending::of_word(word))
    }

    /// Moves the events of the nearest buckets into the heap, or to nearer buckets if there are many.
    fn come_near(&mut self) {
        while self.near.is_empty() && self.levels != 0 {
            let level = self.levels.trailing_zeros();
            let filled = &mut self.filled[level as usize];
            let digit = filled.trailing_zeros();
            *filled &= !(1 << digit);
            if *filled == 0 {
                self.levels &= !(1 << level);
            }
            let number = level as usize * DIGITS + digit as usize;
            let mut events = std::mem::take(&mut self.buckets[number]);
            let below = (1 << (level * DIGIT_BITS)) - 1;
            self.base = events[0].0 & !below;
            self.horizon = if events.len() <= FEW { self.base | below } else { self.base };
            for (at, word) in events.drain(..) {
                self.enter(at, word);
            }
            // Large buffers are freed: later events fill other buckets.
            if events.capacity() <= FEW {
                self.buckets[number] = events;
            }
        }
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
            Pending::Look(JobId(0)),
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
        for round in 0..20_000 {
            let expected: Option<&(u64, u32)> = model.first();
            assert_eq!(queue.next_time(), expected.map(|&(at, _)| Time(at)));
            // Many events come, then many leave, in turns.
            if draw(5) < 2 + u64::from(round % 4_000 < 2_000) {
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
    fn events_stay_until_they_are_due() {
        let mut queue = Queue::default();
        assert_eq!(queue.pop_at(Time(0)), None);
        queue.push(Time(3), Pending::Wake);
        assert_eq!((queue.pop_at(Time(2)), queue.pop_at(Time(4))), (None, None));
        assert_eq!(queue.pop_at(Time(3)), Some(Pending::Wake));
        assert_eq!(queue.next_time(), None);
    }
}
