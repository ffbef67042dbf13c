//! Completes what an earlier session recorded but did not put in its place, before anything is decided.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use slackline_model::PhaseKind;
use slackline_task::base::digest::Digest;
use slackline_task::base::task_id::TaskId;

use crate::run::LostOutput;
use crate::run::error::{EngineError, file};
use crate::run::reuse::UnfinishedRun;
use crate::spec::job_plan::JobPlan;
use crate::store::finished_jobs::{FinishedJobs, FinishedLog};
use crate::store::journal::{AttemptOutcome, Journal, done_tasks};
use crate::store::layout::Layout;
use crate::store::output_lock::{OutputLocks, is_staging};
use crate::store::publish::{KnownParts, PublishContext, PublishState, Publisher};

/// Moves recorded output to its place, reruns lost tasks, and finishes jobs whose tasks are all done. Jobs
/// that cannot be finished stay unchanged. Returns the lost tasks.
pub(super) fn recover_tasks(
    run: &mut UnfinishedRun,
    journal: &Journal,
    layout: &Layout,
    known: &KnownParts,
    made: &mut FinishedJobs,
    log: &FinishedLog,
) -> Result<Vec<LostOutput>, EngineError> {
    let directory = run.head.setup.directory.clone();
    let layout = layout.clone().of_jobs(&run.jobs);
    run.jobs =
        std::mem::take(&mut run.jobs).into_iter().map(|job| job.based(Path::new(&directory))).collect();
    let mut lost = roll_forward(run, &layout, known)?;
    let torn = torn(run, &layout, &lost);
    lost.extend(torn);
    if !lost.is_empty() {
        journal.lost(&lost.keys().copied().collect())?;
        for (index, job) in (0..).zip(&run.jobs).filter(|(index, job)| job.is_complete(*index, &run.done)) {
            let is_lost = |part: u32| lost.contains_key(&job.final_task(index, part));
            if (0..job.parts()).any(is_lost) {
                Layout::take_back(job, is_lost).map_err(file(&job.output))?;
            }
        }
        run.attempts = journal.read()?.attempts;
        run.done = done_tasks(&run.attempts);
    }
    let locks = OutputLocks::of(&run.head.owner);
    let state = PublishState::default();
    let place = PublishContext {
        layout: &layout,
        jobs: &run.jobs,
        directory: Path::new(&directory),
        started: run.head.started,
        attempts: &run.attempts,
        known,
        state: &state,
    };
    let next = run.attempts.last().map_or(0, |last| last.number + 1);
    for (index, job) in (0..).zip(&run.jobs) {
        let is_open = is_staging(&job.output) && locks.owns(&job.output);
        if is_open && job.is_complete(index, &run.done) {
            let finished = Publisher::new(place, made, log).publish(index, next);
            // The run clears up again, and warns.
            if let Ok((finished, _)) = finished {
                made.insert(finished);
            }
        } else if job.is_complete(index, &run.done) {
            // What cannot be removed now is removed by the run that comes next.
            let _ = OutputLocks::sweep(&job.output);
        }
    }
    let event = |(id, problem): (TaskId, String)| {
        let JobPlan { flow, job, .. } = &run.jobs[id.job as usize];
        LostOutput { flow: flow.clone(), job: job.clone(), phase: id.phase, task: id.task, problem }
    };
    Ok(lost.into_iter().map(event).collect())
}

/// Moves recorded output that was not moved. Returns the tasks whose output is missing or not as it was
/// written, with the problem; none for a job with complete output in its place.
fn roll_forward(
    run: &UnfinishedRun,
    layout: &Layout,
    known: &KnownParts,
) -> Result<BTreeMap<TaskId, String>, EngineError> {
    let mut lost = BTreeMap::new();
    for attempt in run.attempts.iter().filter(|a| matches!(a.ended, AttemptOutcome::Done(_))) {
        let (id, job) = (attempt.id, &run.jobs[attempt.id.job as usize]);
        let is_complete = job.is_complete(id.job, &run.done);
        if is_complete && !(job.is_final(id) && is_staging(&job.output)) {
            continue;
        }
        let mut place = layout.committed(job, id);
        match layout.commit(job, id, attempt.number) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if is_complete {
                    // Parts are moved one by one once they are all there.
                    place = job.output.join(job.part(id.task));
                }
            }
            other => other.map_err(file(&place))?,
        }
        let digest = attempt.digest().filter(|_| job.is_final(id));
        lost.extend(damage(digest, &place, known).map(|problem| (id, problem)));
    }
    Ok(lost)
}

/// Tasks that are done of jobs that were made elsewhere, where a job is done as a whole, and are not whole:
/// those that are not `lost`, and the message about them. O(tasks).
fn torn(run: &UnfinishedRun, layout: &Layout, lost: &BTreeMap<TaskId, String>) -> BTreeMap<TaskId, String> {
    let mut torn = BTreeMap::new();
    for (index, job) in (0..).zip(&run.jobs).filter(|(index, _)| layout.elsewhere(*index).exists()) {
        let of_job = TaskId::map(index, 0)..=TaskId { job: index, phase: PhaseKind::Reduce, task: u32::MAX };
        if !job.is_complete(index, &run.done) || lost.range(of_job.clone()).next().is_some() {
            let others = run.done.range(of_job).filter(|id| !lost.contains_key(id));
            torn.extend(
                others
                    .map(|&id| (id, "its job runs as a whole, and another part of it is missing".to_owned())),
            );
        }
    }
    torn
}

/// The problem of the output of an attempt at its place, if any. `digest` is that of a part, which is read.
/// Map output is compared when reduces read it; the content of a placeholder is on another file system.
fn damage(digest: Option<&Digest>, place: &Path, known: &KnownParts) -> Option<String> {
    match digest {
        Some(digest) => known.problem(place, digest, None),
        None => (!place.exists()).then(|| format!("its output is gone: found no {}", place.display())),
    }
}
