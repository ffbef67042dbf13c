//! A run from its beginning to its end, or from where it was to its end.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use slackline_model::{Draft, History, Instance, Invalid, Time};
use slackline_policy::{Config, Policy};

use crate::claim::{Claims, Made};
use crate::clock::RunClock;
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
use crate::task::part_name;

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
    /// The directory is somebody else's.
    #[error(
        "{path}: found it, and no journal beside it; expected no file of this name where no run was begun"
    )]
    InUse {
        /// What is there.
        path: String,
    },
    /// Somebody else has put something into an output directory.
    #[error("{path}: found {name} beside the output, expected nothing but it; move it away first")]
    Foreign {
        /// The directory.
        path: String,
        /// What is there.
        name: String,
    },
    /// Another run writes to an output directory.
    #[error("{path}: found another run at work there, expected an output directory of its own")]
    Claimed {
        /// The directory.
        path: String,
    },
    /// What the journal says cannot be.
    #[error(
        "{path}: found {problem}; the journal is damaged: remove the directory and the outputs, and run anew"
    )]
    Damaged {
        /// The journal.
        path: String,
        /// What does not fit.
        problem: String,
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
    if !layout.journal().exists()
        && let Some(path) = layout.first_in_use().map_err(file(root))?
    {
        return Err(RunError::InUse { path: path.display().to_string() });
    }
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
    if found.directory != expected.directory {
        return format!("it was begun in {}", found.directory);
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
        let attempts = self.journal.attempts()?;
        check_attempts(&self.layout, head, &attempts)?;
        let had_output = attempts.iter().any(was_output);
        Ok(had_output && head.jobs.iter().all(|job| !job.output.exists()))
    }

    /// Begins a run that started so many microseconds after 1970.
    ///
    /// # Errors
    /// Outputs that are there already; a journal that cannot be written.
    pub fn begin(
        self,
        identity: Identity,
        started: u64,
        resolved: Resolved,
        workload: String,
    ) -> Result<Session, RunError> {
        let Self { layout, journal, .. } = self;
        // Two runs may start in the same microsecond.
        let owner = format!("{started}-{}", std::process::id());
        let head = Head { identity, owner, started, jobs: resolved.jobs, workload };
        let obstacles = obstacles(&head.jobs, &BTreeSet::new());
        if let Err(error) = claim_outputs(&journal, &head, &obstacles) {
            // What it leaves is nothing but its beginning.
            drop(journal);
            let _ = layout.remove_all();
            return Err(error);
        }
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
        let head = head.expect("a run that is taken up was begun");
        let attempts = journal.attempts()?;
        check_jobs(&layout, &head, &draft)?;
        check_attempts(&layout, &head, &attempts)?;
        let recovered = Recovered::default();
        let mut session =
            Session { layout, journal, head, draft, attempts, recovered, obstacles: Vec::new() };
        session.recover()?;
        session.obstacles = obstacles(&session.head.jobs, &session.done());
        session.claim_again();
        Ok(session)
    }
}

/// Writes down that a run begins, and makes its output directories.
fn claim_outputs(journal: &Journal, head: &Head, obstacles: &[Obstacle]) -> Result<(), RunError> {
    refuse_existing(head.jobs.iter())?;
    journal.write_head(head)?;
    let claims = Claims::of(&head.owner);
    let is_free = |index: &usize| obstacles.iter().all(|obstacle| obstacle.job != *index);
    for index in (0..head.jobs.len()).filter(is_free) {
        let job = &head.jobs[index];
        if let Err(problem) = claims.take(job, &[]) {
            head.jobs.iter().for_each(|job| claims.give_up(job));
            return Err(match problem.kind() {
                io::ErrorKind::AlreadyExists => RunError::Claimed { path: job.output.display().to_string() },
                _ => file(&job.output)(problem),
            });
        }
    }
    Ok(())
}

/// Whether attempts are those of tasks that a run has.
fn check_attempts(layout: &Layout, head: &Head, attempts: &[Attempt]) -> Result<(), RunError> {
    let is_known = |id: TaskId| {
        head.jobs.get(id.job as usize).is_some_and(|job| {
            let tasks = if id.reduce { job.reducers as usize } else { job.maps.len() };
            (id.task as usize) < tasks
        })
    };
    match attempts.iter().find(|attempt| !is_known(attempt.id)) {
        None => Ok(()),
        Some(attempt) => Err(RunError::Damaged {
            path: layout.journal().display().to_string(),
            problem: format!("an attempt of a task that the run has not: {:?}", attempt.id),
        }),
    }
}

