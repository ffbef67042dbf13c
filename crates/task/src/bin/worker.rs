//! A separate worker program, for containers of other systems, tests and measurements. On this machine
//! `slackline` starts its own program again instead.

use slackline_task::{container, worker};

fn main() -> std::process::ExitCode {
    container::main_if_asked().unwrap_or_else(worker::main)
}
