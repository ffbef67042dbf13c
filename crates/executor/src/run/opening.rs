//! Opens the run of a state directory: finished work is reused, interrupted work is resumed, and the rest
//! starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase};
use slackline_task::base::clock::{ClockReading, unix_micros};
use slackline_task::base::files::remove;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::memory::Memory;

use super::error::file;
use super::{JobVerdict, LostOutput, Recovery, Session, user_text};
use crate::run::claims::claim;
use crate::run::error::EngineError;
use crate::run::recover::recover_tasks;
use crate::run::reuse::{Choices, Decision, PreviousState, Reason, UnfinishedRun, Verdict, decide};
use crate::run::reused::reused_jobs;
use crate::run::selection::Selection;
use crate::spec::fault::{Fault, UnrunnableJob};
use crate::spec::job_cost::JobName;
use crate::spec::job_plan::{JobPlan, KnownJob};
use crate::spec::preflight::Obstacle;
use crate::spec::resolve::{self, ResolvedWorkload, without_mirror};
use crate::store::finished_jobs::{FinishedJob, FinishedJobs, FinishedLog};
use crate::store::journal::{Attempt, Content, Head, Journal, KeptJob, Segment, Setup, done_tasks};
use crate::store::layout::Layout;
use crate::store::log::LogError;
use crate::store::output_files::TEMPORARY;
use crate::store::output_lock::{OutputLocks, is_staging};
use crate::store::pid_file;
use crate::store::publish::{KnownParts, PublishState};

/// The place, the time and the settings of an opening.
#[derive(Clone)]
pub struct Opening<'a> {
    pub state: &'a Path,
    /// How it is started or continued; relative paths start at its directory.
    pub setup: Setup,
    /// When it starts, unless it is continued: microseconds since 1970.
    pub started: u64,
    /// The jobs to run again, or alone.
    pub choices: Choices,
    /// Whether it is to be run beside others, by a shared engine and holds the memory of their commands
    /// itself.
    pub beside_others: bool,
    /// Receives what the engine waits for, as text.
    pub status: StatusCallback<'a>,
}

/// Receives what an engine waits for before a run begins, as text for the user.
pub type StatusCallback<'a> = &'a dyn Fn(&str);

/// The start of the unfinished run of a state directory, if there is one: microseconds since 1970. The
/// directory may be in use.
///
/// # Errors
/// A journal that is damaged or cannot be read.
pub fn unfinished_since(state: &Path) -> Result<Option<u64>, EngineError> {
    let layout = Layout::new(state);
    let begun = PreviousRun::of(&layout, seen(&layout)?)?;
    Ok(begun.and_then(PreviousRun::unfinished).map(|run| run.head.started))
}

/// What would happened to each job, in the order of the resolved jobs; nothing is written. O(jobs + files).
///
/// # Errors
/// A choice that names no job; a state directory of something else.
pub fn preview(opening: &Opening<'_>, resolved: &ResolvedWorkload) -> Result<Vec<JobVerdict>, EngineError> {
    let layout = Layout::new(opening.state);
    let seen = match seen(&layout) {
        Err(EngineError::Log(LogError::Damaged { .. })) if opening.choices.again => Content::default(),
        seen => seen?,
    };
    let begun = PreviousRun::of(&layout, seen)?;
    refuse_engine(begun.as_ref(), opening)?;
    let mut made = FinishedJobs::look(&layout.made())?;
    let forgotten = forgotten(begun.as_ref(), &made);
    let owner = begun.as_ref().map_or("", |begun| begun.0.head.owner.as_str());
    let directory = Path::new(&opening.setup.directory);
    claim(resolved, &opening.choices, &OutputLocks::of(owner), &mut made, directory)?;
    let unfinished = begun.and_then(PreviousRun::unfinished);
    let past = PreviousState { made: &made, unfinished: unfinished.as_ref(), directory };
    let decisions = decide(resolved, &opening.choices, &past)?;
    let mut verdicts = verdicts(resolved, &decisions);
    let chosen = Selection::of(resolved, &decisions, unfinished.as_ref());
    let owner = unfinished.as_ref().map_or("", |run| run.head.owner.as_str());
    let mut prevented = chosen.obstacles(&done_tasks(&chosen.attempts));
    prevented.extend(foreign(&OutputLocks::of(owner), &chosen, &made, &forgotten)?);
    let mut problems: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut causes: BTreeMap<&str, &str> = BTreeMap::new();
    for Obstacle { job, problem, .. } in &prevented {
        let plan = &chosen.plans[*job];
        problems.insert((&plan.flow, &plan.job), problem);
        causes.entry(&plan.flow).or_insert(&plan.job);
    }
    for it in &mut verdicts {
        if let Some(&problem) = problems.get(&(it.flow.as_str(), it.job.as_str())) {
            it.verdict = Verdict::Prevented(problem.to_owned());
        } else if matches!(it.verdict, Verdict::Run(_) | Verdict::Resumed)
            && let Some(job) = causes.get(it.flow.as_str())
        {
            // A flow that cannot finish does not start.
            it.verdict = Verdict::Prevented(format!("its flow does not start because {job} cannot run"));
        }
    }
    if let Some(mirror) = &resolved.mirror {
        user_text::translate_verdicts(mirror, &mut verdicts);
    }
    Ok(verdicts)
}

