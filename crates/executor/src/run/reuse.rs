//! Decides which jobs of a flow file must run and which are up to date, with the reason, as `make` does.
//!
//! A job is up to date if all of the following hold. An earlier run of the state directory finished it. Its
//! definition and its inputs have not changed. No job that it reads from runs again. Its output is as it was
//! written. An interrupted run continues task by task, for jobs that are still the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use slackline_model::names::unknown;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;

use crate::spec::job_plan::{Inputs, JobPlan};
use crate::spec::resolve::ResolvedWorkload;
use crate::store::finished_jobs::{FinishedJob, FinishedJobs, Output};
use crate::store::journal::{Attempt, Head};
use crate::store::output_lock;

/// The jobs to run again, or alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choices {
    pub again: bool,
    /// These jobs, and so what reads from them: `job`, or `flow/job`.
    pub force: Vec<String>,
    /// These jobs and every job after them, and nothing before them.
    pub from: Vec<String>,
    /// These jobs, and nothing else.
    pub only: Vec<String>,
    pub foreign: ForeignOutput,
}

/// What happens to an output that no run of the state directory has made, or that was edited since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignOutput {
    /// Its flow does not run.
    #[default]
    Refuse,
    /// It becomes the output of its job, which is then done.
    Adopt,
    /// Its job runs, and replaces it.
    Overwrite,
}

impl Choices {
    pub fn again() -> Self {
        Self { again: true, ..Self::default() }
    }
}

/// A name of a job that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChoiceError(String);

/// What happens to a job in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is done, and stays as it is.
    Kept,
    /// It is not checked, because other jobs were chosen.
    Left,
    /// It is continued where it was.
    Resumed,
    Run(Reason),
    /// The job cannot run; only a preview reports this.
    Prevented(String),
}

/// Why a job is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It was not done before.
    New,
    /// It was asked for.
    Asked,
    /// A part of its definition has changed; the name is that in the document.
    Changed(String),
    /// An input was changed, is new, or is missing.
    Input(PathBuf, InputChange),
    /// A file of its output was changed or removed.
    Output(String, OutputChange),
    /// A job that it reads from is rerun.
    After(String),
}

/// The change of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputChange {
    /// It is another file, or has another size, time or content: what differs, in words.
    Changed(&'static str),
    /// It was not there.
    New,
    /// It is not there any more.
    Gone,
}

/// The change of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputChange {
    /// It was changed.
    Changed,
    /// It was removed.
    Gone,
    /// It was put beside the output.
    Foreign,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("it has not finished yet"),
            Self::Asked => f.write_str("it was requested"),
            Self::Changed(what) => write!(f, "{what} changed"),
            Self::Input(path, InputChange::Changed(what)) => {
                write!(f, "input {} changed ({what})", path.display())
            }
            Self::Input(path, InputChange::New) => write!(f, "input {} is new", path.display()),
            Self::Input(path, InputChange::Gone) => write!(f, "input {} is gone", path.display()),
            Self::Output(name, OutputChange::Changed) => write!(f, "output {name} was changed"),
            Self::Output(name, OutputChange::Gone) => write!(f, "output {name} was removed"),
            Self::Output(name, OutputChange::Foreign) => write!(f, "{name} is not part of its output"),
            Self::After(job) => write!(f, "it reads from {job}, which also runs"),
        }
    }
}

/// A run that was not finished, as its journal has it.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedRun {
    pub(crate) head: Head,
    pub(crate) jobs: Vec<JobPlan>,
    /// Its attempts that ended.
    pub(crate) attempts: Vec<Attempt>,
    /// Its tasks that are done.
    pub(crate) done: BTreeSet<TaskId>,
    /// Its jobs that have started on another system, which runs whole jobs.
    pub(crate) elsewhere: BTreeSet<u32>,
}

/// A job of an unfinished run that is the same as one of this run.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    /// Its index there.
    pub(crate) index: u32,
    /// What its maps read there, where that cannot be found out again.
    pub(crate) inputs: Option<Inputs>,
}

/// What there is to decide from.
pub(crate) struct PreviousState<'a> {
    pub(crate) made: &'a FinishedJobs,
    pub(crate) unfinished: Option<&'a UnfinishedRun>,
    /// The directory that relative paths start from now.
    pub(crate) directory: &'a Path,
}

