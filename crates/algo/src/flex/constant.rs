//! A job on a constant number of slots: what the schemes of the resource allocation problem share (§3.2).

use slackline_relax::malleable::Job;

use super::instance::FlexInstance;

/// The fewest slots a job may hold: it runs, unless there is nothing to do.
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

/// What one slot more than `slots` saves.
pub(super) fn saving(job: &Job, slots: u32) -> f64 {
    cost(job, slots) - cost(job, slots + 1)
}

/// Slots left when every job holds its least, if they suffice for that.
pub(super) fn spare(instance: &FlexInstance) -> Option<u32> {
    let least: u64 = instance.jobs().iter().map(|job| u64::from(least(job))).sum();
    u32::try_from(u64::from(instance.slots()).checked_sub(least)?).ok()
}
