//! Reads the reports that the attempts of a job write: a directory for each, with a document at the start and
//! one at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use serde::Deserialize;
use slackline_task::base::regular_file;
use slackline_task::process::report::Report;

use crate::cluster::fair_polling::RoundRobin;
use crate::flows::hdfs_placeholders::{Placeholders, escaped};
use crate::rest::id::{ContainerId, TaskAttemptId, TaskId};
use crate::submitter::Entry;

/// The largest document of an attempt, in bytes: a report may have a long message.
const DOCUMENT_MAX: u64 = 1 << 26;

/// The document at the start of an attempt.
#[derive(Clone, Debug, Deserialize)]
struct StartDocument {}

/// The document at the end of an attempt.
#[derive(Clone, Debug, Deserialize)]
struct EndDocument {
    container: String,
    host: String,
    started: u64,
    ended: u64,
    report: Report,
}

/// The directory in which each attempt of a submission has its own.
pub(super) enum Destination {
    /// A directory that this machine and the nodes share.
    Local(PathBuf),
    /// A directory of another file system.
    Remote {
        placeholders: Arc<Placeholders>,
        uri: String,
        /// The directory for placeholders of parts.
        here: PathBuf,
    },
}

/// The report of an attempt that has ended. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(super) struct AttemptReport {
    pub(super) attempt: TaskAttemptId,
    pub(super) container: Option<ContainerId>,
    pub(super) host: String,
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) report: Report,
    /// The part file or its placeholder, if the attempt wrote one.
    pub(super) part: Option<PathBuf>,
}

/// New reports of the attempts of a job.
#[derive(Debug, Default)]
pub(super) struct NewReports {
    pub(super) begun: Vec<TaskAttemptId>,
    pub(super) ended: Vec<AttemptReport>,
}

/// Which attempts of a submission have been read.
#[derive(Debug, Default)]
pub(super) struct ReportReader {
    begun: BTreeSet<TaskAttemptId>,
    ended: BTreeSet<TaskAttemptId>,
    turn: RoundRobin<TaskAttemptId>,
    is_whole: bool,
}

impl ReportReader {
    /// Reads new reports in the directory of a submission within the time limit: at least one attempt; the
    /// next call continues with the rest. `makes_part` tells whether a task has to write a part to be
    /// finished; `None` if there is no such task. O(attempts), of which ended ones are only listed.
    ///
    /// # Errors
    /// A report cannot be read; those read before count. [`io::ErrorKind::InvalidData`] if a document is
    /// invalid.
    pub(super) fn read(
        &mut self,
        destination: &Destination,
        makes_part: impl Fn(TaskId) -> Option<bool>,
        lasts: Duration,
        news: &mut NewReports,
    ) -> io::Result<()> {
        self.is_whole = false;
        let all = destination.attempts()?;
        let is_open =
            |attempt: &TaskAttemptId| !self.ended.contains(attempt) && makes_part(attempt.task).is_some();
        let open: Vec<TaskAttemptId> = all.keys().copied().filter(is_open).collect();
        let mut round = self.turn.round(open, lasts);
        while let Some(attempt) = round.next(&mut self.turn) {
            let makes_part = makes_part(attempt.task).unwrap_or(false);
            let read = destination.files_of(&all[&attempt], attempt);
            if let Err(error) =
                read.and_then(|written| self.read_attempt(attempt, &written, makes_part, news))
            {
                round.stop(&mut self.turn);
                return Err(error);
            }
        }
        self.is_whole = self.turn.is_complete();
        Ok(())
    }

    /// Whether the last call read everything.
    pub(super) fn is_complete(&self) -> bool {
        self.is_whole
    }

