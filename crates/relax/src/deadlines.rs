//! The exact deadline test for malleable jobs with minima and maxima, and a schedule that meets the
//! deadlines.
//!
//! **Source**: docs/math/flex.md C3 (not in the paper: its Lemma 1 is false and would make the test
//! needless).
//!
//! If all jobs are released at 0, they can meet their deadlines exactly if each fits alone (V ≤ M·D) and the
//! work that must be done by t, G(t) = Σ max(min(m·t, V), V − M·(D − t)⁺), is at most S·t for all t. G is
//! piecewise linear with at most four corners per job, so a sweep over the corners decides in O(J log J).
//!
//! The schedule pours the jobs in order of deadline, each to the lowest level at which it fits (EDF water
//! filling). Rates are fractions.

use crate::malleable::{Job, horizon};

/// Relative slack of the test, for rounding in sums over many jobs.
const TOLERANCE: f64 = 1e-12;

/// The deadline test; keeps its buffer between calls.
#[derive(Clone, Debug)]
pub struct DeadlineTest {
    slots: f64,
    /// (time, change of the slope of G).
    corners: Vec<(f64, f64)>,
}

impl DeadlineTest {
    /// A test for a cluster of `slots` slots.
    pub fn new(slots: u32) -> Self {
        Self { slots: f64::from(slots), corners: Vec::new() }
    }

    /// Whether all jobs can complete by their deadlines `due` (plan time; infinite for none).
    ///
    /// Exact where `firm` is the whole work; otherwise necessary. O(J log J).
    pub fn feasible(&mut self, jobs: &[Job], due: impl IntoIterator<Item = f64>) -> bool {
        self.corners.clear();
        for (job, due) in jobs.iter().zip(due) {
            if job.work > 0.0 && !self.push(job, due) {
                return false;
            }
        }
        self.corners.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut must, mut slope, mut last) = (0.0, 0.0, 0.0);
        for &(t, change) in &self.corners {
            must += slope * (t - last);
            if must > self.slots * t * (1.0 + TOLERANCE) + f64::MIN_POSITIVE {
                return false;
            }
            (slope, last) = (slope + change, t);
        }
        true
    }

    /// Adds the corners of one job; false if it cannot meet its deadline even alone.
    fn push(&mut self, job: &Job, due: f64) -> bool {
        let (min, max) = (f64::from(job.min), f64::from(job.max));
        if max * due * (1.0 + TOLERANCE) < job.work {
            return false;
        }
        // From this time on the work up to the deadline overtakes the guaranteed work while that grows.
        let rising = if job.max > job.min && due.is_finite() {
            ((max * due - job.work) / (max - min)).max(0.0)
        } else {
            f64::INFINITY
        };
        if job.min > 0 {
            self.corners.push((0.0, min));
            let flat = job.firm / min;
            if rising > flat {
                self.corners.push((flat, -min));
                if due.is_finite() && job.work > job.firm {
                    self.corners.push((due - (job.work - job.firm) / max, max));
                    self.corners.push((due, -max));
                }
                return true;
            }
        }
        if due.is_finite() {
            self.corners.push((rising.min(due), max - min));
            self.corners.push((due, -max));
        }
        true
    }
}

/// A schedule of constant fractional rates: `rates[j][k]` slots for job j from `cuts[k]` to
/// `cuts[k + 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filling {
    /// Ascending times, the first 0.
    pub cuts: Vec<f64>,
    /// Rates of each job in each interval.
    pub rates: Vec<Vec<f64>>,
}

