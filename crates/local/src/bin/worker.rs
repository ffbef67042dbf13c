//! A worker process by itself, or an agent: for containers of other systems, tests and measurements. On this machine
//! `slackline` starts its own program again instead.

use slackline_local::{agent, guest, worker};

fn main() -> std::process::ExitCode {
    if std::env::args().skip(1).eq([agent::ARGUMENT]) {
        return agent::main().into();
    }
    guest::main_if_asked().unwrap_or_else(worker::main)
}
