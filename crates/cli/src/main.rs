//! The program: arguments in, exit codes out; thin wiring between everything else.
//!
//! In reading order:
//! - [`args`]: groups of flags that mean the same in every verb;
//! - [`cmd`]: one file a verb;
//! - [`input`]: from a workload argument to an instance;
//! - [`recorded`]: options as a schedule records them, so that `check` needs none repeated;
//! - [`history`]: the file of `--history`;
//! - [`lower`]: the lower bounds of an instance;
//! - [`results`]: from what the library found to what is printed of it;
//! - [`out`]: everything that is printed or written;
//! - [`progress`]: a bar for whatever takes more than a second.
//!
//! Exit codes: 0 done, 1 the answer is no, 2 wrong use or wrong input.

mod args;
mod cmd;
mod history;
mod input;
mod lower;
mod out;
mod progress;
mod recorded;
mod results;

use std::process::ExitCode;

use clap::Parser;

use cmd::{Answer, Cli};

fn main() -> ExitCode {
    // `run` starts this program once for every attempt of a task; that is no verb for people.
    if std::env::args_os().skip(1).eq(["worker"]) {
        return slackline_local::worker::main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version come this way too. If nobody listens, the exit code says it all.
            let _ = message.print();
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    match cmd::run(cli) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if out::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::error(&error);
            ExitCode::from(2)
        }
    }
}