/// What happens to a job, and with which job of the unfinished run it is continued.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) resumed: Option<Match>,
}

impl Decision {
    /// Whether nothing is to be done for the job, and no run that continues has done it.
    pub(crate) fn is_idle(&self) -> bool {
        self.resumed.is_none() && matches!(self.verdict, Verdict::Kept | Verdict::Left)
    }
}

/// Decides what happens to each job. O(jobs + files).
///
/// # Errors
/// A choice that names no job.
pub(crate) fn decide(
    resolved: &ResolvedWorkload,
    choices: &Choices,
    past: &PreviousState<'_>,
) -> Result<Vec<Decision>, ChoiceError> {
    let ResolvedWorkload { jobs, reads, hash, .. } = resolved;
    let selection = RequestedJobs::new(resolved, choices)?;
    let decided = vec![None; jobs.len()];
    let mut unfinished = BTreeMap::new();
    for (at, plan) in past.unfinished.iter().flat_map(|run| &run.jobs).enumerate() {
        unfinished.entry((plan.flow.as_str(), plan.job.as_str())).or_insert(at);
    }
    let mut decider = Decider { jobs, reads, hash: *hash, selection, past, unfinished, decided };
    (0..jobs.len()).for_each(|job| decider.settle(job));
    Ok(decider.decided.into_iter().flatten().collect())
}

/// The jobs that were asked for.
pub(super) struct RequestedJobs {
    all: bool,
    forced: BTreeSet<usize>,
    /// If only some may be done: which.
    allowed: Option<BTreeSet<usize>>,
}

impl RequestedJobs {
    /// Whether a job may be done.
    pub(super) fn allows(&self, job: usize) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&job))
    }

    pub(super) fn new(resolved: &ResolvedWorkload, choices: &Choices) -> Result<Self, ChoiceError> {
        let jobs = &resolved.jobs;
        let find = |names: &[String]| -> Result<BTreeSet<usize>, ChoiceError> {
            let found = names.iter().map(|name| named(jobs, name)).collect::<Result<Vec<_>, _>>()?;
            Ok(found.into_iter().flatten().collect())
        };
        let (mut forced, only, from) = (find(&choices.force)?, find(&choices.only)?, find(&choices.from)?);
        let mut allowed = None;
        if !from.is_empty() {
            let after = closure(&resolved.reads, &from);
            forced.extend(&after);
            allowed = Some(after);
        }
        if !only.is_empty() {
            forced.extend(&only);
            allowed.get_or_insert_default().extend(only);
        }
        Ok(Self { all: choices.again, forced, allowed })
    }
}

/// The jobs of that name: `flow/job`, or `job` of every flow that has one.
fn named(jobs: &[JobPlan], name: &str) -> Result<Vec<usize>, ChoiceError> {
    let is_it = |plan: &JobPlan| plan.job == name || format!("{}/{}", plan.flow, plan.job) == name;
    let found: Vec<usize> = (0..jobs.len()).filter(|&job| is_it(&jobs[job])).collect();
    if found.is_empty() {
        let names: Vec<String> = jobs.iter().map(|plan| format!("{}/{}", plan.flow, plan.job)).collect();
        return Err(ChoiceError(unknown("job", name, &names)));
    }
    Ok(found)
}

/// The jobs, and all that read from them however indirectly. O(reads · log jobs).
fn closure(reads: &[Vec<usize>], from: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut readers = vec![Vec::new(); reads.len()];
    for (reader, others) in reads.iter().enumerate() {
        for &other in others {
            readers[other].push(reader);
        }
    }
    let (mut reached, mut open) = (from.clone(), from.iter().copied().collect::<Vec<_>>());
    while let Some(job) = open.pop() {
        open.extend(readers[job].iter().filter(|&&reader| reached.insert(reader)));
    }
    reached
}

struct Decider<'a> {
    jobs: &'a [JobPlan],
    reads: &'a [Vec<usize>],
    /// Whether files are compared by content.
    hash: bool,
    selection: RequestedJobs,
    past: &'a PreviousState<'a>,
    /// The jobs of the unfinished run, by flow and job.
    unfinished: BTreeMap<(&'a str, &'a str), usize>,
    decided: Vec<Option<Decision>>,
}