/// Opens the run of a state directory, which is created if missing.
///
/// # Errors
/// The directory has another purpose, or another process works on it; outputs of another run; files that
/// cannot be read, written or moved. Then nothing starts.
pub fn open(opening: Opening<'_>, resolved: &ResolvedWorkload) -> Result<Session, EngineError> {
    open_with(opening, resolved, &mut |_| Ok(None))
}

/// The needs of a run that is about to start or resume.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Needs<'a> {
    /// The name by which its outputs are known.
    pub owner: &'a str,
    /// Where its files are.
    pub layout: &'a Layout,
    pub jobs: &'a [JobPlan],
}

/// Gets what a run needs; gives its machines, if they are not those that were expected.
pub type Acquire<'a> = dyn FnMut(Needs<'_>) -> Result<Option<Vec<MachineDraft>>, EngineError> + 'a;

/// Like [`open`]. If there is work to do, `acquire` gets the resources of the run before any file of an
/// earlier run is removed.
///
/// # Errors
/// Those of [`open`], and those of `acquire`.
pub fn open_with(
    opening: Opening<'_>,
    resolved: &ResolvedWorkload,
    acquire: &mut Acquire<'_>,
) -> Result<Session, EngineError> {
    let mut opened = open_as_written(opening, resolved, acquire);
    match (&mut opened, &resolved.mirror) {
        (Ok(session), Some(mirror)) => {
            session.obstacles.iter_mut().for_each(|it| it.problem = without_mirror(mirror, &it.problem));
            user_text::translate_verdicts(mirror, &mut session.verdicts);
        }
        (Err(error), Some(mirror)) => user_text::translate_error(mirror, error),
        (_, None) => {}
    }
    opened
}

/// The same, with the names of files in a mirror.
fn open_as_written(
    opening: Opening<'_>,
    resolved: &ResolvedWorkload,
    acquire: &mut Acquire<'_>,
) -> Result<Session, EngineError> {
    let state = opening.state;
    fs::create_dir_all(state).map_err(file(state))?;
    let layout = Layout::new(state);
    if !layout.journal().exists() {
        refuse_use(&layout)?;
    }
    if opening.choices.again && layout.journal().exists() {
        // A damaged journal blocks a run that starts again; any other journal stays until that run has
        // started.
        Journal::set_aside(&layout.journal(), &layout.damaged_journal())?;
    }
    let journal = Journal::open(&layout.journal())?;
    let content = journal.read()?;
    if content.head.is_none() {
        // A journal that has lost its beginning must not be taken for that of a new run in another process's
        // directory.
        refuse_use(&layout)?;
    }
    let mut begun = PreviousRun::of(&layout, content)?;
    refuse_engine(begun.as_ref(), &opening)?;
    let Opening { setup, started, choices, beside_others, .. } = opening;
    let resumes = begun.as_ref().is_some_and(|begun| !choices.again && !begun.is_finished());
    let layout = place(layout, resolved, resumes)?;
    resolve::refuse_state(resolved, [state, layout.data()], &layout.outputs())?;
    let (made_log, mut made) = FinishedLog::open(&layout.made())?;
    let cut_short = kill_leftovers(&layout)?;
    let known_parts = KnownParts::default();
    let lost = match &mut begun {
        Some(PreviousRun(run)) => recover_tasks(run, &journal, &layout, &known_parts, &mut made, &made_log)?,
        None => Vec::new(),
    };
    let is_first = begun.is_none() && made.is_empty();
    let left = layout.clone();
    let new = RunBuilder {
        layout,
        setup,
        started,
        choices,
        beside_others,
        made,
        made_log,
        known_parts,
        cut_short,
        lost,
        acquire,
    };
    let opened = new.session(journal, begun, resolved);
    if opened.is_err() && is_first {
        forget(&left);
    }
    opened
}

