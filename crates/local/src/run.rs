//! A run from its beginning to its end, or from where it was to its end.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use slackline_model::{Draft, History, Instance, Invalid};
use slackline_policy::{Config, Policy};

use crate::clock::{RunClock, unix_micros};
use crate::engine::{Interrupt, Local, Observer, Settings, Work, is_complete};
use crate::happened;
use crate::history::Jobs;
use crate::journal::{Attempt, Ended, Head, Identity, Journal, TaskId};
use crate::layout::{self, Layout};
use crate::obstacles::{Obstacle, obstacles};
use crate::process;
use crate::resolve::{JobPlan, ResolveError, Resolved, refuse_existing};
use crate::rest::{Numbers, rest};
use crate::store::StoreError;

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The journal or the history.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory holds another run.
    #[error(
        "{path}: found the run of another flow file or of other options ({difference}), expected this one's"
    )]
    Another {
        /// The journal.
        path: String,
        /// What differs.
        difference: String,
    },
    /// The file system refused something.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// What it says.
        problem: io::Error,
    },
    /// Output that was committed is gone.
    #[error(
        "{path}: found no output of a task that is done, expected it where the run put it; begin the run anew"
    )]
    Gone {
        /// Where it should be.
        path: String,
    },
    /// An output directory is in the way.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// What is left of the workload is none.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The engine had to stop.
    #[error("{0}")]
    Stopped(String),
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> RunError {
    move |problem| RunError::File { path: path.display().to_string(), problem }
}

/// The directory of a run: one that is there already, or a new one.
pub struct Found {
    layout: Layout,
    journal: Journal,
    head: Option<Head>,
}

/// Looks for a run in a directory, which is made where it is missing.
///
/// # Errors
/// The directory holds the run of something else, another process is at work on it, or it cannot be read.
pub fn find(root: &Path, identity: &Identity) -> Result<Found, RunError> {
    fs::create_dir_all(root).map_err(file(root))?;
    let layout = Layout::new(root);
    let journal = Journal::open(&layout.journal())?;
    let head = journal.head()?;
    if let Some(head) = head.as_ref().filter(|head| head.identity != *identity) {
        let path = layout.journal().display().to_string();
        return Err(RunError::Another { path, difference: difference(&head.identity, identity) });
    }
    Ok(Found { layout, journal, head })
}

/// What two runs differ in.
fn difference(found: &Identity, expected: &Identity) -> String {
    if found.sha256 != expected.sha256 {
        return "the flow file differs".to_owned();
    }
    if found.version != expected.version {
        return format!("it was begun by version {}", found.version);
    }
    let names: BTreeSet<&String> = found.options.keys().chain(expected.options.keys()).collect();
    let differing = names.into_iter().find(|name| found.options.get(*name) != expected.options.get(*name));
    differing.map_or_else(String::new, |name| format!("{name} differs"))
}

impl Found {
    /// The resolved workload of a run that was begun, as its document.
    pub fn workload(&self) -> Option<&str> {
        self.head.as_ref().map(|head| head.workload.as_str())
    }

    /// Whether a run was begun here and nothing of its outputs is left: somebody has removed them all, so that
    /// there is nothing to go on from.
    ///
    /// # Errors
    /// Whatever the journal's store says.
    pub fn is_orphaned(&self) -> Result<bool, RunError> {
        let Some(head) = &self.head else { return Ok(false) };
        let was_output = |attempt: &Attempt| {
            let job = &head.jobs[attempt.id.job as usize];
            matches!(attempt.ended, Ended::Done(_)) && layout::is_final(job, attempt.id)
        };
        let had_output = self.journal.attempts()?.iter().any(was_output);
        Ok(had_output && head.jobs.iter().all(|job| !job.output.exists()))
    }

    /// Begins a run.
    ///
    /// # Errors
    /// Outputs that are there already; a journal that cannot be written.
    pub fn begin(
        self,
        identity: Identity,
        resolved: Resolved,
        workload: String,
    ) -> Result<Session, RunError> {
        refuse_existing(&resolved.jobs)?;
        let Self { layout, journal, .. } = self;
        let head = Head { identity, started: unix_micros(), jobs: resolved.jobs, workload, sessions: 1 };
        journal.write_head(&head)?;
        let obstacles = obstacles(&head.jobs, &BTreeSet::new());
        Ok(Session {
            layout,
            journal,
            head,
            draft: resolved.draft,
            attempts: Vec::new(),
            recovered: Recovered::default(),
            obstacles,
        })
    }

    /// Takes up the run that is there; `draft` is that of [`Self::workload`].
    ///
    /// # Errors
    /// An old process that does not go, committed output that is gone, files that cannot be moved.
    ///
    /// # Panics
    /// If no run was begun here.
    pub fn resume(self, draft: Draft) -> Result<Session, RunError> {
        let Self { layout, journal, head } = self;
        let mut head = head.expect("a run that is taken up was begun");
        head.sessions += 1;
        journal.write_head(&head)?;
        let attempts = journal.attempts()?;
        let recovered = Recovered::default();
        let mut session =
            Session { layout, journal, head, draft, attempts, recovered, obstacles: Vec::new() };
        session.recover()?;
        session.obstacles = obstacles(&session.head.jobs, &session.done());
        Ok(session)
    }
}

