//! Stage 2a: chains with deadlines, greedily in the order of their deadlines (Fig. 5).
//!
//! Each pseudo-job takes, from the end of the one before it on, min(free slots, its cap) at every instant
//! until its work is done. Free slots are a step function of time, kept merged: stretches with nothing
//! free are one, so that a chain walks only over what it can use.
//!
//! **Guarantee** (Theorem 2): the instants up to C_j are either full (at most the area of the flows up to
//! j) or run the pseudo-job at its cap (at most j's critical path), so C_j ≤ r_j + path_j + area_j / P.
//! **Complexity**: O(steps passed + log) a pseudo-job.

use super::chain::PseudoJob;

/// Slots held from `start` to `end` (seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    pub start: f64,
    pub end: f64,
    pub slots: u32,
}

/// What a chain holds: the histogram of each of its pseudo-jobs.
pub type Histograms = Vec<Vec<Stretch>>;

/// Work left that is no more than rounding, relative to the pseudo-job's.
const NEAR: f64 = 1e-12;

/// Free slots over time: from each instant to the next this many, the last forever.
#[derive(Clone, Debug)]
pub struct Profile {
    steps: Vec<(f64, u32)>,
}

impl Profile {
    /// All `slots` free forever.
    pub fn new(slots: u32) -> Self {
        Self { steps: vec![(0.0, slots)] }
    }

    /// Schedules a chain from `release` on, takes its slots, and returns its histograms.
    pub fn place(&mut self, chain: &[PseudoJob], release: f64) -> Histograms {
        let mut at = self.steps.partition_point(|s| s.0 <= release).max(1) - 1;
        let first = at;
        let mut now = release;
        // The steps from `first` on as they will be.
        let mut after: Vec<(f64, u32)> = Vec::new();
        push(&mut after, self.steps[first].0, self.steps[first].1);
        let mut histograms = Vec::with_capacity(chain.len());
        for job in chain {
            let mut left = job.work();
            let mut histogram: Vec<Stretch> = Vec::new();
            while left > NEAR * job.work() {
                let end = self.steps.get(at + 1).map_or(f64::INFINITY, |s| s.0);
                let free = self.steps[at].1;
                let slots = free.min(job.cap);
                let until = if slots > 0 { end.min(now + left / f64::from(slots)) } else { end };
                push(&mut after, now, free - slots);
                if slots > 0 {
                    // An instant so near that the addition changed nothing is the end.
                    let done = if until < end { left } else { (until - now) * f64::from(slots) };
                    left -= done;
                    extend(&mut histogram, Stretch { start: now, end: until, slots });
                }
                now = until;
                if until >= end {
                    at += 1;
                }
            }
            histograms.push(histogram);
        }
        push(&mut after, now, self.steps[at].1);
        self.steps.splice(first..=at, after);
        histograms
    }
}

/// Adds a step; one of no length is replaced, one that changes nothing is left out.
fn push(steps: &mut Vec<(f64, u32)>, at: f64, slots: u32) {
    if steps.last().is_some_and(|last| last.0 >= at) {
        steps.pop();
    }
    if steps.last().is_none_or(|last| last.1 != slots) {
        steps.push((at, slots));
    }
}

/// Adds a stretch, joined to the last if it continues it.
fn extend(histogram: &mut Vec<Stretch>, stretch: Stretch) {
    match histogram.last_mut() {
        Some(last) if last.end == stretch.start && last.slots == stretch.slots => last.end = stretch.end,
        _ => histogram.push(stretch),
    }
}

/// When each flow completes, and what it holds: chains in this order of flows, each from its release.
pub fn greedy(
    chains: &[Vec<PseudoJob>],
    releases: &[f64],
    order: &[usize],
    slots: u32,
) -> (Vec<f64>, Vec<Histograms>) {
    let mut profile = Profile::new(slots);
    let mut completions = releases.to_vec();
    let mut placed = vec![Vec::new(); chains.len()];
    for &flow in order {
        let histograms = profile.place(&chains[flow], releases[flow]);
        if let Some(last) = histograms.iter().flatten().next_back() {
            completions[flow] = last.end;
        }
        placed[flow] = histograms;
    }
    (completions, placed)
}