/// The places of the files of a run: where its engine puts them, but the files of a run that continues stay
/// in place.
fn place(layout: Layout, resolved: &ResolvedWorkload, resumes: bool) -> Result<Layout, EngineError> {
    let Some(shared) = resolved.spread.as_ref().and_then(|spread| spread.shared.as_deref()) else {
        return Ok(layout);
    };
    let wanted = layout.clone().sharing(shared);
    if resumes && !wanted.shares_with(&layout) {
        return Err(EngineError::Moved { from: layout.data().display().to_string() });
    }
    Ok(wanted)
}

/// The content of the journal, which a run may have open; empty if there is none.
fn seen(layout: &Layout) -> Result<Content, EngineError> {
    let path = layout.journal();
    Ok(if path.exists() { Journal::glance(&path)?.0 } else { Content::default() })
}

/// Removes a run that could not start; it has only its beginning.
fn forget(layout: &Layout) {
    // What cannot be removed is an empty run, which does no harm.
    let _ = (layout.remove_data(), remove(&layout.pids()));
    let _ = remove(&layout.made()).and_then(|()| remove(&layout.journal()));
    if let Some(root) = layout.journal().parent() {
        let _ = fs::remove_dir(root);
    }
}

/// The collected data of a run to be opened.
struct RunBuilder<'a> {
    layout: Layout,
    setup: Setup,
    started: u64,
    choices: Choices,
    beside_others: bool,
    made: FinishedJobs,
    made_log: FinishedLog,
    known_parts: KnownParts,
    cut_short: usize,
    lost: Vec<LostOutput>,
    acquire: &'a mut Acquire<'a>,
}

