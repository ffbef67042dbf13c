//! Developer commands: `cargo xtask bench|bless|counters|instructions|study`, so that no environment variable has to
//! be remembered.

mod counters;
mod documents;
mod instructions;
mod messages;
mod study;

use std::path::Path;
use std::process::{Command, ExitCode};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const HELP: &str = "\
cargo xtask bench [suite …]   run benchmarks at full size (all suites if none is named)
cargo xtask bless             rewrite generated documents and approved outputs; review the diff
cargo xtask counters [NAME]   counters of shape and size, held to record/limits.toml; all places of one counter
cargo xtask instructions [PROGRAM]  instructions of six commands by valgrind, held to record/instructions.toml
cargo xtask study FILE.csv    whether auto is worse than the best single policy, on classes of workloads
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = args.split_first().map_or(("", &[][..]), |(verb, rest)| (verb.as_str(), rest));
    match (verb, rest) {
        ("bench", suites) => {
            cargo(&["bench", "--package", "slackline-lab", "--features", "bench", "--"], suites, &[])
        }
        ("bless", []) => {
            let code = cargo(&["test", "--workspace"], &[], &[("SLACKLINE_BLESS", "1")]);
            // A second time, after the last schema was written.
            let root = Path::new(ROOT);
            documents::write(root)
                .and_then(|()| messages::write(root))
                .map_or_else(|error| failed(&error), |()| code)
        }
        ("counters", rest @ ([] | [_])) => counters::run(rest.first().map(String::as_str))
            .map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS),
        ("study", rest) => study::run(rest).map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS),
        ("instructions", rest @ ([] | [_])) => {
            instructions::run(rest.first().map_or("target/debug/slackline", String::as_str))
                .map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
        }
        _ => misused(),
    }
}

fn misused() -> ExitCode {
    eprint(HELP);
    ExitCode::from(2)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprint(&format!("error: {error:#}\n"));
    ExitCode::from(2)
}

fn cargo(fixed: &[&str], more: &[String], env: &[(&str, &str)]) -> ExitCode {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(fixed).args(more).envs(env.iter().copied());
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprint(&format!("error: cannot start cargo: {error}\n"));
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "a developer command talks to its developer")]
fn eprint(text: &str) {
    eprint!("{text}");
}
