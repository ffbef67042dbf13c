//! Publishes the output of a finished job: its parts move to the output directory together, and the state
//! directory records the job.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use slackline_task::base::activity::during;
use slackline_task::base::digest::{Digest, Stamp};
use slackline_task::base::files::Remover;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;

use crate::spec::job_plan::JobPlan;
use crate::store::cleaner::Cleaner;
use crate::store::finished_jobs::{FinishedJob, FinishedJobs, FinishedLog, FinishedPart};
use crate::store::journal::{Attempt, AttemptOutcome};
use crate::store::layout::Layout;

/// Above this number of maps, their output is removed while the run continues.
const AT_ONCE: u32 = 64;

/// The parts whose content this process has compared with their digest, or has got from the task that wrote
/// them: by path, the stamp of the file at that time.
#[derive(Debug, Default)]
pub(crate) struct KnownParts(RefCell<BTreeMap<PathBuf, Stamp>>);

impl KnownParts {
    /// The fault of a part, if there is one. Reads the file if it is not known and its stamp differs from
    /// `recorded`.
    pub(crate) fn problem(&self, path: &Path, digest: &Digest, recorded: Option<Stamp>) -> Option<String> {
        let known = self.0.borrow().get(path).copied().or(recorded);
        match digest.check(path, known) {
            Ok(stamp) => {
                self.0.borrow_mut().insert(path.to_owned(), stamp);
                None
            }
            Err(problem) => Some(problem),
        }
    }

    /// Adds a part that its task has just written.
    fn add(&self, path: PathBuf) {
        if let Ok(stamp) = Stamp::now(&path) {
            self.0.borrow_mut().insert(path, stamp);
        }
    }
}

/// Finishes the jobs of a run.
pub(crate) struct Publisher<'a> {
    layout: &'a Layout,
    jobs: &'a [JobPlan],
    /// The jobs that earlier runs finished.
    made: &'a FinishedJobs,
    log: &'a FinishedLog,
    /// The directory that relative paths start from.
    directory: &'a Path,
    /// The start of the run.
    started: u64,
    known: &'a KnownParts,
    state: &'a PublishState,
}

/// The state of a session for the parts that it publishes.
#[derive(Default)]
pub(crate) struct PublishState {
    /// The parts that were moved to their places since the session was opened, by absolute path.
    parts: RefCell<BTreeMap<PathBuf, FinishedPart>>,
    /// The digests of the parts of jobs that are not published yet; `None` before the first publisher.
    digests: RefCell<Option<BTreeMap<TaskId, Digest>>>,
    /// Removes the output of very many maps.
    remover: RefCell<Remover>,
    /// Clears up after published jobs.
    cleaner: RefCell<Cleaner>,
}

impl PublishState {
    /// Waits until the record of finished jobs is on disk and everything is cleared up. Map output stays if
    /// it is for the next session.
    pub(crate) fn finish(&self) {
        drop(self.remover.take());
        self.cleaner.borrow_mut().finish();
    }

    /// Warnings about files that could not be removed since the last call.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.cleaner.borrow().warnings()
    }
}

/// The context in which jobs are finished.
#[derive(Clone, Copy)]
pub(crate) struct PublishContext<'a> {
    /// The files of the run.
    pub(crate) layout: &'a Layout,
    pub(crate) jobs: &'a [JobPlan],
    /// The directory that relative paths start from.
    pub(crate) directory: &'a Path,
    /// The start of the run.
    pub(crate) started: u64,
    /// Its attempts that ended in earlier sessions.
    pub(crate) attempts: &'a [Attempt],
    /// The parts whose content is known.
    pub(crate) known: &'a KnownParts,
    pub(crate) state: &'a PublishState,
}

impl<'a> Publisher<'a> {
    pub(crate) fn new(place: PublishContext<'a>, made: &'a FinishedJobs, log: &'a FinishedLog) -> Self {
        let PublishContext { layout, jobs, directory, started, attempts, known, state } = place;
        let digest = |attempt: &Attempt| match &attempt.ended {
            AttemptOutcome::Done(outcome) => Some((attempt.id, outcome.output.clone()?)),
            _ => None,
        };
        state.digests.borrow_mut().get_or_insert_with(|| attempts.iter().filter_map(digest).collect());
        Self { layout, jobs, made, log, directory, started, known, state }
    }

