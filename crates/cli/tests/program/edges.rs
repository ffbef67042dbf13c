//! Workloads at the limits: without tasks, and with phases without length.

use std::fs;

use serde_json::{Value, json};

use crate::{done, run, scratch, text};

/// A workload document on two machines with these slots each.
fn workload(slots: &Value, flows: &Value) -> String {
    let machines = json!([{ "name": "m", "count": 2, "slots": slots }]);
    json!({ "slackline": 1, "cluster": { "machines": machines }, "flows": flows }).to_string()
}

#[test]
fn an_empty_workload_costs_nothing_and_is_optimal() {
    let dir = scratch("empty");
    let (file, schedule) = (dir.join("w.json"), dir.join("s.json"));
    let (file, schedule) = (text(&file), text(&schedule));
    let map_reduce = json!({ "map": 2, "reduce": 1 });
    for slots in [json!(2), map_reduce.clone()] {
        fs::write(file, workload(&slots, &json!([]))).unwrap();
        for verb in [&["plan"][..], &["plan", "--policy", "flowflex"], &["simulate", "--policy", "fair"]] {
            let ran = run(&[verb, &[file, "--output", schedule]].concat());
            if ran.code == Some(2) && ran.err.contains("flowflex plans only generic slots") {
                continue;
            }
            assert_eq!(ran.code, Some(0), "{verb:?}: {}", ran.err);
            let document: Value = serde_json::from_str(&fs::read_to_string(schedule).unwrap()).unwrap();
            assert_eq!(
                (&document["cost"], &document["status"]),
                (&json!(0.0), &json!("optimal")),
                "{verb:?}"
            );
            assert!(done(&["check", file, schedule]).starts_with("feasible: "));
            let asked = run(&["explain", schedule, "f", "--workload", file]);
            assert_eq!(asked.code, Some(2));
            assert!(asked.err.contains("but the workload has no flows"), "{}", asked.err);
        }
        assert!(!done(&["plan", file]).lines().any(|line| line.trim_end().ends_with("winner")));
        let bound: Value = serde_json::from_str(&done(&["bound", file, "--format", "json"])).unwrap();
        assert_eq!(bound["best"], json!(0.0));
        let table = done(&["compare", file, "--format", "csv"]);
        assert!(table.lines().count() > 1, "{table}");
    }
    fs::write(file, workload(&map_reduce, &json!([]))).unwrap();
    let fewest = ["capacity", file, "--machines", "1..3", "--until", "missed=0", "--policy", "edf"];
    assert!(done(&fewest).contains("1 machine is the fewest"));
}

#[test]
fn tuning_an_empty_workload_gives_a_makespan_of_nothing_by_every_method() {
    let dir = scratch("empty-tuned");
    let (file, schedule) = (dir.join("w.json"), dir.join("s.json"));
    let (file, schedule) = (text(&file), text(&schedule));
    fs::write(file, workload(&json!({ "map": 2, "reduce": 1 }), &json!([]))).unwrap();
    for method in ["mk-sf-jr", "mk-tct-sf-jr", "ex-mk-sf-jr"] {
        for slots in [&["--total-slots", "80"][..], &["--machines", "5", "--slots", "8"], &[]] {
            let ask = [&["tune", file, "--method", method], slots].concat();
            assert!(done(&ask).contains("order: no flows"), "{method}");
            let document: Value =
                serde_json::from_str(&done(&[&ask[..], &["--format", "json"]].concat())).unwrap();
            let best = &document["best"];
            assert_eq!((&best["makespan"], &best["order"]), (&json!(0.0), &json!([])), "{method}");
            done(&[&ask[..], &["--schedule", schedule]].concat());
        }
    }
    for policy in ["mk-jr", "dmrs"] {
        done(&["plan", file, "--policy", policy, "--output", schedule]);
        assert!(done(&["check", file, schedule]).starts_with("feasible: "));
    }
    let fewest = ["capacity", file, "--machines", "2..4", "--until", "makespan:0", "--policy", "mk-jr"];
    assert!(done(&fewest).contains("2 machines are the fewest"));
}

#[test]
fn a_phase_without_length_may_stand_anywhere_in_a_flow() {
    let dir = scratch("no-length");
    let (file, plan) = (dir.join("w.json"), dir.join("p.json"));
    let (file, plan) = (text(&file), text(&plan));
    let tasks = |seconds: f64| json!({ "tasks": 1, "seconds": seconds });
    let job = |id: &str, after: &[&str], map: f64, reduce: Option<f64>| json!({ "id": id, "after": after, "map": tasks(map), "reduce": reduce.map(tasks) });
    for (jobs, length) in [
        (json!([job("i", &[], 1.0, None), job("j", &["i"], 0.0, Some(1.0))]), 2.0),
        (json!([job("i", &[], 1.0, None), job("z", &["i"], 0.0, None), job("j", &["z"], 1.0, None)]), 2.0),
        (json!([job("i", &[], 1.0, Some(0.0)), job("j", &["i"], 1.0, None)]), 2.0),
        (json!([job("z", &[], 0.0, Some(0.0)), job("j", &["z"], 1.0, Some(0.0))]), 1.0),
        (json!([job("z", &[], 0.0, Some(0.0))]), 0.0),
    ] {
        fs::write(file, workload(&json!(1), &json!([{ "id": "a", "release": 3.0, "jobs": jobs }]))).unwrap();
        for policy in ["fifo", "fair", "edf", "flowflex"] {
            done(&["plan", file, "--policy", policy, "--output", plan]);
            let document: Value = serde_json::from_str(&fs::read_to_string(plan).unwrap()).unwrap();
            assert_eq!(document["flows"][0]["completion"], json!(3.0 + length), "{policy}: {jobs}");
            let rows = document["allocations"].as_array().expect("a list");
            assert!(
                rows.iter().all(|row| row["start"] != row["end"]),
                "{policy}: nothing holds slots for no time"
            );
            assert!(done(&["check", file, plan]).starts_with("feasible: "));
        }
        for policy in ["fifo", "fair", "flex", "flowflex", "woha-lpf", "dmrs", "mk-jr"] {
            done(&["simulate", file, "--policy", policy, "--knowledge", "learned", "--output", plan]);
            let document: Value = serde_json::from_str(&fs::read_to_string(plan).unwrap()).unwrap();
            assert_eq!(document["flows"][0]["completion"], json!(3.0 + length), "{policy}: {jobs}");
            assert_eq!(document["flows"][0]["start"], json!(3.0), "{policy}: {jobs}");
            let rows = document["tasks"].as_array().map_or(0, Vec::len);
            assert_eq!(rows as f64, length, "{policy}: a row for each task that has a length");
            assert!(done(&["check", file, plan]).starts_with("feasible: "));
            let printed = done(&["explain", plan, "a", "--workload", file]);
            assert!(printed.starts_with(&format!("a under {policy}: finish")), "{printed}");
        }
    }
}