impl RunBuilder<'_> {
    /// Remembers the content of inputs of jobs that stay done, where it was asked for and not known before:
    /// they are as they were by size and time. Remembers the stamps of parts that were touched and have the
    /// content that was published.
    fn know_content(
        &mut self,
        resolved: &ResolvedWorkload,
        decisions: &[Decision],
    ) -> Result<(), EngineError> {
        let directory = Path::new(&self.setup.directory);
        for (plan, _) in
            resolved.jobs.iter().zip(decisions).filter(|(_, decision)| decision.verdict == Verdict::Kept)
        {
            if let Some(made) = self.made.get(&plan.definition.output()).and_then(FinishedJob::restamped) {
                self.made_log.add(&made)?;
                self.made.insert(made);
            }
            let Some(made) = self.made.get(&plan.definition.output()) else { continue };
            let is_new = |(path, now): &(PathBuf, &Source)| {
                now.sha256.is_some() && made.read.get(path).is_some_and(|then| then.sha256.is_none())
            };
            let sources = plan.inputs.sources.iter().map(|(path, now)| (directory.join(path), now));
            let new: Vec<(PathBuf, Source)> =
                sources.filter(is_new).map(|(path, now)| (path, now.clone())).collect();
            if !new.is_empty() {
                let mut made = made.clone();
                made.read.extend(new);
                self.made_log.add(&made)?;
                self.made.insert(made);
            }
        }
        Ok(())
    }

    fn session(
        mut self,
        journal: Journal,
        begun: Option<PreviousRun>,
        resolved: &ResolvedWorkload,
    ) -> Result<Session, EngineError> {
        let owner = begun.as_ref().map(|begun| begun.0.head.owner.clone());
        let is_first = begun.is_none() && self.made.is_empty();
        let forgotten = forgotten(begun.as_ref(), &self.made);
        let locks = OutputLocks::of(owner.as_deref().unwrap_or_default());
        let directory = Path::new(&self.setup.directory);
        let claimed = claim(resolved, &self.choices, &locks, &mut self.made, directory)?;
        claimed.iter().try_for_each(|made| self.made_log.add(made))?;
        let (finished, unfinished) = match begun {
            Some(begun) if begun.is_finished() => (Some(begun.0), None),
            other => (None, other.map(|begun| begun.0)),
        };
        let past = PreviousState { made: &self.made, unfinished: unfinished.as_ref(), directory };
        let decisions = decide(resolved, &self.choices, &past)?;
        self.know_content(resolved, &decisions)?;
        if let Some(unfinished) = &unfinished
            && !self.choices.again
            && !is_continued(unfinished, resolved)
        {
            return Err(EngineError::Another { path: self.layout.journal().display().to_string() });
        }
        let verdicts = verdicts(resolved, &decisions);
        let earlier = finished.as_ref().or(unfinished.as_ref());
        let kept_jobs = reused_jobs(resolved, &decisions, earlier, &self.made);
        if decisions.iter().all(Decision::is_idle)
            && let Some(last) = finished
        {
            return Ok(self.idle(journal, last, verdicts));
        }
        let owner = owner.unwrap_or_else(new_owner);
        // The run continues, and keeps its start, only if some job of it does.
        let resumes = !self.choices.again && decisions.iter().any(|decision| decision.resumed.is_some());
        let (kept, dropped) = if resumes { (unfinished, None) } else { (None, unfinished) };
        let chosen = Selection::of(resolved, &decisions, kept.as_ref());
        let asked = asked(resolved, &decisions, &self.made);
        let earlier = Carryover { is_first, kept, dropped, asked, forgotten, kept_jobs };
        self.begin(journal, earlier, chosen, owner, verdicts)
    }

    /// A run in which nothing is to be done: the last one, as it was.
    fn idle(self, journal: Journal, last: UnfinishedRun, verdicts: Vec<JobVerdict>) -> Session {
        // A run that was killed at its very end may have left something; what cannot be removed does no harm.
        for left in [self.layout.attempts(), self.layout.all_maps()] {
            let _ = remove(&left);
        }
        let layout = self.layout.clone().of_jobs(&last.jobs);
        self.session_of(layout, journal, last.head, last.jobs, last.attempts, verdicts)
    }

    /// A session with nothing to recover and no obstacles.
    fn session_of(
        self,
        layout: Layout,
        journal: Journal,
        head: Head,
        jobs: Vec<JobPlan>,
        attempts: Vec<Attempt>,
        verdicts: Vec<JobVerdict>,
    ) -> Session {
        Session {
            layout,
            journal,
            made: self.made,
            made_log: self.made_log,
            known_parts: self.known_parts,
            publish_state: PublishState::default(),
            head,
            bytes_in: jobs.iter().map(JobPlan::bytes_in).collect(),
            jobs,
            attempts,
            recovered: Recovery::default(),
            obstacles: Vec::new(),
            verdicts,
            lost: self.lost,
            memory: Memory::default(),
        }
    }

    fn begin(
        self,
        journal: Journal,
        earlier: Carryover,
        mut chosen: Selection,
        owner: String,
        verdicts: Vec<JobVerdict>,
    ) -> Result<Session, EngineError> {
        let Carryover { is_first, kept, dropped, asked, forgotten, kept_jobs } = earlier;
        let locks = OutputLocks::of(&owner);
        let done: BTreeSet<TaskId> = done_tasks(&chosen.attempts);
        let mut obstacles = chosen.obstacles(&done);
        obstacles.extend(foreign(&locks, &chosen, &self.made, &forgotten)?);
        if self.beside_others
            && let Some(obstacle) = obstacles.iter().find(|obstacle| obstacle.may_pass)
        {
            return Err(EngineError::Passing(obstacle.problem.clone()));
        }
        if kept.is_none() {
            refuse_hopeless(&chosen, &obstacles)?;
        }
        self.layout.note_data().map_err(file(self.layout.data()))?;
        let layout = self.layout.clone().of_jobs(&chosen.plans);
        let needs = Needs { owner: &owner, layout: &layout, jobs: &chosen.plans };
        if let Some(machines) = (self.acquire)(needs)? {
            chosen.draft.machines = machines;
        }
        let jobs: Vec<KnownJob> = chosen.plans.iter().map(JobPlan::known).collect();
        if let Some(kept) = kept.as_ref().filter(|kept| kept.head.jobs == jobs && kept.done == done) {
            // Also the failed attempts of jobs of which nothing is done yet.
            chosen.attempts.clone_from(&kept.attempts);
        }
        let segments = self.segments(kept.as_ref(), &chosen);
        let head = Head {
            setup: self.setup.clone(),
            owner,
            started: kept.as_ref().map_or(self.started, |run| run.head.started),
            workload: chosen.draft.clone(),
            jobs,
            kept: kept_jobs,
            segments,
        };
        let resumed = chosen.resumed;
        asked.iter().try_for_each(|made| self.made_log.add(made))?;
        let attempts = chosen.attempts;
        let is_same = kept.as_ref().is_some_and(|kept| kept.head == head && kept.done == done);
        let journal =
            if is_same { journal } else { Journal::replace(&self.layout.journal(), &head, &attempts)? };
        let (starts_over, waits) = (self.choices.again && !is_first, self.beside_others);
        let recovered = Recovery { cut_short: self.cut_short, starts_over, ..Recovery::default() };
        let session = self.session_of(layout, journal, head, chosen.plans, attempts, verdicts);
        let mut session = Session { recovered, obstacles, ..session };
        kept.iter().chain(&dropped).for_each(|run| session.release_outputs_of(run));
        session.recover(&resumed)?;
        session.lock_outputs(kept.is_some(), waits)?;
        Ok(session)
    }

    /// The segments of the run: those of a run that is continued, and one more if the settings are others
    /// now.
    fn segments(&self, kept: Option<&UnfinishedRun>, chosen: &Selection) -> Vec<Segment> {
        let (options, machines) = (self.setup.options.clone(), chosen.draft.machines.clone());
        let mut next = Segment { options, machines, ..Segment::default() };
        let Some(kept) = kept else { return vec![next] };
        let mut segments = kept.head.segments.clone();
        let is_used = |number: usize| chosen.attempts.iter().any(|it| it.segment as usize == number);
        let mut edited = chosen.attempts.len() < kept.attempts.len()
            || !self.lost.is_empty()
            || order(&kept.head.workload) != order(&chosen.draft);
        // A segment in which nothing ended leaves nothing to be said of.
        let is_idle = |last: &Segment| !last.is_same(&next) && last.jumped == 0;
        while segments.last().is_some_and(is_idle) && !is_used(segments.len() - 1) {
            edited |= segments.pop().is_some_and(|last| last.edited);
        }
        next.edited = edited;
        match segments.last_mut() {
            Some(last) if last.is_same(&next) && !next.edited => last.machines = next.machines,
            Some(last) => {
                let seen = chosen.attempts.iter().map(|attempt| attempt.end).max().unwrap_or(0);
                let now = kept.head.time_base().time(ClockReading::read().wall).0;
                // Nothing of an earlier segment starts when this one does.
                next.start = now.max(seen.max(last.start) + 1);
                segments.push(next);
            }
            None => segments.push(next),
        }
        segments
    }
}

