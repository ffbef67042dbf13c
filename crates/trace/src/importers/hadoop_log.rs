//! Shared by the importers of Hadoop's logs: jobs with the attempts of their tasks, and their conversion into
//! a workload.
//!
//! - A job becomes a flow of one job, named after its id; the job in it has the name that its user gave it.
//!   Jobs of one workflow with a known order become one flow.
//! - A task takes as long as its successful attempt. A task without one takes as long as its longest attempt,
//!   which is what the cluster spent on it. A task that never ran is left out.
//! - A reduce that took its slot before the last map of its job was done waited there. Its duration counts
//!   from the end of that map, as in a simulation, early or not.
//! - The cluster, unless another is given, is that of the log: every machine with attempts, with the largest
//!   number of slots that were busy at once. The real cluster has at least these.
//! - Second 0 is the first submission.
//! - In a stream (`json_log`), each job is one flow, and the log's cluster is not used.
//! - Every attempt with its times is kept as the recorded execution of its job, which ends when the log says
//!   that the job finished. With a clock behind that of
//!   the ApplicationMaster, an attempt may start before its job was submitted; then it is assumed to start
//!   with the job.

mod cluster;
mod json_log;
mod workflow;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{
    AttemptDraft, Draft, FlowDraft, JobDraft, PerPhase, PhaseDraft, PoolDraft, TasksDraft,
};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Outcome;
use slackline_model::{PhaseKind, Start};

use crate::importers::importer::Output;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

pub(super) use cluster::{Host, Topology};
pub(super) use json_log::{JOB_SKEW, LoggedLines, LoggedObjects, import_objects};
pub(super) use workflow::{Workflow, adjacencies};

/// Whether jobs that did not succeed are kept.
pub(super) const FAILED_JOBS: Param = Param::new(
    "failed-jobs",
    "keep",
    Values::Choice(&["keep", "drop"]),
    "how to treat jobs of a log that failed or were killed",
);

/// The longest name of a job that is kept, characters.
const NAME_MAX: usize = 100;

/// Milliseconds of a time that a log gives: as Hadoop writes them, from 1970 on.
pub(super) type Millis = i64;

/// The latest valid time: the year 9999.
const MILLIS_MAX: Millis = 253_402_300_799_000;

/// A time of a log, if it is one: -1 and 0 mean none.
pub(super) fn time(millis: Option<i64>) -> Option<Millis> {
    millis.filter(|millis| (1..=MILLIS_MAX).contains(millis))
}

#[derive(Debug, Default)]
pub(super) struct LoggedJob {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) user: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) priority: Option<u32>,
    pub(super) submitted: Option<Millis>,
    /// When it finished, failed or was killed.
    pub(super) finished: Option<Millis>,
    /// Whether it failed, according to the log.
    pub(super) failed: bool,
    /// Its place in a workflow.
    pub(super) workflow: Workflow,
    pub(super) tasks: Vec<LoggedTask>,
    /// The number of its tasks with input locations.
    pub(super) located: u64,
    /// The place in the log.
    pub(super) line: u32,
}

#[derive(Debug)]
pub(super) struct LoggedTask {
    pub(super) phase: PhaseKind,
    pub(super) attempts: Vec<LoggedAttempt>,
}

/// An attempt of a task of a log.
#[derive(Debug)]
pub(super) struct LoggedAttempt {
    pub(super) start: Option<Millis>,
    pub(super) end: Option<Millis>,
    /// Its duration, if the log has it without start and end.
    pub(super) length: Option<Millis>,
    pub(super) host: Option<Host>,
    pub(super) outcome: Outcome,
}

impl LoggedAttempt {
    /// Its duration, if the log has it.
    fn duration(&self) -> Option<Millis> {
        self.start.zip(self.end).map(|(start, end)| end - start).or(self.length)
    }
}

/// The number of a priority by its name in Hadoop.
pub(super) fn priority(name: &str) -> Option<u32> {
    match name {
        "VERY_HIGH" => Some(5),
        "HIGH" => Some(4),
        "NORMAL" => Some(3),
        "LOW" => Some(2),
        "VERY_LOW" => Some(1),
        "DEFAULT" => Some(0),
        number => number.parse().ok(),
    }
}

