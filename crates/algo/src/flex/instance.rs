//! The instances of FLEX: malleable jobs on S slots of one speed, all released at 0.

use slackline_model::Combine;
use slackline_relax::malleable::Job;

/// A valid FLEX instance: every maximum is at least 1 and at most S, no minimum is above its maximum,
/// and the minima fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct FlexInstance {
    slots: u32,
    combine: Combine,
    jobs: Vec<Job>,
}

impl FlexInstance {
    /// Brings maxima and minima into range. Minima that exceed the slots together become
    /// floor(m·S/Σm), the rest by largest remainder, then by position (FLEX §1: "simply normalized if
    /// necessary"; the rounding is the schedule document's).
    ///
    /// # Panics
    /// If there are no slots, or work is negative or not finite.
    pub fn new(slots: u32, combine: Combine, mut jobs: Vec<Job>) -> Self {
        assert!(slots > 0, "a cluster without slots");
        for job in &mut jobs {
            assert!(job.work >= 0.0 && job.work.is_finite(), "work of {} slot-seconds", job.work);
            job.max = job.max.clamp(1, slots);
            job.min = if job.work > 0.0 { job.min.min(job.max) } else { 0 };
            job.firm = job.firm.clamp(0.0, job.work);
        }
        normalise(&mut jobs, slots);
        Self { slots, combine, jobs }
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    pub fn combine(&self) -> Combine {
        self.combine
    }

    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The objective's value for one completion time a job.
    pub fn cost(&self, completions: &[f64]) -> f64 {
        self.combine.of(self.jobs.iter().zip(completions).map(|(job, &t)| job.cost_at(t)))
    }
}

fn normalise(jobs: &mut [Job], slots: u32) {
    let sum: u64 = jobs.iter().map(|job| u64::from(job.min)).sum();
    if sum <= u64::from(slots) {
        return;
    }
    let mut left = slots;
    let mut remainders: Vec<(std::cmp::Reverse<u64>, usize)> = Vec::with_capacity(jobs.len());
    for (at, job) in jobs.iter_mut().enumerate() {
        let exact = u64::from(job.min) * u64::from(slots);
        job.min = (exact / sum) as u32;
        left -= job.min;
        remainders.push((std::cmp::Reverse(exact % sum), at));
    }
    remainders.sort_unstable();
    for &(_, at) in remainders.iter().take(left as usize) {
        jobs[at].min += 1;
    }
}

/// `slots` slots for a job from `start` to `end` (plan time, seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The job's position in the instance.
    pub job: usize,
    pub start: f64,
    pub end: f64,
    pub slots: u32,
}

/// When each of `n` jobs is done: the end of its last piece, 0 without any.
pub(super) fn completions(pieces: &[Piece], n: usize) -> Vec<f64> {
    let mut ends = vec![0.0f64; n];
    for piece in pieces {
        ends[piece.job] = ends[piece.job].max(piece.end);
    }
    ends
}

#[cfg(test)]
mod tests {
    use slackline_model::CostFn;

    use super::*;

    #[test]
    fn minima_are_normalised_by_largest_remainder() {
        let job = |min| Job::new(1.0, min..=9, CostFn::zero());
        let instance = FlexInstance::new(4, Combine::Sum, vec![job(3), job(3), job(1)]);
        // 12/7, 12/7, 4/7: floors 1, 1, 0; remainders 5, 5, 4.
        assert_eq!(instance.jobs().iter().map(|j| j.min).collect::<Vec<_>>(), [2, 2, 0]);
        assert!(instance.jobs().iter().all(|j| j.max == 4));
    }
}
