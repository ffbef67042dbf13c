//! `--knowledge learned` and the file of `--history`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{CONTRACT, NIGHTLY, done, run, scratch, text};

/// Runs a policy that learns; returns its cost, its document and its messages.
fn learn(workload: &str, policy: &str, file: &Path) -> (f64, Value, String) {
    let args = ["simulate", workload, "--policy", policy, "--format", "json", "--knowledge", "learned"];
    let ran = run(&[&args[..], &["--history", text(file)]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("the document is JSON");
    (document["cost"].as_f64().expect("a cost"), document, ran.err)
}

fn known(workload: &str, policy: &str, knowledge: &str) -> f64 {
    let args = ["simulate", workload, "--policy", policy, "--format", "json", "--knowledge", knowledge];
    let document: Value = serde_json::from_str(&done(&args)).expect("the document is JSON");
    document["cost"].as_f64().expect("a cost")
}

/// Costs of a first run, a second run, and a run with known durations.
fn twice(workload: &str, policy: &str, dir: &Path) -> [f64; 3] {
    let file = dir.join(format!("{policy}.json"));
    let (first, _, said) = learn(workload, policy, &file);
    assert!(said.contains("does not exist; the simulation starts without a history"), "{said}");
    let (second, document, said) = learn(workload, policy, &file);
    assert!(said.contains("of finished tasks"), "{said}");
    assert_eq!(document["workload"]["options"]["knowledge"], "learned");
    assert!(document["workload"]["options"]["history"].as_str().is_some_and(|hash| hash.len() == 64));
    [first, second, known(workload, policy, "mean")]
}

#[test]
fn a_run_uses_the_estimates_of_the_previous_run() {
    let dir = scratch("history-serves");
    let generated = |name: &str, args: &[&str]| {
        let file = dir.join(name);
        fs::write(&file, done(&[&["generate"], args].concat())).expect("the directory is there");
        file
    };
    // Machines of two unknown speeds: the second run is that of a scheduler that knows them.
    let dmrs = generated("dmrs.toml", &["dmrs", "--set", "mix=b", "--set", "benchmark=terasort"]);
    let [first, second, printed] = twice(text(&dmrs), "dmrs", &dir);
    assert!(second < 0.9 * first && (second / printed - 1.0).abs() < 0.01, "{first} {second} {printed}");
    // Unknown sizes.
    let flex = generated("flex.toml", &["purdue"]);
    let [first, second, printed] = twice(text(&flex), "flex", &dir);
    assert!(second < first && (second / printed - 1.0).abs() < 0.01, "{first} {second} {printed}");
}

#[test]
fn a_history_is_written_as_a_whole_and_not_by_compare() {
    let dir = scratch("history-written");
    let file = dir.join("past.json");
    learn(CONTRACT, "fifo", &file);
    let first = fs::read_to_string(&file).expect("it was written");
    assert!(
        first.contains(r#""flow":"a","job":"a","phase":"map","group":"node","tasks":4,"seconds":40.0"#),
        "{first}"
    );
    learn(CONTRACT, "fifo", &file);
    let second = fs::read_to_string(&file).expect("it was written");
    assert!(second.contains(r#""tasks":8,"seconds":80.0"#), "{second}");
    done(&["compare", CONTRACT, "--knowledge", "learned", "--history", text(&file)]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), second);
    assert_eq!(fs::read_dir(&dir).expect("it is there").count(), 1);
}

#[test]
fn a_schedule_that_was_learned_is_checked_without_the_history() {
    let dir = scratch("history-checked");
    let (file, schedule) = (dir.join("past.json"), dir.join("schedule.json"));
    for _ in 0..2 {
        let args = ["simulate", NIGHTLY, "--policy", "dmrs", "--output", text(&schedule)];
        done(&[&args[..], &["--knowledge", "learned", "--history", text(&file)]].concat());
    }
    fs::remove_file(&file).expect("it is there");
    done(&["check", NIGHTLY, text(&schedule)]);
}

#[test]
fn a_broken_history_is_refused_and_left_alone() {
    let dir = scratch("history-broken");
    let file = dir.join("past.json");
    for (content, expected) in [
        ("{", "past.json:1:"),
        (r#"{"slackline": 2, "history": []}"#, "expected version 1"),
        ("{\"slackline\": 1,\n\"histori\": []}", "past.json:2:"),
        ("{\"slackline\": 1, \"history\": [\n{\"flow\": \"f\"}]}", "missing field `job`"),
    ] {
        fs::write(&file, content).expect("the directory is there");
        let args = ["simulate", CONTRACT, "--policy", "fifo", "--knowledge", "learned"];
        let ran = run(&[&args[..], &["--history", text(&file)]].concat());
        assert_eq!(ran.code, Some(2), "{content}: {}", ran.err);
        assert!(ran.err.contains(expected) && ran.out.is_empty(), "{content}: {}", ran.err);
        assert_eq!(fs::read_to_string(&file).expect("it is there"), content);
    }
    let args = ["simulate", CONTRACT, "--policy", "fifo", "--knowledge", "learned"];
    let ran = run(&[&args[..], &["--history", text(&dir)]].concat());
    assert_eq!(ran.code, Some(2), "a directory: {}", ran.err);
}
