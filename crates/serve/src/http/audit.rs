//! The audit log: accepted requests that change something, one JSON line each. Refused requests have a
//! separate file (`Refusals`), so that they cannot displace accepted ones. A large file is renamed, and the
//! oldest renamed file is removed.

use std::fs::{File, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use slackline_model::printable::escaped_line;
use slackline_task::base::regular_file;
use tokio::time::Instant;

use crate::http::audit_line::Line;
use crate::http::refusals::Refusals;
use crate::lock;

/// A file of this size or more is renamed, bytes.
const LARGE: u64 = 16 << 20;

/// The number of renamed files that are kept.
const KEPT: usize = 7;

/// The most lines that wait for the disk. Further lines are counted as lost.
const WAITING: usize = 10_000;

/// The interval between two checks for refused requests whose minute has ended.
const TICK: Duration = Duration::from_secs(5);

/// The audit log. A thread writes it, so that a slow disk delays no response.
pub struct Audit {
    lines: Option<SyncSender<Line>>,
    refusals: Arc<Mutex<Refusals>>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// Counters since the start of this process.
#[derive(Debug, Default)]
struct Counts {
    lost: AtomicU64,
    refused: AtomicU64,
    limited: AtomicU64,
}

impl Audit {
    /// Starts the thread. It writes accepted requests to one file and refused ones to the other.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn open(accepted: &Path, refused: &Path) -> io::Result<Self> {
        let files = [Rotated::open(accepted, LARGE)?, Rotated::open(refused, LARGE)?];
        let (lines, received) = sync_channel(WAITING);
        let (refusals, counts) = (Arc::<Mutex<Refusals>>::default(), Arc::<Counts>::default());
        let (of_thread, counted) = (Arc::clone(&refusals), Arc::clone(&counts));
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || work(files, &received, &of_thread, &counted.lost))?;
        Ok(Self { lines: Some(lines), refusals, counts, thread: Some(thread) })
    }

    pub fn accepted(&self, line: Line) {
        if let Some(lines) = &self.lines
            && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line.cut())
        {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a refused request, and logs it unless its source has a line in this minute. If a denied source
    /// has reached its limit, returns the time after which it may retry.
    pub fn refused(&self, source: &str, line: Line) -> Option<Duration> {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        let is_denied = line.is_denied();
        let mut refusals = lock(&self.refusals);
        let verdict = refusals.add(source, line.cut(), Instant::now());
        drop(refusals);
        verdict.line.into_iter().for_each(|line| self.accepted(line));
        let retry = verdict.retry.filter(|_| is_denied);
        self.counts.limited.fetch_add(u64::from(retry.is_some()), Ordering::Relaxed);
        retry
    }

    /// The number of lines that were not written, because the disk was full or too slow.
    pub fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::Relaxed)
    }

    /// The number of refused requests, and how many of them exceeded the limit of their source.
    pub fn refused_and_limited(&self) -> [u64; 2] {
        [&self.counts.refused, &self.counts.limited].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Audit {
    /// Writes all waiting lines.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(mut files: [Rotated; 2], lines: &Receiver<Line>, refusals: &Mutex<Refusals>, lost: &AtomicU64) {
    loop {
        let first = lines.recv_timeout(TICK);
        let is_over = first == Err(RecvTimeoutError::Disconnected);
        let due = {
            let now = (!is_over).then(Instant::now);
            lock(refusals).due(now)
        };
        let mut texts = [(Vec::new(), 0), (Vec::new(), 0)];
        for line in first.into_iter().chain(lines.try_iter().take(WAITING)).chain(due) {
            let (text, n) = &mut texts[usize::from(line.is_refused())];
            let json = serde_json::to_string(&line).expect("invariant: a line can be written as JSON");
            text.extend_from_slice(escaped_line(&json).as_bytes());
            text.push(b'\n');
            *n += 1;
        }
        for (file, (text, n)) in files.iter_mut().zip(texts) {
            if n > 0 && file.write(&text).is_err() {
                lost.fetch_add(n, Ordering::Relaxed);
            }
        }
        if is_over {
            return;
        }
    }
}

/// A file that is renamed when it is large.
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

    /// Renames the file to `.1`, the previous `.1` to `.2`, and so on.
    fn move_aside(&mut self) -> io::Result<()> {
        let numbered = |n: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..KEPT).rev() {
            // Some of these files may not exist.
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
            at: crate::timestamp(slackline_model::WallTime(7)),
            principal: Some("anna".into()),
            role: None,
            from: "unix:1000".into(),
            method: "POST".into(),
            path: "/api/v1/submissions".into(),
            status: n,
            said: Some("with \"quotes\" and words".into()),
            more: 0,
        }
    }

    #[test]
    fn lines_are_added_to_those_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let (path, refused) = (dir.path().join("audit.log"), dir.path().join("refused.log"));
        for round in 0..2 {
            let audit = Audit::open(&path, &refused).unwrap();
            (0..100).for_each(|n| audit.accepted(line(100 * round + n)));
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

    #[test]
    fn refused_requests_leave_accepted_lines_alone_and_are_all_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (path, refused) = (dir.path().join("audit.log"), dir.path().join("refused.log"));
        let audit = Audit::open(&path, &refused).unwrap();
        audit.accepted(line(200));
        let long = Line { path: "/\u{9b}".repeat(5_000), said: Some("x".repeat(9_000)), ..line(401) };
        let limited = (0..20_000).filter(|_| audit.refused("10.0.0.1", long.clone()).is_some()).count();
        assert!(limited > 0, "none was limited");
        assert_eq!((audit.lost(), audit.refused_and_limited()), (0, [20_000, limited as u64]));
        drop(audit);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        let text = std::fs::read_to_string(&refused).unwrap();
        let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.iter().map(|line| 1 + line.more).sum::<u64>(), 20_000);
        // A loaded machine may need more than a minute.
        assert!(text.len() < 20_000 && slackline_model::printable::escaped(&text) == text, "{text:?}");
    }
}