impl Decider<'_> {
    /// Decides on a job, after those that it reads from.
    fn settle(&mut self, job: usize) {
        let mut open = vec![job];
        while let Some(&next) = open.last() {
            let before = self.reads[next].iter().find(|&&other| self.decided[other].is_none());
            match before {
                // Jobs that read from each other in a cycle are refused when flows are read.
                Some(&other) if !open.contains(&other) => open.push(other),
                _ => {
                    if self.decided[next].is_none() {
                        self.decided[next] = Some(self.decision(next));
                    }
                    open.pop();
                }
            }
        }
    }

    fn decision(&self, job: usize) -> Decision {
        let of = |verdict| Decision { verdict, resumed: None };
        if !self.selection.allows(job) {
            return of(Verdict::Left);
        }
        if self.selection.all {
            let made = self.made(job).is_some();
            return of(Verdict::Run(if made { Reason::Asked } else { Reason::New }));
        }
        let resumed = self.past.unfinished.and_then(|unfinished| self.resumed(job, unfinished));
        if let Some(before) = self.reads[job].iter().find(|&&before| self.will_change(before)) {
            let before = &self.jobs[*before];
            let reason = match self.made(job) {
                Some(_) => Reason::After(format!("{}/{}", before.flow, before.job)),
                None => Reason::New,
            };
            return of(Verdict::Run(reason));
        }
        if self.selection.forced.contains(&job) {
            // An interrupted rerun continues.
            let is_cut_short = self.made(job).is_none_or(|made| made.again);
            return match resumed {
                Some((found, false)) if is_cut_short => {
                    Decision { verdict: Verdict::Resumed, resumed: Some(found) }
                }
                _ => of(Verdict::Run(Reason::Asked)),
            };
        }
        let reason = self.made(job).map_or(Some(Reason::New), |made| self.reason(job, made));
        match (resumed, reason) {
            (Some((found, true)), None) => Decision { verdict: Verdict::Kept, resumed: Some(found) },
            (Some((_, true)) | None, Some(reason)) => of(Verdict::Run(reason)),
            (None, None) => of(Verdict::Kept),
            (Some((found, false)), None) if self.was_finished_later(job, found.index) => of(Verdict::Kept),
            (Some((found, false)), _) => Decision { verdict: Verdict::Resumed, resumed: Some(found) },
        }
    }

    /// Whether a job was finished later than its remaining tasks in the unfinished run: the end of its
    /// journal is lost.
    fn was_finished_later(&self, job: usize, index: u32) -> bool {
        let Some((made, unfinished)) = self.made(job).zip(self.past.unfinished) else { return false };
        let attempts = unfinished.attempts.iter().filter(|attempt| attempt.id.job == index);
        made.is_later_than(unfinished.head.started, attempts.map(|attempt| attempt.number))
    }

    fn made(&self, job: usize) -> Option<&FinishedJob> {
        self.past.made.get(&self.jobs[job].definition.output())
    }

    /// Whether a job is going to give new output.
    fn will_change(&self, job: usize) -> bool {
        let verdict = self.decided[job].as_ref().map(|decision| &decision.verdict);
        matches!(verdict, Some(Verdict::Run(_) | Verdict::Resumed))
    }

    /// Why the job has to be rerun, if it has to be.
    fn reason(&self, job: usize, made: &FinishedJob) -> Option<Reason> {
        let plan = &self.jobs[job];
        if made.again {
            return Some(Reason::Asked);
        }
        if let Some(what) = plan.definition.difference(&made.definition) {
            return Some(Reason::Changed(what.to_owned()));
        }
        if let Some((path, change)) = changed(&self.sources(job), &made.read) {
            let shown = path.strip_prefix(self.past.directory).map_or(path.clone(), Path::to_owned);
            return Some(Reason::Input(shown, change));
        }
        let output = |name: String| plan.output.join(name).display().to_string();
        match made.output(self.hash) {
            Output::Intact => None,
            Output::Gone(name) => Some(Reason::Output(output(name), OutputChange::Gone)),
            Output::Changed(name) => Some(Reason::Output(output(name), OutputChange::Changed)),
            Output::Foreign(name) => Some(Reason::Output(output(name), OutputChange::Foreign)),
        }
    }

    fn sources(&self, job: usize) -> BTreeMap<PathBuf, Source> {
        let before = self.reads[job].iter().filter_map(|&before| self.made(before));
        sources(&self.jobs[job], before, self.past.directory)
    }

    /// The same job in the unfinished run, if some of its tasks are done or have started on another system;
    /// and whether all are done.
    fn resumed(&self, job: usize, unfinished: &UnfinishedRun) -> Option<(Match, bool)> {
        let plan = &self.jobs[job];
        let at = *self.unfinished.get(&(plan.flow.as_str(), plan.job.as_str()))?;
        let (other, index) = (&unfinished.jobs[at], at as u32);
        if other.definition != plan.definition {
            return None;
        }
        let inputs = match self.same_inputs(plan, other, index, unfinished) {
            SameInputs::No => return None,
            SameInputs::Yes => None,
            SameInputs::AsTheyWere(inputs) => Some(inputs),
        };
        let found = Match { index, inputs };
        if other.is_complete(index, &unfinished.done) {
            // A job whose output could not be moved to its place runs again.
            let is_published = !output_lock::is_staging(&plan.output);
            return is_published.then_some((found, true));
        }
        let has_begun = unfinished.elsewhere.contains(&index) || {
            let first = unfinished.done.range(TaskId::map(index, 0)..).next();
            first.is_some_and(|id| id.job == index)
        };
        has_begun.then_some((found, false))
    }

    /// Whether an unfinished job still has the same inputs.
    fn same_inputs(
        &self,
        plan: &JobPlan,
        other: &JobPlan,
        index: u32,
        unfinished: &UnfinishedRun,
    ) -> SameInputs {
        let directory = Path::new(&unfinished.head.setup.directory);
        let (now, then) =
            (absolute(&plan.inputs.sources, self.past.directory), absolute(&other.inputs.sources, directory));
        let gone: BTreeSet<&PathBuf> = then.keys().filter(|path| !now.contains_key(*path)).collect();
        if now.iter().any(|(path, now)| then.get(path).is_none_or(|then| !now.is_same(then))) {
            return SameInputs::No;
        }
        if gone.is_empty() {
            let is_same = plan.inputs.maps.len() == other.inputs.maps.len();
            return if is_same { SameInputs::Yes } else { SameInputs::No };
        }
        let is_open = |task: u32| !unfinished.done.contains(&TaskId::map(index, task));
        let needs = |(task, splits): (u32, &Vec<slackline_task::process::spec::Split>)| {
            is_open(task) && splits.iter().any(|split| gone.contains(&directory.join(&split.path)))
        };
        if (0..).zip(&other.inputs.maps).any(needs) || directory != self.past.directory {
            return SameInputs::No;
        }
        SameInputs::AsTheyWere(other.inputs.clone())
    }
}

