//! Standard error of attempts. Logs of failed attempts are kept, and those of successful attempts while there
//! is room.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use slackline_task::attempt::log;
use slackline_task::base::regular_file;
use slackline_task::process::spec::Job;

use super::{ProcessEngine, Running, Work};
use crate::store::journal::{Attempt, AttemptOutcome};

/// The limit on the total output of successful attempts of a run, bytes; the oldest output is removed first.
const SAID_MAX: u64 = 64 << 20;

/// What successful attempts have said.
#[derive(Debug, Default)]
pub(super) struct StoredLogs {
    /// Files and their sizes, by the order in which they are removed.
    files: VecDeque<(PathBuf, u64)>,
    bytes: u64,
}

impl StoredLogs {
    /// Finds the logs of earlier sessions of the run, and of jobs that earlier runs have finished. O(files +
    /// attempts · log).
    pub(super) fn find(work: &Work) -> Self {
        let is_done = |attempt: &Attempt| matches!(attempt.ended, AttemptOutcome::Done(_));
        Self::of(
            &work.session.layout.logs(),
            work.session.layout.logs_of(
                &work.session.head.kept,
                &work.session.jobs,
                &work.session.attempts,
                is_done,
            ),
        )
    }

    /// Those of the paths that are in the directory, in their order.
    fn of(directory: &Path, paths: Vec<PathBuf>) -> Self {
        let Ok(entries) = fs::read_dir(directory) else { return Self::default() };
        let size = |entry: fs::DirEntry| Some((entry.path(), entry.metadata().ok()?.len()));
        let sizes: BTreeMap<PathBuf, u64> = entries.flatten().filter_map(size).collect();
        let sized = paths.into_iter().filter_map(|path| sizes.get(&path).map(|&bytes| (path, bytes)));
        let files: VecDeque<(PathBuf, u64)> = sized.collect();
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        Self { files, bytes }
    }

    /// Takes note of a file, and removes the first ones where there are too many bytes.
    fn add(&mut self, path: PathBuf, bytes: u64, max: u64) {
        self.files.push_back((path, bytes));
        self.bytes += bytes;
        while self.bytes > max
            && let Some((path, bytes)) = self.files.pop_front()
        {
            self.bytes -= bytes;
            // What cannot be removed is removed with the run.
            let _ = fs::remove_file(path);
        }
    }
}

impl ProcessEngine {
    /// Keeps the output of the commands of a successful attempt, before its output is moved. Errors are
    /// ignored.
    pub(super) fn keep_said(&mut self, running: &Running) {
        let job = &self.work.session.jobs[running.id.job as usize];
        if matches!(job.work, Job::Program { .. }) {
            return;
        }
        let text = self.said_by(running);
        let bytes = text.len() as u64;
        if let Some(path) = self.write_log(running, &text) {
            self.said.add(path, bytes, SAID_MAX);
        }
    }

    /// The output of the commands of an attempt; empty if unknown.
    pub(super) fn said_by(&self, running: &Running) -> Vec<u8> {
        let job = &self.work.session.jobs[running.id.job as usize];
        log::read_or_problem(&self.work.session.layout.attempt(job, running.id, running.number))
    }

    /// Writes the output of the commands of an attempt to its place.
    pub(super) fn write_log(&self, running: &Running, text: &[u8]) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        let job = &self.work.session.jobs[running.id.job as usize];
        let path = self.work.session.layout.log(&job.flow, &job.job, running.id, running.number);
        fs::create_dir_all(path.parent()?).ok()?;
        if regular_file::write_new(&path, text).is_err() {
            // A partial file would be taken for the whole.
            let _ = fs::remove_file(&path);
            return None;
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_logs_count_and_are_removed_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["of-a-failed-one", "later", "sooner", "now"] {
            fs::write(path(name), vec![b'x'; 10]).unwrap();
        }
        let mut said = StoredLogs::of(dir.path(), ["sooner", "said-nothing", "later"].map(path).to_vec());
        assert_eq!(said.bytes, 20);
        said.add(path("now"), 10, 20);
        let there = ["of-a-failed-one", "sooner", "later", "now"].map(|name| path(name).exists());
        assert_eq!((there, said.bytes), ([true, false, true, true], 20));
        assert_eq!(StoredLogs::of(&path("nowhere"), vec![path("now")]).bytes, 0);
    }

    #[test]
    fn the_oldest_logs_are_removed_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = |n: u64| dir.path().join(format!("f.j.map-0.{n}.log"));
        let mut said = StoredLogs::default();
        for n in 0..5 {
            fs::write(path(n), vec![b'x'; 10]).unwrap();
            said.add(path(n), 10, 30);
        }
        let there: Vec<u64> = (0..5).filter(|&n| path(n).exists()).collect();
        assert_eq!((there, said.bytes), (vec![2, 3, 4], 30));
    }
}
