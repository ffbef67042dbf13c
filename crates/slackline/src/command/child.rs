//! The program as a process: started in a group of its own, asked line by line, ended and waited for in every
//! case.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::stopwatch::Stopwatch;

/// The longest answer: an order of a million phases is shorter.
const ANSWER_MAX: usize = 16 << 20;

/// How long a program may take to end by itself once its input is closed, and then again once it is told to
/// end.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Bytes of standard error that are kept: its last lines.
const WORDS_MAX: usize = 4096;

/// A program at work. Dropping it ends it.
pub(super) struct Child {
    process: std::process::Child,
    /// Closed to say that nothing more comes. Each of the three is gone when it is closed on either side.
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What it said beyond the last answer.
    heard: Vec<u8>,
    /// The end of what it said on standard error.
    words: Vec<u8>,
    /// Whether it was waited for.
    is_over: bool,
}

/// Why no answer came.
#[derive(Debug)]
pub(super) enum Silence {
    Late,
    /// It closed its standard output or its standard input, or it ended.
    Closed,
    /// It went on and on without an end of line.
    TooLong,
    /// It had said more than it was asked for: this.
    Unasked(Vec<u8>),
    /// What the system says.
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
    /// What the system says.
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
            heard: Vec::new(),
            words: Vec::new(),
            is_over: false,
        };
        // A program that does not read, or says nothing, must not keep us from noticing that it is late.
        child.stdin.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        child.stdout.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        child.stderr.iter().try_for_each(|file| rustix::io::ioctl_fionbio(file, true))?;
        Ok(child)
    }

    /// Sends a line, which ends with a line feed, and returns the one that comes back, without its line feed.
    ///
    /// # Errors
    /// Why none came.
    pub(super) fn ask(&mut self, line: &[u8], timeout: Duration) -> Result<Vec<u8>, Silence> {
        if !self.heard.is_empty() {
            return Err(Silence::Unasked(std::mem::take(&mut self.heard)));
        }
        let stopwatch = Stopwatch::start();
        let (mut unsent, mut searched) = (line, 0);
        loop {
            self.send(&mut unsent)?;
            self.hear()?;
            if let Some(at) = self.heard[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = self.heard.split_off(searched + at + 1);
                let mut answer = std::mem::replace(&mut self.heard, rest);
                answer.pop();
                return Ok(answer);
            }
            searched = self.heard.len();
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

    /// Sends as much as the program takes now.
    fn send(&mut self, unsent: &mut &[u8]) -> io::Result<()> {
        if unsent.is_empty() {
            return Ok(());
        }
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write(unsent) {
            Ok(n) => *unsent = &unsent[n..],
            Err(error) if is_patient(&error) => {}
            // What it said before it closed its side counts.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.stdin = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes in what the program has said.
    fn hear(&mut self) -> io::Result<()> {
        read(&mut self.stdout, &mut self.heard)?;
        if read(&mut self.stderr, &mut self.words)? {
            let surplus = self.words.len().saturating_sub(WORDS_MAX);
            self.words.drain(..surplus);
        }
        Ok(())
    }

    /// Waits until something can be heard, or sent if there is something to send. Says whether the program
    /// has closed its standard input.
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

    /// Ends the program: its input is closed; if it does not end by itself in `grace`, it is told to, and if
    /// it does not then, it is killed, with whatever it started. Says how it ended, if it did by itself.
    pub(super) fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        if self.is_over {
            return None;
        }
        self.is_over = true;
        self.stdin = None;
        let group = Pid::from_child(&self.process);
        let by_itself = self.is_gone_within(grace);
        if !by_itself {
            // It may have ended by itself just now.
            let _ = kill_process_group(group, Signal::TERM);
            self.is_gone_within(grace);
        }
        // As long as it was not waited for, nothing else can have its number.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.process.kill();
        let status = self.process.wait().ok().filter(|_| by_itself);
        while matches!(read(&mut self.stderr, &mut self.words), Ok(true)) {}
        status
    }

    /// Whether it has ended, or does so in time. It is not waited for.
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
            self.heard.clear();
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

/// Whether it is only a matter of waiting.
fn is_patient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Reads what is there; a file at its end is closed. Says whether something was there.
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
