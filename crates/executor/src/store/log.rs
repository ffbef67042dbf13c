//! An append-only log in one file. The journal and the finished jobs use it.
//!
//! The file is a header line and records: length, checksum of the text, checksum of these two (each 4 bytes,
//! little endian), text. A record is on disk when `Log::append` returns. A process or machine that dies while
//! it appends leaves part of the last append: the caller never got a confirmation for that tail, and it is
//! cut off. Damage anywhere else is an error; the reader guesses no content.
//!
//! Texts have no byte 0. If the last record has its full length and is wrong, a 0 in it distinguishes pages
//! that never reached the disk from bytes that changed there.

use std::cell::{Cell, RefCell};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use slackline_task::base::activity::during;
use slackline_task::base::file_lock::is_at;
use slackline_task::base::system::lock_refused;
use slackline_task::base::{clock, regular_file};

/// Bytes before each text.
const HEAD: usize = 12;
/// The least space that is reserved for the next appends, bytes.
const ROOM_MIN: u64 = 4 << 10;
/// Time between two attempts to open a log that another process has open.
const PAUSE: Duration = Duration::from_millis(50);

/// The fault of a journal or a history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// An error of the file system.
    #[error("{name}: {problem}")]
    File {
        /// The purpose and the path of the log.
        name: String,
        problem: io::Error,
    },
    #[error("{name}: another process uses it")]
    Busy {
        /// The purpose and the path of the log.
        name: String,
    },
    #[error("{name}: this file is not one of slackline: move it away, or choose another")]
    Foreign {
        /// The purpose and the path of the log.
        name: String,
    },
    /// The file was written as a log, and has changed since.
    #[error("{name}: the file is damaged at byte {at}; {advice}")]
    Damaged {
        /// The purpose and the path of the log.
        name: String,
        at: u64,
        /// The next step, and what the user loses.
        advice: &'static str,
    },
    /// The file was written by another version.
    #[error(
        "{name}: another version of slackline wrote this file, and this version cannot read it: finish the run with \
         that version, or choose another file"
    )]
    Version {
        /// The purpose and the path of the log.
        name: String,
    },
    /// A history that is no document.
    #[error("{problem}")]
    History {
        /// The purpose of the file, the value found, its place, and the value expected.
        problem: String,
    },
    /// A record is not a text of this kind of log.
    #[error("{name}: the file is damaged: {problem}; {advice}")]
    Record {
        /// The purpose and the path of the log.
        name: String,
        problem: String,
        /// The next step, and what the user loses.
        advice: &'static str,
    },
}

/// A kind of log.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name in messages.
    pub name: &'static str,
    /// The first line of its files.
    pub line: &'static str,
    /// The next step for a damaged log, and what the user loses.
    pub advice: &'static str,
    /// Number of attempts to open a log that another process has open; 50 ms apart.
    pub tries: u32,
    /// The most bytes on the disk that an open log reserves for the next appends, so that they succeed on a disk
    /// that other programs have filled; 0 for none. Some file systems cannot reserve.
    pub reserve: u64,
}

/// An open log. While one process may append to it, no other process has it open.
#[derive(Debug)]
pub struct Log {
    file: File,
    name: String,
    kind: Kind,
    /// The end of the reserved space, bytes.
    kept: Cell<u64>,
    /// Whether an append has left bytes that could not be cut off.
    is_broken: Cell<bool>,
    /// The directory of a log that was begun and of which nothing is on disk yet.
    new_in: RefCell<Option<PathBuf>>,
}

