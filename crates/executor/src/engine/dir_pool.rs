//! Empty directories for reuse by later attempts. Some file systems create directories ever more slowly after
//! many have been removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use slackline_task::base::files::remove;

/// The directories that attempts of jobs have left, by job; in each nothing is left.
#[derive(Debug, Default)]
pub(super) struct DirPool(BTreeMap<u32, Vec<PathBuf>>);

impl DirPool {
    /// Keeps the directory of an attempt whose output was moved. A directory that is not empty is removed, or
    /// stays until the job is done.
    pub(super) fn keep(&mut self, job: u32, directory: PathBuf) {
        let is_empty = fs::read_dir(&directory).is_ok_and(|mut left| left.next().is_none());
        if is_empty {
            self.0.entry(job).or_default().push(directory);
        } else {
            let _ = remove(&directory);
        }
    }

    /// Puts a directory at the place of an attempt that starts. If there is none, or it cannot be moved, the
    /// attempt creates one.
    pub(super) fn put(&mut self, job: u32, place: &Path) {
        if let Some(spare) = self.0.get_mut(&job).and_then(Vec::pop) {
            let _ = fs::rename(spare, place);
        }
    }

    /// Forgets those of a job that is done: they go with its output's temporary directory.
    pub(super) fn forget(&mut self, job: u32) {
        self.0.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_empty_is_had_again_and_only_by_the_same_job() {
        let root = tempfile::tempdir().unwrap();
        let [first, second, third] = ["1", "2", "3"].map(|name| root.path().join(name));
        let mut spares = DirPool::default();
        for directory in [&first, &second] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(second.join("part-00002"), "left behind").unwrap();
        spares.keep(0, first.clone());
        spares.keep(0, second.clone());
        // A directory that is missing already does no harm.
        spares.keep(0, third.clone());
        spares.put(1, &third);
        assert!(first.exists() && !second.exists() && !third.exists());
        spares.put(0, &third);
        assert!(!first.exists() && third.exists());
        spares.put(0, &second);
        assert!(!second.exists());
        spares.keep(0, third);
        spares.forget(0);
        spares.put(0, &second);
        assert!(!second.exists());
    }
}
