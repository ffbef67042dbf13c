//! Moldable schedules: every job keeps one number of slots from its start to its end.
//!
//! **Paper**: FLEX §2.4, §3.2. If there are no more jobs than slots all start at 0 with the allocation
//! of the resource allocation problem, which is optimal for that. Otherwise (the paper wants positive
//! minima, so that it cannot happen there) jobs with minima start at 0 and hold them, and the others
//! start in order as slots come free, each with as many as it can use.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::Key;

use super::instance::{FlexInstance, Piece};

/// All jobs start at 0 on `slots`.
pub fn at_once(instance: &FlexInstance, slots: &[u32]) -> Vec<Piece> {
    let started = |(job, &slots): (usize, &u32)| {
        let work = instance.jobs()[job].work;
        (work > 0.0).then(|| Piece { job, start: 0.0, end: work / f64::from(slots), slots })
    };
    slots.iter().enumerate().filter_map(started).collect()
}

/// Jobs with minima hold them from 0 on, the others start in `order` as slots come free. O(J log J).
pub fn in_turn(instance: &FlexInstance, order: &[usize]) -> Vec<Piece> {
    let jobs = instance.jobs();
    let mut pieces = Vec::new();
    let mut free = instance.slots();
    // (end, job, slots)
    let mut running: BinaryHeap<Reverse<(Key, usize, u32)>> = BinaryHeap::new();
    let mut start = |now: f64, job: usize, slots: u32, running: &mut BinaryHeap<_>| {
        let end = now + jobs[job].work / f64::from(slots);
        pieces.push(Piece { job, start: now, end, slots });
        running.push(Reverse((Key::new(end), job, slots)));
    };
    for (job, info) in jobs.iter().enumerate().filter(|(_, info)| info.min > 0) {
        start(0.0, job, info.min, &mut running);
        free -= info.min;
    }
    let mut waiting = order.iter().copied().filter(|&j| jobs[j].min == 0 && jobs[j].work > 0.0).peekable();
    let mut now = 0.0;
    loop {
        while free > 0
            && let Some(job) = waiting.next()
        {
            let slots = jobs[job].max.min(free);
            start(now, job, slots, &mut running);
            free -= slots;
        }
        if waiting.peek().is_none() {
            return pieces;
        }
        let Some(Reverse((end, _, slots))) = running.pop() else { return pieces };
        now = end.number();
        free += slots;
    }
}
