//! The process in which an attempt runs.
//!
//! Its protocol: the [`task::Spec`] is the first line of standard input, as JSON; a [`Report`] is the
//! only line of standard output; the exit code is 0 or 1. Whoever starts it keeps its standard input
//! open: when that closes, because its engine closed it or died in whatever way, the worker kills its
//! process group, itself and all commands included. (`std::process::Child::wait` closes it too: take it
//! out of the child first.) An engine starts it as leader of a process group
//! of its own (a worker that is not makes itself one), and kills that group when the attempt is over
//! in any way, so that no background process of a command stays.

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::task::{self, Outcome, Spec};

/// How much a report quotes of each end of a long message, bytes. Even where every byte of it needs six in
/// JSON, the report is far below the 1 MiB that an engine reads.
const QUOTE: usize = 32 << 10;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Well.
    Done(Outcome),
    /// Not well.
    Failed {
        /// What stopped it, in words for a person; several lines if a command said something.
        message: String,
    },
}

/// The only argument of a program that is started as a worker of itself.
pub const ARGUMENT: &str = "worker";

/// Runs the worker to its end if this program was started as one. A program that runs flows on this machine begins
/// with it, and ends with what it gives.
pub fn main_if_asked() -> Option<ExitCode> {
    std::env::args_os().skip(1).eq([ARGUMENT]).then(main)
}

/// Runs the worker to its end.
pub fn main() -> ExitCode {
    let report = match read_spec() {
        Ok(spec) => attempt(&spec),
        Err(message) => failed(&message),
    };
    let mut line = serde_json::to_string(&report).expect("invariant: a report can be written as JSON");
    line.push('\n');
    let written = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
    match (report, written) {
        (Report::Done(_), Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn attempt(spec: &Spec) -> Report {
    lead_group();
    // Its end is the process's; there is nothing to wait for.
    thread::spawn(die_with_input);
    match task::run(spec) {
        Ok(outcome) => Report::Done(outcome),
        Err(error) => failed(&error.to_string()),
    }
}

/// Says what went wrong; of a long message, as one that quotes a long command, the beginning and the end.
fn failed(message: &str) -> Report {
    if message.len() <= 2 * QUOTE {
        return Report::Failed { message: message.to_owned() };
    }
    let [head, tail] = [&message.as_bytes()[..QUOTE], &message.as_bytes()[message.len() - QUOTE..]]
        .map(String::from_utf8_lossy);
    Report::Failed { message: format!("{head} [... some of it is left out here ...] {tail}") }
}

fn read_spec() -> Result<Spec, String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|e| format!("cannot read the attempt from standard input: {e}"))?;
    serde_json::from_str(&line).map_err(|e| format!("standard input holds no attempt: {e}"))
}

/// Waits for the end of standard input, then kills the process group.
fn die_with_input() {
    let mut byte = [0];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(0) => break,
            Err(e) if e.kind() != io::ErrorKind::Interrupted => break,
            _ => {}
        }
    }
    kill_group();
    std::process::exit(1);
}

#[cfg(unix)]
fn lead_group() {
    if rustix::process::getpgrp() != rustix::process::getpid() {
        // It is refused to the leader of a session alone, which leads its group.
        let _ = rustix::process::setpgid(None, None);
    }
}

#[cfg(unix)]
fn kill_group() {
    if rustix::process::getpgrp() == rustix::process::getpid() {
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn lead_group() {}

#[cfg(not(unix))]
fn kill_group() {}
