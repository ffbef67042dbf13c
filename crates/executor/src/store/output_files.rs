//! The names of files in an output directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::spec::job_plan::JobPlan;

/// The mark of a complete output.
pub(crate) const SUCCESS: &str = "_SUCCESS";

/// Where finished parts wait for the others.
pub(crate) const STAGED: &str = "parts";

/// How names of temporary entries begin: attempts, and what is tried or made beside them.
pub(crate) const TEMPORARY: &str = "_temporary";

/// Where the finished parts of an output wait until it is whole.
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

/// What is in an output directory that is not temporary.
///
/// # Errors
/// It cannot be read.
pub(crate) fn others(output: &Path) -> io::Result<Vec<String>> {
    Ok(names(output)?.into_iter().filter(|name| !name.starts_with(TEMPORARY)).collect())
}

/// Where the attempts that write part files of a job do so.
pub(crate) fn temporary(job: &JobPlan) -> PathBuf {
    job.output.join(TEMPORARY)
}

/// The names in a directory, in their order; none if there is no directory.
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
