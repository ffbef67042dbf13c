//! A bank of equal slots, and runs of equal tasks that go to the first free slots.
//!
//! The batch arithmetic of docs/math/ordering.md D2: starting k tasks of length d costs one pass over the
//! groups of slots they reach, for any k. All times are whole microseconds, and exact.
//!
//! Let c_i slots be free at t_i, and cnt(T) = Σ_{t_i ≤ T} c_i (⌊(T − t_i)/d⌋ + 1) the starts up to T if
//! tasks never ran out. The last of the k tasks starts at the least T with cnt(T) ≥ k:
//! 1. *Surface.* Pour the work k·d over the slots; its surface is L* = (k·d + Σ c_i t_i) / Σ c_i, sums
//!    over the groups below it. As x − 1 < ⌊x⌋ ≤ x, cnt(⌈L*⌉ − 1) ≥ k > cnt(⌈L*⌉ − d − 1): T lies in the
//!    window [L, L + d) with L = ⌈L*⌉ − d.
//! 2. *Window.* Each group that is free before L + d starts exactly one task in the window. One division
//!    gives its time and how many came before. In the order of those times, T is where the tasks end.
//! 3. *Rotation.* Slots that start in [L, T] are free d later, behind all others of the window; slots
//!    that find no task at T stay free since T.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Equal slots that are free at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    free: u64,
    count: u32,
}

/// Equal tasks that are to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// How many; at least 1.
    pub(super) tasks: u32,
    /// How long each takes.
    pub(super) span: u64,
    /// None starts before this.
    pub(super) from: u64,
    /// None starts at or after this.
    pub(super) until: u64,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Started {
    /// How many did not start in time.
    pub(super) left: u32,
    /// When the last that started did, and when the last of them ends; 0 if none started.
    pub(super) last: u64,
    pub(super) end: u64,
}

impl Started {
    /// All of them, the last one then.
    fn all(last: u64, span: u64) -> Self {
        Self { left: 0, last, end: last + span }
    }
}

/// When each of a number of equal slots is free next.
#[derive(Clone, Debug, Default)]
pub(super) struct Bank {
    /// Latest first, so that the earliest are popped; times are distinct.
    groups: Vec<Group>,
    /// Slots that run a batch, first free first; all are free later than the last group. While the slots of
    /// that group suffice, a batch goes here, which costs less than a place among the groups.
    running: BinaryHeap<Reverse<Group>>,
    /// Scratch: groups by their start in the window, earliest first.
    window: Vec<Group>,
    /// Scratch: groups on their way back, earliest first.
    back: Vec<Group>,
    /// Scratch: where they go.
    places: Vec<u32>,
}

/// How many groups at the beginning are free later than `free`; looked for from the end, in growing steps.
fn last_later(groups: &[Group], free: u64) -> usize {
    let (mut high, mut step) = (groups.len(), 1);
    while high > 0 {
        let low = high.saturating_sub(step);
        if groups[low].free > free {
            return low + groups[low..high].partition_point(|group| group.free > free);
        }
        (high, step) = (low, 2 * step);
    }
    0
}

impl Bank {
    /// All slots free at 0; at least one.
    pub(super) fn reset(&mut self, slots: u32) {
        self.groups.clear();
        self.running.clear();
        self.groups.push(Group { free: 0, count: slots });
    }

    /// When the first slot is free.
    pub(super) fn first(&self) -> u64 {
        self.groups.last().expect("invariant: a bank has slots").free
    }

    /// Slots that are free by `now` are free since `now`: nothing starts before that any more. So groups that
    /// differ only in the past become one. O(log g) on average for g groups, since a batch makes few groups.
    pub(super) fn settle(&mut self, now: u64) {
        let mut idle = 0;
        while let Some(&Reverse(Group { free, count })) = self.running.peek()
            && free <= now
        {
            idle += count;
            self.running.pop();
        }
        while let Some(&Group { free, count }) = self.groups.last()
            && free <= now
        {
            idle += count;
            self.groups.pop();
        }
        if idle > 0 {
            self.groups.push(Group { free: now, count: idle });
        }
    }