/// A job for the workload; its times are still those of the log.
struct ImportedJob {
    draft: JobDraft,
    id: String,
    user: Option<String>,
    queue: Option<String>,
    priority: Option<u32>,
    submitted: Millis,
    finished: Option<Millis>,
    attempts: Vec<ImportedAttempt>,
    workflow: Workflow,
    line: u32,
}

struct ImportedAttempt {
    phase: PhaseKind,
    task: u32,
    host: Option<Host>,
    start: Millis,
    end: Millis,
    outcome: Outcome,
    /// Whether it determines the duration of the task.
    counts: bool,
}

/// The jobs of a log, one after the other, and the workload that they make.
pub(super) struct Log {
    jobs: Vec<ImportedJob>,
    drop_failed: bool,
    map_reduce: bool,
    /// Whether times are counted from the start of the log, and not from 1970 on.
    is_relative: bool,
    pub(super) diagnostics: Diagnostics,
}

impl Log {
    pub(super) fn new(settings: &Settings) -> Self {
        let drop_failed = settings.choice(FAILED_JOBS.name) == "drop";
        let (map_reduce, is_relative, diagnostics) = (false, false, Diagnostics::default());
        Self { jobs: Vec::new(), drop_failed, map_reduce, is_relative, diagnostics }
    }

    /// The same for a log whose times are counted from its start.
    pub(super) fn relative(self) -> Self {
        Self { is_relative: true, ..self }
    }

    /// Takes a job as the log has it.
    pub(super) fn add(&mut self, job: LoggedJob) {
        let diagnostics = &mut self.diagnostics;
        if job.failed {
            let what = if self.drop_failed {
                "failed or killed, left out (failed-jobs)"
            } else {
                "failed or killed, kept with the time that its tasks took"
            };
            diagnostics.add_of("job", 1, job.line, what);
            if self.drop_failed {
                return;
            }
        }
        let located = "with known input locations, which are ignored";
        diagnostics.add_unmodelled("task", job.located, job.line, located);
        self.map_reduce |= is_of_hadoop_1(&job.id);
        self.jobs.extend(convert_job(job, diagnostics));
    }

    /// The workload; `file` is what messages call the log.
    pub(super) fn finish(mut self, file: &str, topology: Option<&Topology>) -> Output {
        rename_copies(&mut self.jobs, &mut self.diagnostics);
        for pair in self.jobs.windows(2).filter(|pair| pair[1].submitted < pair[0].submitted) {
            self.diagnostics.add_of(
                "job",
                1,
                pair[1].line,
                "submitted before the job above it, moved into order",
            );
        }
        self.jobs.sort_by_key(|job| job.submitted);
        let first = self.jobs.first().map_or(0, |job| job.submitted);
        let zero = if self.is_relative { 0 } else { first };
        let machines = cluster::machines(&self.jobs, self.map_reduce, topology, &mut self.diagnostics);
        let flows = workflow::flows(self.jobs, &mut self.diagnostics);
        let mut draft = Draft { start: start(zero), machines, ..Draft::default() };
        let (mut marks, mut pools) = (Vec::new(), BTreeSet::new());
        for (k, jobs) in flows.into_iter().enumerate() {
            marks.push((format!("flows[{k}]"), place(jobs.of[0].line)));
            let lines = jobs.of.iter().enumerate();
            marks.extend(lines.map(|(i, job)| (format!("flows[{k}].jobs[{i}]"), place(job.line))));
            let flow = flow(jobs, zero);
            if let Some(queue) = flow.pool.as_ref().filter(|queue| pools.insert((*queue).clone())) {
                draft.pools.push(PoolDraft { id: queue.clone(), min_slots: PerPhase::default() });
            }
            draft.flows.push(flow);
        }
        Output::new(draft, self.diagnostics, SourceMap::marks(file, marks))
    }
}

fn place(line: u32) -> Place {
    Place { line, column: 1 }
}

/// Whether a job ran on map and reduce slots: up to Hadoop 1 the first number of its id is the minute in
/// which the JobTracker started, with YARN the millisecond, which has more digits.
fn is_of_hadoop_1(id: &str) -> bool {
    id.split('_').nth(1).is_some_and(|number| number.len() == "200904211745".len())
}

/// The moment in UTC.
fn start(zero: Millis) -> Option<Start> {
    let epoch = Start::parse("1970-01-01T00:00:00[UTC]").ok()?;
    epoch.after(zero as f64 / 1e3).filter(|_| zero > 0).map(Start::from)
}

