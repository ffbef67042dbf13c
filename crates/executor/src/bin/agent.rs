//! An agent or a worker process by itself, for tests. `slackline` starts its own program again instead.

use slackline_executor::fleet::agent;
use slackline_task::worker;

fn main() -> std::process::ExitCode {
    if std::env::args().skip(1).eq([agent::ARGUMENT]) {
        return agent::main().into();
    }
    worker::main()
}
