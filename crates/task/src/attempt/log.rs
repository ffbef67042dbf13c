//! Standard error of the commands of an attempt. The log has the beginning and the end, within a limit, and
//! is written to disk at once, so that the last lines of a killed command are not lost.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use slackline_model::printable::escaped;

use crate::attempt::reporter::{CommandReports, Filter};
use crate::base::regular_file;
use crate::process::spec::Spec;

/// Largest size of the beginning, bytes.
const HEAD: usize = 1 << 17;
/// Least size of the end, in two files that take turns, bytes.
const TAIL: usize = 1 << 17;
/// The longest line that is passed on as one, bytes.
const LINE_MAX: usize = 1 << 16;
/// Most bytes that are read of each file, which a command may have replaced: more than the files have.
const FILE_MAX: u64 = 1 << 20;
/// Names of the files in an attempt's directory, in the order of their content.
const FILES: [&str; 3] = ["stderr.log", "stderr.tail.1", "stderr.tail"];
/// The last lines that an error message quotes.
const LINES: usize = 10;
/// Largest size of the quotation in an error message, bytes.
const QUOTE: usize = 2000;

/// The kept standard error of an attempt; empty if there was none.
///
/// # Errors
///
/// The error of the system, unless the file does not exist.
pub fn read(directory: &Path) -> io::Result<Vec<u8>> {
    let part = |name: &str| match regular_file::read_end(&directory.join(name), FILE_MAX) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    };
    let [head, older, newer] = FILES.map(part);
    let (mut text, older, newer) = (head?.unwrap_or_default(), older?, newer?);
    if older.is_some() {
        text.extend_from_slice(b"\n[... part left out ...]\n");
    }
    text.extend(older.unwrap_or_default());
    text.extend(newer.unwrap_or_default());
    Ok(text)
}

/// The kept standard error of an attempt, or the reason why it cannot be read: a command may have replaced
/// its files.
pub fn read_or_problem(directory: &Path) -> Vec<u8> {
    read(directory)
        .unwrap_or_else(|error| format!("(the log of the attempt cannot be read: {error})").into_bytes())
}

/// The last lines of an attempt's standard error, for an error message: without control characters for
/// terminals.
pub(crate) fn last_lines(directory: &Path) -> String {
    let text = read_or_problem(directory);
    let text = text.trim_ascii_end();
    let newlines = memchr::memrchr_iter(b'\n', text);
    let start = newlines.take(LINES).nth(LINES - 1).map_or(0, |at| at + 1);
    let start = start.max(text.len().saturating_sub(QUOTE));
    escaped(&String::from_utf8_lossy(&text[start..])).into_owned()
}

/// The log of an attempt, to which all its commands (mapper, combiner) write, with their reports.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    shared: Arc<Mutex<(Files, CommandReports)>>,
    /// Whether all of it is forwarded.
    echo: bool,
}

impl Log {
    pub(crate) fn of(spec: &Spec) -> Self {
        Self::new(&spec.directory, spec.echo)
    }

    fn new(directory: &Path, echo: bool) -> Self {
        let files = Files { directory: directory.to_owned(), file: None, name: 0, size: 0, resources: HEAD };
        Log { shared: Arc::new(Mutex::new((files, CommandReports::default()))), echo }
    }

