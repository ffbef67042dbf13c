//! EX_MK_SF_JR (Algorithm 3): the best of all orders on all splits, for a few jobs.
//!
//! Splits are searched by least bound; on each, orders are built job by job, without those that cannot end
//! before the best known (and, among equal jobs, all orders but one). Exact.

use std::ops::RangeInclusive;

use slackline_model::JobId;

use super::bounds::{Bounds, Stage};
use super::estimator::Estimator;
use super::executor::{Mode, start_all};
use super::orders::{MAX_JOBS, TooMany};
use super::slot_bank::Bank;
use super::split::{Best, Choice};
use super::split_search::{self, Search};
use super::splits::Splits;
use super::workload::{Ends, Split, Workload};

/// The least makespan of all orders on all splits, and an order and a split that give it. The time
/// grows as n! for n jobs, times the splits that bounds cannot rule out.
///
/// # Errors
/// More than [`MAX_JOBS`] jobs.
pub fn ex_mk_sf_jr(workload: &Workload, splits: Splits, mode: Mode) -> Result<Best, TooMany> {
    if workload.len() > MAX_JOBS {
        return Err(TooMany { found: workload.len() });
    }
    let mut search = Orders {
        workload,
        splits,
        mode,
        bounds: Bounds::new(workload),
        stages: workload.jobs().iter().map(|job| [Stage::new(&job.map), Stage::new(&job.reduce)]).collect(),
        estimator: Estimator::default(),
        order: Vec::new(),
        best: None,
    };
    let evaluated = split_search::best_first(splits.points(), &mut search);
    let choice = search.best.expect("invariant: without a best no order is ruled out");
    Ok(Best { choice, evaluated, candidates: splits.count() })
}

struct Orders<'a> {
    workload: &'a Workload,
    splits: Splits,
    mode: Mode,
    bounds: Bounds,
    stages: Vec<[Stage; 2]>,
    estimator: Estimator,
    /// The first jobs of the order that is being tried.
    order: Vec<JobId>,
    best: Option<Choice>,
}

impl Search for Orders<'_> {
    type Bound = u64;

    fn bound(&mut self, range: RangeInclusive<u32>, _whole: Option<u64>) -> u64 {
        let Ends { low, high } = self.splits.ends(&range);
        self.bounds.makespan(high.map(), low.reduce())
    }

    fn is_hopeless(&self, bound: u64) -> bool {
        self.best.as_ref().is_some_and(|best| best.makespan.0 <= bound)
    }

    fn visit(&mut self, point: u32) {
        let split = self.splits.at(point);
        let mut maps = Bank::default();
        maps.reset(split.map());
        self.extend(split, &maps, 0);
    }
}

impl Orders<'_> {
    /// Tries all orders that begin with the one so far, after which map slots are free as `maps` says
    /// and the makespan is at least `bound`.
    fn extend(&mut self, split: Split, maps: &Bank, bound: u64) {
        if self.order.len() == self.workload.len() {
            return self.evaluate(split);
        }
        let left: Vec<JobId> = self.workload.ids().filter(|job| !self.order.contains(job)).collect();
        let bound = bound.max(self.bound_of_rest(split, maps.first(), &left));
        for (at, &job) in left.iter().enumerate() {
            let jobs = self.workload.jobs();
            if self.is_hopeless(bound) {
                return;
            }
            if left[..at].iter().any(|&other| jobs[other] == jobs[job]) {
                continue;
            }
            let mut maps = maps.clone();
            let ready = start_all(&mut maps, job, &jobs[job].map, 0).end;
            let done = ready + self.stages[job.index()][1].least(split.reduce().into());
            self.order.push(job);
            self.extend(split, &maps, bound.max(done));
            self.order.pop();
        }
    }

    /// The remaining jobs start no map before `free`, and their reduces after their maps. Jobs without maps do not
    /// count: their reduces may have started earlier.
    fn bound_of_rest(&self, split: Split, free: u64, left: &[JobId]) -> u64 {
        let (a, b) = (u64::from(split.map()), u64::from(split.reduce()));
        let has_maps = |[map, _]: &&[Stage; 2]| map.least(a) > 0;
        let stages = || left.iter().map(|job| &self.stages[job.index()]).filter(has_maps);
        let longest = stages().map(|[map, reduce]| map.least(a) + reduce.least(b)).max().unwrap_or(0);
        let head = stages().map(|[map, _]| map.least(a)).min().unwrap_or(0);
        let work: u64 = stages().map(|[_, reduce]| reduce.work()).sum();
        free + longest.max(head + work.div_ceil(b))
    }

    fn evaluate(&mut self, split: Split) {
        let estimate = self.estimator.run(self.workload, &self.order, split, self.mode);
        let (makespan, total_completion) = (estimate.makespan(), estimate.total_completion());
        if self.best.as_ref().is_none_or(|best| makespan < best.makespan) {
            let order = self.order.clone();
            self.best = Some(Choice { split, rule: None, order, makespan, total_completion });
        }
    }
}
