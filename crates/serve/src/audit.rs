//! The audit log: who asked for what, and what became of it, a line of JSON each. A file that has grown is moved aside, and the oldest
//! of those goes.

use std::fs::{File, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::thread::JoinHandle;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use slackline_local::regular_file;

/// A file that is larger is moved aside, bytes.
const LARGE: u64 = 16 << 20;

/// So many files that were moved aside are kept.
const KEPT: usize = 7;

/// So many lines may wait to be written; what comes then is counted instead.
const WAITING: usize = 10_000;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// Who; none if nobody is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// From where: `unix:UID`, or an address.
    pub from: String,
    /// The method.
    pub method: String,
    /// The path, with what follows its question mark.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// What was said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// The log, to be written by a thread of its own: a disk that is slow keeps nobody waiting.
pub struct Audit {
    lines: Option<SyncSender<Line>>,
    /// Lines that could not be written.
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Audit {
    /// Begins to write.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = Rotated::open(path, LARGE)?;
        let (lines, received) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || work(file, &received, &counted))?;
        Ok(Self { lines: Some(lines), lost, thread: Some(thread) })
    }

    /// Writes a line down.
    pub fn tell(&self, line: Line) {
        if let Some(lines) = &self.lines
            && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line)
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines could not be written: the disk was full, or too slow.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Audit {
    /// What was told is written.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(mut file: Rotated, lines: &Receiver<Line>, lost: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        // Whatever waits is written together.
        let mut text = Vec::new();
        let mut n = 0;
        for line in std::iter::once(line).chain(lines.try_iter().take(WAITING)) {
            serde_json::to_writer(&mut text, &line).expect("invariant: a line can be written as JSON");
            text.push(b'\n');
            n += 1;
        }
        if file.write(&text).is_err() {
            lost.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// A file that is moved aside when it is large.
struct Rotated {
    path: PathBuf,
    file: File,
    bytes: u64,
    large: u64,
}

impl Rotated {
    fn open(path: &Path, large: u64) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = regular_file::open_private(path).map_err(named)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, large })
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes >= self.large {
            self.move_aside()?;
        }
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// The file becomes `.1`, what was `.1` becomes `.2`, and so on.
    fn move_aside(&mut self) -> io::Result<()> {
        let numbered = |n: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..KEPT).rev() {
            // Not all of them need be there.
            let _ = rename(numbered(n), numbered(n + 1));
        }
        rename(&self.path, numbered(1))?;
        *self = Self::open(&self.path, self.large)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u16) -> Line {
        Line {
            at: crate::timestamp(7),
            who: Some("anna".into()),
            role: None,
            from: "unix:1000".into(),
            method: "POST".into(),
            path: "/api/v1/submissions".into(),
            status: n,
            said: Some("with \"quotes\"\nand lines".into()),
        }
    }

    #[test]
    fn lines_are_added_to_those_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        for round in 0..2 {
            let audit = Audit::open(&path).unwrap();
            (0..100).for_each(|n| audit.tell(line(100 * round + n)));
            assert_eq!(audit.lost(), 0);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, (0..200).map(line).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_is_large_is_moved_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut file = Rotated::open(&path, 10).unwrap();
        for n in 0..20 {
            file.write(format!("line of number {n}\n").as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("audit.log"), "line of number 19\n");
        assert_eq!(
            (read("audit.log.1"), read("audit.log.7")),
            ("line of number 18\n".into(), "line of number 12\n".into())
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 8);
    }
}