/// Seconds from one time to another.
fn seconds(from: Millis, to: Millis) -> f64 {
    (to - from) as f64 / 1e3
}

fn flow(jobs: workflow::Jobs, zero: Millis) -> FlowDraft {
    let submitted = jobs.of.iter().map(|job| job.submitted).min().unwrap_or(zero);
    let first = &jobs.of[0];
    let (user, pool, priority) = (first.user.clone(), first.queue.clone(), first.priority);
    let recorded = |attempt: ImportedAttempt| AttemptDraft {
        phase: attempt.phase,
        task: attempt.task,
        machine: attempt.host.map(|host| host.name),
        start: seconds(zero, attempt.start),
        end: seconds(zero, attempt.end),
        outcome: attempt.outcome,
    };
    let drafts = jobs.of.into_iter().map(|job| {
        let recorded_end = job.finished.map(|finished| seconds(zero, finished));
        let recorded = job.attempts.into_iter().map(recorded).collect();
        JobDraft { recorded, recorded_end, ..job.draft }
    });
    let drafts = drafts.collect();
    FlowDraft { release: seconds(zero, submitted), user, pool, priority, ..FlowDraft::new(jobs.id, drafts) }
}

/// Tells jobs apart that the log has more than once.
fn rename_copies(jobs: &mut [ImportedJob], diagnostics: &mut Diagnostics) {
    let mut seen = BTreeMap::<String, u32>::new();
    for job in jobs {
        let count = seen.entry(job.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            diagnostics.add_of("job", 1, job.line, "with the id of an earlier job, renamed with a number");
            job.id = format!("{} ({count})", job.id);
        }
    }
}

/// The tasks of a job; `None` if none of them ran.
fn convert_job(job: LoggedJob, diagnostics: &mut Diagnostics) -> Option<ImportedJob> {
    let line = job.line;
    let mut tasks = [Vec::new(), Vec::new()];
    for mut task in job.tasks {
        repair(&mut task.attempts, line, diagnostics);
        match successful_attempt(&task.attempts) {
            Some(counts) => tasks[usize::from(task.phase == PhaseKind::Reduce)].push((task, counts)),
            None => diagnostics.add_of("task", 1, line, "without a known run time, left out"),
        }
    }
    if tasks.iter().all(Vec::is_empty) {
        diagnostics.add_of("job", 1, line, "without a task that ran, left out");
        return None;
    }
    let starts = tasks.iter().flatten().flat_map(|(task, _)| &task.attempts);
    let earliest = starts.filter_map(|attempt| attempt.start).min();
    let submitted = job.submitted.or_else(|| {
        diagnostics.add_of("job", 1, line, "without a submit time, given the start of its first attempt");
        earliest
    })?;
    let [maps, reduces] = tasks;
    let last_map = maps.iter().filter_map(|(task, counts)| task.attempts[*counts].end).max();
    let draft = JobDraft {
        id: job_name(job.name.as_deref(), &job.id),
        map: phase(
            maps.iter()
                .map(|(task, counts)| attempt_seconds(&task.attempts[*counts], None, line, diagnostics)),
        ),
        reduce: phase(
            reduces
                .iter()
                .map(|(task, counts)| attempt_seconds(&task.attempts[*counts], last_map, line, diagnostics)),
        ),
        ..JobDraft::default()
    };
    let mut attempts = recorded(maps, submitted, line, diagnostics);
    // Clocks may disagree, and jobs that fail are stopped in any order, but no reduce is done before the
    // maps.
    let least = last_map.unwrap_or(0);
    attempts.extend(recorded(reduces, submitted, line, diagnostics).into_iter().map(|mut attempt| {
        if attempt.counts {
            attempt.end = attempt.end.max(least);
        }
        attempt
    }));
    // Clocks may disagree, and attempts may outlive a job that was killed.
    let last = attempts.iter().filter(|attempt| attempt.counts).map(|attempt| attempt.end).max();
    let finished = job.finished.filter(|&finished| last.is_some_and(|last| finished > last));
    let id = printable(&job.id).unwrap_or_else(|| format!("job on line {line}"));
    let LoggedJob { user, queue, priority, workflow, .. } = job;
    let [user, queue] = [user, queue].map(|name| printable(&name?));
    Some(ImportedJob { draft, id, user, queue, priority, submitted, finished, attempts, workflow, line })
}