/// Removes a run: its files, and the outputs it made. A directory without a run stays as it is.
///
/// # Errors
/// Another process is at work on it, or something cannot be removed.
pub fn discard(root: &Path) -> Result<(), RunError> {
    let layout = Layout::new(root);
    if !layout.journal().exists() {
        return Ok(());
    }
    let journal = Journal::open(&layout.journal())?;
    if let Some(head) = journal.head()? {
        fence(&layout)?;
        for job in &head.jobs {
            layout::remove(&job.output).map_err(file(&job.output))?;
        }
    }
    // The journal goes last: whoever stops this halfway can do it again.
    for large in [layout.attempts(), layout.all_maps()] {
        layout::remove(&large).map_err(file(&large))?;
    }
    drop(journal);
    layout::remove(root).map_err(file(root))
}

/// Fences off every attempt of an earlier session; returns how many there were.
fn fence(layout: &Layout) -> Result<usize, RunError> {
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
    layout::remove(&pids).map_err(file(&pids))?;
    Ok(fenced)
}

/// What taking up a run found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Tasks that were done already.
    pub done: usize,
    /// Attempts without an end, whose processes are gone now.
    pub cut_short: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// All flows are done.
    Done,
    /// Some flows failed, the others are done.
    Failed,
    /// It was stopped, and may be taken up again.
    Interrupted,
}

/// A run on disk that is ready to go on.
pub struct Session {
    layout: Layout,
    journal: Journal,
    head: Head,
    draft: Draft,
    attempts: Vec<Attempt>,
    recovered: Recovered,
    obstacles: Vec<Obstacle>,
}

impl Session {
    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its jobs.
    pub fn jobs(&self) -> &[JobPlan] {
        &self.head.jobs
    }

    /// The resolved workload, with estimated durations.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// When it started: microseconds since 1970.
    pub fn started(&self) -> u64 {
        self.head.started
    }

    /// What taking it up found.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// All attempts that have ended, by their numbers.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// What is in the way of jobs that are not done; their flows have failed from the start.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// The flows that cannot be run.
    pub fn hindered(&self) -> BTreeSet<&str> {
        self.obstacles.iter().map(|obstacle| self.head.jobs[obstacle.job].flow.as_str()).collect()
    }

    /// What finished tasks of this run took.
    pub fn seen(&self) -> History {
        happened::seen(&self.head.jobs, &self.attempts)
    }

    /// What the jobs took that are done, for a store of such.
    pub fn finished_jobs(&self) -> Jobs {
        happened::finished_jobs(&self.head.jobs, &self.attempts)
    }

    /// Tasks that are done.
    pub fn done(&self) -> BTreeSet<TaskId> {
        let done = self.attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_)));
        done.map(|attempt| attempt.id).collect()
    }

    /// What is left to be scheduled, without flows that cannot be run; `None` if nothing is.
    ///
    /// # Errors
    /// A workload that is none.
    pub fn rest(&self) -> Result<Option<Instance>, RunError> {
        let mut rest = rest(&self.draft, &self.done());
        let hindered = self.hindered();
        rest.flows.retain(|flow| !hindered.contains(flow.id.as_str()));
        if rest.flows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Instance::new(&rest)?))
    }

    /// Makes sure that nothing of an earlier session is at work, that what it recorded is in its place and
    /// that what it did not record is nowhere.
    fn recover(&mut self) -> Result<(), RunError> {
        self.recovered.cut_short = fence(&self.layout)?;
        let done = self.done();
        self.recovered.done = done.len();
        for attempt in self.attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))) {
            let job = &self.head.jobs[attempt.id.job as usize];
            let is_needed = layout::is_final(job, attempt.id) || !is_complete(job, attempt.id.job, &done);
            if !is_needed {
                continue;
            }
            let place = self.layout.committed(job, attempt.id);
            match self.layout.commit(job, attempt.id, attempt.number) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(RunError::Gone { path: place.display().to_string() });
                }
                other => other.map_err(file(&place))?,
            }
        }
        layout::remove(&self.layout.attempts()).map_err(file(&self.layout.attempts()))?;
        for (index, job) in (0..).zip(&self.head.jobs) {
            let outcome = if is_complete(job, index, &done) {
                self.layout.succeed(job, index)
            } else {
                layout::remove(&layout::temporary(job))
            };
            outcome.map_err(file(&job.output))?;
        }
        Ok(())
    }

    /// Runs what is left under `policy`, whose instance is that of [`Self::rest`]. `stop` is given what
    /// stops the run from another thread.
    ///
    /// # Errors
    /// The engine could not go on; what is done stays done.
    pub fn run(
        &mut self,
        instance: &Instance,
        policy: &mut dyn Policy,
        (config, settings): (Config<'_>, Settings),
        observer: &mut dyn Observer,
        stop: impl FnOnce(Interrupt),
    ) -> Result<RunEnd, RunError> {
        let done = self.done();
        let work = Work {
            instance,
            numbers: Numbers::new(instance, &self.head.jobs, &done),
            jobs: &self.head.jobs,
            done,
            next_number: self.attempts.last().map_or(0, |last| last.number + 1),
        };
        let clock = RunClock::since(self.head.started);
        let mut engine = Local::new(work, (&self.layout, &self.journal), settings, clock, observer);
        stop(engine.interrupt());
        let run = slackline_policy::run(instance, policy, &mut engine, config);
        engine.close();
        let (interrupted, fatal) = (engine.was_interrupted(), engine.fatal().map(str::to_owned));
        drop(engine);
        self.attempts = self.journal.attempts()?;
        if let Some(reason) = fatal {
            return Err(RunError::Stopped(reason));
        }
        Ok(match run.completions.iter().all(Option::is_some) {
            true if self.obstacles.is_empty() => RunEnd::Done,
            false if interrupted => RunEnd::Interrupted,
            _ => RunEnd::Failed,
        })
    }
}
