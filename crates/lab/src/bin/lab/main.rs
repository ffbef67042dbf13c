//! Developer commands: `cargo xtask bench|bless|counters|swarm`, so that no environment variable has to be remembered.

mod counters;
mod documents;

use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::{Command, ExitCode};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const HELP: &str = "\
cargo xtask bench [suite …]   run benchmarks at full size (all suites if none is named)
cargo xtask bless             rewrite generated documents and approved outputs; review the diff
cargo xtask counters [NAME]   counters of shape and size, held to record/limits.toml; all places of one counter
cargo xtask swarm [scale] [--seed S]
                              n random simulations with random faults (default 2000) and all property tests,
                              from a fresh seed, which is printed first, or from the one given
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
            // Once more, after the last schema was written.
            documents::write(Path::new(ROOT)).map_or_else(|error| failed(&error), |()| code)
        }
        ("counters", rest @ ([] | [_])) => counters::run(rest.first().map(String::as_str))
            .map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS),
        ("swarm", rest) => Swarm::of(rest).map_or_else(misused, |swarm| swarm.run()),
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

/// A seed that nobody chose: the keys of the standard library's hash tables are drawn by the system.
fn fresh_seed() -> u32 {
    std::collections::hash_map::RandomState::new().build_hasher().finish() as u32
}

/// Random simulations and property tests, `scale` times as many as `cargo test` has.
struct Swarm {
    scale: u32,
    seed: u32,
}

impl Swarm {
    /// From the arguments; `None` if they name no command.
    fn of(args: &[String]) -> Option<Self> {
        let (mut scale, mut seed) = (None, None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (slot, value) = if arg == "--seed" { (&mut seed, args.next()?) } else { (&mut scale, arg) };
            if slot.replace(value.parse().ok()?).is_some() {
                return None;
            }
        }
        Some(Self { scale: scale.unwrap_or(3), seed: seed.unwrap_or_else(fresh_seed) })
    }

    fn run(&self) -> ExitCode {
        let (n, seed) = (self.scale.to_string(), self.seed.to_string());
        eprint(&format!("seed {seed}; to repeat: cargo xtask swarm {n} --seed {seed}\n"));
        let env = [
            ("SLACKLINE_SCALE", n.as_str()),
            ("SLACKLINE_FROM", seed.as_str()),
            ("PROPTEST_RNG_SEED", seed.as_str()),
        ];
        cargo(
            &[
                "test",
                "--release",
                "--workspace",
                "--exclude",
                "slackline-cli",
                "--no-fail-fast",
                "--lib",
                "--tests",
            ],
            &[],
            &env,
        )
    }
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