/// Attempts that ended before they began have no length.
fn repair(attempts: &mut [LoggedAttempt], line: u32, diagnostics: &mut Diagnostics) {
    for attempt in attempts {
        if let (Some(start), Some(end)) = (attempt.start, attempt.end)
            && end < start
        {
            diagnostics.add_of("attempt", 1, line, "ended before its start, counted as 0 s long");
            attempt.end = Some(start);
        }
    }
}

/// The attempt that determines the duration of the task: the last successful one, or else the longest.
fn successful_attempt(attempts: &[LoggedAttempt]) -> Option<usize> {
    let known = || attempts.iter().enumerate().filter(|(_, attempt)| attempt.duration().is_some());
    let done = known().rev().find(|(_, attempt)| attempt.outcome == Outcome::Done);
    let longest = || known().rev().max_by_key(|(_, attempt)| attempt.duration());
    done.or_else(longest).map(|(k, _)| k)
}

/// The duration of an attempt in seconds, counted from the end of the last map of its job.
fn attempt_seconds(
    attempt: &LoggedAttempt,
    last_map: Option<Millis>,
    line: u32,
    diagnostics: &mut Diagnostics,
) -> f64 {
    let duration = seconds(0, attempt.duration().unwrap_or(0));
    let (Some(start), Some(end), Some(last_map)) = (attempt.start, attempt.end, last_map) else {
        return duration;
    };
    if last_map <= start {
        return duration;
    }
    if end < last_map {
        diagnostics.add_of(
            "reduce",
            1,
            line,
            "finished before the last map of its job, counted as 0 s long at the end of that map",
        );
        return 0.0;
    }
    diagnostics.add_of(
        "reduce",
        1,
        line,
        "started before the last map finished, counted from the end of the map phase",
    );
    seconds(last_map, end)
}

/// A phase of tasks with these durations in seconds.
fn phase(seconds: impl Iterator<Item = f64>) -> Option<PhaseDraft> {
    let seconds: Vec<f64> = seconds.collect();
    let first = *seconds.first()?;
    let tasks = match u32::try_from(seconds.len()) {
        Ok(tasks) if seconds.iter().all(|other| *other == first) => {
            TasksDraft::Uniform { tasks, seconds: first }
        }
        _ => TasksDraft::Each(seconds),
    };
    Some(tasks.into())
}

/// The recorded attempts of a phase: those with times.
fn recorded(
    tasks: Vec<(LoggedTask, usize)>,
    submitted: Millis,
    line: u32,
    diagnostics: &mut Diagnostics,
) -> Vec<ImportedAttempt> {
    let mut convert_job = Vec::new();
    for (number, (task, counts)) in (0..).zip(tasks) {
        if task.attempts[counts].outcome != Outcome::Done {
            diagnostics.add_of(
                "task",
                1,
                line,
                "without a successful attempt, given the duration of the longest",
            );
        }
        for (k, attempt) in task.attempts.into_iter().enumerate() {
            let (Some(start), Some(end)) = (attempt.start, attempt.end) else {
                diagnostics.add_of("attempt", 1, line, "without start or end, not recorded");
                continue;
            };
            if start < submitted {
                diagnostics.add_of(
                    "attempt",
                    1,
                    line,
                    "started before the job was submitted, recorded from the submission on",
                );
            }
            if attempt.outcome != Outcome::Done {
                diagnostics.add_unmodelled(
                    "attempt",
                    1,
                    line,
                    "failed or killed (also preempted and speculative ones), kept in the recorded schedule only",
                );
            }
            let (start, end) = (start.max(submitted), end.max(submitted));
            let LoggedAttempt { host, outcome, .. } = attempt;
            convert_job.push(ImportedAttempt {
                phase: task.phase,
                task: number,
                host,
                start,
                end,
                outcome,
                counts: k == counts,
            });
        }
    }
    convert_job
}

fn job_name(name: Option<&str>, id: &str) -> String {
    name.and_then(printable).or_else(|| printable(id)).unwrap_or_else(|| "job".to_owned())
}

/// A name in the form of ids: printable, of one line, not too long; `None` if no character is left.
pub(super) fn printable(name: &str) -> Option<String> {
    let words = name.chars().map(|c| if slackline_model::printable::is_printable(c) { c } else { ' ' });
    let clipped: String = words.collect::<String>().trim().chars().take(NAME_MAX).collect();
    Some(clipped.trim().to_owned()).filter(|name| !name.is_empty())
}
