//! Commands of the shell, by the contract of Hadoop Streaming: they are fed on standard input, say
//! `key TAB value` lines on standard output, and are judged by their exit status.
//!
//! One thread feeds, one keeps standard error, the caller's consumes; so no command blocks on a full
//! pipe. A command may stop reading early: that is no error. It runs in the process group of its
//! worker, with which it can be killed.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use super::error::at;
use super::input::Blocks;
use super::merge::Cursor;
use super::{TaskError, log};

/// A command and what it needs to run.
#[derive(Clone, Debug)]
pub(super) struct Streaming {
    pub(super) role: &'static str,
    pub(super) command: String,
    /// The attempt's directory, for its standard error.
    pub(super) directory: PathBuf,
    /// Set in its environment.
    pub(super) environment: Vec<(&'static str, String)>,
    /// The longest line it may say, bytes.
    pub(super) record_limit: usize,
}

/// The standard input of a command.
pub(super) struct Feed {
    out: BufWriter<ChildStdin>,
}

impl Feed {
    /// Writes pieces of a line; false if the command reads no more.
    pub(super) fn write(&mut self, pieces: &[&[u8]]) -> Result<bool, io::Error> {
        for piece in pieces {
            match self.out.write_all(piece) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                other => other?,
            }
        }
        Ok(true)
    }

    fn close(mut self) -> Result<(), io::Error> {
        match self.out.flush() {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
        // What could not be written must not be tried again.
        drop(self.out.into_parts());
        Ok(())
    }
}

impl Streaming {
    /// Runs the command: `feed` gives it input, `consume` takes its output.
    pub(super) fn run<T>(
        &self,
        feed: impl FnOnce(&mut Feed) -> Result<(), TaskError> + Send,
        consume: impl FnOnce(ChildStdout) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let mut child = self.spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("invariant: both are piped");
        let stderr = child.stderr.take().expect("invariant: it is piped");
        let directory = self.directory.clone();
        let keeper = thread::spawn(move || log::keep(&directory, stderr));
        let consumed = thread::scope(|scope| {
            let feeder = scope.spawn(move || {
                let mut input = Feed { out: BufWriter::with_capacity(1 << 16, stdin) };
                feed(&mut input)?;
                input.close().map_err(at("cannot feed a command of", &self.directory))
            });
            let consumed = consume(stdout);
            if consumed.is_err() {
                // Its output is lost already; if it cannot be killed it is gone.
                drop(child.kill());
            }
            let fed = feeder.join().expect("invariant: feeding does not panic");
            fed.and(consumed)
        });
        if consumed.is_err() {
            drop(child.kill());
        }
        let status = child.wait().map_err(at("cannot wait for a command of", &self.directory))?;
        let consumed = consumed?;
        // After a failure a stray grandchild may hold standard error open, and is not waited for.
        drop(keeper.join());
        if status.success() { Ok(consumed) } else { Err(self.failed(status)) }
    }

    /// Lets it combine sorted partitions, which `open` gives; its pairs go to `take`.
    pub(super) fn combine<C: Cursor>(
        &self,
        partitions: usize,
        open: &(impl Fn(usize) -> Result<C, TaskError> + Sync),
        take: &mut impl FnMut(&[u8], &[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let feed = |feed: &mut Feed| {
            for partition in 0..partitions {
                if !self.feed_pairs(feed, &mut open(partition)?)? {
                    break;
                }
            }
            Ok(())
        };
        self.run(feed, |stdout| self.each_pair(stdout, take))
    }

    /// Feeds `key TAB value` lines; false if the command reads no more.
    pub(super) fn feed_pairs(&self, feed: &mut Feed, cursor: &mut impl Cursor) -> Result<bool, TaskError> {
        while let Some((key, value)) = cursor.current() {
            let written = feed.write(&[key, b"\t", value, b"\n"]);
            if !written.map_err(at("cannot feed a command of", &self.directory))? {
                return Ok(false);
            }
            cursor.advance()?;
        }
        Ok(true)
    }

    /// Calls `take` with each line of the output, cut at its first tab; a line without one is a key.
    pub(super) fn each_pair(
        &self,
        stdout: ChildStdout,
        take: &mut impl FnMut(&[u8], &[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut blocks = Blocks::new(stdout, self.record_limit);
        loop {
            let line = blocks.line().map_err(|e| self.unreadable(&e))?;
            let Some(line) = line else { return Ok(()) };
            match memchr::memchr(b'\t', line) {
                Some(tab) => take(&line[..tab], &line[tab + 1..])?,
                None => take(line, b"")?,
            }
        }
    }

    fn spawn(&self) -> Result<Child, TaskError> {
        Command::new("sh")
            .arg("-c")
            .arg(&self.command)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(at("cannot start", Path::new("sh")))
    }

    fn failed(&self, status: ExitStatus) -> TaskError {
        self.error(status.to_string(), log::last_lines(&self.directory))
    }

    fn unreadable(&self, e: &io::Error) -> TaskError {
        self.error(format!("its output cannot be used: {e}"), String::new())
    }

    fn error(&self, status: String, stderr: String) -> TaskError {
        TaskError::Command { role: self.role, command: self.command.clone(), status, stderr }
    }
}
