//! A naive MREstimator, task by task: the reference for the batches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::JobId;
use slackline_model::tasks::Tasks;

use crate::ordering::estimator::Mode;
use crate::ordering::workload::{Split, Workload};

/// Ready and completion of each job, by id.
pub(super) fn simulate(
    workload: &Workload,
    order: &[JobId],
    split: Split,
    mode: Mode,
) -> (Vec<u64>, Vec<u64>) {
    let jobs = workload.jobs();
    let mut ready = vec![0; jobs.len()];
    let mut slots = vec![0u64; split.map() as usize];
    for &job in order {
        for span in spans(&jobs[job].map) {
            let end = on_first(&mut slots, 0, span);
            ready[job.index()] = end.max(ready[job.index()]);
        }
    }
    let completion = match mode {
        Mode::Strict => strict(workload, order, split, &ready),
        Mode::WorkConserving => work_conserving(workload, order, split, &ready),
    };
    (ready, completion)
}

fn spans(tasks: &Tasks) -> Vec<u64> {
    tasks.runs().iter().flat_map(|run| std::iter::repeat_n(run.span.0, run.count as usize)).collect()
}

/// One task on the slot that is free first.
fn on_first(slots: &mut [u64], from: u64, span: u64) -> u64 {
    let slot = slots.iter_mut().min().unwrap();
    *slot = from.max(*slot) + span;
    *slot
}

fn strict(workload: &Workload, order: &[JobId], split: Split, ready: &[u64]) -> Vec<u64> {
    let mut completion = ready.to_vec();
    let mut slots = vec![0u64; split.reduce() as usize];
    for &job in order {
        for span in spans(&workload.jobs()[job].reduce) {
            let end = on_first(&mut slots, ready[job.index()], span);
            completion[job.index()] = end.max(completion[job.index()]);
        }
    }
    completion
}

/// Event by event: at each instant, free slots go to ready jobs in order.
fn work_conserving(workload: &Workload, order: &[JobId], split: Split, ready: &[u64]) -> Vec<u64> {
    let mut completion = ready.to_vec();
    let mut left: Vec<_> = order.iter().map(|&job| (job, spans(&workload.jobs()[job].reduce))).collect();
    for (_, spans) in &mut left {
        spans.reverse();
    }
    let mut free = split.reduce();
    let mut instants: BinaryHeap<Reverse<u64>> = ready.iter().map(|&at| Reverse(at)).collect();
    let mut running: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    while let Some(Reverse(now)) = instants.pop() {
        while running.peek().is_some_and(|end| end.0 == now) {
            running.pop();
            free += 1;
        }
        for (job, spans) in &mut left {
            while ready[job.index()] <= now
                && free > 0
                && let Some(span) = spans.pop()
            {
                completion[job.index()] = completion[job.index()].max(now + span);
                if span > 0 {
                    free -= 1;
                    running.push(Reverse(now + span));
                    instants.push(Reverse(now + span));
                }
            }
        }
    }
    completion
}
