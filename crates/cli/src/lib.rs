//! The program: arguments in, exit codes and progress out. What it does is in the library `slackline`.
//!
//! [`main_with`] is the whole program under a registry of policies, so that a `main` of your own can add one.
//!
//! In reading order:
//! - `args`: groups of flags that mean the same in every verb;
//! - `cmd`: one file per verb;
//! - `input`: what is said of workloads and options on the command line;
//! - `history`: the file of `--history`;
//! - `out`: everything that is printed or written;
//! - `progress`: a bar for whatever takes more than a second.
//!
//! Exit codes: 0 done, 1 the answer is no, 2 wrong use or wrong input.
#![deny(clippy::unwrap_used)]

mod args;
mod cmd;
mod history;
mod input;
mod out;
mod progress;

use std::process::ExitCode;

use slackline::Registry;

use cmd::Answer;

/// The program, with these policies wherever one is named.
#[expect(clippy::needless_pass_by_value, reason = "made where the program begins, for this call alone")]
pub fn main_with(registry: Registry) -> ExitCode {
    // `run` starts this program once for every attempt of a task; that is no verb for people.
    if std::env::args_os().skip(1).eq(["worker"]) {
        return slackline_local::worker::main();
    }
    let cli = match cmd::parse(&registry, std::env::args_os()) {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version come this way too. If the output is closed, the exit code says it all.
            let _ = message.print();
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    match cmd::run(cli, &registry) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if out::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::error(&input::with_flags(error));
            ExitCode::from(2)
        }
    }
}
