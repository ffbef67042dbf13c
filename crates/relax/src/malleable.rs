//! Malleable jobs: the input of the exact tests and relaxations of FLEX.
//!
//! All jobs are released at the plan's time 0; a job works at any rate between its minimum and its
//! maximum number of slots until it is done. Plan time and workload time differ by each job's `base`.

use std::ops::RangeInclusive;

use slackline_model::CostFn;

/// A malleable job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Slot-seconds of work V.
    pub work: f64,
    /// Slot-seconds that are certainly done at a rate of at least `min`: the whole work if the minimum holds
    /// to the end, less if it falls with the last tasks (bounds only).
    pub firm: f64,
    /// Least number of slots until it is done (m).
    pub min: u32,
    /// Most slots (M); at least 1 and at least `min`.
    pub max: u32,
    /// The cost as a function of the completion in workload time.
    pub cost: CostFn,
    /// Workload time, in seconds, at the plan's time 0.
    pub base: f64,
}

impl Job {
    /// A job with this range of slots, whose minimum holds to its end, in a plan that starts with the
    /// workload.
    pub fn new(work: f64, slots: RangeInclusive<u32>, cost: CostFn) -> Self {
        let (min, max) = slots.into_inner();
        Self { work, firm: work, min, max, cost, base: 0.0 }
    }

    /// Seconds at its maximum number of slots.
    pub fn alone(&self) -> f64 {
        self.work / f64::from(self.max)
    }

    /// The cost of completing at plan time `t`.
    pub fn cost_at(&self, t: f64) -> f64 {
        self.cost.eval(self.base + t)
    }

    /// The latest plan time at which completing costs at most `level`; infinite if any does, `None`
    /// if none from 0 on does.
    pub fn latest(&self, level: f64) -> Option<f64> {
        self.cost.latest(level).map(|t| t - self.base).filter(|&t| t >= 0.0)
    }

    /// As [`Job::latest`], with the tolerance of instants where the cost function grants it (steps). The
    /// judge charges at most `level` for a completion by then, so tests that must not reject a feasible
    /// schedule use it.
    pub fn latest_lenient(&self, level: f64) -> Option<f64> {
        let at = self.cost.latest(level)?;
        // A millionth of the tolerance is left for rounding in schedules that use it fully.
        let wide = at + (2e-6 + 1e-9 * at.abs()) * (1.0 - 1e-6);
        let at = if self.cost.eval(wide) <= level { wide } else { at };
        Some(at - self.base).filter(|&t| t >= 0.0)
    }

    /// Work that is done by `t` in every schedule that completes the job by `due`:
    /// max(min(m·t, firm), V − M·(due − t)⁺).
    pub fn must(&self, due: f64, t: f64) -> f64 {
        let guaranteed = (f64::from(self.min) * t).min(self.firm);
        guaranteed.max(self.work - f64::from(self.max) * (due - t).max(0.0))
    }
}

/// A time by which every job can be done beside all others (docs/math/flex.md C3): the last jobs pour into
/// the space that the rest leaves, so ΣV/S + max V/M is enough.
pub fn horizon(jobs: &[Job], slots: u32) -> f64 {
    let total: f64 = jobs.iter().map(|job| job.work).sum();
    let longest = jobs.iter().map(Job::alone).fold(0.0, f64::max);
    total / f64::from(slots) + longest
}
