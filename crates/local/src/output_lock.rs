//! Whose an output directory is: the run's whose name stands in its `_temporary`, until the output is complete or
//! the run releases it. Two runs never write to one directory, and none removes what another has made.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::remove;
use crate::job_plan::JobPlan;
use crate::task::part_name;

/// Where the name of the run stands.
const OWNER: &str = "owner";

/// How names of temporary entries begin: attempts, and what is tried or made beside them.
const TEMPORARY: &str = "_temporary";

/// The locks of one run on output directories.
#[derive(Clone, Debug)]
pub(crate) struct OutputLocks {
    owner: String,
}

impl OutputLocks {
    /// Those of the run of that name, which no other has.
    pub(crate) fn of(owner: &str) -> Self {
        Self { owner: owner.to_owned() }
    }

    /// Makes the output directory of a job this run's, where it may hold the parts `kept` already.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if it is another's, or holds anything else; whatever the file system says.
    pub(crate) fn acquire(&self, job: &JobPlan, kept: &[u32]) -> io::Result<()> {
        fs::create_dir_all(&job.output)?;
        if self.owns(&job.output) {
            return Ok(());
        }
        // A directory that holds something is never replaced, so that the first run to move its own there has it.
        let beside = job.output.join(format!("{TEMPORARY}.{}", self.owner));
        remove(&beside)?;
        fs::create_dir(&beside)?;
        fs::write(beside.join(OWNER), &self.owner)?;
        let moved = fs::rename(&beside, temporary(job));
        if moved.is_err() {
            remove(&beside)?;
        }
        match moved {
            Err(_) if temporary(job).is_dir() => return Err(io::ErrorKind::AlreadyExists.into()),
            other => other?,
        }
        let names = kept.iter().map(|&part| part_name(part)).collect();
        let files = OutputFiles { directory: job.output.clone(), names, is_owned: true };
        if files.foreign()?.is_some() {
            self.release(job);
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(())
    }

    /// Whether an output directory is this run's.
    pub(crate) fn owns(&self, output: &Path) -> bool {
        fs::read_to_string(output.join(TEMPORARY).join(OWNER)).is_ok_and(|owner| owner == self.owner)
    }

    /// Removes what attempts left in the output directory of a job, if it is this run's.
    pub(crate) fn clear(&self, job: &JobPlan) -> io::Result<()> {
        if !self.owns(&job.output) {
            return Ok(());
        }
        for entry in fs::read_dir(temporary(job))? {
            let entry = entry?;
            if entry.file_name() != OWNER {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Releases the output directory of a job, if it is this run's; it is removed if nothing else is in it.
    pub(crate) fn release(&self, job: &JobPlan) {
        if self.owns(&job.output) {
            // What cannot be removed now is removed with the run.
            let _ = remove(&temporary(job));
            let _ = fs::remove_dir(&job.output);
        }
    }
}

/// What a run has made in an output directory.
#[derive(Clone, Debug)]
pub(crate) struct OutputFiles {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// Names of parts and of the mark of success.
    pub(crate) names: BTreeSet<String>,
    /// Whether the directory is the run's.
    pub(crate) is_owned: bool,
}

impl OutputFiles {
    /// The first name in the directory that the run has not made.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn foreign(&self) -> io::Result<Option<String>> {
        let is_ours = |name: &String| match name.as_str() {
            TEMPORARY => self.is_owned,
            name => name.starts_with(TEMPORARY) || self.names.contains(name),
        };
        Ok(names(&self.directory)?.into_iter().find(|name| !is_ours(name)))
    }

    /// Removes it, and the directory if nothing else is in it.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn remove(&self) -> io::Result<()> {
        for name in names(&self.directory)? {
            let is_ours = self.names.contains(&name)
                || name.starts_with(TEMPORARY) && (name != TEMPORARY || self.is_owned);
            if is_ours {
                remove(&self.directory.join(name))?;
            }
        }
        let _ = fs::remove_dir(&self.directory);
        Ok(())
    }
}

/// The temporary entries of an output directory.
///
/// # Errors
/// It cannot be read.
pub(crate) fn temporaries(output: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(names(output)?
        .into_iter()
        .filter(|name| name.starts_with(TEMPORARY))
        .map(|name| output.join(name))
        .collect())
}

/// Where the attempts that write part files of a job do so.
pub(crate) fn temporary(job: &JobPlan) -> PathBuf {
    job.output.join(TEMPORARY)
}

/// The names in a directory, in their order; none if there is no directory.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}
