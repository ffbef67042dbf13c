//! The example `own_program`: a program with one more engine and one more format, which are available
//! everywhere.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod example;

use std::fs;
use std::path::{Path, PathBuf};

const FLOW: &str = r#"
slackline = 1
[[flows]]
id = "words"
jobs = [
  { id = "count", run = { program = "wordcount", inputs = ["in.txt"], output = "counts" } },
  { id = "upper", run = { mapper = "tr a-z A-Z", inputs = ["@count"], output = "upper" } },
]
"#;

fn said(dir: &Path, args: &[&str]) -> String {
    example::said("own_program", dir, args)
}

/// The message for wrong use.
fn refused(dir: &Path, args: &[&str]) -> String {
    let output = example::run("own_program", dir, args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn scratch(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn its_engine_runs_flows() {
    let dir = scratch("own-engine");
    fs::write(dir.join("flow.toml"), FLOW).unwrap();
    fs::write(dir.join("in.txt"), "to be or not to be\n").unwrap();
    let ran =
        said(&dir, &["run", "flow.toml", "--engine", "part:fraction=0.01", "--state", "state", "--stats"]);
    // A hundredth of any number of processors is one slot.
    assert!(ran.contains("1 machine (1 generic slot)"), "{ran}");
    assert_eq!(fs::read_to_string(dir.join("upper/part-00000")).unwrap(), "BE\t2\nNOT\t1\nOR\t1\nTO\t2\n");
    assert!(said(&dir, &["check", "state/workload.json", "state/schedule.json"]).contains("feasible"));
    // Under another engine, finished jobs stay finished.
    assert!(
        said(&dir, &["run", "flow.toml", "--slots", "2", "--state", "state"])
            .contains("outputs: counts, upper")
    );
}

#[test]
fn its_engine_is_wherever_engines_are() {
    let dir = scratch("own-engine-help");
    // Lines end where the terminal does.
    let help: Vec<_> =
        said(&dir, &["run", "--engine", "part", "--help"]).split_whitespace().map(str::to_owned).collect();
    let help = help.join(" ");
    for words in
        ["fraction=0.5 which part", "[possible values: local, ssh, slurm, yarn, part]", "local: tasks at"]
    {
        assert!(help.contains(words), "{words:?} in\n{help}");
    }
    assert!(said(&dir, &["completions", "zsh"]).contains("a part of this machine"));
    let run = |more: &[&str]| refused(&dir, &[&["run", "none.toml"][..], more].concat());
    assert!(
        run(&["--engine", "parts"])
            .contains("expected one of local, ssh, slurm, yarn, part; did you mean \"part\"?")
    );
    assert!(run(&["--engine", "part:fraction=2"]).contains("expected a number from 0.01 to 1"));
    let other = run(&["--engine", "part:split=1MiB"]);
    assert!(other.contains("engine part: found parameter \"split\", expected fraction"), "{other}");
}

#[test]
fn its_format_is_read_recorded_and_read_back() {
    let dir = scratch("own-format");
    fs::write(dir.join("jobs.lines"), "a,4\nb,0.5\n").unwrap();
    let cluster = ["--machines", "1", "--slots", "1", "--from", "lines:stretch=2.5"];
    let simulate = ["simulate", "jobs.lines", "--policy", "fifo", "--format", "json", "--output", "s.json"];
    said(&dir, &[&simulate[..], &cluster].concat());
    let schedule = fs::read_to_string(dir.join("s.json")).unwrap();
    assert!(schedule.contains("\"stretch\": 2.5") || schedule.contains("\"stretch\":2.5"), "{schedule}");
    // The import options need not be repeated.
    assert!(said(&dir, &["check", "jobs.lines", "s.json"]).contains("feasible"));
    assert!(said(&dir, &["explain", "s.json", "--workload", "jobs.lines", "b"]).contains("finished at 11.2"));
    let help = said(&dir, &["import", "--from", "lines", "--help"]);
    assert!(help.contains("stretch=1") && help.contains("factor on all seconds"), "{help}");
}