/// The rules of a workload for when the tasks of a job may start.
#[derive(PartialEq)]
struct JobOrder<'a> {
    flow: &'a str,
    job: &'a str,
    release: f64,
    after: &'a [String],
    max_slots: PerPhase,
}

fn order(workload: &Draft) -> Vec<JobOrder<'_>> {
    fn of<'a>(flow: &'a FlowDraft, job: &'a JobDraft) -> JobOrder<'a> {
        let (release, max_slots) = (flow.release, job.max_slots);
        JobOrder { flow: &flow.id, job: &job.id, release, after: &job.after, max_slots }
    }
    workload.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| of(flow, job))).collect()
}

/// A name that no other run has: one process may open several that start at the same time.
pub(crate) fn new_owner() -> String {
    static OWNERS: AtomicU64 = AtomicU64::new(0);
    let k = OWNERS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{k}", unix_micros(), std::process::id())
}

/// The earlier content of a state directory.
struct Carryover {
    is_first: bool,
    /// A run that is continued.
    kept: Option<UnfinishedRun>,
    /// A run that was not finished and is not continued.
    dropped: Option<UnfinishedRun>,
    /// Finished jobs that have to be rerun. They are recorded until their rerun has finished.
    asked: Vec<FinishedJob>,
    /// Outputs that the record of finished jobs has lost.
    forgotten: BTreeSet<PathBuf>,
    /// Jobs that earlier runs have done.
    kept_jobs: Vec<KeptJob>,
}

