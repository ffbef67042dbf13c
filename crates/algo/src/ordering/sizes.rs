//! The jobs that are large for MK_TCT_JR on every split of a range, and those that are large on none.
//!
//! A job is large if it takes longer than the geometric mean of all, so if its logarithm is above the mean of
//! the logarithms.
//!
//! *By area* a job takes M/a + R/(S − a) on a map slots. 1/a and 1/(S − a) are convex in a, and so are their
//! logarithms; sums of functions with convex logarithms have convex logarithms. So the logarithm of each job,
//! and the mean of them, are convex in a: over a range each is below its chord, and above its tangents at the
//! ends, which are below the chord by no more than where they meet. The difference of two chords is largest
//! and least at an end.
//!
//! *By stages* times are steps: compares the least and the most that each job can take in the range.

use super::estimator::alone;
use super::orders::Times;
use super::workload::{Ends, Job, Split, Workload};

/// Logarithms must differ by more than this for jobs to be surely small or large: ten times the tolerance of
/// the order itself.
const SURE: f64 = 1e-8;

/// Whether each job is large on all splits of a range, or on none; `None` if neither is sure.
pub(super) fn sure_sizes(workload: &Workload, times: Times, ends: Ends) -> Vec<Option<bool>> {
    match times {
        Times::Area => by_area(workload, ends),
        Times::Stage => by_stages(workload, ends),
    }
}

/// The logarithm of a job's duration by area, and its growth with the map slots.
#[derive(Clone, Copy)]
struct Log {
    value: f64,
    slope: f64,
}

/// The times of all jobs on a split, and their mean.
fn logs(workload: &Workload, split: Split) -> (Vec<Log>, Log) {
    let (a, b) = (f64::from(split.map()), f64::from(split.reduce()));
    let log = |job: &Job| {
        let (map, reduce) = (job.map.work().0 as f64 / a, job.reduce.work().0 as f64 / b);
        let total = map + reduce;
        Log { value: libm::log(total), slope: if total > 0.0 { (reduce / b - map / a) / total } else { 0.0 } }
    };
    let logs: Vec<Log> = workload.jobs().iter().map(log).collect();
    let of = |get: fn(&Log) -> f64| {
        let counted = || logs.iter().filter(|log| log.value.is_finite());
        counted().map(get).sum::<f64>() / counted().count().max(1) as f64
    };
    let mean = Log { value: of(|log| log.value), slope: of(|log| log.slope) };
    (logs, mean)
}

/// How far a convex function is below its chord, at most, with these values and slopes at the ends of a
/// width.
fn sag(low: Log, high: Log, width: f64) -> f64 {
    let chord = (high.value - low.value) / width;
    let (below, above) = (chord - low.slope, high.slope - chord);
    if below <= 0.0 || above <= 0.0 { 0.0 } else { width * below * above / (below + above) }
}

fn by_area(workload: &Workload, Ends { low, high }: Ends) -> Vec<Option<bool>> {
    let ((at_low, mean_low), (at_high, mean_high)) = (logs(workload, low), logs(workload, high));
    let width = f64::from(high.map() - low.map()).max(1.0);
    let of_mean = sag(mean_low, mean_high, width);
    let size = |(low, high): (&Log, &Log)| {
        if !low.value.is_finite() {
            return Some(false);
        }
        let (one, other) = (low.value - mean_low.value, high.value - mean_high.value);
        if one.max(other) + of_mean < -SURE {
            Some(false)
        } else if one.min(other) - sag(*low, *high, width) > SURE {
            Some(true)
        } else {
            None
        }
    };
    at_low.iter().zip(&at_high).map(size).collect()
}

fn by_stages(workload: &Workload, Ends { low, high }: Ends) -> Vec<Option<bool>> {
    let logs = |a: u32, b: u32| -> Vec<f64> {
        let total = |job: &Job| (alone(&job.map, a) + alone(&job.reduce, b)) as f64;
        workload.jobs().iter().map(|job| libm::log(total(job))).collect()
    };
    let (least, most) = (logs(high.map(), low.reduce()), logs(low.map(), high.reduce()));
    let (mean_least, mean_most) = (mean(&least), mean(&most));
    let size = |(least, most): (&f64, &f64)| {
        if *most < mean_least - SURE {
            Some(false)
        } else if *least > mean_most + SURE {
            Some(true)
        } else {
            None
        }
    };
    least.iter().zip(&most).map(size).collect()
}

/// The mean of logarithms. Jobs that take no time, with logarithms of minus infinity, are small and not in
/// it.
fn mean(logs: &[f64]) -> f64 {
    let counted = || logs.iter().filter(|log| log.is_finite());
    counted().sum::<f64>() / counted().count().max(1) as f64
}
