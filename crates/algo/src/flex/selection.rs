//! Convex resource allocation by selection.
//!
//! For convex costs the optimum gives away the S − Σm largest savings of all jobs' slots, and the
//! savings of one job come in falling order. So it is selection in J sorted arrays, for which G. Frederickson
//! and D. Johnson (1980) look at every p-th saving first; the J or so around the right rank stay, p is halved.
//! O(J) a halving, O(J log(S/J)) in all, given a linear selection.

use std::cmp::Reverse;

use slackline_model::Key;

use super::constant::{least, most, saving, spare};
use super::instance::FlexInstance;

/// One slot of one job: what it saves. Larger savings come first; ties by job, then by slot, so that the order
/// is total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    saving: Reverse<Key>,
    job: u32,
    at: u32,
}

/// What is known of each job's slots above its least: the first `taken` are given, those from `open`
/// on are not.
struct Arrays<'a> {
    instance: &'a FlexInstance,
    taken: Vec<u32>,
    open: Vec<u32>,
    /// Slots still to give.
    left: u32,
}

impl<'a> Arrays<'a> {
    fn new(instance: &'a FlexInstance) -> Option<Self> {
        let left = spare(instance)?;
        let jobs = instance.jobs();
        let open = jobs.iter().map(|job| (most(job) - least(job)).min(left)).collect();
        Some(Self { instance, taken: vec![0; jobs.len()], open, left })
    }

    fn entry(&self, job: usize, at: u32) -> Entry {
        let info = &self.instance.jobs()[job];
        Entry { saving: Reverse(Key::new(saving(info, least(info) + at))), job: job as u32, at }
    }

    fn undecided(&self) -> u64 {
        self.taken.iter().zip(&self.open).map(|(&taken, &open)| u64::from(open - taken)).sum()
    }

    fn take(&mut self, job: usize, upto: u32) {
        self.left -= upto - self.taken[job];
        self.taken[job] = upto;
    }

    /// If everything undecided can be given, gives it.
    fn take_all(&mut self) -> bool {
        let all = self.undecided() <= u64::from(self.left);
        if all {
            for job in 0..self.taken.len() {
                self.take(job, self.open[job]);
            }
        }
        all
    }

    fn into_slots(self) -> Vec<u32> {
        self.instance.jobs().iter().zip(self.taken).map(|(job, taken)| least(job) + taken).collect()
    }
}

/// Frederickson and Johnson's scheme for convex costs; `None` if there are more jobs than slots.
pub fn frederickson_johnson(instance: &FlexInstance) -> Option<Vec<u32>> {
    let mut arrays = Arrays::new(instance)?;
    if arrays.left == 0 || arrays.take_all() {
        return Some(arrays.into_slots());
    }
    let mut step = (arrays.left / instance.jobs().len() as u32).max(1).next_power_of_two();
    while step > 1 {
        narrow(&mut arrays, step);
        step /= 2;
    }
    let mut last = samples(&arrays, 1);
    let left = arrays.left as usize;
    if left > 0 && left < last.len() {
        last.select_nth_unstable(left - 1);
    }
    for entry in last.iter().take(left) {
        let taken = &mut arrays.taken[entry.job as usize];
        *taken = (*taken).max(entry.at + 1);
    }
    Some(arrays.into_slots())
}

/// Every `step`-th undecided slot of each job; each stands for the `step` that end with it.
fn samples(arrays: &Arrays<'_>, step: u32) -> Vec<Entry> {
    let mut samples = Vec::with_capacity((arrays.undecided() / u64::from(step)) as usize);
    for job in 0..arrays.taken.len() {
        let mut at = u64::from(arrays.taken[job]) + u64::from(step) - 1;
        while at < u64::from(arrays.open[job]) {
            samples.push(arrays.entry(job, at as u32));
            at += u64::from(step);
        }
    }
    samples
}

/// Decides what every `step`-th saving can decide.
fn narrow(arrays: &mut Arrays<'_>, step: u32) {
    let mut samples = samples(arrays, step);
    let left = arrays.left;
    let active = arrays.taken.iter().zip(&arrays.open).filter(|(taken, open)| open > taken).count();
    // At least `left` slots save no less than the ⌈left/step⌉-th sample: nothing after it is given.
    let enough = left.div_ceil(step) as usize;
    if (1..=samples.len()).contains(&enough) {
        let pivot = *samples.select_nth_unstable(enough - 1).1;
        for sample in samples.iter().filter(|&&sample| pivot < sample) {
            let open = &mut arrays.open[sample.job as usize];
            *open = (*open).min(sample.at);
        }
    }
    // At most `step` slots a job more than the samples say save no less than a sample: with that many
    // to spare everything up to it is given.
    let sure = ((left / step) as usize).saturating_sub(active);
    if (1..=samples.len()).contains(&sure) {
        let pivot = *samples.select_nth_unstable(sure - 1).1;
        for sample in samples.iter().filter(|&&sample| sample <= pivot) {
            if sample.at >= arrays.taken[sample.job as usize] {
                arrays.take(sample.job as usize, sample.at + 1);
            }
        }
    }
}
