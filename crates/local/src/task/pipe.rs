//! The ends of a command's pipes, which are followed no longer than the command lives: a background
//! process that it leaves behind may hold the other ends for ever.
//!
//! Such a process stays in the process group of its worker, which is killed when the attempt is over.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Mutex, MutexGuard};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A pipe that is silent for so long, 100 ms, is given up if its command has ended.
const SILENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The most that is read of a pipe after the end of its command, bytes: more than a pipe holds, so that
/// all that the command itself said is read, and little of a background process that never stops.
const LATE_MAX: usize = 16 << 20;

/// A command that was started.
pub(super) struct Running(Mutex<Child>);

impl Running {
    pub(super) fn new(child: Child) -> Self {
        Running(Mutex::new(child))
    }

    /// Kills it, if it has not ended.
    pub(super) fn kill(&self) {
        // If it cannot be killed it is gone.
        drop(self.child().kill());
    }

    /// Waits for its end. Nobody else can look after it meanwhile.
    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        self.child().wait()
    }

    /// Whether it has ended; one that cannot be waited for has.
    fn has_ended(&self) -> bool {
        !matches!(self.child().try_wait(), Ok(None))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().expect("invariant: nobody panics while holding the lock")
    }
}

/// What a command says: its standard output or error.
pub(super) struct Said<'a, S> {
    source: S,
    command: &'a Running,
    /// Bytes read after the command's end.
    late: usize,
}

impl<'a, S> Said<'a, S> {
    pub(super) fn new(source: S, command: &'a Running) -> Self {
        Said { source, command, late: 0 }
    }
}

impl<S: Read + AsFd> Read for Said<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            // Asked before the pipe is, in which its last words are by then.
            let has_ended = self.command.has_ended();
            if has_ended && self.late >= LATE_MAX {
                return Ok(0);
            }
            if is_ready(&self.source, PollFlags::IN)? {
                let read = self.source.read(out)?;
                self.late += if has_ended { read } else { 0 };
                return Ok(read);
            }
            if has_ended {
                return Ok(0);
            }
        }
    }
}

/// What a command is told: its standard input. Once it has ended, the pipe is broken.
pub(super) struct Told<'a> {
    sink: ChildStdin,
    command: &'a Running,
}

impl<'a> Told<'a> {
    pub(super) fn new(sink: ChildStdin, command: &'a Running) -> io::Result<Self> {
        // Of this end alone; the command's is another.
        rustix::io::ioctl_fionbio(&sink, true)?;
        Ok(Told { sink, command })
    }
}

impl Write for Told<'_> {
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

/// Waits until a pipe can be read or written, or is closed; not beyond [`SILENCE`].
fn is_ready(pipe: impl AsFd, what: PollFlags) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(&pipe, what)], Some(&SILENCE)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}
