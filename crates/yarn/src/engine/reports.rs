//! What attempts of a job write where the driver finds it: a directory for each, with a document when it begins and one
//! when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use serde::Deserialize;
use slackline_local::worker::Report;

use super::mirror::{Mirror, escaped};
use crate::id::{ContainerId, TaskAttemptId, TaskId, TaskKind};
use crate::submitter::Entry;

/// What an attempt writes when it begins.
#[derive(Clone, Debug, Deserialize)]
struct Begun {}

/// What an attempt writes when it ends.
#[derive(Clone, Debug, Deserialize)]
struct EndReport {
    container: String,
    host: String,
    started: u64,
    ended: u64,
    report: Report,
}

/// Where the attempts of a submission write, each into a directory with its name.
pub(super) enum Destination {
    /// A directory that this machine and the nodes see.
    Here(PathBuf),
    /// A directory of another file system.
    There {
        /// Through which it is seen.
        mirror: Arc<Mirror>,
        /// The directory.
        uri: String,
        /// Where placeholders of parts are made.
        here: PathBuf,
    },
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
    /// The part file, if it wrote one, or its placeholder.
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
    /// What is new in the directory of a submission. `makes_part` says of a task whether it makes a part, without which it is
    /// not done, or that there is no such task. O(attempts).
    ///
    /// # Errors
    /// It cannot be read; [`io::ErrorKind::InvalidData`] if a document in it is none.
    pub(super) fn read(
        &mut self,
        destination: &Destination,
        makes_part: impl Fn(TaskId) -> Option<bool>,
    ) -> io::Result<News> {
        let mut news = News::default();
        for (attempt, written) in attempts(destination)? {
            let Some(makes_part) = makes_part(attempt.task) else { continue };
            if !self.begun.contains(&attempt) && written.document::<Begun>("begun.json")?.is_some() {
                self.begun.insert(attempt);
                news.begun.push(attempt);
            }
            if !self.ended.contains(&attempt)
                && let Some(EndReport { container, host, started, ended, report }) =
                    written.document("report.json")?
            {
                let part = written.part()?;
                if makes_part && part.is_none() && matches!(report, Report::Done(_)) {
                    continue;
                }
                self.ended.insert(attempt);
                let container = container.parse().ok();
                news.ended.push(AttemptEnded { attempt, container, host, started, ended, report, part });
            }
        }
        Ok(news)
    }
}

/// What an attempt has written.
enum Written<'a> {
    /// In its directory here.
    Here(PathBuf),
    /// There, by name; `here` is where its placeholders are made.
    There { mirror: &'a Mirror, entries: BTreeMap<String, Entry>, here: PathBuf },
}

impl Written<'_> {
    /// A document that is there as a whole or not at all.
    fn document<T: for<'de> Deserialize<'de>>(&self, name: &str) -> io::Result<Option<T>> {
        let (path, text) = match self {
            Self::Here(directory) => {
                let path = directory.join(name);
                match fs::read(&path) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                    text => (path.display().to_string(), text?),
                }
            }
            Self::There { mirror, entries, .. } => {
                let Some(entry) = entries.get(name) else { return Ok(None) };
                (entry.path.clone(), mirror.read(entry)?)
            }
        };
        let read = serde_json::from_slice(&text);
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}"));
        read.map(Some).map_err(damaged)
    }

    /// The part, or a placeholder of it.
    fn part(&self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::Here(directory) => Ok(Some(directory.join("part")).filter(|part| part.exists())),
            Self::There { mirror, entries, here } => {
                let Some(entry) = entries.get("part") else { return Ok(None) };
                fs::create_dir_all(here)?;
                let part = here.join("part");
                mirror.make_placeholder(&part, entry)?;
                Ok(Some(part))
            }
        }
    }
}

/// What each attempt has written.
fn attempts(destination: &Destination) -> io::Result<BTreeMap<TaskAttemptId, Written<'_>>> {
    match destination {
        Destination::Here(directory) => attempts_here(directory),
        Destination::There { mirror, uri, here } => attempts_there(mirror, uri, here),
    }
}

fn attempts_there<'a>(
    mirror: &'a Mirror,
    uri: &str,
    here: &Path,
) -> io::Result<BTreeMap<TaskAttemptId, Written<'a>>> {
    let mut attempts: BTreeMap<TaskAttemptId, BTreeMap<String, Entry>> = BTreeMap::new();
    for entry in mirror.list(&format!("{}/*/*", escaped(uri)))? {
        let mut names = entry.path.rsplit('/');
        if let (Some(name), Some(Ok(attempt))) = (names.next(), names.next().map(str::parse)) {
            attempts.entry(attempt).or_default().insert(name.to_owned(), entry);
        }
    }
    let written = |(attempt, entries): (TaskAttemptId, _)| {
        (attempt, Written::There { mirror, entries, here: here.join(attempt.to_string()) })
    };
    Ok(attempts.into_iter().map(written).collect())
}