/// EDF water filling: a schedule that meets all deadlines, or `None` if no schedule does.
///
/// Every job runs at a rate from its minimum to its maximum until its deadline or V/m, whichever is
/// first; jobs without either end by [`horizon`]. O(J² log J) time, O(J²) memory.
pub fn fill(jobs: &[Job], due: &[f64], slots: u32) -> Option<Filling> {
    let last = horizon(jobs, slots);
    let ends: Vec<f64> = jobs.iter().zip(due).map(|(job, &due)| end_of(job, due, last)).collect();
    let mut cuts = vec![0.0];
    cuts.extend(ends.iter().copied().filter(|&t| t > 0.0));
    cuts.sort_unstable_by(f64::total_cmp);
    cuts.dedup();
    let n = cuts.len() - 1;
    let mut filling = Filling { rates: vec![vec![0.0; n]; jobs.len()], cuts };
    let mut load = vec![0.0; n];
    for (job, &end) in jobs.iter().zip(&ends) {
        let upto = filling.cuts.partition_point(|&t| t < end);
        load[..upto].iter_mut().for_each(|l| *l += f64::from(job.min));
    }
    let mut order: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].work > 0.0).collect();
    order.sort_by(|&a, &b| ends[a].total_cmp(&ends[b]).then(a.cmp(&b)));
    for j in order {
        let (job, upto) = (&jobs[j], filling.cuts.partition_point(|&t| t < ends[j]));
        let spare = f64::from(job.max - job.min);
        let amount = (job.work - f64::from(job.min) * ends[j]).max(0.0);
        let lengths: Vec<f64> = filling.cuts.windows(2).take(upto).map(|w| w[1] - w[0]).collect();
        let level = level(&lengths, &load[..upto], spare, amount)?;
        if level > f64::from(slots) * (1.0 + 1e-9) {
            return None;
        }
        for (rate, load) in filling.rates[j][..upto].iter_mut().zip(&mut load) {
            let more = (level - *load).clamp(0.0, spare);
            *rate = f64::from(job.min) + more;
            *load += more;
        }
    }
    Some(filling)
}

/// The latest end of a job: its deadline, or the instant at which its minimum alone completes it.
fn end_of(job: &Job, due: f64, last: f64) -> f64 {
    if job.work <= 0.0 {
        return 0.0;
    }
    let slowest = if job.min > 0 { job.work / f64::from(job.min) } else { f64::INFINITY };
    let end = due.min(slowest);
    if end.is_finite() { end } else { last }
}