/// Finished jobs that must rerun on request, and are not marked so yet.
fn asked(resolved: &ResolvedWorkload, decisions: &[Decision], made: &FinishedJobs) -> Vec<FinishedJob> {
    let is_asked = |decision: &Decision| decision.verdict == Verdict::Run(Reason::Asked);
    let asked = resolved.jobs.iter().zip(decisions).filter(|(_, decision)| is_asked(decision));
    let made = asked.filter_map(|(plan, _)| made.get(&plan.definition.output()));
    made.filter(|made| !made.again).map(|made| FinishedJob { again: true, ..made.clone() }).collect()
}

/// Refuses a run of which no flow can be run.
fn refuse_hopeless(chosen: &Selection, obstacles: &[Obstacle]) -> Result<(), EngineError> {
    let flows: BTreeSet<&str> = chosen.plans.iter().map(|plan| plan.flow.as_str()).collect();
    let prevented: BTreeSet<&str> = obstacles.iter().map(|o| chosen.plans[o.job].flow.as_str()).collect();
    if flows.is_empty() || prevented.len() < flows.len() {
        return Ok(());
    }
    let fault = |obstacle: &Obstacle| UnrunnableJob {
        flow: chosen.plans[obstacle.job].flow.clone(),
        fault: Fault::new(&*chosen.places[obstacle.job], &*obstacle.problem),
    };
    Err(EngineError::Unrunnable(obstacles.iter().map(fault).collect()))
}

/// The outputs of jobs that the last run has finished and of which the record of finished jobs does not know
/// that: it has lost its end.
fn forgotten(last: Option<&PreviousRun>, made: &FinishedJobs) -> BTreeSet<PathBuf> {
    let Some(PreviousRun(run)) = last else { return BTreeSet::new() };
    let is_known = |output: &PathBuf| made.get(output).is_some_and(|made| made.run.0 == run.head.started);
    let complete = (0..).zip(&run.jobs).filter(|(index, plan)| plan.is_complete(*index, &run.done));
    let outputs = complete.map(|(_, plan)| plan.definition.output());
    outputs.filter(|output| !is_staging(output) && !is_known(output)).collect()
}

/// Outputs that hold what no run of this state directory has made, or that were changed since.
fn foreign(
    locks: &OutputLocks,
    chosen: &Selection,
    made: &FinishedJobs,
    forgotten: &BTreeSet<PathBuf>,
) -> Result<Vec<Obstacle>, EngineError> {
    let mut found = Vec::new();
    for (job, plan) in chosen.plans.iter().enumerate().filter(|(job, _)| !chosen.complete.contains(job)) {
        let Some(name) = locks.foreign(plan, made).map_err(file(&plan.output))? else { continue };
        let output = plan.output.display();
        let problem = if name == TEMPORARY {
            format!(
                "output {output}: another run writes to this directory, or can be resumed; give each run \
                 its own output directory, or remove {output}/{TEMPORARY} if there is no such run"
            )
        } else if forgotten.contains(&plan.definition.output()) {
            format!(
                "output {output}: found {name}, but jobs.log in the state directory has lost its record, because the file was \
                 truncated; move the output away, and the run makes it again"
            )
        } else if made.parts(&plan.definition.output()).any(|part| part == name) {
            format!(
                "output {output}: {name} was changed after the run had written it: move it away, or let \
                 `slackline run` keep it (--adopt) or replace it (--overwrite)"
            )
        } else {
            format!(
                "output {output}: found {name}, which no run of this state directory has made: move it away, choose another output, use the state \
                 directory of the run that made it (run --state, submit --name), or let `slackline run` keep it (--adopt) or replace it \
                 (--overwrite)"
            )
        };
        found.push(Obstacle::lasting(job, problem));
    }
    Ok(found)
}