impl Log {
    /// Opens a log to append to it, or creates it. Cuts off the rest of an interrupted append. O(bytes).
    ///
    /// # Errors
    /// Another process that has it open, a file that is not a log or is damaged, an error of the file system.
    pub fn open(kind: Kind, path: &Path) -> Result<Self, LogError> {
        let mut log = Self::locked_of(kind, path, || regular_file::open_to_append(path))?;
        let (bytes, end) = log.content()?;
        let cut = |at: u64| {
            log.file.set_len(at)?;
            if at == 0 { (&log.file).write_all(kind.line.as_bytes()) } else { log.file.sync_all() }
        };
        if end < bytes.len() || end == 0 {
            cut(end as u64).map_err(|e| log.refused(e))?;
        }
        if end == 0 {
            // A log without a record does not count: its name is forced out with the first record.
            *log.new_in.get_mut() = path.parent().map(Path::to_owned);
        }
        log.keep_room(end as u64);
        Ok(log)
    }

    /// Reserves space after `end`, if there is any, so that most appends need no new reservation. A long log
    /// belongs to a large run and reserves more.
    fn keep_room(&self, end: u64) {
        let reserve = self.kind.reserve.min((2 * end).max(ROOM_MIN));
        if reserve == 0 || self.kept.get() >= end + reserve / 2 {
            return;
        }
        #[cfg(target_os = "linux")]
        if rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::KEEP_SIZE, end, reserve).is_ok() {
            self.kept.set(end + reserve);
        }
    }

    /// Opens an existing log to read it; its file is unchanged. O(bytes).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_to_read(kind: Kind, path: &Path) -> Result<Self, LogError> {
        Self::locked_of(kind, path, || regular_file::open_no_link(path))
    }

    /// Renames the file of a damaged log; replaces a file of the new name.
    ///
    /// # Errors
    /// Another process that has it open, a file that is not a log, an error of the file system.
    pub(crate) fn set_aside(kind: Kind, path: &Path, to: &Path) -> Result<(), LogError> {
        let mut log = Self::open_to_read(kind, path)?;
        match log.content() {
            Err(LogError::Damaged { .. }) => log.move_to(path, to),
            other => other.map(drop),
        }
    }

    /// Renames the file; replaces a file of the new name.
    ///
    /// # Errors
    /// An error of the file system; then it keeps its name.
    pub fn move_to(&mut self, from: &Path, to: &Path) -> Result<(), LogError> {
        during("move", &self.name, || std::fs::rename(from, to)).map_err(|e| self.refused(e))?;
        self.name = format!("{} {}", self.kind.name, to.display());
        if let Some(directory) = to.parent() {
            // If a directory cannot be synchronised, its names are as safe as possible.
            let _ = File::open(directory).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }

    /// Opens a log to which another process may be appending, and returns whether one has it open; its file
    /// is unchanged. A record that is being appended counts as torn off.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn glance(kind: Kind, path: &Path) -> Result<(Self, bool), LogError> {
        let name = format!("{} {}", kind.name, path.display());
        let file = regular_file::open_no_link(path)
            .map_err(|problem| LogError::File { name: name.clone(), problem })?;
        let log = Self::of_file(kind, name, file);
        // A writer retries for a while, so a reader does not prevent its append.
        let is_busy = match log.file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(problem)) => return Err(log.refused(lock_refused(problem))),
        };
        if !is_busy {
            log.file.unlock().map_err(|e| log.refused(e))?;
        }
        Ok((log, is_busy))
    }

    fn of_file(kind: Kind, name: String, file: File) -> Self {
        let (kept, is_broken) = (Cell::new(0), Cell::new(false));
        Self { file, name, kind, kept, is_broken, new_in: RefCell::default() }
    }

    /// The log of a file that is opened for each try.
    fn locked_of(
        kind: Kind,
        path: &Path,
        mut open: impl FnMut() -> io::Result<File>,
    ) -> Result<Self, LogError> {
        let name = format!("{} {}", kind.name, path.display());
        let refused = |problem| LogError::File { name: name.clone(), problem };
        for left in (0..kind.tries).rev() {
            let file = open().map_err(refused)?;
            match file.try_lock() {
                // The process that had it open may have removed or replaced it meanwhile: then the lock is on
                // a file without a name.
                Ok(()) if is_at(&file, path).map_err(refused)? => {
                    return Ok(Self::of_file(kind, name, file));
                }
                Err(TryLockError::Error(problem)) => return Err(refused(lock_refused(problem))),
                // That process may be about to close it, or be killed and not quite gone.
                Err(TryLockError::WouldBlock) if left > 0 => clock::pause(PAUSE),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
            }
        }
        Err(LogError::Busy { name })
    }

    /// Appends texts; all are on disk when this returns. O(bytes), one write and one flush.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example; then no text is appended.
    pub fn append<'a>(&self, texts: impl IntoIterator<Item = &'a [u8]>) -> Result<(), LogError> {
        self.write(texts, File::sync_data)
    }

    /// Appends texts that are on disk after the next [`Self::append`], or when the file of
    /// [`Self::file_to_force`] was forced out. A process that is killed does not lose them. O(bytes).
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(crate) fn append_unforced<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), LogError> {
        self.write(texts, |_| Ok(()))
    }

    /// The file, to be forced out by another thread.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub(crate) fn file_to_force(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    fn write<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a [u8]>,
        force: fn(&File) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let mut bytes = Vec::new();
        for text in texts {
            debug_assert!(!text.contains(&0), "texts hold no byte 0");
            let mut head = [0; HEAD];
            head[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            head[4..8].copy_from_slice(&crc32fast::hash(text).to_le_bytes());
            let check = crc32fast::hash(&head[..8]).to_le_bytes();
            head[8..].copy_from_slice(&check);
            bytes.extend_from_slice(&head);
            bytes.extend_from_slice(text);
        }
        if self.is_broken.get() {
            return Err(self.refused(io::Error::other("an earlier record could not be written")));
        }
        during("write to", &self.name, || self.append_bytes(&bytes, force)).map_err(|e| self.refused(e))
    }

    fn append_bytes(&self, bytes: &[u8], force: fn(&File) -> io::Result<()>) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let new_in = self.new_in.borrow_mut().take();
        let force = if new_in.is_some() { File::sync_all } else { force };
        let written = (&self.file).write_all(bytes).and_then(|()| force(&self.file));
        if let Some(directory) = new_in {
            // Where a directory cannot be synchronised, its names are as safe as they can be.
            let _ = File::open(directory).and_then(|directory| directory.sync_all());
        }
        match written {
            Ok(()) => self.keep_room(before + bytes.len() as u64),
            Err(_) => self.is_broken.set(self.file.set_len(before).is_err()),
        }
        written
    }

    /// All texts, in the order in which they were appended. O(bytes).
    ///
    /// # Errors
    /// A file that is not such a log or is damaged, an error of the file system.
    pub fn texts(&self) -> Result<Vec<Vec<u8>>, LogError> {
        let (bytes, end) = self.content()?;
        let (mut texts, mut at) = (Vec::new(), self.kind.line.len());
        while at < end {
            let from = at + HEAD;
            at = from + u32_at(&bytes[at..]) as usize;
            texts.push(bytes[from..at].to_vec());
        }
        Ok(texts)
    }

    /// The content of the file, and the end of its whole records; 0 if even its first line is incomplete.
    fn content(&self) -> Result<(Vec<u8>, usize), LogError> {
        let bytes = during("read", &self.name, || regular_file::whole(&self.file, regular_file::LARGEST));
        let bytes = bytes.map_err(|e| self.refused(e))?;
        let line = self.kind.line.as_bytes();
        if !bytes.starts_with(line) {
            return match bytes.as_slice() {
                begun if line.starts_with(begun) => Ok((bytes, 0)),
                other if is_version(line, other) => Err(LogError::Version { name: self.name.clone() }),
                _ => Err(LogError::Foreign { name: self.name.clone() }),
            };
        }
        let mut at = line.len();
        while at < bytes.len() {
            match record(&bytes[at..]) {
                RecordCheck::Whole(len) => at += len,
                RecordCheck::Torn => break,
                RecordCheck::Damaged => {
                    let (name, at) = (self.name.clone(), at as u64);
                    return Err(LogError::Damaged { name, at, advice: self.kind.advice });
                }
            }
        }
        Ok((bytes, at))
    }

    fn refused(&self, problem: io::Error) -> LogError {
        LogError::File { name: self.name.clone(), problem }
    }

    /// The error for a text that is not one of this log.
    pub fn unreadable(&self, problem: &dyn std::fmt::Display) -> LogError {
        LogError::Record {
            name: self.name.clone(),
            problem: format!("invalid record: {problem}"),
            advice: self.kind.advice,
        }
    }
}

