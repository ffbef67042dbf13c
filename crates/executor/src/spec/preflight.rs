//! Checks before the run: missing inputs, outputs that cannot be written. A flow that fails the checks has
//! failed from the start; other flows run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use slackline_model::PhaseKind;
use slackline_task::base::error::may_pass;
use slackline_task::base::regular_file;
use slackline_task::base::source::Source;
use slackline_task::base::task_id::TaskId;
use slackline_task::input::{reader, split};
use slackline_task::process::limits::Capacity;
use slackline_task::programs;

use crate::spec::job_plan::JobPlan;
use crate::spec::writers::Writers;

/// The directory that a check creates and removes; its name is that of a temporary entry.
const PROBE: &str = "_temporary.probe";

/// Number of these directories.
static PROBES: AtomicU64 = AtomicU64::new(0);

/// The reason why a job cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Index of the job among the run's jobs.
    pub job: usize,
    /// The value found and the value expected.
    pub problem: String,
    /// Whether it may pass without a change by the user: a full disk, a file server that does not answer.
    pub may_pass: bool,
}

impl Obstacle {
    /// An obstacle that remains until the user changes something.
    pub(crate) fn lasting(job: usize, problem: String) -> Self {
        Self { job, problem, may_pass: false }
    }
}

/// The first obstacle of each job; tasks in `done` are not checked. `machine` is the most that an attempt
/// may request, if known. O(files).
pub(crate) fn preflight(
    jobs: &[JobPlan],
    done: &BTreeSet<TaskId>,
    machine: Option<Capacity>,
) -> Vec<Obstacle> {
    let (writers, mut writable) = (Writers::new(jobs), BTreeSet::new());
    let of_job = |(job, plan): (usize, &JobPlan)| {
        let index = job as u32;
        if plan.is_complete(index, done) {
            return None;
        }
        (machine.and_then(|machine| plan.limits.too_large(machine)))
            .or_else(|| missing_file(plan))
            .or_else(|| missing_input(plan, index, &writers, done))
            .map(|problem| Obstacle::lasting(job, problem))
            .or_else(|| unwritable(job, &plan.output, &mut writable))
    };
    let mut obstacles: Vec<Obstacle> = jobs.iter().enumerate().filter_map(of_job).collect();
    spread(jobs, done, &writers, &mut obstacles);
    obstacles
}

/// A job that reads from a flow that cannot run cannot run either. O(inputs), and O(flows · jobs) where flows
/// prevent each other in a chain.
fn spread(jobs: &[JobPlan], done: &BTreeSet<TaskId>, writers: &Writers<'_>, obstacles: &mut Vec<Obstacle>) {
    if obstacles.is_empty() {
        return;
    }
    let is_complete: Vec<bool> = (0..).zip(jobs).map(|(index, plan)| plan.is_complete(index, done)).collect();
    let open_reads = |plan: &JobPlan| -> BTreeSet<usize> {
        let read = plan.inputs.maps.iter().flatten().filter_map(|split| writers.of(plan, split));
        read.filter(|&other| !is_complete[other] && jobs[other].flow != plan.flow).collect()
    };
    let reads: Vec<BTreeSet<usize>> = jobs.iter().map(open_reads).collect();
    loop {
        let prevented: BTreeSet<&str> = obstacles.iter().map(|o| jobs[o.job].flow.as_str()).collect();
        let is_open = |(index, plan): &(usize, &JobPlan)| {
            !reads[*index].is_empty() && !is_complete[*index] && !prevented.contains(plan.flow.as_str())
        };
        let reads = |(index, _): (usize, &JobPlan)| {
            let from = reads[index].iter().map(|&other| &jobs[other]);
            let from = from.into_iter().find(|other| prevented.contains(other.flow.as_str()))?;
            let problem = format!("it reads from {}/{}, which cannot be run", from.flow, from.job);
            Some(Obstacle::lasting(index, problem))
        };
        let more: Vec<Obstacle> = jobs.iter().enumerate().filter(is_open).filter_map(reads).collect();
        if more.is_empty() {
            return;
        }
        obstacles.extend(more);
    }
}

