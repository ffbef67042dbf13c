//! The files below `pids/`: one for each worker process, with the attempt that it runs, and one of the engine
//! for each running attempt whose progress has changed.
//! The first line is `PID BEGAN BOOT`: the process, its start in ticks since the machine started, and the
//! start of the machine. The second is its attempt as JSON ([`RunningAttempt`]), empty for a worker that
//! waits. The line is overwritten in place, padded with spaces to the same length, without a flush to disk:
//! it only describes living processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use slackline_task::base::regular_file;
use slackline_task::process::process_tree::{self, Process};

use crate::store::running_attempt::RunningAttempt;

/// Length of the second line: longer than its longest content.
const WIDTH: usize = 160;

/// The ending of an engine's files.
pub(crate) const PROGRESS: &str = "progress";

/// Bytes to read of such a file.
const LONGEST: u64 = 1 << 12;

/// The file of a worker with its attempt. It is removed with its worker.
pub(crate) struct PidFile {
    path: PathBuf,
    file: File,
    /// The start of the second line.
    second: u64,
}

impl PidFile {
    /// Creates the file of a worker.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn create(path: PathBuf, pid: u64) -> io::Result<Self> {
        let began = Process::of(pid).map_or(0, |process| process.started);
        let first = format!("{pid} {began} {}\n", process_tree::boot());
        let file = File::create(&path)?;
        let this = Self { path, file, second: first.len() as u64 };
        this.file.write_all_at(first.as_bytes(), 0)?;
        this.note(None);
        Ok(this)
    }

    /// Writes the attempt of the worker. On an error the attempt is not shown.
    pub(crate) fn note(&self, attempt: Option<RunningAttempt>) {
        let text = attempt.map(|attempt| {
            serde_json::to_string(&attempt).expect("invariant: numbers can be written as JSON")
        });
        let text = text.unwrap_or_default();
        let _ = self.file.write_all_at(format!("{text:<WIDTH$}\n").as_bytes(), self.second);
    }

    /// The mark of the processes that its worker starts.
    pub(crate) fn mark(&self) -> String {
        process_tree::mark(&self.path)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that stays names a process that has ended.
        let _ = fs::remove_file(&self.path);
    }
}

/// The content of a pid file.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    pid: u64,
    began: u64,
    boot: String,
    /// The attempt of the worker.
    at_work: Option<RunningAttempt>,
}

impl Content {
    /// `None` if it is not a pid file, such as one that was being written when its engine died.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut words = lines.next()?.split_whitespace();
        let mut number = || words.next()?.parse::<u64>().ok();
        let (pid, began) = (number()?, number()?);
        let boot = words.next().unwrap_or_default().to_owned();
        let attempt = lines.next().and_then(|line| serde_json::from_str::<RunningAttempt>(line).ok());
        let at_work = attempt.map(|attempt| RunningAttempt { process: Some(pid), ..attempt });
        Some(Self { pid, began, boot, at_work })
    }

    /// Whether the worker is alive.
    fn is_alive(&self) -> bool {
        let is_it = |process: Process| process.started == self.began && !process.is_dead;
        self.boot == process_tree::boot() && Process::of(self.pid).is_some_and(is_it)
    }
}

