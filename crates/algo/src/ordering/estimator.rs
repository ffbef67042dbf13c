//! MREstimator: the completion of every job of an order on map slots and reduce slots.
//!
//! The rules are those of the executor ([`Mode`]). Runs of equal tasks are batches (D2), so the cost does
//! not depend on numbers of tasks: O(n G log G) for n jobs of a bounded number of runs and G groups of
//! slots that are free at the same time, where G is at most the slots and at most the runs so far.

use slackline_model::JobId;
use slackline_model::tasks::Tasks;

use super::executor::{Executor, start_all};
use super::slot_bank::Bank;
use super::workload::{Split, Workload};

pub use super::executor::{Estimate, Mode};

/// When every job completes if they are served in that order.
///
/// # Panics
/// If `order` is not an order of the jobs of the workload.
pub fn estimate(workload: &Workload, order: &[JobId], split: Split, mode: Mode) -> Estimate {
    let mut estimator = Estimator::default();
    estimator.run(workload, order, split, mode);
    estimator.executor.estimate
}

/// The estimator with its memory, for many estimates in a row.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    maps: Bank,
    reduces: Bank,
    executor: Executor,
}

impl Estimator {
    /// As [`estimate`], without allocating once it is warm.
    ///
    /// # Panics
    /// If `order` is not an order of the jobs of the workload.
    pub fn run(&mut self, workload: &Workload, order: &[JobId], split: Split, mode: Mode) -> &Estimate {
        self.maps.reset(split.map());
        self.executor.run_maps(workload.jobs(), order, &mut self.maps);
        self.reduces.reset(split.reduce());
        self.executor.run_reduces(workload.jobs(), order, mode, &mut self.reduces);
        &self.executor.estimate
    }
}

/// How long tasks take alone on that many slots, issued in order.
pub(super) fn alone(tasks: &Tasks, slots: u32) -> u64 {
    match tasks.runs() {
        [] => 0,
        [run] => u64::from(run.count.div_ceil(slots)) * run.span.0,
        _ => {
            let mut bank = Bank::default();
            bank.reset(slots);
            // Whose tasks they are makes no difference to a bank.
            start_all(&mut bank, JobId(0), tasks, 0).end
        }
    }
}