/// The directories of attempts, by their names.
fn attempts_here<'a>(destination: &Path) -> io::Result<BTreeMap<TaskAttemptId, Written<'a>>> {
    let entries = match fs::read_dir(destination) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut attempts = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        if let Some(attempt) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            attempts.insert(attempt, Written::Here(entry.path()));
        }
    }
    Ok(attempts)
}

/// The phase of the run that a kind of Hadoop's tasks is.
pub(super) fn phase_kind(kind: TaskKind) -> slackline_model::PhaseKind {
    match kind {
        TaskKind::Map => slackline_model::PhaseKind::Map,
        TaskKind::Reduce => slackline_model::PhaseKind::Reduce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(path: &Path) -> Destination {
        Destination::Here(path.to_owned())
    }

    /// Of a job with many tasks, none of which makes a part.
    fn any(task: TaskId) -> Option<bool> {
        (task.number < 1000).then_some(false)
    }

    const ATTEMPT: &str = "attempt_1_0001_m_000003_0";

    /// A directory of attempts with these files.
    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn report(container: &str, report: &str) -> String {
        format!(r#"{{"container":"{container}","host":"a","started":1,"ended":2,"report":{report}}}"#)
    }

    const DONE: &str = r#"{"done":{"records_in":7}}"#;

    fn named(file: &str) -> String {
        format!("{ATTEMPT}/{file}")
    }

    #[test]
    fn nothing_is_there_before_an_attempt_begins() {
        let directory = with(&[]);
        let mut reports = Reports::default();
        for place in [directory.path().join("missing"), directory.path().to_owned()] {
            let news = reports.read(&here(&place), any).unwrap();
            assert!(news.begun.is_empty() && news.ended.is_empty());
        }
    }

    #[test]
    fn each_document_is_news_once() {
        let done: Report = serde_json::from_str(DONE).unwrap();
        let text = report("container_1_0001_01_000002", DONE);
        let directory = with(&[(&named("begun.json"), "{}"), (&named("part"), "x")]);
        let mut reports = Reports::default();
        let news = reports.read(&here(directory.path()), any).unwrap();
        assert_eq!((news.begun, news.ended.len()), (vec![ATTEMPT.parse().unwrap()], 0));
        fs::write(directory.path().join(named("report.json")), text).unwrap();
        let news = reports.read(&here(directory.path()), any).unwrap();
        assert!(news.begun.is_empty());
        let [ended] = news.ended.as_slice() else { panic!("found {news:?}, expected one report") };
        assert_eq!((&ended.report, ended.container), (&done, "container_1_0001_01_000002".parse().ok()));
        assert_eq!(ended.part, Some(directory.path().join(named("part"))));
        assert!(reports.read(&here(directory.path()), any).unwrap().ended.is_empty());
    }

    #[test]
    fn names_of_others_are_passed_over() {
        let text = report("container_1_0001_01_000002", DONE);
        let names = [
            "other/report.json",
            "attempt_1_0001_x_000003_0/report.json",
            "job.json",
            "_temporary/report.json",
        ];
        let directory = with(&names.map(|name| (name, "not a document")));
        fs::create_dir_all(directory.path().join(ATTEMPT)).unwrap();
        // A document is written under another name before it is there.
        fs::write(directory.path().join(named(".report.json.tmp")), &text[..20]).unwrap();
        let news = Reports::default().read(&here(directory.path()), any).unwrap();
        assert!(news.begun.is_empty() && news.ended.is_empty(), "{news:?}");
    }

    #[test]
    fn a_task_is_done_when_its_part_is_there_and_it_is_one_of_the_job() {
        let text = report("container_1_0001_01_000002", DONE);
        let directory = with(&[(&named("report.json"), &text), (&named("begun.json"), "{}")]);
        let mut reports = Reports::default();
        let none = reports.read(&here(directory.path()), |_| None).unwrap();
        assert!(none.begun.is_empty() && none.ended.is_empty());
        let news = reports.read(&here(directory.path()), |_| Some(true)).unwrap();
        assert_eq!((news.begun.len(), news.ended.len()), (1, 0));
        fs::write(directory.path().join(named("part")), "x").unwrap();
        assert_eq!(reports.read(&here(directory.path()), |_| Some(true)).unwrap().ended.len(), 1);
    }

    #[test]
    fn a_container_without_a_name_is_none() {
        let text = report("", DONE);
        let directory = with(&[(&named("report.json"), &text)]);
        let news = Reports::default().read(&here(directory.path()), any).unwrap();
        assert_eq!(news.ended[0].container, None);
        assert_eq!(news.ended[0].part, None);
    }

    #[test]
    fn a_damaged_document_is_named() {
        let whole = report("container_1_0001_01_000002", DONE);
        let texts = [
            "",
            "[]",
            "{}",
            "\u{0}",
            &whole[..whole.len() - 1],
            &whole.replace("\"ended\":2", "\"ended\":-2"),
        ];
        for text in texts {
            let directory = with(&[(&named("report.json"), text)]);
            let error = Reports::default().read(&here(directory.path()), any).unwrap_err().to_string();
            assert!(error.contains("attempt_1_0001_m_000003_0/report.json: "), "{text:?}: {error}");
        }
    }
}
