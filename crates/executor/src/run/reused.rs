//! The records of jobs that a run reuses from earlier runs of the state directory.

use std::collections::BTreeMap;

use crate::run::reuse::{Decision, UnfinishedRun};
use crate::spec::resolve::ResolvedWorkload;
use crate::store::finished_jobs::FinishedJobs;
use crate::store::journal::KeptJob;

/// The jobs for which nothing is to be done; `earlier` is the run before. O((jobs + attempts) · log jobs).
pub(super) fn reused_jobs(
    resolved: &ResolvedWorkload,
    decisions: &[Decision],
    earlier: Option<&UnfinishedRun>,
    made: &FinishedJobs,
) -> Vec<KeptJob> {
    let mut known = earlier.map(known).unwrap_or_default();
    let idle = resolved.jobs.iter().zip(decisions).filter(|(_, decision)| decision.is_idle());
    let kept = idle.filter_map(|(plan, _)| {
        let (started, _) = made.get(&plan.definition.output())?.run;
        let (flow, job) = (plan.flow.clone(), plan.job.clone());
        // Of one that had another name then, or was done before journals kept this, nothing more is known.
        Some(known.remove(&(started, flow.clone(), job.clone())).unwrap_or_else(|| KeptJob {
            flow,
            job,
            started,
            maps: plan.maps(),
            reduces: plan.reducers,
            attempts: Vec::new(),
        }))
    });
    kept.collect()
}

/// What a run knows of its jobs and of those that it has left as they were, by the start of the run that has
/// done them and by name.
fn known(run: &UnfinishedRun) -> BTreeMap<(u64, String, String), KeptJob> {
    let own = run.jobs.iter().map(|plan| KeptJob {
        flow: plan.flow.clone(),
        job: plan.job.clone(),
        started: run.head.started,
        maps: plan.maps(),
        reduces: plan.reducers,
        attempts: Vec::new(),
    });
    let mut own: Vec<KeptJob> = own.collect();
    for attempt in &run.attempts {
        if let Some(job) = own.get_mut(attempt.id.job as usize) {
            job.attempts.push(attempt.clone());
        }
    }
    let all = own.into_iter().chain(run.head.kept.iter().cloned());
    all.map(|job| ((job.started, job.flow.clone(), job.job.clone()), job)).collect()
}