/// The present inputs of a job: its own inputs, and the parts of the jobs that it reads from.
pub(super) fn sources<'a>(
    plan: &JobPlan,
    before: impl Iterator<Item = &'a FinishedJob>,
    directory: &Path,
) -> BTreeMap<PathBuf, Source> {
    let mut sources = absolute(&plan.inputs.sources, directory);
    for made in before {
        let parts = made.wrote.iter().map(|(name, part)| (made.directory().join(name), part.source.clone()));
        sources.extend(parts);
    }
    sources
}

/// Whether a job of an unfinished run still has the same inputs.
enum SameInputs {
    No,
    Yes,
    /// Some inputs that are not needed any more are missing; these were the inputs then.
    AsTheyWere(Inputs),
}

/// Files by absolute path.
fn absolute(sources: &BTreeMap<PathBuf, Source>, directory: &Path) -> BTreeMap<PathBuf, Source> {
    sources.iter().map(|(path, state)| (directory.join(path), state.clone())).collect()
}

/// The first file in which what is read now differs from what was read then.
fn changed(
    now: &BTreeMap<PathBuf, Source>,
    then: &BTreeMap<PathBuf, Source>,
) -> Option<(PathBuf, InputChange)> {
    for (path, state) in now {
        let change = match then.get(path) {
            None => Some(InputChange::New),
            Some(before) => state.difference(before).map(InputChange::Changed),
        };
        if let Some(change) = change {
            return Some((path.clone(), change));
        }
    }
    let gone = then.keys().find(|path| !now.contains_key(*path));
    gone.map(|path| (path.clone(), InputChange::Gone))
}
