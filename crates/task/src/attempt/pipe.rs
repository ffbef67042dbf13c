//! The ends of a command's pipes, which are read only while the command lives: a background process may hold
//! the other ends forever.
//!
//! The worker kills such a process at the end of the attempt.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Mutex, MutexGuard};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest wait for a pipe between two checks whether its command has ended, 100 ms.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A started command.
pub(crate) struct Running(Mutex<Child>);

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Running(Mutex::new(child))
    }

    /// Kills it, if it has not ended.
    pub(crate) fn kill(&self) {
        // A command that cannot be killed has ended.
        drop(self.child().kill());
    }

    /// Waits for its end. No other thread can wait for it meanwhile.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        self.child().wait()
    }

    /// Whether it has ended; true if its state is not available.
    fn has_ended(&self) -> bool {
        !matches!(self.child().try_wait(), Ok(None))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().expect("invariant: no thread panics while holding the lock")
    }
}

/// An output of a command: its standard output or error.
pub(crate) struct CommandOutput<'a, S> {
    source: S,
    command: &'a Running,
    /// After the end of the command: the number of bytes of its output that are still in the pipe. Later
    /// output is that of a background process.
    left: Option<u64>,
}

impl<'a, S> CommandOutput<'a, S> {
    pub(crate) fn new(source: S, command: &'a Running) -> Self {
        CommandOutput { source, command, left: None }
    }
}

impl<S: Read + AsFd> Read for CommandOutput<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.left.is_none() && self.command.has_ended() {
                self.left = Some(rustix::io::ioctl_fionread(&self.source)?);
            }
            if let Some(left) = &mut self.left {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(out.len());
                let read = if most == 0 { 0 } else { self.source.read(&mut out[..most])? };
                *left -= read as u64;
                return Ok(read);
            }
            if is_ready(&self.source, PollFlags::IN)? {
                return self.source.read(out);
            }
        }
    }
}

/// The standard input of a command. After the end of the command the pipe is broken.
pub(crate) struct CommandInput<'a> {
    sink: ChildStdin,
    command: &'a Running,
}

impl<'a> CommandInput<'a> {
    pub(crate) fn new(sink: ChildStdin, command: &'a Running) -> io::Result<Self> {
        // Only for this end; the command has the other end.
        rustix::io::ioctl_fionbio(&sink, true)?;
        Ok(CommandInput { sink, command })
    }
}

impl Write for CommandInput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.sink.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.command.has_ended() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            is_ready(&self.sink, PollFlags::OUT)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Waits until a pipe can be read or written, or is closed; at most [`PATIENCE`].
fn is_ready(pipe: impl AsFd, what: PollFlags) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(&pipe, what)], Some(&PATIENCE)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}
