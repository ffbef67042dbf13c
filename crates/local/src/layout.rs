//! Where a run keeps its files.
//!
//! In the run's own directory: the journal, map output, attempts, logs of failed attempts, the resolved
//! workload and the schedule. Part files are written below their job's output directory, in `_temporary`, so
//! that moving them to their place is a rename on one file system; readers leave names with `_` out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::TaskId;
use crate::resolve::JobPlan;
use crate::task::part_name;

/// The paths of a run.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// A run that keeps its files in `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.redb")
    }

    /// The workload as it was resolved, with what tasks really took.
    pub fn workload(&self) -> PathBuf {
        self.root.join("workload.json")
    }

    /// The schedule of what happened.
    pub fn schedule(&self) -> PathBuf {
        self.root.join("schedule.json")
    }

    /// The log of a failed attempt.
    pub fn log(&self, job: &JobPlan, id: TaskId, number: u64) -> PathBuf {
        let kind = if id.reduce { "reduce" } else { "map" };
        let clean = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let name = format!("{}.{}.{kind}-{}.{number}.log", clean(&job.flow), clean(&job.job), id.task);
        self.logs().join(name)
    }

    /// Who does an attempt: the process and when it began, while it does.
    pub(crate) fn pid(&self, number: u64) -> PathBuf {
        self.pids().join(number.to_string())
    }

    pub(crate) fn pids(&self) -> PathBuf {
        self.root.join("pids")
    }

    pub(crate) fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Where an attempt writes.
    pub(crate) fn attempt(&self, job: &JobPlan, id: TaskId, number: u64) -> PathBuf {
        if is_final(job, id) {
            temporary(job).join(number.to_string())
        } else {
            self.attempts().join(number.to_string())
        }
    }

    /// Where a task's output is once it is committed: a map's directory, or a part file.
    pub(crate) fn committed(&self, job: &JobPlan, id: TaskId) -> PathBuf {
        if is_final(job, id) { job.output.join(part_name(id.task)) } else { self.map_output(id.job, id.task) }
    }

    /// The committed output of a map.
    pub(crate) fn map_output(&self, job: u32, task: u32) -> PathBuf {
        self.maps(job).join(task.to_string())
    }

    /// The committed maps of a job.
    pub(crate) fn maps(&self, job: u32) -> PathBuf {
        self.all_maps().join(job.to_string())
    }

    pub(crate) fn all_maps(&self) -> PathBuf {
        self.root.join("maps")
    }

    /// The logs of failed attempts.
    fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Removes everything a run keeps here, the journal last, so that whoever stops this halfway can do it
    /// again; then the directory, if nothing else is in it.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn remove_all(&self, jobs: u32) -> Result<(), (PathBuf, io::Error)> {
        let large = [self.attempts(), self.all_maps(), self.logs(), self.pids()];
        let small = [self.workload(), self.schedule(), self.journal()];
        let prepared = (0..jobs).map(|job| self.prepared(job));
        for path in large.into_iter().chain(prepared).chain(small) {
            remove(&path).map_err(|error| (path, error))?;
        }
        // It may hold what is not ours.
        let _ = fs::remove_dir(&self.root);
        Ok(())
    }

    /// What a job's program wanted to know of all input.
    pub(crate) fn prepared(&self, job: u32) -> PathBuf {
        self.root.join(format!("prepared-{job}"))
    }

    /// Moves an attempt's output to its place, if it is not there yet.
    ///
    /// # Errors
    /// Whatever the file system says; [`io::ErrorKind::NotFound`] if it is in neither place.
    pub(crate) fn commit(&self, job: &JobPlan, id: TaskId, number: u64) -> io::Result<()> {
        let (from, to) = (self.attempt(job, id, number), self.committed(job, id));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let output = if is_final(job, id) { from.join(part_name(id.task)) } else { from.clone() };
        match fs::rename(&output, &to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && to.exists() => {}
            other => other?,
        }
        remove(&from)
    }

    /// Marks the output of a job as complete, and clears what was only needed to make it.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn succeed(&self, job: &JobPlan, index: u32) -> io::Result<()> {
        fs::create_dir_all(&job.output)?;
        remove(&temporary(job))?;
        fs::write(job.output.join("_SUCCESS"), "")?;
        remove(&self.maps(index))?;
        remove(&self.prepared(index))
    }
}

/// Makes the output directory of a job, for nobody else: whoever else writes there has made its `_temporary`, or
/// left something.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if somebody has; whatever else the file system says.
pub(crate) fn claim(job: &JobPlan) -> io::Result<()> {
    fs::create_dir_all(&job.output)?;
    fs::create_dir(temporary(job))?;
    if fs::read_dir(&job.output)?.count() > 1 {
        fs::remove_dir(temporary(job))?;
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(())
}

/// Gives up the output directory of a job that is not complete, unless parts are in it.
pub(crate) fn release(job: &JobPlan) {
    // Where it cannot be removed, there is something in it, or nothing of it was ever made.
    let _ = remove(&temporary(job));
    let _ = fs::remove_dir(&job.output);
}

/// The names in an output directory that no run has made.
///
/// # Errors
/// It cannot be read.
pub(crate) fn foreign(output: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(output) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let is_ours = |name: &str| {
        let passing = name == "_SUCCESS" || name.starts_with("_temporary");
        passing || name.strip_prefix("part-").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().filter(|name| !is_ours(name)).collect())
}

/// Whether a task writes a part file.
pub(crate) fn is_final(job: &JobPlan, id: TaskId) -> bool {
    id.reduce || job.reducers == 0
}

/// Where the attempts that write part files of a job do so.
pub(crate) fn temporary(job: &JobPlan) -> PathBuf {
    job.output.join("_temporary")
}

/// Removes a file or a directory with all below it; it may be gone already, or have no place to be in.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        other => other,
    }
}
