//! `--load`: a workload at another load, and up to which load conditions hold.

use super::{NIGHTLY, done, run, scratch, text};

/// Two flows of four tasks of 10 s on four slots, at 0 s and 100 s, each due 25 s after its release.
const TWO: &str = r#"
slackline = 1
cluster.machines = [{ name = "m", count = 4, slots = 1 }]
flows = [
  { id = "a", deadline = 25.0, jobs = [{ id = "j", map = { tasks = 4, seconds = 10.0 } }] },
  { id = "b", release = 100.0, deadline = 125.0, jobs = [{ id = "j", map = { tasks = 4, seconds = 10.0 } }] },
]
"#;

/// The same with deadlines by the clock.
const CLOCK: &str = r#"
slackline = 1
start = "2026-03-01T00:00[Europe/Berlin]"
cluster.machines = [{ name = "m", count = 4, slots = 1 }]
flows = [
  { id = "a", deadline = "00:01", jobs = [{ id = "j", map = { tasks = 4, seconds = 30.0 } }] },
]
"#;

/// A file of that name with this content.
fn in_scratch(name: &str, content: &str) -> String {
    let file = scratch(name).join(name);
    std::fs::write(&file, content).unwrap();
    text(&file).to_owned()
}

/// The message of a refusal.
fn refused(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.out, ran.err);
    ran.err
}

/// The completion of each flow.
fn flows(args: &[&str]) -> Vec<(String, f64)> {
    let csv = done(args);
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|known| *known == name).unwrap();
    let (flow, completion) = (column("flow"), column("completion"));
    rows.map(|row| (row[flow].to_owned(), row[completion].parse().unwrap())).collect()
}

#[test]
fn each_kind_of_load_changes_what_it_says() {
    let file = in_scratch("load-kinds.toml", TWO);
    let at = |more: &[&str]| flows(&[&["simulate", &file, "-p", "edf", "--format", "csv"], more].concat());
    let named = |pairs: &[(&str, f64)]| -> Vec<(String, f64)> {
        pairs.iter().map(|&(id, at)| (id.to_owned(), at)).collect()
    };
    assert_eq!(at(&["--load", "1"]), named(&[("a", 10.0), ("b", 110.0)]));
    assert_eq!(at(&["--load", "2"]), named(&[("a", 10.0), ("b", 60.0)]), "arrivals by default");
    assert_eq!(at(&["--load", "2", "--load-by", "size"]), named(&[("a", 20.0), ("b", 120.0)]));
    assert_eq!(at(&["--load", "2", "--load-by", "jobs"]).len(), 4);
    let clock = in_scratch("load-clock.toml", CLOCK);
    let ran = run(&["simulate", &clock, "-p", "edf", "--load", "2"]);
    assert!(ran.err.contains("2 times the load of the workload, by size"), "{}", ran.err);
    assert!(ran.out.contains("deadlines  0 of 1 missed"), "{}", ran.out);
    let late = run(&["simulate", &clock, "-p", "edf", "--load", "2.1"]);
    assert!(late.out.contains("deadlines  1 of 1 missed"), "{}", late.out);
}

#[test]
fn a_schedule_at_another_load_is_checked_against_the_file() {
    for by in ["arrivals", "jobs", "size"] {
        let schedule = done(&[
            "simulate",
            NIGHTLY,
            "-p",
            "edf",
            "--load",
            "1.7",
            "--load-by",
            by,
            "--seeds",
            "1",
            "--format",
            "json",
        ]);
        let place = in_scratch(&format!("load-{by}.json"), &schedule);
        done(&["check", NIGHTLY, &place]);
    }
}

#[test]
fn deadlines_hold_up_to_a_load() {
    let file = in_scratch("load-up-to.toml", TWO);
    let answer = |more: &[&str]| done(&[&["capacity", &file, "-p", "edf", "--over"], more].concat());
    let sizes = answer(&["load=0.5..4:0.5", "--load-by", "size"]);
    assert!(sizes.contains("edf: missed at most 0 up to a load of 2, not at 2.50"), "{sizes}");
    let all = answer(&["load=1..2:0.5"]);
    assert!(all.contains("up to a load of 2, the largest that was tried"), "{all}");
    let none = run(&["capacity", &file, "-p", "edf", "--over", "load=4..5:1", "--load-by", "size"]);
    assert_eq!(none.code, Some(1), "{}", none.out);
    assert!(none.out.contains("no load in 2 values of 4..5 gives missed at most 0"), "{}", none.out);
    let drawn = answer(&["load=0.5..1:0.5", "--load-by", "jobs", "--seeds", "20"]);
    let words: Vec<&str> = drawn.split_whitespace().collect();
    let said = "up to a load of 1, the largest that was tried; missed is 0 in 100 % of 20 draws";
    assert!(words.join(" ").contains(said), "{drawn}");
}

#[test]
fn what_has_no_answer_is_refused() {
    for load in ["0", "-1", "nan", "inf", "1e9", "x"] {
        let equals = format!("--load={load}");
        assert!(refused(&["simulate", NIGHTLY, &equals]).contains("a number from 0.01 to 100"), "{load}");
    }
    let both = refused(&["capacity", NIGHTLY, "-p", "edf", "--load", "2", "--over", "load=1..2"]);
    assert!(both.contains("found 2 with --over load, expected one of them"), "{both}");
    let flows = refused(&["compare", NIGHTLY, "-p", "edf", "--load", "2", "--load-by", "jobs", "--flows"]);
    assert!(flows.contains("which draws other flows for each seed"), "{flows}");
}