    /// Reads what is new of an attempt.
    fn read_attempt(
        &mut self,
        attempt: TaskAttemptId,
        written: &AttemptFiles<'_>,
        makes_part: bool,
        news: &mut NewReports,
    ) -> io::Result<()> {
        if !self.begun.contains(&attempt) && written.document::<StartDocument>("begun.json")?.is_some() {
            self.begun.insert(attempt);
            news.begun.push(attempt);
        }
        if let Some(EndDocument { container, host, started, ended, mut report }) =
            written.document("report.json")?
        {
            let part = written.part()?;
            if let (AttemptFiles::Remote { .. }, Report::Done(outcome)) = (written, &mut report) {
                // A placeholder lacks the content of the part.
                outcome.output = None;
            }
            if makes_part && part.is_none() && matches!(report, Report::Done(_)) {
                return Ok(());
            }
            self.ended.insert(attempt);
            let container = container.parse().ok();
            news.ended.push(AttemptReport { attempt, container, host, started, ended, report, part });
        }
        Ok(())
    }
}

enum AttemptFiles<'a> {
    /// In a local directory.
    Local(PathBuf),
    /// By name; `here` is the directory for placeholders.
    Remote { placeholders: &'a Placeholders, entries: BTreeMap<String, Entry>, here: PathBuf },
}

impl AttemptFiles<'_> {
    /// Reads a document, if it exists; documents are written atomically.
    fn document<T: for<'de> Deserialize<'de>>(&self, name: &str) -> io::Result<Option<T>> {
        let (path, text) = match self {
            Self::Local(directory) => {
                let path = directory.join(name);
                match regular_file::read(&path, DOCUMENT_MAX) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                    text => {
                        let text = text.map_err(|error| damaged_if_other(&path, error))?;
                        (path.display().to_string(), text)
                    }
                }
            }
            Self::Remote { placeholders, entries, .. } => {
                let Some(entry) = entries.get(name) else { return Ok(None) };
                (entry.path.clone(), placeholders.read(entry)?)
            }
        };
        let read = serde_json::from_slice(&text);
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}"));
        read.map(Some).map_err(damaged)
    }

    /// The part or its placeholder.
    fn part(&self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::Local(directory) => {
                let path = directory.join("part");
                match regular_file::open_no_link(&path) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                    opened => opened.map(|_| Some(path.clone())).map_err(|e| damaged_if_other(&path, e)),
                }
            }
            Self::Remote { placeholders, entries, here } => {
                let Some(entry) = entries.get("part") else { return Ok(None) };
                fs::create_dir_all(here)?;
                let part = here.join("part");
                placeholders.make_placeholder(&part, entry)?;
                Ok(Some(part))
            }
        }
    }
}

/// A file of an attempt that is too large, or no regular file, is damaged: no later poll can read it.
fn damaged_if_other(path: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        }
        _ => error,
    }
}