/// Whether a file begins like a log of the same kind, apart from the number of its version.
fn is_version(line: &[u8], bytes: &[u8]) -> bool {
    let digits = line.iter().rev().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let kind = &line[..line.len().saturating_sub(1 + digits)];
    bytes.strip_prefix(kind).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.kept.get() > 0
            && let Ok(meta) = self.file.metadata()
        {
            // Releases the reserved space; on failure, it stays with the file.
            let _ = self.file.set_len(meta.len());
        }
    }
}

/// The result of reading a place in a log.
enum RecordCheck {
    /// A record of this many bytes.
    Whole(usize),
    /// The beginning of the last append.
    Torn,
    Damaged,
}

/// Checks the record at the start of bytes, which go to the end of the file.
fn record(bytes: &[u8]) -> RecordCheck {
    if bytes.len() < HEAD {
        return RecordCheck::Torn;
    }
    if crc32fast::hash(&bytes[..8]) != u32_at(&bytes[8..]) {
        let is_unwritten = bytes.len() > HEAD && bytes[HEAD..].iter().all(|&byte| byte == 0);
        return if is_unwritten { RecordCheck::Torn } else { RecordCheck::Damaged };
    }
    let end = HEAD + u32_at(bytes) as usize;
    let Some(text) = bytes.get(HEAD..end) else { return RecordCheck::Torn };
    if crc32fast::hash(text) == u32_at(&bytes[4..]) {
        RecordCheck::Whole(end)
    } else if end == bytes.len() && text.contains(&0) {
        RecordCheck::Torn
    } else {
        RecordCheck::Damaged
    }
}

