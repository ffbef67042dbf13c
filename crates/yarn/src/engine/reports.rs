//! What attempts of a job write where the driver finds it: a directory for each, with a document when it begins and one
//! when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use slackline_local::worker::Report;

use crate::id::{ContainerId, TaskAttemptId, TaskKind};

/// What an attempt writes when it begins.
#[derive(Clone, Debug, Deserialize)]
struct Begun {}

/// What an attempt writes when it ends.
#[derive(Clone, Debug, Deserialize)]
struct Ended {
    container: String,
    host: String,
    started: u64,
    ended: u64,
    report: Report,
}

/// An attempt that has ended. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(super) struct AttemptEnded {
    pub(super) attempt: TaskAttemptId,
    pub(super) container: Option<ContainerId>,
    pub(super) host: String,
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) report: Report,
    /// The part file, if it wrote one.
    pub(super) part: Option<PathBuf>,
}

/// News of a job's attempts.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Attempts that have begun.
    pub(super) begun: Vec<TaskAttemptId>,
    /// Attempts that have ended.
    pub(super) ended: Vec<AttemptEnded>,
}

/// The attempts of a submission, as far as they were read.
#[derive(Debug, Default)]
pub(super) struct Reports {
    begun: BTreeSet<TaskAttemptId>,
    ended: BTreeSet<TaskAttemptId>,
}

impl Reports {
    /// What is new in the directory of a submission. O(attempts).
    ///
    /// # Errors
    /// It cannot be read, or a document in it is none.
    pub(super) fn read(&mut self, destination: &Path) -> io::Result<News> {
        let mut news = News::default();
        for (attempt, directory) in attempts(destination)? {
            if !self.begun.contains(&attempt) && document::<Begun>(&directory.join("begun.json"))?.is_some() {
                self.begun.insert(attempt);
                news.begun.push(attempt);
            }
            if !self.ended.contains(&attempt)
                && let Some(Ended { container, host, started, ended, report }) =
                    document(&directory.join("report.json"))?
            {
                self.ended.insert(attempt);
                let part = Some(directory.join("part")).filter(|part| part.exists());
                let container = container.parse().ok();
                news.ended.push(AttemptEnded { attempt, container, host, started, ended, report, part });
            }
        }
        Ok(news)
    }
}

/// The directories of attempts, by their names.
fn attempts(destination: &Path) -> io::Result<BTreeMap<TaskAttemptId, PathBuf>> {
    let entries = match fs::read_dir(destination) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut attempts = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        if let Some(attempt) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            attempts.insert(attempt, entry.path());
        }
    }
    Ok(attempts)
}

/// A document that is there as a whole or not at all.
fn document<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<Option<T>> {
    let text = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let read = serde_json::from_slice(&text);
    read.map(Some).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// The phase of the run that a kind of Hadoop's tasks is.
pub(super) fn phase_kind(kind: TaskKind) -> slackline_model::PhaseKind {
    match kind {
        TaskKind::Map => slackline_model::PhaseKind::Map,
        TaskKind::Reduce => slackline_model::PhaseKind::Reduce,
    }
}