/// A file that the job declares and that cannot be read.
fn missing_file(plan: &JobPlan) -> Option<String> {
    let file = plan.definition.missing_file()?;
    Some(format!("file {file}: cannot be read, but the job depends on its content"))
}

/// The first input that an open map cannot read; outputs of other jobs will exist.
fn missing_input(
    plan: &JobPlan,
    index: u32,
    writers: &Writers<'_>,
    done: &BTreeSet<TaskId>,
) -> Option<String> {
    let open = (0..)
        .zip(&plan.inputs.maps)
        .filter(|(task, _)| !done.contains(&TaskId { job: index, phase: PhaseKind::Map, task: *task }));
    // A job without a format was refused when its plan was made.
    let format = programs::input_format(&plan.work).ok().flatten();
    // Splits of one file are consecutive.
    let mut last: Option<&Path> = None;
    for split in open.flat_map(|(_, splits)| splits) {
        if last.replace(&split.path) == Some(&split.path) || writers.of(plan, split).is_some() {
            continue;
        }
        if let Err(problem) = check_input(&split.path, plan.inputs.sources.get(&split.path), format) {
            return Some(problem);
        }
    }
    None
}

/// Checks that an input exists, can be read, and has not changed since the run began; and that its format can
/// be read, unless a command reads it.
fn check_input(path: &Path, then: Option<&Source>, format: Option<reader::Format>) -> Result<(), String> {
    let shown = path.display();
    let found = fs::metadata(path);
    if found.as_ref().map_or(true, fs::Metadata::is_dir) {
        let problem = split::of_inputs(&[path.to_string_lossy().into_owned()], 1).err();
        return Err(problem.map_or_else(
            || {
                format!(
                    "input {shown}: had no files when the run began, and has some now; pass --again to start over"
                )
            },
            |error| error.to_string(),
        ));
    }
    if let Err(error) = regular_file::open(path) {
        return Err(format!("input {shown}: cannot be read: {error}"));
    }
    if let Some(format) = format {
        reader::check_format(path, format).map_err(|error| error.to_string())?;
    }
    match (Source::now(path), then) {
        (Ok(now), Some(then)) if !now.is_same(then) => {
            Err(format!("input {shown}: changed since the run began; pass --again to start over"))
        }
        _ => Ok(()),
    }
}

/// Whether files can be created in a directory, or the directory itself: creates one and removes it, once for
/// each existing directory.
fn unwritable(job: usize, output: &Path, writable: &mut BTreeSet<PathBuf>) -> Option<Obstacle> {
    let whole = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
    let there = whole.ancestors().find(|path| path.exists() || path.is_symlink())?;
    if !there.exists() {
        let to = fs::read_link(there).unwrap_or_default();
        let problem = format!(
            "output {}: cannot be made: {} is a link to {}, which does not exist: make that directory, or mount its disk",
            output.display(),
            there.display(),
            to.display()
        );
        return Some(Obstacle::lasting(job, problem));
    }
    if writable.contains(there) {
        return None;
    }
    let tried = if there.is_dir() {
        // Several runs may open at a time, also in one process.
        let k = PROBES.fetch_add(1, Ordering::Relaxed);
        let probe = there.join(format!("{PROBE}.{}.{k}", std::process::id()));
        fs::create_dir(&probe).map(|()| {
            // Another run that clears up may have been faster.
            let _ = fs::remove_dir(&probe);
        })
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    };
    let Err(error) = tried else {
        writable.insert(there.to_owned());
        return None;
    };
    let problem = format!("output {}: cannot be made: {}: {error}", output.display(), there.display());
    Some(Obstacle { job, problem, may_pass: may_pass(&error) })
}
