//! The nightly example runs as `docs/run.md` describes: parameters, a plain command, limits, an input from
//! another flow. The page names only existing flags.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::runs::{command, parts};
use crate::{Ran, program, ran, scratch};

const PAGE: &str = include_str!("../../../../docs/run.md");

/// A directory with the example.
fn prepared(test: &str) -> PathBuf {
    let dir = scratch(test);
    fs::create_dir(dir.join("examples")).unwrap();
    for name in ["nightly-run.toml", "nightly-run.sh"] {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        fs::copy(example, dir.join("examples").join(name)).unwrap();
    }
    dir
}

fn run(dir: &Path, more: &[&str]) -> Ran {
    let args = [&["run", "examples/nightly-run.toml", "--slots", "2", "--state", "state"], more].concat();
    let went = ran(&command(dir, &args).output().expect("the program starts"));
    assert_eq!(went.code, Some(0), "{more:?}: {}{}", went.out, went.err);
    went
}

/// Number of requests of the week.
fn total(dir: &Path) -> u64 {
    let parts = parts(&dir.join("target/nightly-run/totals"));
    let text = String::from_utf8(parts.into_values().flatten().collect()).unwrap();
    text.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

/// The log of a night and when it was written.
fn night(dir: &Path, day: &str) -> (Vec<u8>, std::time::SystemTime) {
    let part = dir.join("target/nightly-run").join(day).join("log/part-00000");
    (fs::read(&part).unwrap(), fs::metadata(&part).unwrap().modified().unwrap())
}

#[test]
fn the_example_of_a_night_runs_and_its_week_grows_night_by_night() {
    let dir = prepared("nightly-run");
    run(&dir, &[]);
    assert_eq!(total(&dir), 200);
    run(&dir, &["--for", "night=2026-03-02..2026-03-04", "--set", "requests=50"]);
    assert_eq!(total(&dir), 150);
    let before = night(&dir, "2026-03-03");
    run(&dir, &["--for", "night=2026-03-02..2026-03-05", "--set", "requests=50"]);
    assert_eq!(total(&dir), 200);
    assert_eq!(night(&dir, "2026-03-03"), before, "a night that was made is left as it is");
    assert_ne!(night(&dir, "2026-03-05").0, before.0);
}

#[test]
fn the_page_on_run_names_flags_that_there_are() {
    let mut known = BTreeSet::new();
    for verb in ["run", "status", "logs", "explain", "clean", "history", "import"] {
        let help = ran(&program().args([verb, "--help"]).output().expect("the program starts"));
        known.extend(flags(&help.out).map(str::to_owned));
    }
    for flag in flags(PAGE) {
        assert!(known.contains(flag), "docs/run.md: found {flag}, which no verb has");
    }
}

/// The words that begin with two dashes.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 2 && !word.starts_with("---"))
}
