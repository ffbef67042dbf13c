//! Commands of the shell, by the contract of Hadoop Streaming: they are fed on standard input, say
//! `key TAB value` lines on standard output, and are judged by their exit status.
//!
//! One thread feeds, one keeps standard error, the caller's consumes; so no command blocks on a full
//! pipe. A command may stop reading early: that is no error. It runs in the process group of its
//! worker, with which it can be killed. Its end is its task's end: background processes that it leaves
//! are not waited for (see [`super::pipe`]).

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use super::TaskError;
use super::error::at;
use super::input::Blocks;
use super::log::{self, Log};
use super::pairs::Cursor;
use super::pipe::{CommandInput, Running, Said};

/// A command and what it needs to run.
#[derive(Clone, Debug)]
pub(super) struct Streaming {
    pub(super) role: &'static str,
    pub(super) command: String,
    /// The attempt's directory.
    pub(super) directory: PathBuf,
    /// Takes its standard error.
    pub(super) log: Log,
    /// Set in its environment.
    pub(super) environment: Vec<(&'static str, String)>,
    /// The longest line it may say, bytes.
    pub(super) record_limit: usize,
}

/// The standard input of a command.
pub(super) struct Feed<'a> {
    out: BufWriter<CommandInput<'a>>,
}

impl Feed<'_> {
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
        feed: impl FnOnce(&mut Feed<'_>) -> Result<(), TaskError> + Send,
        consume: impl FnOnce(Said<'_, ChildStdout>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let mut child = self.spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("invariant: both are piped");
        let stderr = child.stderr.take().expect("invariant: it is piped");
        let command = Running::new(child);
        let unfed = || at("cannot feed a command of", &self.directory);
        let consumed = thread::scope(|scope| {
            scope.spawn(|| self.log.keep(Said::new(stderr, &command)));
            let feeder = scope.spawn(|| {
                let told = CommandInput::new(stdin, &command).map_err(unfed())?;
                let mut input = Feed { out: BufWriter::with_capacity(1 << 16, told) };
                feed(&mut input)?;
                input.close().map_err(unfed())
            });
            let consumed = consume(Said::new(stdout, &command));
            if consumed.is_err() {
                // Its output is lost already.
                command.kill();
            }
            let fed = feeder.join().expect("invariant: feeding does not panic");
            if fed.is_err() {
                command.kill();
            }
            fed.and(consumed)
        });
        let status = command.wait().map_err(at("cannot wait for a command of", &self.directory))?;
        let consumed = consumed?;
        if status.success() { Ok(consumed) } else { Err(self.failed(status)) }
    }

    /// Lets it combine sorted partitions, which `open` gives; its pairs go to `take`.
    pub(super) fn combine<C: Cursor>(
        &self,
        partitions: usize,
        open: &(impl Fn(usize) -> Result<C, TaskError> + Sync),
        take: &mut impl FnMut(&[u8], &[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let feed = |feed: &mut Feed<'_>| {
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
    pub(super) fn feed_pairs(
        &self,
        feed: &mut Feed<'_>,
        cursor: &mut impl Cursor,
    ) -> Result<bool, TaskError> {
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
        stdout: impl Read,
        take: &mut impl FnMut(&[u8], &[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut blocks = Blocks::new(stdout, self.record_limit);
        loop {
            let line = blocks.line().map_err(|e| self.unreadable(e))?;
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
        TaskError::Command {
            role: self.role,
            command: self.command.clone(),
            status: status.to_string(),
            stderr: log::last_lines(&self.directory),
            exit: status.code().and_then(|code| u8::try_from(code).ok()),
        }
    }

    fn unreadable(&self, source: io::Error) -> TaskError {
        TaskError::Said { role: self.role, command: self.command.clone(), source }
    }
}
