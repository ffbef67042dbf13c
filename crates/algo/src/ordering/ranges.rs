//! Lower bounds on the result of one rule over a range of splits.
//!
//! Bounds for all orders (`bounds.rs`) do not distinguish neighbouring splits if the order, not the number of
//! slots, makes jobs wait. But the orders of neighbouring splits are nearly the same.
//!
//! 1. *Fixed jobs.* With more map slots and fewer reduce slots, a map stage never takes longer and a
//!    reduce stage never less. A job that is in the same part of Johnson's order at both ends of the
//!    range, with the same key there, is so on every split between. Small and large of MK_TCT_JR are
//!    distinguished where that is sure on all of the range (`sizes.rs`).
//!    The fixed jobs so have the same relative order on all splits of the range; on a single split,
//!    all jobs are fixed.
//! 2. *Lists.* Tasks are served in the order of a list, each on the slot that is free first and not
//!    before it is ready. Taking tasks out of the list, adding slots or lowering ready times never
//!    delays a task that remains: the sorted free times of the slots never grow.
//! 3. *Ready times.* By 2, the fixed jobs alone on the most map slots of the range are ready no later
//!    than on any of its splits; the others take at least their own time.
//! 4. *Any reduces.* In every order, the reduces of a job come after its ready time, and those of
//!    all jobs share the reduce slots: as one fast machine with release times, on which the last job
//!    ends no earlier than the work after any release allows, and on which serving the shortest
//!    remaining work first makes the k-th completion as early as it can be, for every k.
//! 5. *Reduces in order.* Strictly ordered reduces are a list. Work-conserving ones are the list of their
//!    starts; in it, a job comes after every job that precedes it in the order and is ready no later. A chain
//!    of jobs, each of which precedes the next and is surely ready no later, has its place in that list in
//!    its own order: by 2, the chain alone on the most reduce slots starts no later. No job starts a reduce
//!    before the last of any chain member that precedes it and is surely ready no later, which goes into 4 as
//!    its release. The chain of most reduce work is taken. Ready times of a range are sure where all its jobs
//!    are fixed: between those on the most and the fewest map slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use slackline_model::JobId;
use slackline_relax::johnson;

use super::bounds::Stage;
use super::executor::{Mode, start_all};
use super::orders::{Rule, Times, stage_times};
use super::sizes::sure_sizes;
use super::slot_bank::Bank;
use super::workload::{Ends, Job, Split, Workload};

/// A lower bound for each goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GoalBounds {
    pub(super) makespan: u64,
    pub(super) total_completion: u128,
}

/// The data of a workload for the bounds, and the current range.
#[derive(Clone, Debug)]
pub(super) struct RangeBounds<'a> {
    workload: &'a Workload,
    stages: Vec<[Stage; 2]>,
    bank: Bank,
    /// The fixed jobs of the range.
    order: Vec<JobId>,
    /// When each job is ready, starts its first reduce and is done, at the earliest.
    ready: Vec<u64>,
    start: Vec<u64>,
    done: Vec<u64>,
    /// Jobs by start.
    arrivals: Vec<(u64, u32)>,
    sorted: Vec<u64>,
    remaining: BinaryHeap<Reverse<u128>>,
}

impl<'a> RangeBounds<'a> {
    pub(super) fn new(workload: &'a Workload) -> Self {
        let stages = |job: &Job| [Stage::new(&job.map), Stage::new(&job.reduce)];
        Self {
            workload,
            stages: workload.jobs().iter().map(stages).collect(),
            bank: Bank::default(),
            order: Vec::new(),
            ready: Vec::new(),
            start: Vec::new(),
            done: Vec::new(),
            arrivals: Vec::new(),
            sorted: Vec::new(),
            remaining: BinaryHeap::new(),
        }
    }

    /// No split between the ends gives less with the orders of `rule`, for any schedule of the reduces. O(n
    /// log n), plus the time of the maps in the estimator.
    pub(super) fn bound(&mut self, rule: Rule, times: Times, ends: Ends) -> GoalBounds {
        self.order = self.fixed(rule, times, ends);
        self.ready = self.ready_times(ends.high);
        let slots = ends.low.reduce();
        self.start.clone_from(&self.ready);
        let done = |(ready, [_, reduce]): (&u64, &[Stage; 2])| ready + reduce.least(slots.into());
        self.done.clear();
        self.done.extend(self.ready.iter().zip(&self.stages).map(done));
        self.both(slots)
    }

    /// The same with the reduces in order; must be called after [`RangeBounds::bound`] for the range. `None`
    /// if it adds nothing. O(n log n) and the time of the estimator.
    pub(super) fn bound_in_order(&mut self, mode: Mode, Ends { low, high }: Ends) -> Option<GoalBounds> {
        let sure = match mode {
            Mode::Strict => None,
            Mode::WorkConserving if self.order.len() < self.stages.len() => return None,
            Mode::WorkConserving if low == high => Some(self.ready.clone()),
            Mode::WorkConserving => Some(self.ready_times(low)),
        };
        let chain = match &sure {
            None => self.order.clone(),
            Some(latest) => self.chain(latest),
        };
        self.bank.reset(low.reduce());
        let mut lasts = Vec::with_capacity(chain.len());
        for &job in &chain {
            let (at, reduce) = (job.index(), &self.workload.jobs()[job].reduce);
            if reduce.count() == 0 {
                continue;
            }
            let last = start_all(&mut self.bank, job, reduce, self.ready[at]);
            self.done[at] = self.done[at].max(last.end);
            lasts.push((job, last.start));
        }
        if let Some(latest) = sure {
            self.wait_for_chain(&lasts, &latest, low.reduce());
        }
        Some(self.both(low.reduce()))
    }

