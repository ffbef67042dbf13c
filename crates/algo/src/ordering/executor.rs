//! Executes an order of jobs on map slots and reduce slots: which tasks start next, and when they start and
//! end.
//!
//! Maps are issued in the order of their jobs, each to the map slot that is free first. A job is ready
//! for its reduces when its last map ends (at 0 if it has none). Reduces follow one of two [`Mode`]s
//! (docs/math/ordering.md D1); a job completes when its last reduce ends, and not before it is ready.
//!
//! The estimator runs orders on slots that only count, and repeats that for every split and order it
//! compares, so it works on batches of equal tasks; a plan runs the same order on slots with numbers and
//! speeds, which write down what starts. What they share is here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::id::TiVec;
use slackline_model::tasks::Tasks;
use slackline_model::{JobId, Span, Time};

use super::slot_bank::{Bank, Batch, Started};
use super::workload::Job;

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

/// Which tasks of a stage are to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub(super) job: JobId,
    /// The number of the first of them.
    pub(super) task: u32,
}

/// The slots that serve a stage.
pub(super) trait Slots {
    /// Starts the tasks of a batch one after the other, each on the slot that is free first.
    fn start(&mut self, first: First, batch: Batch) -> Started;

    /// From now on, no batch has tasks that may start before `now`.
    fn settle(&mut self, _now: u64) {}
}

impl Slots for Bank {
    fn start(&mut self, _: First, batch: Batch) -> Started {
        Self::start(self, batch)
    }

    fn settle(&mut self, now: u64) {
        Self::settle(self, now);
    }
}

/// The next reduce of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    /// Its run, and how many of that run have started.
    run: u32,
    started: u32,
    task: u32,
}

/// Executes orders; keeps its memory for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Executor {
    pub(super) estimate: Estimate,
    /// (ready, position) of jobs with reduces.
    arrivals: Vec<(u64, u32)>,
    /// Positions of ready jobs with reduces left.
    waiting: BinaryHeap<Reverse<u32>>,
    /// The next reduce, by position.
    next: Vec<Next>,
}

impl Executor {
    /// Runs all maps, which makes the jobs ready.
    ///
    /// # Panics
    /// If `order` is not an order of the jobs.
    pub(super) fn run_maps(&mut self, jobs: &TiVec<JobId, Job>, order: &[JobId], slots: &mut impl Slots) {
        assert_eq!(order.len(), jobs.len(), "an order has every job once");
        self.estimate.ready.raw.clear();
        self.estimate.ready.raw.resize(jobs.len(), Time::ZERO);
        for &job in order {
            self.estimate.ready[job] = Time(start_all(slots, job, &jobs[job].map, 0).end);
        }
        self.estimate.completion.raw.clear();
        self.estimate.completion.raw.extend_from_slice(&self.estimate.ready.raw);
    }

    /// Runs all reduces of jobs that were made ready in this order.
    pub(super) fn run_reduces(
        &mut self,
        jobs: &TiVec<JobId, Job>,
        order: &[JobId],
        mode: Mode,
        slots: &mut impl Slots,
    ) {
        match mode {
            Mode::WorkConserving => self.run_work_conserving(jobs, order, slots),
            Mode::Strict => {
                for &job in order {
                    let last = start_all(slots, job, &jobs[job].reduce, self.estimate.ready[job].0);
                    self.complete(job, last.end);
                }
            }
        }
    }

    /// Goes through the times at which jobs become ready: between two of them, the first ready job in
    /// order is served until it has no reduces left, then the next.
    fn run_work_conserving(&mut self, jobs: &TiVec<JobId, Job>, order: &[JobId], slots: &mut impl Slots) {
        self.next.clear();
        self.next.resize(order.len(), Next::default());
        self.arrivals.clear();
        self.waiting.clear();
        for (position, &job) in order.iter().enumerate() {
            if jobs[job].reduce.count() > 0 {
                self.arrivals.push((self.estimate.ready[job].0, position as u32));
            }
        }
        self.arrivals.sort_unstable();
        let mut arrived = 0;
        while let Some(&(now, _)) = self.arrivals.get(arrived) {
            while let Some(&(ready, position)) = self.arrivals.get(arrived)
                && ready == now
            {
                self.waiting.push(Reverse(position));
                arrived += 1;
            }
            slots.settle(now);
            let until = self.arrivals.get(arrived).map_or(u64::MAX, |&(ready, _)| ready);
            while let Some(&Reverse(position)) = self.waiting.peek() {
                let job = order[position as usize];
                let next = &mut self.next[position as usize];
                let runs = jobs[job].reduce.runs();
                let run = runs[next.run as usize];
                let batch = Batch { tasks: run.count - next.started, span: run.span.0, from: now, until };
                let Started { left, end, .. } = slots.start(First { job, task: next.task }, batch);
                let started = batch.tasks - left;
                *next = if left > 0 {
                    Next { started: next.started + started, task: next.task + started, ..*next }
                } else {
                    Next { run: next.run + 1, started: 0, task: next.task + started }
                };
                if next.run as usize == runs.len() {
                    self.waiting.pop();
                }
                self.complete(job, end);
                if left > 0 {
                    break;
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

/// Starts all tasks of a stage in order, none before `from`; 0 and 0 if there are none.
pub(super) fn start_all(slots: &mut impl Slots, job: JobId, tasks: &Tasks, from: u64) -> Last {
    let (mut last, mut task) = (Last::default(), 0);
    for run in tasks.runs() {
        let batch = Batch { tasks: run.count, span: run.span.0, from, until: u64::MAX };
        let started = slots.start(First { job, task }, batch);
        last = Last { start: started.last, end: started.end.max(last.end) };
        task += run.count;
    }
    last
}