    /// Copies a command's standard error to the files until it ends, except for reports. A full disk loses
    /// the log, but does not stop the command: the rest is read and dropped.
    pub(crate) fn keep(&self, mut source: impl Read) {
        let (mut block, mut filter, mut text) = (vec![0; 1 << 16], Filter::default(), Vec::new());
        let mut echo = self.echo.then(|| Lines { held: Vec::new(), out: io::stderr() });
        loop {
            match source.read(&mut block) {
                Ok(0) => break,
                Ok(read) => {
                    if let Some(echo) = &mut echo {
                        echo.pass(&block[..read]);
                    }
                    let (files, reported) = &mut *self.locked();
                    filter.pass(&block[..read], reported, &mut text);
                    drop(files.write(&text));
                    text.clear();
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if let Some(echo) = &mut echo {
            echo.end();
        }
        let (files, reported) = &mut *self.locked();
        filter.end(reported, &mut text);
        drop(files.write(&text));
    }

    /// The reports of its commands so far.
    pub(crate) fn reported(&self) -> CommandReports {
        self.locked().1.clone()
    }

    fn locked(&self) -> MutexGuard<'_, (Files, CommandReports)> {
        self.shared.lock().expect("invariant: no thread panics while holding the lock")
    }
}

/// Forwards whole lines, so that those of several commands do not mix. A reader that has ended is no error.
struct Lines<W> {
    /// The beginning of a line.
    held: Vec<u8>,
    out: W,
}

impl<W: Write> Lines<W> {
    fn pass(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        // A very long line is forwarded in pieces.
        let whole = if self.held.len() - whole > LINE_MAX { self.held.len() } else { whole };
        drop(self.out.write_all(&self.held[..whole]));
        self.held.drain(..whole);
    }

    /// At the end: the last line may lack its newline.
    fn end(&mut self) {
        if !self.held.is_empty() {
            self.pass(b"\n");
        }
    }
}

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    file: Option<File>,
    /// Its index in [`FILES`].
    name: usize,
    size: usize,
    resources: usize,
}

impl Files {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.size >= self.resources {
                self.turn()?;
            }
            if self.file.is_none() {
                let path = self.directory.join(FILES[self.name]);
                let file = regular_file::open_to_append(&path)?;
                // An attempt that runs again in its directory finds its earlier log.
                self.size = file.metadata()?.len() as usize;
                self.file = Some(file);
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.resources - self.size));
            if let Some(file) = &mut self.file {
                file.write_all(now)?;
            }
            self.size += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Continues in a new file; the previous one becomes the older part.
    fn turn(&mut self) -> io::Result<()> {
        let [_, older, newer] = FILES.map(|name| self.directory.join(name));
        self.file = None;
        if self.name == 2 {
            fs::rename(&newer, older)?;
        }
        (self.name, self.size, self.resources) = (2, 0, TAIL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_of_a_flood_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let text = (0..200_000).map(|i| format!("line {i}")).collect::<Vec<_>>().join("\n") + "\n";
        Log::new(dir.path(), false).keep(text.as_bytes());
        let kept = String::from_utf8(read(dir.path()).unwrap()).unwrap();
        assert!(kept.len() <= HEAD + 2 * TAIL + 100, "{} bytes", kept.len());
        assert!(kept.starts_with("line 0\nline 1\n") && kept.contains("left out"));
        assert!(kept.ends_with(&text[text.len() - TAIL..]));
        assert_eq!(last_lines(dir.path()).lines().next(), Some("line 199990"));
    }

    #[test]
    fn many_noisy_commands_stay_within_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, noise) = (Log::new(dir.path(), false), vec![b'x'; 100_000]);
        for round in 0..20 {
            // In sequence, in parallel, and in an attempt that is rerun.
            std::thread::scope(|scope| {
                scope.spawn(|| shared.clone().keep(noise.as_slice()));
                scope.spawn(|| shared.clone().keep(noise.as_slice()));
            });
            Log::new(dir.path(), false).keep(format!("round {round}\n").as_bytes());
            let kept = read(dir.path()).unwrap().len();
            assert!(kept <= HEAD + 2 * TAIL + 100, "round {round}: {kept} bytes");
        }
        assert!(last_lines(dir.path()).ends_with("round 19"));
    }

    #[test]
    fn lines_are_passed_on_as_wholes() {
        let mut lines = Lines { held: Vec::new(), out: Vec::new() };
        let mut passed = |bytes: &[u8]| {
            lines.pass(bytes);
            lines.out.len()
        };
        assert_eq!([&b"on"[..], b"e\ntw", b"o", b"\n\nthree"].map(&mut passed), [0, 4, 4, 9]);
        assert_eq!(passed(&vec![b'x'; LINE_MAX]), 14 + LINE_MAX);
        passed(b"four");
        lines.end();
        lines.end();
        assert!(lines.out.starts_with(b"one\ntwo\n\nthreex") && lines.out.ends_with(b"xfour\n"));
    }

    #[test]
    fn short_logs_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        Log::new(dir.path(), false).keep("one\n".as_bytes());
        Log::new(dir.path(), false).keep(b"two \xff\n".as_slice());
        assert_eq!(read(dir.path()).unwrap(), b"one\ntwo \xff\n");
        assert_eq!(last_lines(dir.path()), "one\ntwo \u{fffd}");
    }
}
