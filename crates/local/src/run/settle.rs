//! What an earlier session recorded is brought to its place before anything is decided: what is done already follows from
//! what is there.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::EngineError;
use super::error::file;
use crate::journal::{Ended, Journal, done_tasks};
use crate::layout::Layout;
use crate::made::{MadeJobs, MadeLog};
use crate::output_lock::{OutputLocks, staged};
use crate::publish::{Place, Publisher};
use crate::reuse::Unfinished;
use crate::task_id::TaskId;

/// Moves recorded output that is not in its place yet to it, has what is lost done again, and finishes jobs whose tasks are
/// all done. Jobs that cannot be finished stay as they are.
pub(super) fn settle(
    run: &mut Unfinished,
    journal: &Journal,
    layout: &Layout,
    (made, log): (&mut MadeJobs, &MadeLog),
) -> Result<(), EngineError> {
    let directory = run.head.setup.directory.clone();
    let layout = layout.clone().of_jobs(&run.jobs);
    run.jobs =
        std::mem::take(&mut run.jobs).into_iter().map(|job| job.based(Path::new(&directory))).collect();
    let lost = roll_forward(run, &layout)?;
    if !lost.is_empty() {
        journal.lost(&lost)?;
        run.attempts = journal.read()?.attempts;
        run.done = done_tasks(&run.attempts);
    }
    let locks = OutputLocks::of(&run.head.owner);
    let place = Place {
        layout: &layout,
        jobs: &run.jobs,
        directory: Path::new(&directory),
        started: run.head.started,
    };
    let next = run.attempts.last().map_or(0, |last| last.number + 1);
    for (index, job) in (0..).zip(&run.jobs) {
        let is_open = staged(&job.output).exists() && locks.owns(&job.output);
        if is_open && job.is_complete(index, &run.done) {
            let finished = Publisher::new(place, made, log).publish(index, next);
            if let Ok(finished) = finished {
                made.insert(finished);
            }
        }
    }
    Ok(())
}

/// Moves what was recorded and not moved. Gives the tasks whose output is in neither place; of a job whose output is whole
/// and in its place there are none.
fn roll_forward(run: &Unfinished, layout: &Layout) -> Result<BTreeSet<TaskId>, EngineError> {
    let mut lost = BTreeSet::new();
    for attempt in run.attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))) {
        let (id, job) = (attempt.id, &run.jobs[attempt.id.job as usize]);
        let is_complete = job.is_complete(id.job, &run.done);
        if is_complete && !(job.is_final(id) && staged(&job.output).exists()) {
            continue;
        }
        let place = layout.committed(job, id);
        match layout.commit(job, id, attempt.number) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // Parts are moved one by one once they are all there.
                let is_moved = is_complete && job.output.join(job.part(id.task)).exists();
                lost.extend((!is_moved).then_some(id));
            }
            other => other.map_err(file(&place))?,
        }
    }
    Ok(lost)
}
