//! A worker process by itself: for tests and measurements. `slackline` starts its own program again
//! instead.

fn main() -> std::process::ExitCode {
    slackline_local::worker::main()
}
