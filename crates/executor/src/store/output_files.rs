//! The names of files in an output directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::spec::job_plan::JobPlan;

/// The mark of a complete output.
pub(crate) const SUCCESS: &str = "_SUCCESS";

/// The directory of finished parts that wait for the other parts.
pub(crate) const STAGED: &str = "parts";

/// The prefix of temporary entries: attempts, and files of checks.
pub(crate) const TEMPORARY: &str = "_temporary";

/// The directory of finished parts of an output that is not complete.
pub(crate) fn staged(output: &Path) -> PathBuf {
    output.join(TEMPORARY).join(STAGED)
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

/// The entries of an output directory that are not temporary.
///
/// # Errors
/// It cannot be read.
pub(crate) fn others(output: &Path) -> io::Result<Vec<String>> {
    Ok(names(output)?.into_iter().filter(|name| !name.starts_with(TEMPORARY)).collect())
}

/// The directory for attempts that write part files of a job.
pub(crate) fn temporary(job: &JobPlan) -> PathBuf {
    job.output.join(TEMPORARY)
}

/// The names in a directory, in order; empty if there is no directory.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
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