/// Ensures that the process of a pid file has ended; the file may not exist.
///
/// # Errors
/// A file that cannot be read, or a process that does not end within ten seconds.
pub(crate) fn end_process(pid_file: &Path) -> io::Result<()> {
    let text = match fs::read_to_string(pid_file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let Some(content) = Content::parse(&text) else { return Ok(()) };
    let is_gone = process_tree::wait_for(|| {
        if !content.is_alive() {
            return true;
        }
        process_tree::signal(content.pid, Signal::KILL);
        false
    });
    if is_gone {
        return Ok(());
    }
    Err(io::Error::other(format!("process {} still runs after it was killed", content.pid)))
}

/// The pid files of a directory, by path; empty if there is no directory.
fn contents(pids: &Path) -> io::Result<Vec<(PathBuf, Option<Content>)>> {
    let entries = match fs::read_dir(pids) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        match regular_file::read_to_string(&path, LONGEST) {
            Ok(text) => found.push((path, Content::parse(&text))),
            // The worker ended just now.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// The running attempts of the run with this state directory, by number, for any engine. Empty if the run is
/// not running.
///
/// # Errors
/// The directory cannot be read.
pub fn at_work(state: &Path) -> io::Result<Vec<RunningAttempt>> {
    let mut found = contents(&crate::store::layout::Layout::new(state).pids())?;
    found.retain(|(_, content)| content.as_ref().is_some_and(Content::is_alive));
    Ok(attempts(&found))
}

/// The attempts that pid files name, by number, each once: with the process of its worker's file, and the
/// progress of its engine's file.
fn attempts(files: &[(PathBuf, Option<Content>)]) -> Vec<RunningAttempt> {
    let mut found: BTreeMap<Option<u64>, RunningAttempt> = BTreeMap::new();
    for (path, content) in files {
        let Some(attempt) = content.as_ref().and_then(|content| content.at_work) else { continue };
        let one = found.entry(attempt.number()).or_insert(RunningAttempt { process: None, ..attempt });
        if path.extension().is_some_and(|ending| ending == PROGRESS) {
            one.progress = attempt.progress;
        } else {
            one.process = attempt.process;
        }
    }
    found.into_values().collect()
}

/// Ends all processes of the workers of an earlier session, even if the workers themselves have ended, and
/// removes their files. Returns the number of workers that were alive.
///
/// # Errors
/// A file that cannot be read, or a process that does not end within ten seconds.
pub(crate) fn kill_leftovers(pids: &Path) -> io::Result<usize> {
    let found = contents(pids)?;
    let boot = process_tree::boot();
    let is_now = |content: &Content| content.boot == boot;
    let of_now = found.iter().filter(|(_, content)| content.as_ref().is_some_and(is_now));
    let marks: BTreeSet<String> = of_now.map(|(path, _)| process_tree::mark(path)).collect();
    if !marks.is_empty() {
        process_tree::end_marked(&marks)?;
    }
    slackline_task::base::files::remove(pids)?;
    Ok(attempts(&found).iter().filter(|attempt| attempt.process.is_some()).count())
}

#[cfg(test)]
mod tests {
    use slackline_model::PhaseKind;
    use slackline_task::base::task_id::TaskId;

    use super::*;
    use crate::store::running_attempt::AttemptProgress;

    #[test]
    fn a_pid_file_names_the_attempt_of_its_worker() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        fs::create_dir(&pids).unwrap();
        let me = u64::from(std::process::id());
        let file = PidFile::create(pids.join("0"), me).unwrap();
        assert_eq!(at_work(dir.path()).unwrap(), []);
        let id = TaskId { job: 3, phase: PhaseKind::Reduce, task: 7 };
        let attempt = RunningAttempt::on_slot(12, id, 1, 5_000_000);
        file.note(Some(attempt));
        let largest = TaskId { job: u32::MAX, phase: PhaseKind::Reduce, task: u32::MAX };
        let longest = RunningAttempt {
            progress: AttemptProgress { waits: true },
            ..RunningAttempt::on_slot(u64::MAX, largest, u32::MAX, u64::MAX)
        };
        assert!(serde_json::to_string(&longest).unwrap().len() <= WIDTH);
        let expected = RunningAttempt { process: Some(me), ..attempt };
        assert_eq!(at_work(dir.path()).unwrap(), [expected]);
        let (length, text) =
            (fs::metadata(pids.join("0")).unwrap().len(), fs::read_to_string(pids.join("0")).unwrap());
        // The engine's file has the progress of the same attempt, and of an attempt without a process.
        let waits = |attempt| RunningAttempt { progress: AttemptProgress { waits: true }, ..attempt };
        let files = [attempt, RunningAttempt::on_slot(13, id, 0, 6_000_000)].map(|attempt| {
            let file =
                PidFile::create(pids.join(format!("{}.{PROGRESS}", attempt.number().unwrap())), me).unwrap();
            file.note(Some(waits(attempt)));
            file
        });
        let second = RunningAttempt { process: None, ..RunningAttempt::on_slot(13, id, 0, 6_000_000) };
        assert_eq!(at_work(dir.path()).unwrap(), [expected, second].map(waits));
        drop(files);
        assert_eq!(at_work(dir.path()).unwrap(), [expected]);
        file.note(None);
        assert_eq!(fs::metadata(pids.join("0")).unwrap().len(), length, "it is written over in place");
        assert_eq!(at_work(dir.path()).unwrap(), []);
        drop(file);
        assert!(fs::read_dir(&pids).unwrap().next().is_none());
        // A file of another process with the same number, and an incomplete file.
        let began = Process::of(me).unwrap().started;
        fs::write(pids.join("1"), text.replacen(&format!(" {began} "), " 1 ", 1)).unwrap();
        fs::write(pids.join("2"), "12").unwrap();
        assert_eq!(at_work(dir.path()).unwrap(), []);
        assert_eq!(kill_leftovers(&pids).unwrap(), 1);
        assert!(!pids.exists());
        assert_eq!(at_work(dir.path()).unwrap(), []);
    }
}
