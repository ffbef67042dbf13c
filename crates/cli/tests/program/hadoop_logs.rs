//! Logs of Hadoop: compared with what really happened, written as documents, and as folders.

use std::fs;

use serde_json::Value;

use crate::{done, run, scratch, text};

const TRACE: &str = "testdata/formats/rumen/two-jobs.json";
const HISTORY_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formats/jhist/sort.jhist");
const HISTORY: &str = "testdata/formats/jhist/sort.jhist";

#[test]
fn what_happened_stands_beside_what_would_have() {
    let out = done(&["compare", TRACE, "-p", "recorded,fifo"]);
    assert!(out.contains("\nrecorded "), "{out}");
    let said = out.split("completions are off by").nth(1).expect("distances");
    assert!(said.contains("\n  fifo: ") && said.contains(" %), makespan "), "{said}");
    assert!(!said.contains("recorded: "), "{said}");
    // Unless other policies are asked for, it stands first.
    let document: Value = serde_json::from_str(&done(&["compare", TRACE, "--format", "json"])).unwrap();
    let policies = document["policies"].as_array().unwrap();
    assert_eq!((&policies[0]["policy"], &policies[1]["policy"]), (&"recorded".into(), &"fifo".into()));
    assert_eq!(policies[0]["metrics"]["makespan"], 39.5);
    assert!(policies[1]["metrics"]["completion_error_mean"].is_number(), "{}", policies[1]);
    // Another cluster changes the others alone.
    let other = done(&["compare", TRACE, "--machines", "9", "--slots", "2", "--format", "json"]);
    let other: Value = serde_json::from_str(&other).unwrap();
    assert_eq!(other["policies"][0]["metrics"]["makespan"], 39.5);
}

#[test]
fn what_was_recorded_stays_with_the_document() {
    let dir = scratch("recorded");
    for ending in ["toml", "json", "yaml", "jsonl.gz"] {
        let file = dir.join(format!("day.{ending}"));
        done(&["import", TRACE, "--output", text(&file)]);
        assert_eq!(
            done(&["compare", text(&file), "-p", "recorded,fifo", "--format", "csv"]),
            done(&["compare", TRACE, "-p", "recorded,fifo", "--format", "csv"]),
            "{ending}"
        );
    }
    done(&["compare", TRACE, "-p", "recorded", "--schedules", text(&dir)]);
    let checked = run(&["check", TRACE, text(&dir.join("recorded.json"))]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
}

#[test]
fn nothing_is_recorded_in_other_workloads_and_nothing_is_decided() {
    let ran = run(&["compare", "examples/nightly.toml", "-p", "recorded,fifo"]);
    assert!(
        ran.out.contains("recorded: found a workload in which nothing is recorded"),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = run(&["simulate", TRACE, "-p", "recorded"]);
    assert!(ran.code != Some(0) && ran.err.contains("which is what a log says happened"), "{}", ran.err);
}

#[test]
fn a_folder_of_histories_is_a_workload() {
    let dir = scratch("histories");
    let done_folder = dir.join("done/2026/03/01/000000");
    fs::create_dir_all(&done_folder).unwrap();
    fs::copy(HISTORY_PATH, done_folder.join("job_1772300000000_0007-1.jhist")).unwrap();
    let folder = dir.join("done");
    let both = |workload: &str| done(&["compare", workload, "-p", "recorded,edf", "--format", "csv"]);
    assert_eq!(both(text(&folder)), both(HISTORY));
    let file = dir.join("s.json");
    done(&["simulate", text(&folder), "-p", "edf", "--output", text(&file)]);
    let check = || run(&["check", text(&folder), text(&file)]);
    assert_eq!(check().code, Some(0), "{}", check().err);
    fs::write(folder.join("job_1772300000000_0008-1.jhist"), fs::read(HISTORY_PATH).unwrap()).unwrap();
    assert!(check().err.contains("made for another workload"), "{}", check().err);
    assert_eq!(run(&["compare", text(&dir.join("nowhere"))]).code, Some(2));
}
