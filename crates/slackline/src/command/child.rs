//! The process of the program: starts it in a separate process group, exchanges lines with it, and always
//! ends and reaps it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::stopwatch::Stopwatch;

/// The longest answer, bytes. An order of a million phases is shorter.
const ANSWER_MAX: usize = 16 << 20;

/// The time that a program has to end after its input is closed, and again after SIGTERM.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The number of bytes of standard error that are kept, from its end.
const WORDS_MAX: usize = 4096;

/// A running program. Dropping it ends the program.
pub(super) struct Child {
    process: std::process::Child,
    /// Closed to signal the end of input. Each of the three is `None` after either side has closed it.
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The output after the last answer.
    unread: Vec<u8>,
    /// The end of its standard error.
    words: Vec<u8>,
    /// Whether the process was reaped.
    is_over: bool,
}

/// The reason why an answer is missing.
#[derive(Debug)]
pub(super) enum Silence {
    Late,
    /// It closed its standard output or its standard input, or it ended.
    Closed,
    /// Its line exceeds the limit.
    TooLong,
    /// It sent this output before it was asked.
    Unasked(Vec<u8>),
    /// An error of the operating system.
    System(io::Error),
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Child {
    /// Starts a program, without a shell.
    ///
    /// # Errors
    /// An error of the operating system.
    pub(super) fn start(words: &[String]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut process = Command::new(program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let child = Self {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
            unread: Vec::new(),
            words: Vec::new(),
            is_over: false,
        };
        // Non-blocking, so that a program that does not read or write cannot prevent the timeout.
        child.stdin.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        child.stdout.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        child.stderr.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        Ok(child)
    }

    /// Sends a line, which ends with a line feed. Returns the answer without its line feed.
    ///
    /// # Errors
    /// The reason why the answer is missing.
    pub(super) fn ask(&mut self, line: &[u8], timeout: Duration) -> Result<Vec<u8>, Silence> {
        if !self.unread.is_empty() {
            return Err(Silence::Unasked(std::mem::take(&mut self.unread)));
        }
        let stopwatch = Stopwatch::start();
        let (mut unsent, mut searched) = (line, 0);
        loop {
            self.send(&mut unsent)?;
            self.hear()?;
            if let Some(at) = self.unread[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = self.unread.split_off(searched + at + 1);
                let mut answer = std::mem::replace(&mut self.unread, rest);
                answer.pop();
                return Ok(answer);
            }
            searched = self.unread.len();
            if searched > ANSWER_MAX {
                return Err(Silence::TooLong);
            }
            if self.stdout.is_none() || self.stdin.is_none() {
                return Err(Silence::Closed);
            }
            let left = timeout.saturating_sub(stopwatch.elapsed());
            if left.is_zero() {
                return Err(Silence::Late);
            }
            if self.wait(!unsent.is_empty(), left)? {
                self.stdin = None;
            }
        }
    }

    /// Sends as much as the program accepts now.
    fn send(&mut self, unsent: &mut &[u8]) -> io::Result<()> {
        if unsent.is_empty() {
            return Ok(());
        }
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write(unsent) {
            Ok(n) => *unsent = &unsent[n..],
            Err(error) if is_patient(&error) => {}
            // Output from before it closed its side still counts.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.stdin = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the available output of the program.
    fn hear(&mut self) -> io::Result<()> {
        read(&mut self.stdout, &mut self.unread)?;
        if read(&mut self.stderr, &mut self.words)? {
            let surplus = self.words.len().saturating_sub(WORDS_MAX);
            self.words.drain(..surplus);
        }
        Ok(())
    }

    /// Waits until there is output to read, or until the program accepts input if `sends` is set. Returns
    /// whether the program has closed its standard input.
    fn wait(&self, sends: bool, most: Duration) -> io::Result<bool> {
        let seconds = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
        let most = Timespec { tv_sec: seconds, tv_nsec: most.subsec_nanos().into() };
        let sending = if sends { PollFlags::OUT } else { PollFlags::empty() };
        let mut files = Vec::with_capacity(3);
        files.extend(self.stdin.iter().map(|file| PollFd::new(file, sending)));
        files.extend(self.stdout.iter().map(|file| PollFd::new(file, PollFlags::IN)));
        files.extend(self.stderr.iter().map(|file| PollFd::new(file, PollFlags::IN)));
        match poll(&mut files, Some(&most)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let stdin = self.stdin.iter().zip(&files).next();
        Ok(stdin.is_some_and(|(_, stdin)| stdin.revents().contains(PollFlags::ERR)))
    }

    /// Ends the program: closes its input, sends SIGTERM after `grace`, and after another `grace` kills it
    /// and all its children. Returns its exit status if it ended on its own.
    pub(super) fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        if self.is_over {
            return None;
        }
        self.is_over = true;
        self.stdin = None;
        let group = Pid::from_child(&self.process);
        let by_itself = self.is_gone_within(grace);
        if !by_itself {
            // The process may have ended just now.
            let _ = kill_process_group(group, Signal::TERM);
            self.is_gone_within(grace);
        }
        // The process is not reaped yet, so its number cannot be reused.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.process.kill();
        let status = self.process.wait().ok().filter(|_| by_itself);
        while matches!(read(&mut self.stderr, &mut self.words), Ok(true)) {}
        status
    }

    /// Whether it has ended or ends in time. Does not reap it.
    fn is_gone_within(&mut self, time: Duration) -> bool {
        const LOOK: Duration = Duration::from_millis(2);
        let (stopwatch, id) = (Stopwatch::start(), WaitId::Pid(Pid::from_child(&self.process)));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            if !matches!(waitid(id.clone(), options), Ok(None)) {
                return true;
            }
            let left = time.saturating_sub(stopwatch.elapsed());
            if left.is_zero() || self.hear().is_err() || self.wait(false, left.min(LOOK)).is_err() {
                return false;
            }
            self.unread.clear();
        }
    }

    /// The last lines of its standard error.
    pub(super) fn last_words(&self) -> Vec<String> {
        const LINES: usize = 10;
        let text = String::from_utf8_lossy(&self.words);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].iter().map(|line| super::shown(line, 200)).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

/// Whether a retry can succeed.
fn is_patient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Reads the available bytes; closes a file at its end. Returns whether there were any.
fn read<F: Read>(file: &mut Option<F>, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 1 << 14];
    let Some(open) = file else { return Ok(false) };
    match open.read(&mut buffer) {
        Ok(0) => *file = None,
        Ok(n) => {
            into.extend_from_slice(&buffer[..n]);
            return Ok(true);
        }
        Err(error) if is_patient(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(false)
}
