//! Finding, beginning, resuming and removing the run of a directory.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::error::file;
use super::{EngineError, Recovered, Session};
use crate::files::remove;
use crate::job_plan::JobPlan;
use crate::journal::{Attempt, Content, Ended, Head, Identity, Journal};
use crate::layout::{self, Layout};
use crate::output_lock::{OutputFiles, OutputLocks};
use crate::preflight::{Obstacle, preflight};
use crate::process;
use crate::resolve::{Resolved, refuse_existing};
use crate::task::part_name;
use crate::task_id::TaskId;

/// The directory of a run: one that is there already, or a new one.
pub struct Found {
    layout: Layout,
    journal: Journal,
    begun: Option<Begun>,
}

/// A run that was begun, as its journal has it.
struct Begun {
    head: Head,
    jobs: Vec<JobPlan>,
    attempts: Vec<Attempt>,
}

impl Begun {
    /// The run of a journal, if one was begun.
    fn of(layout: &Layout, content: Content) -> Result<Option<Self>, EngineError> {
        let Content { head, attempts } = content;
        let Some(head) = head else { return Ok(None) };
        let damaged =
            |problem| EngineError::Damaged { path: layout.journal().display().to_string(), problem };
        let jobs = JobPlan::all(&head.workload, head.inputs.clone()).map_err(damaged)?;
        let is_known =
            |id: TaskId| jobs.get(id.job as usize).is_some_and(|job| id.task < job.tasks(id.phase));
        if let Some(attempt) = attempts.iter().find(|attempt| !is_known(attempt.id)) {
            return Err(damaged(format!("an attempt of a task that the run has not: {:?}", attempt.id)));
        }
        Ok(Some(Self { head, jobs, attempts }))
    }
}

/// Looks for a run in a directory, which is made where it is missing.
///
/// # Errors
/// The directory holds the run of something else, another process is at work on it, or it cannot be read.
pub fn find(root: &Path, identity: &Identity) -> Result<Found, EngineError> {
    fs::create_dir_all(root).map_err(file(root))?;
    let layout = Layout::new(root);
    refuse_first_edition(&layout)?;
    if !layout.journal().exists() {
        refuse_use(&layout)?;
    }
    let journal = Journal::open(&layout.journal())?;
    let content = journal.read()?;
    match &content.head {
        // A journal that has lost its beginning must not be taken for that of a new run.
        None => refuse_use(&layout)?,
        Some(head) => {
            if let Some(difference) = head.identity.difference(identity) {
                let path = layout.journal().display().to_string();
                return Err(EngineError::Another { path, difference });
            }
        }
    }
    Ok(Found { begun: Begun::of(&layout, content)?, layout, journal })
}

/// Refuses a directory without a run in which there is what only a run makes.
fn refuse_use(layout: &Layout) -> Result<(), EngineError> {
    match layout.first_in_use().map_err(file(&layout.journal()))? {
        Some(path) => Err(EngineError::InUse { path: path.display().to_string() }),
        None => Ok(()),
    }
}

/// Refuses the directory of a run that was begun before journals were logs.
pub(super) fn refuse_first_edition(layout: &Layout) -> Result<(), EngineError> {
    let path = layout.first_journal();
    if path.exists() && !layout.journal().exists() {
        return Err(EngineError::FirstEdition { path: path.display().to_string() });
    }
    Ok(())
}

impl Found {
    /// Whether a run was begun here.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Whether a run was begun here and nothing of its outputs is left: they were all removed by hand, so that
    /// there is nothing to resume.
    pub fn is_orphaned(&self) -> bool {
        let Some(Begun { jobs, attempts, .. }) = &self.begun else { return false };
        let was_output = |attempt: &Attempt| {
            matches!(attempt.ended, Ended::Done(_)) && jobs[attempt.id.job as usize].is_final(attempt.id)
        };
        attempts.iter().any(was_output) && jobs.iter().all(|job| !job.output.exists())
    }

    /// Begins a run that started so many microseconds after 1970.
    ///
    /// # Errors
    /// Outputs that are there already; a journal that cannot be written; a run that was begun here.
    pub fn begin(self, identity: Identity, started: u64, resolved: Resolved) -> Result<Session, EngineError> {
        let Self { layout, journal, begun } = self;
        if begun.is_some() {
            return Err(EngineError::InUse { path: layout.journal().display().to_string() });
        }
        // Two runs may start in the same microsecond.
        let owner = format!("{started}-{}", std::process::id());
        let Resolved { draft, jobs, .. } = resolved;
        let inputs = jobs.iter().map(|job| job.inputs.clone()).collect();
        let head = Head { identity, owner, started, workload: draft, inputs };
        let obstacles = preflight(&jobs, &BTreeSet::new());
        if let Err(error) = lock_outputs(&journal, &head, &Outputs { jobs: &jobs, obstacles: &obstacles }) {
            // What it leaves is nothing but its beginning.
            drop(journal);
            let _ = layout.remove_all();
            return Err(error);
        }
        let recovered = Recovered::default();
        Ok(Session { layout, journal, head, jobs, attempts: Vec::new(), recovered, obstacles })
    }

