//! The connection to a machine: a local process whose standard input and output are those of the agent.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use slackline_task::process::process_tree::{self, MARK};

use super::lines::Lines;
use super::protocol::LINE_MAX;
use crate::store::pid_file::PidFile;

/// How long the last words on standard error may be that are remembered, bytes.
const WORDS: usize = 1 << 10;

/// The time for an agent and its processes to end after their input has ended, before the link is asked to
/// end.
pub(super) const ORDERLY: Duration = Duration::from_secs(5);
/// The further time before the link is killed. A killed `srun` continues on the other side.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// A way to a machine.
pub(crate) trait Link: Send {
    /// Starts an agent there. `pid_file` is where a process of this machine is noted down, if there is one.
    ///
    /// # Errors
    /// An error of the system.
    fn open(&mut self, pid_file: PathBuf) -> io::Result<Line>;
}

/// A command that reaches a machine and starts an agent there.
#[derive(Clone, Debug)]
pub(crate) struct LinkCommand {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Variables that it is not to find in its environment.
    pub(crate) unset: &'static [&'static str],
}

impl Link for LinkCommand {
    fn open(&mut self, pid_file: PathBuf) -> io::Result<Line> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        for name in self.unset {
            command.env_remove(name);
        }
        let mut child = command
            .args(&self.args)
            .env(MARK, process_tree::mark(&pid_file))
            // What interrupts the run is its own affair: it ends the agents when it has ended itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                io::Error::new(e.kind(), format!("{}: cannot be started: {e}", self.program.display()))
            })?;
        let pid_file = match PidFile::create(pid_file, u64::from(child.id())) {
            Ok(pid_file) => pid_file,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr) = pipes.expect("invariant: all three are piped");
        Line::new(stdin.into(), stdout.into(), Some((child, stderr.into(), pid_file)))
    }
}

/// A line to an agent, in both directions.
pub(crate) struct Line {
    /// None once nothing more is sent.
    stdin: Option<File>,
    stdout: File,
    /// Bytes that could not be written yet.
    unsaid: Vec<u8>,
    input: Lines,
    /// Whether its output has ended.
    is_over: bool,
    process: Option<LineProcess>,
}

/// The local process of a connection.
struct LineProcess {
    child: Child,
    stderr: Option<File>,
    /// The end of its standard error.
    words: Vec<u8>,
    /// Removed with it.
    #[expect(dead_code, reason = "it says who it is as long as it is there")]
    pid_file: PidFile,
}

/// The awaited events of a connection.
pub(super) struct LineInterest<'a> {
    /// To be read from.
    pub(super) reads: Vec<BorrowedFd<'a>>,
    /// To be written to.
    pub(super) write: Option<BorrowedFd<'a>>,
}

impl Line {
    /// A line of two pipes.
    ///
    /// # Errors
    /// An error of the system.
    fn new(stdin: OwnedFd, stdout: OwnedFd, process: Option<(Child, OwnedFd, PidFile)>) -> io::Result<Self> {
        let (stdin, stdout) = (File::from(stdin), File::from(stdout));
        rustix::io::ioctl_fionbio(&stdin, true)?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        let process = process
            .map(|(child, stderr, pid_file)| {
                rustix::io::ioctl_fionbio(&stderr, true)?;
                let stderr = Some(File::from(stderr));
                Ok::<_, io::Error>(LineProcess { child, stderr, words: Vec::new(), pid_file })
            })
            .transpose()?;
        Ok(Self {
            stdin: Some(stdin),
            stdout,
            unsaid: Vec::new(),
            input: Lines::default(),
            is_over: false,
            process,
        })
    }

    /// A line within this process, for tests.
    #[cfg(test)]
    pub(crate) fn of_pipes(stdin: io::PipeWriter, stdout: io::PipeReader) -> Self {
        Self::new(stdin.into(), stdout.into(), None).unwrap()
    }

    /// Has bytes said by the next [`Line::tell`].
    pub(super) fn say(&mut self, bytes: &[u8]) {
        if self.stdin.is_some() {
            self.unsaid.extend_from_slice(bytes);
        }
    }

    /// The output that is not sent yet, bytes.
    pub(super) fn unsaid(&self) -> usize {
        self.unsaid.len()
    }

    /// Sends as much of the pending output as the line takes. A broken line shows as the end of its input.
    pub(super) fn tell(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        let mut event = 0;
        while event < self.unsaid.len() {
            match stdin.write(&self.unsaid[event..]) {
                Ok(written) => event += written,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.close();
                    return;
                }
            }
        }
        self.unsaid.drain(..event);
    }

    /// Tells it no more: that is the order to end.
    pub(super) fn close(&mut self) {
        self.stdin = None;
        self.unsaid = Vec::new();
    }

    /// The awaited events.
    pub(super) fn wanted(&self) -> LineInterest<'_> {
        let stderr = self.process.as_ref().and_then(|process| process.stderr.as_ref());
        let stdout = (!self.is_over).then_some(&self.stdout);
        let reads = [stdout, stderr].into_iter().flatten().map(File::as_fd).collect();
        let write = self.stdin.as_ref().filter(|_| !self.unsaid.is_empty()).map(File::as_fd);
        LineInterest { reads, write }
    }

    /// Reads its output: whole lines, and whether it has ended.
    pub(super) fn hear(&mut self) -> (Vec<Vec<u8>>, bool) {
        if let Some(process) = &mut self.process {
            process.hear();
        }
        let mut block = [0; 1 << 14];
        self.is_over = self.is_over
            || loop {
                match self.stdout.read(&mut block) {
                    Ok(0) => break true,
                    Ok(read) => self.input.add(&block[..read]),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break false,
                    Err(_) => break true,
                }
                if self.input.len() > LINE_MAX {
                    break false;
                }
            };
        (self.input.take(), self.is_over)
    }

    /// Whether a line of its output is too long.
    pub(super) fn babbles(&self) -> bool {
        self.input.len() > LINE_MAX
    }

    /// The start of an incomplete line.
    pub(super) fn rest(&self) -> &[u8] {
        self.input.rest()
    }

    /// The last words of its process, in a line, if it had any.
    pub(super) fn words(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        process.hear();
        let text = String::from_utf8_lossy(&process.words);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        (!last.is_empty()).then_some(last)
    }

    /// The number of its process; none if it has none.
    pub(super) fn pid(&self) -> Option<u64> {
        self.process.as_ref().map(|process| u64::from(process.child.id()))
    }

    /// Whether its process has ended; one without a process has ended when its other ends are closed.
    pub(super) fn is_gone(&mut self) -> bool {
        self.process.as_mut().is_none_or(|process| !matches!(process.child.try_wait(), Ok(None)))
    }

    /// Sends its process a signal. Its number is its own until it has been waited for.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process_tree::signal(u64::from(process.child.id()), signal);
        }
    }
}

impl LineProcess {
    /// Reads its standard error, and keeps the last part.
    fn hear(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut block = [0; 1 << 12];
        loop {
            match stderr.read(&mut block) {
                Ok(read) if read > 0 => {
                    self.words.extend_from_slice(&block[..read]);
                    let more = self.words.len().saturating_sub(WORDS);
                    self.words.drain(..more);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => {
                    self.stderr = None;
                    return;
                }
            }
        }
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        // A caller that drops it without waiting for its end has no more time for it.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
