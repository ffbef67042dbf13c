//! The worker process, which runs attempts one after the other.
//!
//! Its protocol: each line of standard input is a [`Spec`], as JSON; the answer is a line of standard output,
//! a [`Report`]. Built-in programs run in the process itself, commands as its children. When an attempt ends,
//! in any way, no process of its commands is left: the worker adopts processes that lose their parent (it is
//! a subreaper), so that it finds all of them among its descendants, and kills them before it reports.
//!
//! The caller keeps the worker's standard input open: when it closes, because the engine closed it or died,
//! the worker ends. Its processes get TERM, and KILL after [`shutdown::GRACE`]. An engine starts it as leader
//! of a separate process group (otherwise the worker makes itself one).

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use crate::base::system;
use crate::process::report::Report;
use crate::process::shutdown;
use crate::process::spec::Spec;
use crate::process::worker_command::ARGUMENT;
use crate::{attempt, container};

/// Runs the worker to its end if this program was started as one, also for one task in a [`container`]. A
/// program that runs flows on this machine begins with this call, and ends with the exit code that it
/// returns. It also [prepares](system::prepare) the process.
pub fn main_if_asked() -> Option<ExitCode> {
    system::prepare();
    std::env::args_os().skip(1).eq([ARGUMENT]).then(main).or_else(container::main_if_asked)
}

/// Runs the worker to its end.
pub fn main() -> ExitCode {
    if let Err(error) = shutdown::end_when_closed(io::stdin()) {
        // The report answers the first attempt.
        let _ = io::stdin().lock().read_line(&mut String::new());
        let _ = write_report(&Report::failed(shutdown::no_thread(&error)));
        return ExitCode::FAILURE;
    }
    let (mut input, mut line, mut is_first) = (io::stdin().lock(), String::new(), true);
    loop {
        line.clear();
        let spec = match input.read_line(&mut line) {
            Ok(0) if !is_first => return ExitCode::SUCCESS,
            Ok(_) => serde_json::from_str::<Spec>(&line)
                .map_err(|e| format!("standard input holds no attempt: {e}")),
            Err(e) => Err(format!("cannot read the attempt from standard input: {e}")),
        };
        let is_attempt = spec.is_ok();
        let report = match spec {
            Ok(spec) => shutdown::supervise(|| Report::of(attempt::run(&spec))),
            Err(message) => Report::failed(message),
        };
        if write_report(&report).is_err() || !is_attempt {
            return ExitCode::FAILURE;
        }
        is_first = false;
    }
}

fn write_report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_string(report).expect("invariant: a report can be written as JSON");
    line.push('\n');
    io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush())
}