    /// Resumes the run that is there.
    ///
    /// # Errors
    /// An old process that does not go, committed output that is gone, files that cannot be moved.
    ///
    /// # Panics
    /// If no run was begun here.
    pub fn resume(self) -> Result<Session, EngineError> {
        let Self { layout, journal, begun } = self;
        let Begun { head, jobs, attempts } = begun.expect("a run that is resumed was begun");
        let (recovered, obstacles) = (Recovered::default(), Vec::new());
        let mut session = Session { layout, journal, head, jobs, attempts, recovered, obstacles };
        session.recover()?;
        session.obstacles = preflight(&session.jobs, &session.done());
        session.lock_again();
        Ok(session)
    }
}

/// What a run is going to write.
struct Outputs<'a> {
    jobs: &'a [JobPlan],
    obstacles: &'a [Obstacle],
}

/// Writes down that a run begins, and makes its output directories.
fn lock_outputs(journal: &Journal, head: &Head, outputs: &Outputs<'_>) -> Result<(), EngineError> {
    let Outputs { jobs, obstacles } = *outputs;
    refuse_existing(jobs.iter())?;
    journal.begin(head)?;
    let locks = OutputLocks::of(&head.owner);
    let is_free = |index: &usize| obstacles.iter().all(|obstacle| obstacle.job != *index);
    for index in (0..jobs.len()).filter(is_free) {
        let job = &jobs[index];
        if let Err(problem) = locks.acquire(job, &[]) {
            for job in jobs {
                locks.release(job);
            }
            return Err(match problem.kind() {
                io::ErrorKind::AlreadyExists => {
                    EngineError::Claimed { path: job.output.display().to_string() }
                }
                _ => file(&job.output)(problem),
            });
        }
    }
    Ok(())
}

/// Removes a run: its files, and the outputs it made. A directory without a run stays as it is. Says whether there
/// was one. Nothing is removed if it cannot all be, or if the outputs of `next`, the jobs of the run to come, are
/// there already and not this run's.
///
/// # Errors
/// Another process is at work on it, its outputs hold what it did not make, or something cannot be removed.
pub fn discard(root: &Path, next: &[JobPlan]) -> Result<bool, EngineError> {
    let layout = Layout::new(root);
    refuse_first_edition(&layout)?;
    if !layout.journal().exists() {
        return Ok(false);
    }
    let journal = Journal::open(&layout.journal())?;
    if let Some(begun) = Begun::of(&layout, journal.read()?)? {
        fence(&layout)?;
        let made = made(&begun);
        let absolute =
            |plan: &JobPlan| std::path::absolute(&plan.output).unwrap_or_else(|_| plan.output.clone());
        let is_new = |plan: &&JobPlan| made.iter().all(|made| made.directory != absolute(plan));
        refuse_existing(next.iter().filter(is_new))?;
        for made in &made {
            if let Some(name) = made.foreign().map_err(file(&made.directory))? {
                return Err(EngineError::Foreign { path: made.directory.display().to_string(), name });
            }
        }
        for made in &made {
            made.remove().map_err(file(&made.directory))?;
        }
    } else {
        refuse_use(&layout)?;
    }
    drop(journal);
    layout.remove_all().map_err(|(path, problem)| file(&path)(problem))?;
    Ok(true)
}

/// What a run has made, by job.
fn made(begun: &Begun) -> Vec<OutputFiles> {
    let Begun { head, jobs, attempts } = begun;
    let done: BTreeSet<TaskId> =
        attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))).map(|attempt| attempt.id).collect();
    let locks = OutputLocks::of(&head.owner);
    let of_job = |(index, job): (u32, &JobPlan)| {
        let mut names: BTreeSet<String> = parts(job, index, &done).into_iter().map(part_name).collect();
        names.extend(job.is_complete(index, &done).then(|| layout::SUCCESS.to_owned()));
        let directory = Path::new(&head.identity.directory).join(&job.output);
        let is_owned = locks.owns(&directory);
        OutputFiles { directory, names, is_owned }
    };
    (0..).zip(jobs).map(of_job).collect()
}

/// The parts of a job that are done.
pub(super) fn parts(job: &JobPlan, index: u32, done: &BTreeSet<TaskId>) -> Vec<u32> {
    let ids = done.iter().filter(|id| id.job == index && job.is_final(**id));
    ids.map(|id| id.task).collect()
}

/// Fences off every attempt of an earlier session; returns how many there were.
pub(super) fn fence(layout: &Layout) -> Result<usize, EngineError> {
    let pids = layout.pids();
    let entries = match fs::read_dir(&pids) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(file(&pids)(e)),
    };
    let mut fenced = 0;
    for entry in entries {
        let path = entry.map_err(file(&pids))?.path();
        process::fence(&path).map_err(file(&path))?;
        fenced += 1;
    }
    remove(&pids).map_err(file(&pids))?;
    Ok(fenced)
}