/// The level up to which `amount` fills intervals of these lengths and loads, at most `spare` above
/// the load of each; `None` if it does not fit. Loads never rise with time.
fn level(lengths: &[f64], load: &[f64], spare: f64, amount: f64) -> Option<f64> {
    let Some(&lowest) = load.last() else { return (amount <= 0.0).then_some(0.0) };
    if amount <= 0.0 {
        return Some(lowest);
    }
    // An interval begins to fill at its load and is full `spare` above it. As loads fall with time, both
    // kinds of corner are in order from the back.
    let (mut begins, mut fulls) = (load.len(), load.len());
    let (mut at, mut width, mut poured) = (lowest, 0.0, 0.0);
    loop {
        let begin = begins.checked_sub(1).map(|k| load[k]);
        let full = fulls.checked_sub(1).map(|k| load[k] + spare);
        let next = match (begin, full) {
            (Some(b), Some(f)) => b.min(f),
            (Some(t), None) | (None, Some(t)) => t,
            (None, None) => {
                let short = amount - poured;
                return (short <= 1e-9 * amount).then_some(at);
            }
        };
        let more = width * (next - at);
        if width > 0.0 && poured + more >= amount {
            return Some(at + (amount - poured) / width);
        }
        (poured, at) = (poured + more, next);
        if begin.is_some_and(|b| b <= next) {
            begins -= 1;
            width += lengths[begins];
        } else {
            fulls -= 1;
            width -= lengths[fulls];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::CostFn;

    use super::*;

    const INF: f64 = f64::INFINITY;

    fn job(work: f64, min: u32, max: u32) -> Job {
        Job::new(work, min..=max, CostFn::zero())
    }

    #[test]
    fn three_equal_jobs_on_three_slots_are_done_at_two() {
        let jobs = vec![job(2.0, 0, 2); 3];
        let mut test = DeadlineTest::new(3);
        assert!(test.feasible(&jobs, [2.0; 3]));
        assert!(!test.feasible(&jobs, [1.999; 3]));
        let filling = fill(&jobs, &[2.0; 3], 3).unwrap();
        assert_eq!(filling.rates, vec![vec![1.0]; 3]);
    }

    #[test]
    fn minima_take_slots_from_urgent_jobs() {
        // The second job holds two of the four slots until it is done at 5.
        let jobs = [job(8.0, 0, 4), job(10.0, 2, 4)];
        let mut test = DeadlineTest::new(4);
        assert!(test.feasible(&jobs, [4.0, INF]));
        assert!(!test.feasible(&jobs, [3.9, INF]));
        assert!(test.feasible(&jobs, [4.0, 4.5]));
        assert!(!test.feasible(&jobs, [4.0, 4.4]));
        // If the minimum is guaranteed for a part of the work only, it binds only for that part.
        let weak = [jobs[0].clone(), Job { firm: 2.0, ..jobs[1].clone() }];
        assert!(test.feasible(&weak, [3.0, INF]) && !test.feasible(&weak, [2.4, INF]));
    }

    #[test]
    fn jobs_without_work_ask_for_nothing() {
        let jobs = [job(0.0, 2, 2), job(4.0, 0, 2)];
        assert!(DeadlineTest::new(2).feasible(&jobs, [0.0, 2.0]));
        assert_eq!(fill(&jobs, &[0.0, 2.0], 2).unwrap().rates, vec![vec![0.0], vec![2.0]]);
    }

    /// Jobs whose minima fit, and deadlines around the area bound.
    fn dated() -> impl Strategy<Value = (Vec<Job>, Vec<f64>)> {
        let one = (1u32..40, 0u32..3, 0u32..6, 0u32..12, prop::bool::weighted(0.2));
        prop::collection::vec(one, 1..6).prop_map(|list| {
            let jobs: Vec<Job> =
                list.iter().map(|l| job(f64::from(l.0) / 4.0, l.1, (l.1 + l.2).max(1))).collect();
            let due = list.iter().map(|l| if l.4 { INF } else { f64::from(l.3) / 2.0 + 0.25 }).collect();
            (jobs, due)
        })
    }

    proptest! {
        #[test]
        fn water_filling_succeeds_exactly_when_the_test_does((jobs, due) in dated(), spare in 0u32..5) {
            let slots = jobs.iter().map(|j| j.min).sum::<u32>().max(1) + spare;
            let jobs: Vec<Job> = jobs.into_iter().map(|j| Job { max: j.max.min(slots), ..j }).collect();
            let feasible = DeadlineTest::new(slots).feasible(&jobs, due.iter().copied());
            let filling = fill(&jobs, &due, slots);
            prop_assert_eq!(feasible, filling.is_some());
            let Some(filling) = filling else { return Ok(()) };
            let lengths: Vec<f64> = filling.cuts.windows(2).map(|w| w[1] - w[0]).collect();
            for (k, _) in lengths.iter().enumerate() {
                let load: f64 = filling.rates.iter().map(|r| r[k]).sum();
                prop_assert!(load <= f64::from(slots) + 1e-6, "{load} of {slots}");
            }
            for ((job, rates), due) in jobs.iter().zip(&filling.rates).zip(&due) {
                let done: f64 = rates.iter().zip(&lengths).map(|(r, l)| r * l).sum();
                prop_assert!((done - job.work).abs() <= 1e-9 * job.work);
                let mut left = job.work;
                for (k, (&rate, length)) in rates.iter().zip(&lengths).enumerate() {
                    if left > 1e-9 {
                        prop_assert!(rate >= f64::from(job.min) - 1e-9 && rate <= f64::from(job.max) + 1e-9);
                    }
                    prop_assert!(rate == 0.0 || filling.cuts[k + 1] <= due + 1e-9);
                    left -= rate * length;
                }
            }
        }
    }
}
