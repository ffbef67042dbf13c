//! Where a run keeps its files.
//!
//! In the run's own directory: the journal, map output, attempts, logs of failed attempts, the resolved
//! workload and the schedule. Part files are written below their job's output directory, in `_temporary`, so
//! that moving them to their place is a rename on one file system; readers leave names with `_` out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{remove, remove_busy};
use crate::job_plan::JobPlan;
use crate::output_lock::{temporaries, temporary};
use crate::task::part_name;
use crate::task_id::TaskId;

/// The mark of a complete output.
pub(crate) const SUCCESS: &str = "_SUCCESS";

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
        self.root.join("journal.log")
    }

    /// The journal of a run of the first edition.
    pub(crate) fn first_journal(&self) -> PathBuf {
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
        let clean = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let name =
            format!("{}.{}.{}-{}.{number}.log", clean(&job.flow), clean(&job.job), id.phase.name(), id.task);
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
        if job.is_final(id) {
            temporary(job).join(number.to_string())
        } else {
            self.attempts().join(number.to_string())
        }
    }

    /// Where a task's output is once it is committed: a map's directory, or a part file.
    pub(crate) fn committed(&self, job: &JobPlan, id: TaskId) -> PathBuf {
        if job.is_final(id) { job.output.join(part_name(id.task)) } else { self.map_output(id.job, id.task) }
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

    /// The logs of attempts.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The first name in the directory that a run would use, if no run has used it yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn first_in_use(&self) -> io::Result<Option<PathBuf>> {
        let named =
            [self.attempts(), self.all_maps(), self.logs(), self.pids(), self.workload(), self.schedule()];
        Ok(named.into_iter().chain(self.all_prepared()?).find(|path| path.exists()))
    }

    /// What programs wanted to know of all input, and what was being made of that.
    fn all_prepared(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.root)?.collect::<io::Result<Vec<_>>>()?;
        let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("prepared-");
        Ok(entries.into_iter().filter(is_one).map(|entry| entry.path()).collect())
    }

    /// Removes everything a run keeps here, the journal last, so that an interrupted removal can be done
    /// again; then the directory, if nothing else is in it.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn remove_all(&self) -> Result<(), (PathBuf, io::Error)> {
        let large = [self.attempts(), self.all_maps(), self.logs(), self.pids()];
        let small = [self.workload(), self.schedule(), self.journal()];
        let prepared = self.all_prepared().map_err(|error| (self.root.clone(), error))?;
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
        let output = if job.is_final(id) { from.join(part_name(id.task)) } else { from.clone() };
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
        fs::write(job.output.join(SUCCESS), "")?;
        for path in temporaries(&job.output)? {
            remove_busy(&path)?;
        }
        remove(&self.maps(index))?;
        remove(&self.prepared(index))
    }
}