/// Whether the jobs of a run are those of its workload, in its order.
fn check_jobs(layout: &Layout, head: &Head, draft: &Draft) -> Result<(), RunError> {
    let said = draft.flows.iter().flat_map(|flow| flow.jobs.iter().map(|job| (&flow.id, &job.id)));
    if said.eq(head.jobs.iter().map(|plan| (&plan.flow, &plan.job))) {
        return Ok(());
    }
    let path = layout.journal().display().to_string();
    Err(RunError::Damaged { path, problem: "other jobs than its workload has".to_owned() })
}

/// Removes a run: its files, and the outputs it made. A directory without a run stays as it is. Says whether there
/// was one. Nothing is removed if it cannot all be, or if the outputs of `next`, the jobs of the run to come, are
/// there already and not this run's.
///
/// # Errors
/// Another process is at work on it, its outputs hold what it did not make, or something cannot be removed.
pub fn discard(root: &Path, next: &[JobPlan]) -> Result<bool, RunError> {
    let layout = Layout::new(root);
    if !layout.journal().exists() {
        return Ok(false);
    }
    let journal = Journal::open(&layout.journal())?;
    if let Some(head) = journal.head()? {
        fence(&layout)?;
        let attempts = journal.attempts()?;
        check_attempts(&layout, &head, &attempts)?;
        let made = made(&head, &attempts);
        let absolute =
            |plan: &JobPlan| std::path::absolute(&plan.output).unwrap_or_else(|_| plan.output.clone());
        let is_new = |plan: &&JobPlan| made.iter().all(|made| made.directory != absolute(plan));
        refuse_existing(next.iter().filter(is_new))?;
        for made in &made {
            if let Some(name) = made.foreign().map_err(file(&made.directory))? {
                return Err(RunError::Foreign { path: made.directory.display().to_string(), name });
            }
        }
        for made in &made {
            made.remove().map_err(file(&made.directory))?;
        }
    }
    drop(journal);
    layout.remove_all().map_err(|(path, problem)| file(&path)(problem))?;
    Ok(true)
}

/// What a run has made, by job.
fn made(head: &Head, attempts: &[Attempt]) -> Vec<Made> {
    let done: BTreeSet<TaskId> =
        attempts.iter().filter(|a| matches!(a.ended, Ended::Done(_))).map(|attempt| attempt.id).collect();
    let claims = Claims::of(&head.owner);
    let of_job = |(index, job): (u32, &JobPlan)| {
        let mut names: BTreeSet<String> = parts(job, index, &done).into_iter().map(part_name).collect();
        names.extend(is_complete(job, index, &done).then(|| layout::SUCCESS.to_owned()));
        let directory = Path::new(&head.identity.directory).join(&job.output);
        let is_owned = claims.owns(&directory);
        Made { directory, names, is_owned }
    };
    (0..).zip(&head.jobs).map(of_job).collect()
}

/// The parts of a job that are done.
fn parts(job: &JobPlan, index: u32, done: &BTreeSet<TaskId>) -> Vec<u32> {
    let ids = done.iter().filter(|id| id.job == index && layout::is_final(job, **id));
    ids.map(|id| id.task).collect()
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
        let claims = Claims::of(&self.head.owner);
        for (index, job) in (0..).zip(&self.head.jobs) {
            if is_complete(job, index, &done) {
                self.layout.succeed(job, index).map_err(file(&job.output))?;
            } else {
                // Where even that cannot be done, nothing can be written, and that is an obstacle.
                let _ = claims.clear(job);
            }
        }
        Ok(())
    }

    /// Makes the outputs of what is left this run's again, where it had given them up; what is another's now is in
    /// the way.
    fn claim_again(&mut self) {
        let (claims, done) = (Claims::of(&self.head.owner), self.done());
        for (index, job) in (0..).zip(&self.head.jobs) {
            let is_hindered = self.obstacles.iter().any(|obstacle| obstacle.job == index as usize);
            if is_hindered || is_complete(job, index, &done) {
                continue;
            }
            if let Err(error) = claims.take(job, &parts(job, index, &done)) {
                let output = job.output.display();
                let problem = match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        format!(
                            "output {output}: found it in use by another run, expected it as this one left it"
                        )
                    }
                    _ => format!("output {output}: cannot be made: {error}"),
                };
                self.obstacles.push(Obstacle { job: index as usize, problem });
            }
        }
    }

    /// Gives up the outputs of jobs that have failed.
    fn give_up(&self) {
        let (claims, done) = (Claims::of(&self.head.owner), self.done());
        let open = (0..).zip(&self.head.jobs).filter(|(index, job)| !is_complete(job, *index, &done));
        open.for_each(|(_, job)| claims.give_up(job));
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
        let seen = self.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0);
        let clock = RunClock::since(self.head.started, Time(seen));
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
        if !interrupted {
            self.give_up();
        }
        Ok(match run.completions.iter().all(Option::is_some) {
            true if self.obstacles.is_empty() => RunEnd::Done,
            false if interrupted => RunEnd::Interrupted,
            _ => RunEnd::Failed,
        })
    }
}
