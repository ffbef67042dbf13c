//! The malleable packing scheme: a priority order becomes a schedule.
//!
//! **Paper**: FLEX §3.1, Fig. 3 and 4. At every instant all jobs hold their minima, the jobs first in
//! order their maxima, and at most one job something between. Rates are whole slots because S, m and M
//! are.
//!
//! Fig. 3 rebuilds the allocation after each of the J completions: O(J²). But the boundary "maximum | one
//! partial | minimum" only ever moves down the order (a completion never takes slack away), so each job is
//! raised once, and each completion changes the rate of at most one partial job (docs/math/flex.md C1).
//! Events are kept where they are cheap: jobs still at their minimum end in the order of V/m, which does not
//! depend on the priorities; jobs at their maximum wait in a heap; the partial job is one value. O(J log J),
//! for every S.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::Key;

use super::instance::{FlexInstance, Piece};

/// Packs one instance in any number of orders, reusing its memory.
#[derive(Clone, Debug)]
pub struct Packer<'a> {
    instance: &'a FlexInstance,
    /// (V/m, job) of the jobs with minima, ascending: when they end if they are never raised.
    slowest: Vec<(f64, usize)>,
    state: Vec<State>,
    completions: Vec<f64>,
    /// (end, job) of jobs at their maximum.
    full: BinaryHeap<Reverse<(Key, usize)>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// At its minimum since time 0.
    Minimum,
    Partial,
    /// At its maximum since then.
    Full(f64),
    Done,
}

/// The one job between its minimum and its maximum.
#[derive(Clone, Copy, Debug)]
struct Partial {
    job: usize,
    left: f64,
    rate: u32,
    since: f64,
}

/// Where a packing stands.
struct Clock<'o> {
    now: f64,
    slack: u32,
    /// Jobs not raised yet, first in priority first.
    rest: std::slice::Iter<'o, usize>,
    partial: Option<Partial>,
}

impl<'a> Packer<'a> {
    /// Prepares an instance. O(J log J).
    pub fn new(instance: &'a FlexInstance) -> Self {
        let jobs = instance.jobs();
        let mut slowest: Vec<(f64, usize)> = (jobs.iter().enumerate())
            .filter(|(_, job)| job.min > 0)
            .map(|(at, job)| (job.work / f64::from(job.min), at))
            .collect();
        slowest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Self {
            instance,
            slowest,
            state: Vec::new(),
            completions: vec![0.0; jobs.len()],
            full: BinaryHeap::new(),
        }
    }

    /// Completion times of the packing in this order, a permutation of all jobs.
    pub fn completions(&mut self, order: &[usize]) -> &[f64] {
        self.run(order, |_| {});
        &self.completions
    }

    /// The objective's value of the packing in this order.
    pub fn cost(&mut self, order: &[usize]) -> f64 {
        self.run(order, |_| {});
        self.instance.cost(&self.completions)
    }

    /// The packing in this order, at most four pieces per job on average, in the order of their ends.
    pub fn pieces(&mut self, order: &[usize]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.run(order, |piece| pieces.push(piece));
        pieces
    }

    fn run(&mut self, order: &[usize], mut emit: impl FnMut(Piece)) {
        let jobs = self.instance.jobs();
        debug_assert_eq!(order.len(), jobs.len(), "an order of all jobs");
        self.state.clear();
        self.state.extend(jobs.iter().map(|j| if j.work > 0.0 { State::Minimum } else { State::Done }));
        self.completions.fill(0.0);
        self.full.clear();
        let minima: u32 = jobs.iter().map(|job| job.min).sum();
        let slack = self.instance.slots() - minima;
        let mut clock = Clock { now: 0.0, slack, rest: order.iter(), partial: None };
        let mut emit = |job, start, end, slots| {
            if slots > 0 && end > start {
                emit(Piece { job, start, end, slots });
            }
        };
        self.raise(&mut clock, &mut emit);
        let mut slowest = 0;
        loop {
            while self.slowest.get(slowest).is_some_and(|&(_, j)| self.state[j] != State::Minimum) {
                slowest += 1;
            }
            let at_minimum = self.slowest.get(slowest).copied();
            let at_maximum = self.full.peek().map(|&Reverse((end, job))| (end.number(), job));
            let partial = clock.partial.map(|p| (p.since + p.left / f64::from(p.rate), p.job));
            let events = [at_minimum, at_maximum, partial];
            let next = events.into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let Some((end, job)) = next else { return };
            clock.now = end.max(clock.now);
            clock.slack += match self.state[job] {
                State::Minimum => {
                    emit(job, 0.0, end, jobs[job].min);
                    jobs[job].min
                }
                State::Full(since) => {
                    self.full.pop();
                    emit(job, since, end, jobs[job].max);
                    jobs[job].max
                }
                State::Partial => {
                    let p = clock.partial.take().expect("invariant: there is a partial job");
                    emit(job, p.since, end, p.rate);
                    p.rate
                }
                State::Done => unreachable!("invariant: done jobs have no event"),
            };
            self.state[job] = State::Done;
            self.completions[job] = end;
            self.raise(&mut clock, &mut emit);
        }
    }

    /// Gives slack to the partial job and then down the order.
    fn raise(&mut self, clock: &mut Clock<'_>, emit: &mut impl FnMut(usize, f64, f64, u32)) {
        let jobs = self.instance.jobs();
        while clock.slack > 0 {
            let Some(mut p) = clock.partial.take().or_else(|| self.next(clock, emit)) else { return };
            let max = jobs[p.job].max;
            let more = clock.slack.min(max - p.rate);
            emit(p.job, p.since, clock.now, p.rate);
            p.left = (p.left - f64::from(p.rate) * (clock.now - p.since)).max(0.0);
            (p.since, p.rate) = (clock.now, p.rate + more);
            clock.slack -= more;
            if p.rate == max {
                let end = clock.now + p.left / f64::from(max);
                self.state[p.job] = State::Full(clock.now);
                self.full.push(Reverse((Key::new(end), p.job)));
            } else {
                clock.partial = Some(p);
            }
        }
    }