    /// The directory that relative paths start from.
    pub(crate) fn directory(&self) -> &'a Path {
        self.directory
    }

    /// Leaves map output of finished jobs that is not removed yet in its place, for the next session.
    pub(crate) fn leave(&self) {
        self.state.remover.borrow().leave();
    }

    /// Calls `put` to move the part that an attempt has written, and records its digest.
    ///
    /// # Errors
    /// Those of `put`.
    pub(crate) fn stage(
        &self,
        id: TaskId,
        number: u64,
        digest: Option<&Digest>,
        put: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let job = &self.jobs[id.job as usize];
        let Some(digest) = digest.filter(|_| job.is_final(id)) else { return put() };
        // A part that is unchanged since its task wrote it is not read again before its publication.
        let is_fresh = digest.is_fresh(&self.layout.attempt(job, id, number).join(job.part(id.task)));
        put()?;
        self.state.digests.borrow_mut().get_or_insert_default().insert(id, digest.clone());
        if is_fresh {
            self.known.add(self.layout.committed(job, id));
        }
        Ok(())
    }

    /// The parts of a job that differ from what their tasks wrote, and the fault of each. Reads parts that
    /// are not known.
    pub(crate) fn damaged(&self, index: u32) -> BTreeMap<TaskId, String> {
        let job = &self.jobs[index as usize];
        let problem = |task: u32| {
            let id = job.final_task(index, task);
            let mut path = self.layout.committed(job, id);
            if !path.exists() {
                // An interrupted publication has moved it.
                path = job.output.join(job.part(task));
            }
            let digests = self.state.digests.borrow();
            Some((id, self.known.problem(&path, digests.as_ref()?.get(&id)?, None)?))
        };
        (0..job.parts()).filter_map(problem).collect()
    }

    /// Finishes a job whose tasks are all done; attempts from `next` on come after it. Can be repeated after
    /// an interruption. Returns the finished job, and a warning if a temporary file cannot be removed.
    ///
    /// # Errors
    /// An error of the file system; a file in the output that no run of the state directory has made.
    pub(crate) fn publish(&self, index: u32, next: u64) -> io::Result<(FinishedJob, Option<String>)> {
        let made = self.put_together(index, next)?;
        self.log.add(&made).map_err(io::Error::other)?;
        Ok((made, self.layout.clear_up(&self.jobs[index as usize], index)))
    }

    /// The same, where another thread forces out the record, once for all jobs that finish meanwhile, and
    /// then clears up; [`PublishState::warnings`] has the warnings. Until then the parts are still marked as
    /// those of this run, and a resumed run publishes the job again.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub(crate) fn publish_soon(&self, index: u32, next: u64) -> io::Result<()> {
        let made = self.put_together(index, next)?;
        self.log.add_unforced(&made).map_err(io::Error::other)?;
        let left = self.layout.leftovers(&self.jobs[index as usize], index);
        self.state.cleaner.borrow_mut().take(left, self.log)
    }

    /// Moves the parts of a job to their places, and gives what is to be recorded of it.
    fn put_together(&self, index: u32, next: u64) -> io::Result<FinishedJob> {
        let job = &self.jobs[index as usize];
        if let Some((_, problem)) = self.damaged(index).pop_first() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        during("publish", job.output.display(), || Layout::publish(job, self.made))?;
        let made = FinishedJob {
            flow: job.flow.clone(),
            job: job.job.clone(),
            definition: job.definition.clone(),
            read: self.read(job),
            wrote: (0..job.parts()).map(|task| self.published(index, task)).collect::<io::Result<_>>()?,
            run: (self.started, next),
            again: false,
        };
        let directory = made.directory();
        let parts = made.wrote.iter().map(|(name, part)| (directory.join(name), part.clone()));
        self.state.parts.borrow_mut().extend(parts);
        if job.reducers > 0
            && job.maps() > AT_ONCE
            && let Some(aside) = self.layout.set_aside(index)
        {
            self.state.remover.borrow_mut().take(aside);
        }
        Ok(made)
    }

    /// A part that was just published, with its name.
    fn published(&self, index: u32, task: u32) -> io::Result<(String, FinishedPart)> {
        let job = &self.jobs[index as usize];
        let name = job.part(task);
        let path = job.output.join(&name);
        let stamp = Some(Stamp::now(&path)?);
        let digest =
            self.state.digests.borrow_mut().get_or_insert_default().remove(&job.final_task(index, task));
        let digest = digest.map(|digest| Digest { stamp, ..digest });
        Ok((name, FinishedPart { source: Source::of_part(&path)?, digest }))
    }

    /// A part of another job, for a task that reads it: its current state if it has the published content,
    /// otherwise its published state, so that the task finds the difference. `None` if no run of the state
    /// directory made it.
    ///
    /// # Errors
    /// Other content of the same size and time, in which the task would find no difference.
    pub(crate) fn part(&self, path: &Path) -> io::Result<Option<Source>> {
        let path = self.directory.join(path);
        let Some(part) = self.made_part(&path) else { return Ok(None) };
        let Some(digest) = &part.digest else { return Ok(Some(part.source)) };
        let now = Source::of_part(&path);
        match self.known.problem(&path, digest, digest.stamp) {
            None => now.map(Some),
            Some(problem) if now.is_ok_and(|now| now.is_same(&part.source)) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, problem))
            }
            Some(_) => Ok(Some(part.source)),
        }
    }

    /// A part of another job as it was published, by absolute path.
    fn made_part(&self, path: &Path) -> Option<FinishedPart> {
        let earlier = || self.made.get(path.parent()?)?.wrote.get(path.file_name()?.to_str()?).cloned();
        self.state.parts.borrow().get(path).cloned().or_else(earlier)
    }

    /// The inputs of a job: its own files as they were when the run began, parts of other jobs as they were
    /// made.
    fn read(&self, job: &JobPlan) -> BTreeMap<PathBuf, Source> {
        let sources = &job.inputs.sources;
        let own = sources.iter().map(|(path, state)| (self.directory.join(path), state.clone()));
        let others = job.inputs.maps.iter().flatten().filter(|split| !sources.contains_key(&split.path));
        let others = others.filter_map(|split| {
            let path = self.directory.join(&split.path);
            let made = self.made_part(&path).map(|part| part.source);
            let state = made.or_else(|| Source::of_part(&path).ok())?;
            Some((path, state))
        });
        own.chain(others).collect()
    }
}