/// The little-endian number that bytes begin with.
fn u32_at(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests start processes, which have this file open until they execute another program.
    const KIND: Kind =
        Kind { name: "test", line: "a log of a test\n", advice: "", tries: 20, reserve: 1 << 16 };
    const TEXTS: [&[u8]; 3] = [b"one", b"", b"{\"three\": 3}"];

    fn written(path: &Path) -> Vec<u8> {
        let log = Log::open(KIND, path).unwrap();
        log.append(TEXTS[..2].iter().copied()).unwrap();
        log.append([TEXTS[2]]).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn appended_records_are_there_and_no_other_process_may_append_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        written(&path);
        let log = Log::open(KIND, &path).unwrap();
        assert_eq!(log.texts().unwrap(), TEXTS);
        log.append([b"four".as_slice()]).unwrap();
        assert_eq!(log.texts().unwrap().len(), 4);
        assert!(matches!(Log::open(KIND, &path), Err(LogError::Busy { .. })));
        drop(log);
        assert_eq!(Log::open_to_read(KIND, &path).unwrap().texts().unwrap().len(), 4);
    }

    #[test]
    #[cfg(unix)]
    fn a_log_that_was_removed_or_replaced_while_it_was_waited_for_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("log"), dir.path().join("other"));
        let options = || std::fs::OpenOptions::new().create(true).append(true).read(true).to_owned();
        let change: [&dyn Fn(); 2] =
            [&|| std::fs::remove_file(&path).unwrap(), &|| std::fs::rename(&other, &path).unwrap()];
        for change in change {
            let _ = std::fs::remove_file(&path);
            written(&path);
            std::fs::copy(&path, &other).unwrap();
            let mut waiting = Some(options().open(&path).unwrap());
            change();
            let log = Log::locked_of(KIND, &path, || match waiting.take() {
                Some(before) => Ok(before),
                None => options().open(&path),
            });
            // The text is appended to the file of that name, which no other process gets.
            log.unwrap().append([b"more".as_slice()]).unwrap();
            assert!(std::fs::read(&path).unwrap().ends_with(b"more"));
        }
    }

    #[test]
    fn a_tail_that_was_torn_off_anywhere_is_cut_off_and_more_can_be_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let bytes = written(&path);
        let whole = |len: usize| {
            let mut ends = vec![KIND.line.len()];
            for text in TEXTS {
                ends.push(ends[ends.len() - 1] + HEAD + text.len());
            }
            ends.iter().filter(|&&end| end <= len).count().saturating_sub(1)
        };
        for len in 0..=bytes.len() {
            std::fs::write(&path, &bytes[..len]).unwrap();
            let log = Log::open(KIND, &path).unwrap();
            assert_eq!(log.texts().unwrap(), TEXTS[..whole(len)], "{len} bytes");
            log.append([b"more".as_slice()]).unwrap();
            drop(log);
            assert_eq!(Log::open(KIND, &path).unwrap().texts().unwrap().len(), whole(len) + 1);
        }
        // A machine that loses its power leaves the file longer, but without its pages.
        for kept in [bytes.len() - 24, bytes.len() - 20, bytes.len() - 5] {
            let mut zeros = bytes.clone();
            zeros[kept..].fill(0);
            std::fs::write(&path, &zeros).unwrap();
            assert_eq!(Log::open(KIND, &path).unwrap().texts().unwrap(), TEXTS[..2], "{kept} bytes");
        }
    }

    /// Defect 9: a disk that other programs had filled stopped the run.
    #[test]
    fn records_can_still_be_appended_where_others_have_filled_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let mount = |args: &[&str]| {
            let mut command = std::process::Command::new(args[0]);
            command.args(&args[1..]).arg(dir.path()).stderr(std::process::Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !mount(&["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"]) {
            eprintln!("SKIPPED: no disk can be mounted here");
            return;
        }
        let path = dir.path().join("log");
        let log = Log::open(KIND, &path).unwrap();
        log.append([vec![b'x'; 20_000].as_slice()]).unwrap();
        let mut hog = File::create(dir.path().join("hog")).unwrap();
        while hog.write_all(&[1; 4096]).is_ok() {}
        assert_eq!(hog.write_all(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        let text = vec![b'x'; 1000];
        (0..30).for_each(|_| log.append([text.as_slice()]).unwrap());
        // Space is reserved again as soon as there is some.
        hog.set_len(500_000).unwrap();
        (0..30).for_each(|_| log.append([text.as_slice()]).unwrap());
        assert_eq!(log.texts().unwrap().len(), 61);
        drop((log, hog));
        assert!(mount(&["umount"]));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_log_is_a_file_of_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        written(&path);
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let kind = |error: LogError| match error {
            LogError::File { problem, .. } => problem.kind(),
            other => panic!("{other}"),
        };
        assert_eq!(kind(Log::open(KIND, &path).unwrap_err()), io::ErrorKind::FileTooLarge);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(kind(Log::open(KIND, &path).unwrap_err()), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Log::glance(KIND, &path).unwrap_err()), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn any_changed_bit_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let bytes = written(&path);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bad).unwrap();
            let error = Log::open(KIND, &path).unwrap_err();
            let expected =
                if at < KIND.line.len() { "this file is not one of slackline" } else { "is damaged at byte" };
            assert!(error.to_string().contains(expected), "byte {at}: {error}");
            assert_eq!(std::fs::read(&path).unwrap(), bad, "it stays as it is");
        }
    }
}