/// Whether a job of the unfinished run is one of this run's, by its name; of recurring flows and of those
/// that are made for several values, whichever of them.
fn is_continued(unfinished: &UnfinishedRun, resolved: &ResolvedWorkload) -> bool {
    let name = |plan: &JobPlan| JobName::of(plan);
    let known: BTreeSet<_> = resolved.jobs.iter().map(name).collect();
    unfinished.jobs.iter().any(|plan| known.contains(&name(plan)))
}

fn verdicts(resolved: &ResolvedWorkload, decisions: &[Decision]) -> Vec<JobVerdict> {
    let of = |(plan, decision): (&JobPlan, &Decision)| JobVerdict {
        flow: plan.flow.clone(),
        job: plan.job.clone(),
        maps: plan.maps(),
        reduces: plan.reducers,
        verdict: decision.verdict.clone(),
        resumes: decision.resumed.is_some(),
    };
    resolved.jobs.iter().zip(decisions).map(of).collect()
}

/// A started run, from its journal.
struct PreviousRun(UnfinishedRun);

impl PreviousRun {
    /// The run of a journal, if one was started.
    fn of(layout: &Layout, content: Content) -> Result<Option<Self>, EngineError> {
        let Content { head, attempts } = content;
        let Some(head) = head else { return Ok(None) };
        let damaged =
            |problem| EngineError::Damaged { path: layout.journal().display().to_string(), problem };
        let jobs = JobPlan::all(&head.workload, head.jobs.clone()).map_err(damaged)?;
        let is_known =
            |id: TaskId| jobs.get(id.job as usize).is_some_and(|job| id.task < job.tasks(id.phase));
        if let Some(attempt) = attempts.iter().find(|attempt| !is_known(attempt.id)) {
            return Err(damaged(format!("an attempt of an unknown task: {:?}", attempt.id)));
        }
        let done = done_tasks(&attempts);
        let named = layout.clone().of_jobs(&jobs);
        let elsewhere = (0..jobs.len() as u32).filter(|&job| named.elsewhere(job).exists()).collect();
        Ok(Some(Self(UnfinishedRun { head, jobs, attempts, done, elsewhere })))
    }

    fn is_finished(&self) -> bool {
        let UnfinishedRun { jobs, done, .. } = &self.0;
        (0..).zip(jobs).all(|(index, job)| job.is_complete(index, done))
    }

    fn unfinished(self) -> Option<UnfinishedRun> {
        (!self.is_finished()).then_some(self.0)
    }
}

/// Refuses to continue a run with another engine than the one that started it: each engine has its own
/// running tasks and its own files. A run of an earlier version may not name its engine.
fn refuse_engine(begun: Option<&PreviousRun>, opening: &Opening<'_>) -> Result<(), EngineError> {
    let Some(begun) = begun.filter(|begun| !opening.choices.again && !begun.is_finished()) else {
        return Ok(());
    };
    let name = |options: &BTreeMap<String, String>| {
        // An engine with an address may have another one, as after a fail-over.
        options.get("engine").and_then(|engine| engine.split("://").next()).map(str::to_owned)
    };
    match (name(&begun.0.head.last_segment().options), name(&opening.setup.options)) {
        (Some(began), Some(now)) if began != now => {
            Err(EngineError::OtherEngine { path: opening.state.display().to_string(), began, now })
        }
        _ => Ok(()),
    }
}

/// Refuses a directory without a run in which there is what only a run makes.
fn refuse_use(layout: &Layout) -> Result<(), EngineError> {
    match layout.first_in_use().map_err(file(&layout.journal()))? {
        Some(path) => Err(EngineError::InUse { path: path.display().to_string() }),
        None => Ok(()),
    }
}

/// Ends every worker of an earlier session. Returns how many ran.
fn kill_leftovers(layout: &Layout) -> Result<usize, EngineError> {
    pid_file::kill_leftovers(&layout.pids()).map_err(file(&layout.pids()))
}

impl JobPlan {
    /// The data of the job in a journal.
    fn known(&self) -> KnownJob {
        KnownJob { inputs: self.inputs.clone(), definition: self.definition.clone() }
    }
}