    /// The next job of the order that is still at its minimum becomes the partial one.
    fn next(
        &mut self,
        clock: &mut Clock<'_>,
        emit: &mut impl FnMut(usize, f64, f64, u32),
    ) -> Option<Partial> {
        let &job = clock.rest.by_ref().find(|&&job| self.state[job] == State::Minimum)?;
        let info = &self.instance.jobs()[job];
        emit(job, 0.0, clock.now, info.min);
        self.state[job] = State::Partial;
        let left = (info.work - f64::from(info.min) * clock.now).max(0.0);
        Some(Partial { job, left, rate: info.min, since: clock.now })
    }
}

/// The slots of each job in the first interval of the packing: what holds until the next epoch. O(J).
pub fn first_interval(instance: &FlexInstance, order: &[usize]) -> Vec<u32> {
    let jobs = instance.jobs();
    let mut slots: Vec<u32> = jobs.iter().map(|job| job.min).collect();
    let mut slack = instance.slots() - slots.iter().sum::<u32>();
    for &job in order {
        if jobs[job].work > 0.0 {
            let more = slack.min(jobs[job].max - jobs[job].min);
            slots[job] += more;
            slack -= more;
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::{Combine, CostFn};
    use slackline_relax::malleable::Job;

    use super::*;

    /// Fig. 3 as it is printed, but for "and L is not empty" in line 7, which the figure forgets.
    fn figure_3(instance: &FlexInstance, order: &[usize]) -> Vec<f64> {
        let jobs = instance.jobs();
        let mut left: Vec<f64> = jobs.iter().map(|job| job.work).collect();
        let mut done = vec![0.0; jobs.len()];
        let mut list: Vec<usize> = order.iter().copied().filter(|&j| left[j] > 0.0).collect();
        let mut now = 0.0;
        while !list.is_empty() {
            let mut slots: Vec<u32> = vec![0; jobs.len()];
            for &j in &list {
                slots[j] = jobs[j].min;
            }
            let mut slack = instance.slots() - slots.iter().sum::<u32>();
            for &j in &list {
                let more = slack.min(jobs[j].max - jobs[j].min);
                slots[j] += more;
                slack -= more;
            }
            let end = |j: usize| if slots[j] > 0 { left[j] / f64::from(slots[j]) } else { f64::INFINITY };
            let (at, first) = list
                .iter()
                .enumerate()
                .map(|(k, &j)| (k, end(j)))
                .min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
                .unwrap();
            for &j in &list {
                left[j] = (left[j] - f64::from(slots[j]) * first).max(0.0);
            }
            now += first;
            done[list.remove(at)] = now;
        }
        done
    }

    fn instances() -> impl Strategy<Value = (FlexInstance, Vec<usize>)> {
        let one = (0u32..30, 0u32..4, 0u32..8);
        (prop::collection::vec(one, 1..12), 1u32..20).prop_flat_map(|(list, slots)| {
            let jobs: Vec<Job> = list
                .iter()
                .map(|&(work, min, more)| Job::new(f64::from(work) / 2.0, min..=min + more, CostFn::zero()))
                .collect();
            let order: Vec<usize> = (0..jobs.len()).collect();
            (Just(FlexInstance::new(slots, Combine::Sum, jobs)), Just(order).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn packing_is_figure_3((instance, order) in instances()) {
            let slow = figure_3(&instance, &order);
            let mut packer = Packer::new(&instance);
            let fast = packer.completions(&order).to_vec();
            for (a, b) in fast.iter().zip(&slow) {
                prop_assert!((a - b).abs() <= 1e-12 * b.max(1.0), "{fast:?} {slow:?}");
            }
            let pieces = packer.pieces(&order);
            prop_assert!(pieces.len() <= 4 * order.len());
            let mut done = vec![0.0; order.len()];
            for piece in &pieces {
                let job = &instance.jobs()[piece.job];
                prop_assert!(job.min <= piece.slots && piece.slots <= job.max);
                done[piece.job] += f64::from(piece.slots) * (piece.end - piece.start);
                let load: u32 = (pieces.iter())
                    .filter(|p| p.start <= piece.start && piece.start < p.end)
                    .map(|p| p.slots)
                    .sum();
                prop_assert!(load <= instance.slots());
            }
            for (job, done) in instance.jobs().iter().zip(done) {
                prop_assert!((job.work - done).abs() < 1e-9);
            }
            let first = first_interval(&instance, &order);
            for (job, &slots) in first.iter().enumerate() {
                let held: u32 = pieces.iter().filter(|p| p.job == job && p.start == 0.0).map(|p| p.slots).sum();
                if instance.jobs()[job].work > 0.0 {
                    prop_assert_eq!(slots, held);
                }
            }
        }
    }

    #[test]
    fn ties_give_no_empty_intervals() {
        let job = Job::new(4.0, 0..=2, CostFn::zero());
        let instance = FlexInstance::new(4, Combine::Sum, vec![job; 4]);
        let mut packer = Packer::new(&instance);
        assert_eq!(packer.completions(&[0, 1, 2, 3]), [2.0, 2.0, 4.0, 4.0]);
        assert_eq!(packer.pieces(&[0, 1, 2, 3]).len(), 4);
    }
}
