//! Developer commands: `cargo xtask bench|bless|swarm`.
//!
//! Each is a thin wrapper, so that nobody has to remember an environment variable.

use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask bench [suite …]   run benchmarks at full size (all suites if none is named)
cargo xtask bless             rewrite generated documents and approved outputs; review the diff
cargo xtask swarm [n]         n random simulations with random faults (default 2000)
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = args.split_first().map_or(("", &[][..]), |(verb, rest)| (verb.as_str(), rest));
    match (verb, rest) {
        ("bench", suites) => cargo(&["bench", "--package", "slackline-bench", "--"], suites, None),
        ("bless", []) => cargo(&["test", "--workspace"], &[], Some(("SLACKLINE_BLESS", "1"))),
        ("swarm", []) => swarm("2000"),
        ("swarm", [n]) if n.parse::<u32>().is_ok() => swarm(n),
        _ => {
            eprint(HELP);
            ExitCode::from(2)
        }
    }
}

fn swarm(n: &str) -> ExitCode {
    let test = ["test", "--release", "--package", "slackline-testkit", "--test", "swarm"];
    cargo(&test, &[], Some(("SLACKLINE_SWARM", n)))
}

fn cargo(fixed: &[&str], more: &[String], env: Option<(&str, &str)>) -> ExitCode {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(fixed).args(more).envs(env);
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