    /// The jobs whose relative order is the same on all splits of the range, in that order.
    fn fixed(&self, rule: Rule, times: Times, ends: Ends) -> Vec<JobId> {
        let Ends { low, high } = ends;
        if low == high {
            return rule.order(self.workload, low, times);
        }
        let at_low = stage_times(self.workload, low, times);
        let at_high = stage_times(self.workload, high, times);
        let large = match rule {
            Rule::MkJr => vec![Some(false); self.stages.len()],
            Rule::MkTctJr => sure_sizes(self.workload, times, ends),
        };
        let is_fixed = |job: &JobId| {
            let (one, other) = (at_low[job.index()], at_high[job.index()]);
            let map_shorter = one[0] <= one[1];
            // Keys by area are works, which do not change; their scale does.
            let key = usize::from(!map_shorter);
            map_shorter == (other[0] <= other[1])
                && (times == Times::Area || one[key] == other[key])
                && large[job.index()].is_some()
        };
        let mut jobs: Vec<JobId> = self.workload.ids().filter(is_fixed).collect();
        jobs.sort_by(|i, j| {
            let (i, j) = (i.index(), j.index());
            large[i].cmp(&large[j]).then(johnson::precedence(at_high[i], at_high[j]))
        });
        jobs
    }

    /// The ready times of the fixed jobs alone on these map slots; other jobs take their own time.
    fn ready_times(&mut self, split: Split) -> Vec<u64> {
        let mut ready: Vec<u64> = self.stages.iter().map(|[map, _]| map.least(split.map().into())).collect();
        self.bank.reset(split.map());
        for &job in &self.order {
            ready[job.index()] = start_all(&mut self.bank, job, &self.workload.jobs()[job].map, 0).end;
        }
        ready
    }

    /// Among the chains in which each job precedes the next and is ready, at the `latest`, before the next is
    /// at the earliest: one of most reduce work.
    ///
    /// Patience sorting with weights: `ends` has, for chains that end with a latest ready time, the most work
    /// of any, and only chains with more work than all that end sooner.
    fn chain(&self, latest: &[u64]) -> Vec<JobId> {
        let mut ends: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        let mut before: Vec<Option<usize>> = Vec::with_capacity(self.order.len());
        for (position, job) in self.order.iter().enumerate() {
            let at = job.index();
            let prior = ends.range(..=self.ready[at]).next_back().map(|(_, &best)| best);
            before.push(prior.map(|(_, position)| position));
            let work = prior.map_or(0, |(work, _)| work) + self.stages[at][1].work();
            let end = latest[at];
            if ends.range(..=end).next_back().is_none_or(|(_, best)| best.0 < work) {
                while let Some((&later, &(weaker, _))) = ends.range(end..).next()
                    && weaker <= work
                {
                    ends.remove(&later);
                }
                ends.insert(end, (work, position));
            }
        }
        let mut chain = Vec::new();
        let mut next = ends.last_key_value().map(|(_, &(_, position))| position);
        while let Some(position) = next {
            chain.push(self.order[position]);
            next = before[position];
        }
        chain.reverse();
        chain
    }

    /// Jobs start no reduces before the last of each chain member that surely comes before them.
    fn wait_for_chain(&mut self, lasts: &[(JobId, u64)], latest: &[u64], slots: u32) {
        let mut passed = 0;
        for job in &self.order {
            let at = job.index();
            let ready = self.ready[at];
            let before = lasts[..passed].partition_point(|(member, _)| latest[member.index()] <= ready);
            if before > 0 && self.workload.jobs()[*job].reduce.count() > 0 {
                self.start[at] = ready.max(lasts[before - 1].1);
                let done = self.start[at] + self.stages[at][1].least(slots.into());
                self.done[at] = self.done[at].max(done);
            }
            if lasts.get(passed).is_some_and(|(member, _)| member == job) {
                passed += 1;
            }
        }
    }

    /// The bound from the starts and completions found so far.
    fn both(&mut self, slots: u32) -> GoalBounds {
        self.arrivals.clear();
        self.arrivals.extend(self.start.iter().zip(0..).map(|(&start, job)| (start, job)));
        self.arrivals.sort_unstable();
        self.sorted.clone_from(&self.done);
        self.sorted.sort_unstable();
        let last = self.sorted.last().copied().unwrap_or(0);
        let makespan = last.max(self.fluid(slots.into()));
        let total_completion = self.by_rank(slots.into());
        GoalBounds { makespan, total_completion }
    }

    /// The work of the reduces that start after each instant is still to be done then.
    fn fluid(&self, slots: u64) -> u64 {
        let mut work = 0;
        let mut end = 0;
        for &(start, job) in self.arrivals.iter().rev() {
            work += self.stages[job as usize][1].work();
            end = end.max(start + work.div_ceil(slots));
        }
        end
    }

    /// Rank by rank: the k-th completion on one fast machine, and the k-th of the completions found.
    fn by_rank(&mut self, slots: u128) -> u128 {
        let mut floors = self.sorted.iter();
        let mut total = 0;
        let mut done = |at: u128| {
            let floor = *floors.next().expect("invariant: every job completes once");
            total += at.div_ceil(slots).max(floor.into());
        };
        self.remaining.clear();
        // Time in the unit in which the machine does one unit of work.
        let mut now = 0u128;
        for &(start, job) in &self.arrivals {
            let arrival = u128::from(start) * slots;
            while let Some(Reverse(left)) = self.remaining.pop() {
                if now + left > arrival {
                    self.remaining.push(Reverse(left - (arrival - now)));
                    break;
                }
                now += left;
                done(now);
            }
            now = arrival;
            self.remaining.push(Reverse(self.stages[job as usize][1].work().into()));
        }
        while let Some(Reverse(left)) = self.remaining.pop() {
            now += left;
            done(now);
        }
        total
    }
}