impl Destination {
    /// The attempts with a directory, and its name.
    fn attempts(&self) -> io::Result<BTreeMap<TaskAttemptId, String>> {
        let names: Vec<String> = match self {
            Self::Local(directory) => match fs::read_dir(directory) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                entries => {
                    let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
                    entries?.filter_map(|entry| entry.map(name).transpose()).collect::<io::Result<_>>()?
                }
            },
            Self::Remote { placeholders, uri, .. } => {
                let entries = placeholders.list(&format!("{}/*", escaped(uri)))?;
                entries.iter().filter_map(|entry| Some(entry.path.rsplit_once('/')?.1.to_owned())).collect()
            }
        };
        Ok(names.into_iter().filter_map(|name| Some((name.parse().ok()?, name))).collect())
    }

    /// The files in the directory of an attempt.
    fn files_of(&self, name: &str, attempt: TaskAttemptId) -> io::Result<AttemptFiles<'_>> {
        match self {
            Self::Local(directory) => Ok(AttemptFiles::Local(directory.join(name))),
            Self::Remote { placeholders, uri, here } => {
                let named = |entry: Entry| Some((entry.path.rsplit_once('/')?.1.to_owned(), entry));
                let entries = placeholders.list(&format!("{}/*", escaped(&format!("{uri}/{name}"))))?;
                let entries = entries.into_iter().filter_map(named).collect();
                Ok(AttemptFiles::Remote { placeholders, entries, here: here.join(attempt.to_string()) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::hdfs_placeholders::tests::{Disk, SYSTEM};

    fn here(path: &Path) -> Destination {
        Destination::Local(path.to_owned())
    }

    /// Of a job with many tasks, none of which makes a part.
    fn any(task: TaskId) -> Option<bool> {
        (task.number < 1000).then_some(false)
    }

    /// What is new, and what went wrong.
    fn read(
        reports: &mut ReportReader,
        destination: &Destination,
        (makes_part, lasts): (impl Fn(TaskId) -> Option<bool>, Duration),
    ) -> (NewReports, io::Result<()>) {
        let mut news = NewReports::default();
        let read = reports.read(destination, makes_part, lasts, &mut news);
        (news, read)
    }

    /// What is new in a directory of which all can be read.
    fn all(
        reports: &mut ReportReader,
        directory: &Path,
        makes_part: impl Fn(TaskId) -> Option<bool>,
    ) -> NewReports {
        let (news, result) = read(reports, &here(directory), (makes_part, Duration::MAX));
        result.unwrap();
        assert!(reports.is_complete());
        news
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
        let mut reports = ReportReader::default();
        for place in [directory.path().join("missing"), directory.path().to_owned()] {
            let news = all(&mut reports, &place, any);
            assert!(news.begun.is_empty() && news.ended.is_empty());
        }
    }

    #[test]
    fn each_document_is_news_once() {
        let done: Report = serde_json::from_str(DONE).unwrap();
        let text = report("container_1_0001_01_000002", DONE);
        let directory = with(&[(&named("begun.json"), "{}"), (&named("part"), "x")]);
        let mut reports = ReportReader::default();
        let news = all(&mut reports, directory.path(), any);
        assert_eq!((news.begun, news.ended.len()), (vec![ATTEMPT.parse().unwrap()], 0));
        fs::write(directory.path().join(named("report.json")), text).unwrap();
        let news = all(&mut reports, directory.path(), any);
        assert!(news.begun.is_empty());
        let [ended] = news.ended.as_slice() else { panic!("found {news:?}, expected one report") };
        assert_eq!((&ended.report, ended.container), (&done, "container_1_0001_01_000002".parse().ok()));
        assert_eq!(ended.part, Some(directory.path().join(named("part"))));
        assert!(all(&mut reports, directory.path(), any).ended.is_empty());
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
        let news = all(&mut ReportReader::default(), directory.path(), any);
        assert!(news.begun.is_empty() && news.ended.is_empty(), "{news:?}");
    }

    #[test]
    fn a_task_is_done_when_its_part_is_there_and_it_is_one_of_the_job() {
        let text = report("container_1_0001_01_000002", DONE);
        let directory = with(&[(&named("report.json"), &text), (&named("begun.json"), "{}")]);
        let mut reports = ReportReader::default();
        let none = all(&mut reports, directory.path(), |_| None);
        assert!(none.begun.is_empty() && none.ended.is_empty());
        let news = all(&mut reports, directory.path(), |_| Some(true));
        assert_eq!((news.begun.len(), news.ended.len()), (1, 0));
        fs::write(directory.path().join(named("part")), "x").unwrap();
        assert_eq!(all(&mut reports, directory.path(), |_| Some(true)).ended.len(), 1);
    }

    #[test]
    fn a_container_without_a_name_is_none() {
        let text = report("", DONE);
        let directory = with(&[(&named("report.json"), &text)]);
        let news = all(&mut ReportReader::default(), directory.path(), any);
        assert_eq!(news.ended[0].container, None);
        assert_eq!(news.ended[0].part, None);
    }

    #[test]
    fn a_pipe_or_a_link_in_place_of_a_file_is_damage() {
        let pipe = |path: &Path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let link = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        for file in ["begun.json", "report.json", "part"] {
            for make in [&pipe as &dyn Fn(&Path), &link] {
                let directory = with(&[(&named("report.json"), &report("", DONE))]);
                let path = directory.path().join(named(file));
                let _ = fs::remove_file(&path);
                make(&path);
                let (_, result) = read(
                    &mut ReportReader::default(),
                    &here(directory.path()),
                    (|_| Some(true), Duration::MAX),
                );
                let error = result.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{file}: {error}");
                assert!(error.to_string().contains("expected a regular file"), "{file}: {error}");
            }
        }
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
            let (_, result) =
                read(&mut ReportReader::default(), &here(directory.path()), (any, Duration::MAX));
            let error = result.unwrap_err().to_string();
            assert!(error.contains("attempt_1_0001_m_000003_0/report.json: "), "{text:?}: {error}");
        }
    }

    /// The tasks of attempts that have ended.
    fn tasks(news: &NewReports) -> Vec<u32> {
        news.ended.iter().map(|ended| ended.attempt.task.number).collect()
    }

    /// The file of the first attempt of a map.
    fn of(task: u32, file: &str) -> String {
        format!("attempt_1_0001_m_{task:06}_0/{file}")
    }

    #[test]
    fn unread_reports_are_read_at_the_next_poll() {
        let text = report("", DONE);
        let names = [1, 2, 3].map(|task| of(task, "report.json"));
        let directory = with(&names.each_ref().map(|name| (name.as_str(), text.as_str())));
        let mut reports = ReportReader::default();
        for task in 1..=3 {
            let (news, result) = read(&mut reports, &here(directory.path()), (any, Duration::ZERO));
            result.unwrap();
            assert_eq!((tasks(&news), reports.is_complete()), (vec![task], task == 3));
        }
    }

    #[test]
    fn an_unreadable_report_neither_removes_nor_delays_others() {
        let text = report("", DONE);
        let names = [1, 3].map(|task| of(task, "report.json"));
        let directory = with(&names.each_ref().map(|name| (name.as_str(), text.as_str())));
        // A file in the place of the directory of an attempt.
        fs::write(directory.path().join(of(2, "").trim_end_matches('/')), "").unwrap();
        let mut reports = ReportReader::default();
        for ended in [1, 3] {
            let (news, result) = read(&mut reports, &here(directory.path()), (any, Duration::MAX));
            assert_eq!(tasks(&news), [ended]);
            assert!(
                result.is_err_and(|error| error.kind() != io::ErrorKind::InvalidData)
                    && !reports.is_complete()
            );
        }
    }

    #[test]
    fn directories_of_attempts_that_have_ended_are_not_listed_again() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::new(&directory.path().join("disk")));
        disk.put(&format!("run/{}", of(1, "report.json")), &report("", DONE));
        disk.put(&format!("run/{}", of(2, "begun.json")), "{}");
        let placeholders = Placeholders::new(directory.path().join("mirror"), disk.clone(), SYSTEM, "me");
        let here = directory.path().join("parts");
        let there =
            Destination::Remote { placeholders: Arc::new(placeholders), uri: format!("{SYSTEM}/run"), here };
        let mut reports = ReportReader::default();
        let (news, result) = read(&mut reports, &there, (any, Duration::MAX));
        result.unwrap();
        assert_eq!((tasks(&news), news.begun.len()), (vec![1], 1));
        let (one, two) = (format!("run/{}", of(1, "*")), format!("run/{}", of(2, "*")));
        let listed = |names: &[&str]| names.iter().map(|name| format!("{SYSTEM}/{name}")).collect::<Vec<_>>();
        assert_eq!(disk.lists(), listed(&["run/*", &one, &two]));
        disk.put(&format!("run/{}", of(2, "report.json")), &report("", DONE));
        let (news, result) = read(&mut reports, &there, (any, Duration::MAX));
        result.unwrap();
        assert_eq!((tasks(&news), disk.lists()), (vec![2], listed(&["run/*", &two])));
    }
}
