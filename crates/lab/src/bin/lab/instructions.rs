//! `cargo xtask instructions`: counts the instructions of six commands with valgrind, with limits in
//! `record/instructions.toml`. Unlike times they are the same on a busy machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::ROOT;

const LIMITS: &str = "record/instructions.toml";
/// How far a command may be above its recorded count: other libraries of the system have other counts.
const TOLERANCE: f64 = 1.1;
/// A day of 300 jobs.
const DAY: &str = "generate facebook-day --set jobs=300 --set maps=20000 --set day=1080 --set machines=300";
/// The file that `DAY` writes, in commands.
const DAY_FILE: &str = "DAY";
/// The commands by name; with jitter there is no lower bound, which would be most of the work.
const COMMANDS: [(&str, &str); 6] = [
    ("fifo", "simulate DAY -p fifo --deadlines 3 --jitter 0.1 --seeds 1"),
    ("fair", "simulate DAY -p fair --deadlines 3 --jitter 0.1 --seeds 1"),
    ("flex", "simulate DAY -p flex --deadlines 3 --jitter 0.1 --seeds 1"),
    ("generate", DAY),
    ("import", "import examples/hadoop-log"),
    ("dry-run", "run --dry-run examples/nightly-run.toml"),
];

/// Counts each command with a program that was built before, and prints the counts as `record/instructions.toml`
/// has them.
///
/// # Errors
/// A count that is a tenth above the recorded one, no valgrind, a command that fails.
pub(crate) fn run(program: &str) -> anyhow::Result<()> {
    let root = Path::new(ROOT);
    let text = fs::read_to_string(root.join(LIMITS)).context(LIMITS)?;
    let limits: BTreeMap<String, u64> = toml::from_str(&text).context(LIMITS)?;
    let day = std::env::temp_dir().join(format!("slackline-day-{}.json", std::process::id()));
    let day_path = day.to_str().context("the directory for temporary files is no text")?;
    let program = fs::canonicalize(program).with_context(|| program.to_owned())?;
    let made = Command::new(&program).args(DAY.split(' ')).args(["-o", day_path]).status()?;
    ensure!(made.success(), "{DAY} failed");
    let all = COMMANDS
        .map(|(name, command)| (name, command, count(&program, &command.replace(DAY_FILE, day_path))));
    fs::remove_file(&day)?;
    let (mut counts, mut excess) = (String::new(), String::new());
    for (name, command, count) in all {
        let count = count?;
        writeln!(counts, "{name} = {count}")?;
        let limit = limits.get(name).with_context(|| format!("{LIMITS} has no {name}"))?;
        if count as f64 > TOLERANCE * *limit as f64 {
            writeln!(
                excess,
                "{name} takes {count} instructions, more than a tenth above {limit}: {command}"
            )?;
        }
    }
    crate::eprint(&counts);
    ensure!(excess.is_empty(), "{excess}{LIMITS} has the counts to compare with");
    Ok(())
}

/// The instructions of a command, by the line `Collected : N` of callgrind.
fn count(program: &Path, command: &str) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(command.split(' '))
        .current_dir(ROOT)
        .output()
        .context("cannot start valgrind")?;
    let output_text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{command} failed: {output_text}");
    }
    let collected = output_text.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected
        .and_then(|n| n.trim().parse().ok())
        .with_context(|| format!("valgrind has no count: {output_text}"))
}