    /// Starts tasks one after the other, each on the slot that has been free longest. A slot that was
    /// free before `from` and gets no task stays free since then.
    ///
    /// O(g log g) for the g groups that get a task or come free before the last starts.
    pub(super) fn start(&mut self, batch: Batch) -> Started {
        let now = self.first().max(batch.from);
        if now >= batch.until {
            return Started { left: batch.tasks, ..Started::default() };
        }
        if let Some(last) = self.groups.last_mut()
            && last.count > batch.tasks
            && batch.span > 0
            && self.running.peek().is_none_or(|first| first.0.free > now)
            && last.free <= now
        {
            last.count -= batch.tasks;
            self.running.push(Reverse(Group { free: now + batch.span, count: batch.tasks }));
            return Started::all(now, batch.span);
        }
        self.gather();
        let idle = self.idle(now, batch.tasks);
        if batch.span == 0 || batch.tasks <= idle {
            self.occupy(batch.tasks.min(idle), now + batch.span);
            return Started::all(now, batch.span);
        }
        // Every idle slot gets a task now, so it may as well have come free now.
        self.occupy(idle, now);
        if let Some(last) = self.each_once(batch) {
            return Started::all(last, batch.span);
        }
        let surface = self.surface(batch);
        if surface > batch.until {
            let startable = self.startable(batch);
            if startable < u64::from(batch.tasks) {
                let end = self.cut(batch);
                let left = batch.tasks - startable as u32;
                return Started { left, last: end - batch.span, end };
            }
        }
        Started::all(self.fill(batch, surface.saturating_sub(batch.span).max(now)), batch.span)
    }

    /// Puts the slots that run batches among the groups.
    fn gather(&mut self) {
        if self.running.is_empty() {
            return;
        }
        self.back.clear();
        while let Some(Reverse(group)) = self.running.pop() {
            match self.back.last_mut() {
                Some(same) if same.free == group.free => same.count += group.count,
                _ => self.back.push(group),
            }
        }
        self.insert_back();
    }

    /// How many slots are free at `now`; counting stops at `enough`.
    fn idle(&self, now: u64, enough: u32) -> u32 {
        let mut idle = 0;
        for group in self.groups.iter().rev().take_while(|group| group.free <= now) {
            idle += group.count;
            if idle >= enough {
                break;
            }
        }
        idle
    }

    /// The first `count` slots are free at `then` instead.
    fn occupy(&mut self, count: u32, then: u64) {
        let mut left = count;
        while left > 0 {
            let last = self.groups.last_mut().expect("invariant: that many slots are idle");
            let used = last.count.min(left);
            left -= used;
            last.count -= used;
            if last.count == 0 {
                self.groups.pop();
            }
        }
        let at = self.groups.partition_point(|group| group.free > then);
        match self.groups.get_mut(at) {
            Some(same) if same.free == then => same.count += count,
            _ => self.groups.insert(at, Group { free: then, count }),
        }
    }

    /// Starts each task on a separate slot, the first ones that are free, if list scheduling does the same:
    /// none of them is free again before the last task starts. Returns when that is. Most batches are so, and
    /// need neither surface nor window.
    fn each_once(&mut self, batch: Batch) -> Option<u64> {
        let latest = (self.first() + batch.span).min(batch.until - 1);
        let (mut need, mut used) = (batch.tasks, 0);
        self.back.clear();
        for group in self.groups.iter().rev() {
            if group.free > latest {
                return None;
            }
            used += 1;
            let count = group.count.min(need);
            self.back.push(Group { free: group.free + batch.span, count });
            need -= count;
            if need == 0 {
                break;
            }
        }
        if need > 0 {
            return None;
        }
        let at = self.groups.len() - used;
        let last = self.groups[at].free;
        let left = self.groups[at].count - self.back[used - 1].count;
        if left > 0 {
            self.groups[at].count = left;
        }
        self.groups.truncate(at + usize::from(left > 0));
        self.insert_back();
        Some(last)
    }

