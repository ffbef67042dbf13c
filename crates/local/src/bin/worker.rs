//! A worker process by itself: for containers of other systems, tests and measurements. On this machine `slackline` starts
//! its own program again instead.

fn main() -> std::process::ExitCode {
    slackline_local::guest::main_if_asked().unwrap_or_else(slackline_local::worker::main)
}
