//! MREstimator: when every job of an order completes on typed slots.
//!
//! Maps are issued in the order of their jobs, each to the map slot that is free first. A job is ready
//! for its reduces when its last map ends (at 0 if it has none). Reduces follow one of two [`Mode`]s
//! (docs/math.md D1); a job completes when its last reduce ends, and not before it is ready.
//!
//! Runs of equal tasks are batches (D2), so the cost does not depend on numbers of tasks:
//! O(n G log G) for n jobs of a bounded number of runs and G groups of slots that are free at the same
//! time, where G is at most the slots and at most the runs so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::id::TiVec;
use slackline_model::tasks::Tasks;
use slackline_model::{JobId, Span, Time};

use super::bank::{Bank, Batch, Outcome};
use super::workload::{Split, Workload};

/// How reduces are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A reduce slot that comes free goes to the first job in order that is ready and has reduces left:
    /// FIFO as Hadoop does it.
    #[default]
    WorkConserving,
    /// Reduces are issued strictly in the order of their jobs, each to the reduce slot that is free
    /// first, where it may wait for its job. More slots never hurt.
    Strict,
}

/// What an order gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// When the maps of each job are done.
    pub ready: TiVec<JobId, Time>,
    /// When each job is done.
    pub completion: TiVec<JobId, Time>,
}

impl Estimate {
    /// When the last job is done.
    pub fn makespan(&self) -> Span {
        Span(self.completion.iter().max().map_or(0, |c| c.0))
    }

    /// Sum of the completions, in microseconds.
    pub fn total_completion(&self) -> u128 {
        self.completion.iter().map(|c| u128::from(c.0)).sum()
    }
}

/// When every job completes if they are served in that order.
///
/// # Panics
/// If `order` is not an order of the jobs of the workload.
pub fn estimate(workload: &Workload, order: &[JobId], split: Split, mode: Mode) -> Estimate {
    let mut estimator = Estimator::default();
    estimator.run(workload, order, split, mode);
    estimator.estimate
}

/// The estimator with its scratch memory, for many estimates in a row.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    maps: Bank,
    reduces: Bank,
    estimate: Estimate,
    /// (ready, position) of jobs with reduces.
    arrivals: Vec<(u64, u32)>,
    /// Positions of ready jobs with reduces left.
    waiting: BinaryHeap<Reverse<u32>>,
    /// By position: run of the next reduce, and how many of that run have started.
    progress: Vec<(u32, u32)>,
}

impl Estimator {
    /// As [`estimate`], without allocating once it is warm.
    ///
    /// # Panics
    /// If `order` is not an order of the jobs of the workload.
    pub fn run(&mut self, workload: &Workload, order: &[JobId], split: Split, mode: Mode) -> &Estimate {
        assert_eq!(order.len(), workload.len(), "an order has every job once");
        self.run_maps(workload, order, split);
        match mode {
            Mode::WorkConserving => self.run_work_conserving(workload, order, split),
            Mode::Strict => self.run_strictly(workload, order, split),
        }
        &self.estimate
    }

    fn run_maps(&mut self, workload: &Workload, order: &[JobId], split: Split) {
        self.maps.reset(split.map());
        self.estimate.ready.raw.clear();
        self.estimate.ready.raw.resize(workload.len(), Time::ZERO);
        for &job in order {
            self.estimate.ready[job] = Time(start_all(&mut self.maps, &workload.jobs()[job].map, 0).end);
        }
        self.estimate.completion.raw.clear();
        self.estimate.completion.raw.extend_from_slice(&self.estimate.ready.raw);
    }

    fn run_strictly(&mut self, workload: &Workload, order: &[JobId], split: Split) {
        self.reduces.reset(split.reduce());
        for &job in order {
            let ready = self.estimate.ready[job].0;
            let last = start_all(&mut self.reduces, &workload.jobs()[job].reduce, ready);
            self.complete(job, last.end);
        }
    }

    /// Sweeps over the times at which jobs become ready: between two of them, the first ready job in
    /// order is served until it has no reduces left, then the next.
    fn run_work_conserving(&mut self, workload: &Workload, order: &[JobId], split: Split) {
        self.reduces.reset(split.reduce());
        self.progress.clear();
        self.progress.resize(order.len(), (0, 0));
        self.arrivals.clear();
        self.waiting.clear();
        for (position, &job) in order.iter().enumerate() {
            if workload.jobs()[job].reduce.count() > 0 {
                self.arrivals.push((self.estimate.ready[job].0, position as u32));
            }
        }
        self.arrivals.sort_unstable();
        let mut next = 0;
        while let Some(&(now, _)) = self.arrivals.get(next) {
            while let Some(&(ready, position)) = self.arrivals.get(next)
                && ready == now
            {
                self.waiting.push(Reverse(position));
                next += 1;
            }
            let until = self.arrivals.get(next).map_or(u64::MAX, |&(ready, _)| ready);
            self.serve(workload, order, now, until);
        }
    }

    /// Starts what can start from `now` on and before `until`.
    fn serve(&mut self, workload: &Workload, order: &[JobId], now: u64, until: u64) {
        while let Some(&Reverse(position)) = self.waiting.peek() {
            let job = order[position as usize];
            let (run, started) = &mut self.progress[position as usize];
            let runs = workload.jobs()[job].reduce.runs();
            let batch = Batch {
                tasks: runs[*run as usize].count - *started,
                span: runs[*run as usize].span.0,
                from: now,
                until,
            };
            match self.reduces.start(batch) {
                Outcome::Left(left) => {
                    *started += batch.tasks - left;
                    return;
                }
                Outcome::Ends(end) => {
                    (*run, *started) = (*run + 1, 0);
                    if *run as usize == runs.len() {
                        self.waiting.pop();
                    }
                    self.complete(job, end);
                }
            }
        }
    }

    fn complete(&mut self, job: JobId, end: u64) {
        let completion = &mut self.estimate.completion[job];
        *completion = (*completion).max(Time(end));
    }
}

/// When the last of some tasks starts, and when the last of them ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Starts tasks in order, none before `from`; 0 and 0 if there are none.
pub(super) fn start_all(bank: &mut Bank, tasks: &Tasks, from: u64) -> Last {
    let mut last = Last::default();
    for run in tasks.runs() {
        let batch = Batch { tasks: run.count, span: run.span.0, from, until: u64::MAX };
        if let Outcome::Ends(end) = bank.start(batch) {
            last = Last { start: end - run.span.0, end: end.max(last.end) };
        }
    }
    last
}

/// How long tasks take alone on that many slots, issued in order.
pub(super) fn alone(tasks: &Tasks, slots: u32) -> u64 {
    match tasks.runs() {
        [] => 0,
        [run] => u64::from(run.count.div_ceil(slots)) * run.span.0,
        _ => {
            let mut bank = Bank::default();
            bank.reset(slots);
            start_all(&mut bank, tasks, 0).end
        }
    }
}