    /// Puts groups that are on their way back, whose times are distinct, among the others. Each of those
    /// moves at most once.
    fn insert_back(&mut self) {
        let (mut kept, mut end) = (0, self.groups.len());
        self.places.clear();
        for k in 0..self.back.len() {
            let group = self.back[k];
            end = last_later(&self.groups[..end], group.free);
            match self.groups.get_mut(end) {
                Some(same) if same.free == group.free => same.count += group.count,
                _ => {
                    self.back[kept] = group;
                    self.places.push(end as u32);
                    kept += 1;
                }
            }
        }
        let mut end = self.groups.len();
        self.groups.resize(end + kept, Group { free: 0, count: 0 });
        for k in 0..kept {
            let (at, shift) = (self.places[k] as usize, kept - k);
            self.groups.copy_within(at..end, at + shift);
            self.groups[at + shift - 1] = self.back[k];
            end = at;
        }
    }

    /// ⌈L*⌉: all tasks start before it.
    fn surface(&self, batch: Batch) -> u64 {
        let work = u128::from(batch.tasks) * u128::from(batch.span);
        let (mut slots, mut filled) = (0u64, work);
        for group in self.groups.iter().rev() {
            let free = u128::from(group.free);
            if u128::from(slots) * free >= filled {
                break;
            }
            slots += u64::from(group.count);
            filled += u128::from(group.count) * free;
        }
        filled.div_ceil(slots.into()) as u64
    }

    /// cnt(until − 1).
    fn startable(&self, batch: Batch) -> u64 {
        let early = self.groups.iter().rev().take_while(|group| group.free < batch.until);
        early.map(|g| u64::from(g.count) * (batch.until - g.free).div_ceil(batch.span)).sum()
    }

    /// Starts all that can start before `until`, at least one; returns when the last ends.
    fn cut(&mut self, batch: Batch) -> u64 {
        self.open_window(batch.until, batch.until, batch.span);
        self.give_back(self.window.len());
        self.window.last().map_or(0, |group| group.free)
    }

    /// Starts all tasks, the last of them in the window from `low` on; returns when it starts.
    fn fill(&mut self, batch: Batch, low: u64) -> u64 {
        let before = self.open_window(low, low + batch.span, batch.span);
        let mut need = u64::from(batch.tasks) - before;
        let mut last = 0;
        while need > u64::from(self.window[last].count) {
            need -= u64::from(self.window[last].count);
            last += 1;
        }
        let Group { free: start, count } = self.window[last];
        self.window[last].count = need as u32;
        self.window[..=last].iter_mut().for_each(|group| group.free += batch.span);
        self.give_back(last + 1);
        self.groups.extend(self.window[last + 1..].iter().rev());
        if u64::from(count) > need {
            self.groups.push(Group { free: start, count: count - need as u32 });
        }
        start
    }

    /// Takes the groups that are free before `end` out of the bank and into the window, each at its
    /// first start at or after `low`; returns how many tasks start before `low`.
    fn open_window(&mut self, low: u64, end: u64, span: u64) -> u64 {
        let mut before = 0;
        self.window.clear();
        while let Some(&Group { free, count }) = self.groups.last()
            && free < end
        {
            let wait = low.saturating_sub(free);
            // Most wait for no more than one task, and divisions are slow.
            let waves = if wait <= span { u64::from(wait > 0) } else { wait.div_ceil(span) };
            before += u64::from(count) * waves;
            self.window.push(Group { free: free + waves * span, count });
            self.groups.pop();
        }
        // Groups of as many waves are in order already: a stable sort merges such runs.
        self.window.sort_by_key(|group| group.free);
        self.window.dedup_by(|later, kept| {
            let same = later.free == kept.free;
            kept.count += if same { later.count } else { 0 };
            same
        });
        before
    }

    /// Puts the first `n` groups of the window back among the others.
    fn give_back(&mut self, n: usize) {
        self.back.clear();
        self.back.extend_from_slice(&self.window[..n]);
        self.insert_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work grows with the number of groups: where slots are plenty, ended batches must not remain.
    #[test]
    fn slots_that_are_free_again_are_one_group() {
        let mut bank = Bank::default();
        bank.reset(1_000_000);
        for now in 0..10_000 {
            bank.settle(now);
            // Of every five batches, one runs long.
            let span = if now % 5 == 0 { 100 } else { 3 };
            let batch = Batch { tasks: 7, span, from: now, until: u64::MAX };
            assert_eq!(bank.start(batch), Started::all(now, span));
            assert_eq!(bank.groups.len(), 1);
            assert!(bank.running.len() <= 24, "{} batches run", bank.running.len());
        }
    }
}
