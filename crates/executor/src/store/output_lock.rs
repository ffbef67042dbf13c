//! Locks of output directories. The file `_temporary/owner` names the state directory that owns an output
//! until the output is complete or released. Two runs never write to one directory, and no run removes what
//! another run made. Parts stay in `_temporary` until the output is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use slackline_task::base::files::{remove, remove_busy};
use slackline_task::base::regular_file;

use crate::spec::job_plan::JobPlan;
use crate::store::finished_jobs::FinishedJobs;
use crate::store::output_files::{STAGED, SUCCESS, TEMPORARY, names, staged, temporary};

/// The file with the name of the run.
const OWNER: &str = "owner";

/// Bytes to read of that file.
const OWNER_MOST: u64 = 1 << 16;

/// The locks of one state directory on output directories.
#[derive(Clone, Debug)]
pub(crate) struct OutputLocks {
    owner: String,
}

impl OutputLocks {
    /// The locks of the state directory with this unique name.
    pub(crate) fn of(owner: &str) -> Self {
        Self { owner: owner.to_owned() }
    }

    /// Locks the output directory of a job, which may have output of runs of this state directory.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if another state directory owns it, or it has any other file; an
    /// error of the file system.
    pub(crate) fn acquire(&self, job: &JobPlan, made: &FinishedJobs) -> io::Result<()> {
        fs::create_dir_all(&job.output)?;
        if self.owns(&job.output) {
            return Ok(());
        }
        // A rename never replaces a directory with content, so the first run that moves its own there has the
        // lock.
        let beside = job.output.join(format!("{TEMPORARY}.{}", self.owner));
        remove(&beside)?;
        fs::create_dir(&beside)?;
        fs::write(beside.join(OWNER), &self.owner)?;
        let moved = fs::rename(&beside, temporary(job));
        if moved.is_err() {
            remove(&beside)?;
        }
        match moved {
            Err(_) if temporary(job).is_dir() => self.adopt(job)?,
            other => other?,
        }
        if self.foreign(job, made)?.is_some() {
            self.release(&job.output);
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(())
    }

    /// Takes over a `_temporary` without an owner: an earlier run has left files in it that cannot be
    /// removed.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if it has an owner; an error of the file system.
    fn adopt(&self, job: &JobPlan) -> io::Result<()> {
        let left = temporary(job);
        if is_staging(&job.output) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // The run that has left it may still be clearing up.
        let _ = remove_busy(&left);
        fs::create_dir_all(&left)?;
        File::create_new(left.join(OWNER))?.write_all(self.owner.as_bytes())
    }

    /// The first name in the output directory of a job that no run of this state directory has made, or that
    /// was changed since.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn foreign(&self, job: &JobPlan, made: &FinishedJobs) -> io::Result<Option<String>> {
        let directory = job.definition.output();
        let is_own = self.owns(&job.output);
        let is_ours = |name: &String| match name.as_str() {
            TEMPORARY => is_own || !is_staging(&job.output),
            name if name.starts_with(TEMPORARY) => true,
            // While parts are moved to their places, some are there already.
            name => made.owns(&directory, name) || is_own && is_output(name),
        };
        Ok(names(&job.output)?.into_iter().find(|name| !is_ours(name)))
    }

    /// Whether this state directory owns an output directory.
    pub(crate) fn owns(&self, output: &Path) -> bool {
        let file = output.join(TEMPORARY).join(OWNER);
        regular_file::read_to_string(&file, OWNER_MOST).is_ok_and(|owner| owner == self.owner)
    }

    /// Removes the files of a run that was killed while it cleared up: the name of the run goes first or in
    /// between, so the rest has no owner. Only beside a complete output.
    pub(crate) fn sweep(output: &Path) -> io::Result<()> {
        let left = output.join(TEMPORARY);
        if output.join(SUCCESS).exists() && left.is_dir() && !left.join(OWNER).exists() {
            remove(&left)?;
        }
        Ok(())
    }

    /// Removes the files of attempts in the output directory of a job, if this state directory owns it;
    /// finished parts for which `kept` is true stay.
    pub(crate) fn clear(&self, job: &JobPlan, kept: impl Fn(&str) -> bool) -> io::Result<()> {
        if !self.owns(&job.output) {
            return Ok(());
        }
        for name in names(&temporary(job))?.into_iter().filter(|name| name != OWNER && name != STAGED) {
            remove(&temporary(job).join(name))?;
        }
        let staged = staged(&job.output);
        names(&staged)?.into_iter().filter(|name| !kept(name)).try_for_each(|name| remove(&staged.join(name)))
    }

    /// Releases the output directory of a failed job, if this state directory owns it, unless some of its
    /// parts are done: they wait there until the run is resumed.
    pub(crate) fn release_failed(&self, job: &JobPlan) {
        if names(&staged(&job.output)).is_ok_and(|parts| parts.is_empty()) {
            self.release(&job.output);
        } else {
            // The next run removes the files that cannot be removed now.
            let _ = self.clear(job, |_| true);
        }
    }

    /// Releases an output directory, if this state directory owns it; removes it if it is empty.
    pub(crate) fn release(&self, output: &Path) {
        if self.owns(output) {
            // The next run removes the files that cannot be removed now.
            let _ = remove(&output.join(TEMPORARY));
            let _ = fs::remove_dir(output);
        }
    }
}

/// Whether a run has an output directory, and finished parts wait until it is whole. A directory that could
/// not be removed afterwards has no owner.
pub(crate) fn is_staging(output: &Path) -> bool {
    output.join(TEMPORARY).join(OWNER).exists()
}

/// Whether it is a name of an output.
fn is_output(name: &str) -> bool {
    name == SUCCESS || name.starts_with("part-")
}
