//! A job on a constant number of slots, for the schemes of the resource allocation problem (§3.2).

use slackline_relax::malleable::Job;

use super::instance::FlexInstance;

/// The least number of slots of a job: at least one unless it has no work.
pub(super) fn least(job: &Job) -> u32 {
    if job.work > 0.0 { job.min.max(1) } else { 0 }
}

/// The most slots a job may hold.
pub(super) fn most(job: &Job) -> u32 {
    if job.work > 0.0 { job.max } else { 0 }
}

/// F_j(s); jobs without work complete at once.
pub(super) fn cost(job: &Job, slots: u32) -> f64 {
    job.cost_at(if slots == 0 { 0.0 } else { job.work / f64::from(slots) })
}

/// The saving of one slot more than `slots`.
pub(super) fn saving(job: &Job, slots: u32) -> f64 {
    cost(job, slots) - cost(job, slots + 1)
}

/// The number of slots left when every job holds its least, if there are enough for that.
pub(super) fn spare(instance: &FlexInstance) -> Option<u32> {
    let least: u64 = instance.jobs().iter().map(|job| u64::from(least(job))).sum();
    u32::try_from(u64::from(instance.slots()).checked_sub(least)?).ok()
}
