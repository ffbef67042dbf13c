//! `explain` prints why a flow is late, or an error that names the problem.

use std::fs;

use serde_json::Value;

use crate::{CONTRACT, NIGHTLY, Ran, done, run, scratch, text};

/// A schedule of the nightly example under a policy.
fn nightly(test: &str, policy: &str) -> String {
    let file = scratch(test).join("s.json");
    done(&["simulate", NIGHTLY, "--policy", policy, "--output", text(&file)]);
    text(&file).to_owned()
}

fn refused(args: &[&str]) -> String {
    let ran: Ran = run(args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
    ran.err
}

#[test]
fn a_late_flow_learns_who_held_its_slots() {
    let fair = nightly("explain_late", "fair");
    let printed = done(&["explain", &fair, "billing", "--workload", NIGHTLY]);
    assert!(
        printed.starts_with("billing under fair: late by 105.0 s (finished at 1,185 s, deadline 1,080 s)\n"),
        "{printed}"
    );
    for words in [
        "why: too few slots for 600.0 s of 885.0 s",
        "reindex/crawl",
        "less urgent",
        "another order",
        "critical path",
    ] {
        assert!(printed.contains(words), "{words:?} in\n{printed}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 125), "{printed}");
    let job = done(&["explain", &fair, "billing", "rate", "-w", NIGHTLY]);
    assert!(job.contains("rate of billing from release to end"), "{job}");
}

#[test]
fn a_flow_on_time_is_given_no_advice() {
    let printed = done(&["explain", &nightly("explain_met", "edf"), "billing", "-w", NIGHTLY]);
    assert!(printed.starts_with("billing under edf: on time with 85.0 s to spare"), "{printed}");
    assert!(!printed.contains("met the deadline"), "{printed}");
}

#[test]
fn a_plan_is_reported_as_what_will_be() {
    let printed = done(&["explain", "examples/contract/schedule.json", "a"]);
    assert!(printed.contains("starts at 0 s") && printed.contains("b/b"), "{printed}");
}

#[test]
fn programs_get_numbers() {
    let fair = nightly("explain_json", "fair");
    let document: Value =
        serde_json::from_str(&done(&["explain", &fair, "training", "-w", NIGHTLY, "--format", "json"]))
            .unwrap();
    assert_eq!(document["deadline"]["verdict"], "slots");
    assert_eq!(document["chain"][0]["job"], "features");
    let waits = ["no_slot", "too_few", "all", "last"].map(|name| document["waits"][name].as_f64().unwrap());
    assert!((waits.iter().sum::<f64>() - 2520.0).abs() < 1e-6, "{waits:?}");
    let csv = done(&["explain", &fair, "training", "-w", NIGHTLY, "--format", "csv"]);
    assert_eq!(csv.lines().count(), 7, "{csv}");
}

#[test]
fn the_workload_beside_the_schedule_is_found() {
    let dir = scratch("explain_beside");
    let file = dir.join("schedule.json");
    done(&["simulate", CONTRACT, "--policy", "fifo", "--output", text(&file)]);
    let missing = refused(&["explain", text(&file), "a"]);
    assert!(
        missing.contains("no workload.json next to it; name its workload with --workload FILE"),
        "{missing}"
    );
    fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../", "examples/contract/workload.toml"),
        dir.join("workload.toml"),
    )
    .unwrap();
    assert!(done(&["explain", text(&file), "a"]).starts_with("a under fifo: finished at "));
    let other = refused(&["explain", text(&file), "a", "--workload", NIGHTLY]);
    assert!(other.contains("made for another workload (SHA-256 "), "{other}");
}

#[test]
fn names_that_are_none_are_answered_with_those_there_are() {
    let fair = nightly("explain_names", "fair");
    let message = |flow: &str, job: Option<&str>| {
        let args = ["explain", &fair, flow].into_iter().chain(job).chain(["-w", NIGHTLY]);
        refused(&args.collect::<Vec<_>>())
    };
    let unknown = message("biling", None);
    assert!(
        unknown.contains("expected one of reindex, billing,") && unknown.contains("mean \"billing\"?"),
        "{unknown}"
    );
    assert!(message("clicks", None).contains("did you mean \"clicks#0\"?"));
    assert!(message("rank", None).contains("rank is a job of flow reindex"));
    assert!(message("counts", None).contains("counts is a job of 4 flows: clicks#0, clicks#1"));
    let job = message("billing", Some("rat"));
    assert!(job.contains("expected one of extract, rate, invoice; did you mean \"rate\"?"), "{job}");
}

#[test]
fn a_job_of_a_log_is_explained_from_what_happened() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hadoop-log");
    let explained = run(&["explain", log, "job_1795454051189_0009"]);
    assert_eq!(explained.code, Some(0), "{}", explained.err);
    let start = "job_1795454051189_0009 under recorded: finished at 17:17:03.6, no deadline\n";
    assert!(explained.out.starts_with(start), "{}", explained.out);
    assert!(explained.err.contains("held by ApplicationMasters"), "{}", explained.err);
    // The same as of the schedule that `compare` writes.
    let dir = scratch("explain_log");
    done(&["compare", log, "-p", "recorded", "--schedules", text(&dir)]);
    let schedule = dir.join("recorded.json");
    let written = done(&["explain", text(&schedule), "job_1795454051189_0009", "-w", log]);
    assert_eq!(explained.out, written);
    assert!(refused(&["explain", log, "job_1795454051189_9"]).contains("job_1795454051189_0009"));
    // A workload has no recorded times.
    assert!(refused(&["explain", NIGHTLY, "billing"]).contains("expected"), "no schedule");
}
