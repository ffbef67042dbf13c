//! Schedules as JSON lines have the contents of documents, get the same verdict, and are refused if they were
//! cut off.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use slackline_model::random::test_step;

use crate::plans::documents;
use crate::{CONTRACT, NIGHTLY, done, program, run, run_with, scratch, text};

/// Simulates into a file and returns its bytes.
fn simulated(dir: &Path, name: &str, args: &[&str]) -> (PathBuf, Vec<u8>) {
    let file = dir.join(name);
    done(&[&["simulate"], args, &["--output", text(&file)]].concat());
    let bytes = fs::read(&file).unwrap();
    (file, bytes)
}

/// A schedule document in the order of its lines: lists by their content.
fn of_document(bytes: &[u8]) -> Value {
    let mut document: Value = serde_json::from_slice(bytes).unwrap();
    let fields = document.as_object_mut().unwrap();
    let workload = fields.remove("workload").unwrap();
    fields.insert("sha256".into(), workload["sha256"].clone());
    fields.insert("options".into(), workload["options"].clone());
    fields.remove("allocations");
    fields.entry("slowstart").or_insert(json!(1.0));
    for list in ["flows", "tasks"] {
        sort(fields.entry(list).or_insert(json!([])));
    }
    document
}

/// The same of a schedule in lines, without the machines.
fn of_lines(bytes: &[u8]) -> Value {
    let mut all = serde_json::Map::new();
    let (mut flows, mut tasks, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for line in std::str::from_utf8(bytes).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let has = |key: &str| line.get(key).is_some();
        match (has("job"), has("flow"), has("rule")) {
            (true, ..) => tasks.push(line),
            (_, true, _) => flows.push(line),
            (_, _, true) => choices.push(line),
            _ => all.extend(line.as_object().unwrap().clone()),
        }
    }
    all.remove("cluster").expect("the first line has the machines");
    all.insert("flows".into(), flows.into());
    all.insert("tasks".into(), tasks.into());
    if !choices.is_empty() {
        all.insert("choices".into(), choices.into());
    }
    for list in ["flows", "tasks"] {
        sort(&mut all[list]);
    }
    all.into()
}

fn sort(list: &mut Value) {
    list.as_array_mut().unwrap().sort_by_key(ToString::to_string);
}

/// Sums over rows in another order may differ in their last bits.
fn assert_same(mut found: Value, mut expected: Value, what: &str) {
    let metrics = [&mut found, &mut expected].map(|value| value["metrics"].take());
    let [found_metrics, metrics] = metrics.map(|metrics| metrics.as_object().unwrap().clone());
    assert!(found_metrics.keys().eq(metrics.keys()), "{what}: {found_metrics:?}");
    for (name, value) in &metrics {
        let (found, value) = (found_metrics[name].as_f64().unwrap(), value.as_f64().unwrap());
        assert!((found - value).abs() <= 1e-12 * value.abs(), "{what}: {name} {found} {value}");
    }
    assert_eq!(found, expected, "{what}");
}

#[test]
fn lines_say_what_the_document_says() {
    let dir = scratch("lines_same");
    let mut runs: Vec<Vec<String>> = Vec::new();
    // A third of the workloads; all where `SLACKLINE_SCALE` is 3.
    for workload in documents("testdata/instances").into_iter().step_by(test_step(3.0)) {
        for policy in ["fifo", "fair"] {
            runs.push([workload.as_str(), "--policy", policy].map(str::to_owned).into());
        }
    }
    for options in [
        &["--slowstart", "0.3"][..],
        &["--heartbeat", "3s", "--noise", "0.2"],
        &["--crash-rate", "1h", "--repair", "20", "--seed", "3"],
    ] {
        let run = [&[NIGHTLY, "--policy", "edf"], options].concat();
        runs.push(run.into_iter().map(str::to_owned).collect());
    }
    runs.push([NIGHTLY, "--policy", "auto"].map(str::to_owned).into());
    for run in runs {
        let args: Vec<&str> = run.iter().map(String::as_str).collect();
        let (_, document) = simulated(&dir, "s.json", &args);
        let (file, lines) = simulated(&dir, "s.jsonl", &args);
        assert_same(of_lines(&lines), of_document(&document), &run.join(" "));
        assert!(done(&["check", args[0], text(&file)]).starts_with("feasible"), "{run:?}");
        assert_eq!(simulated(&dir, "again.jsonl", &args).1, lines, "{run:?}: the same bytes");
    }
}

#[test]
fn compressed_lines_are_written_and_read() {
    let dir = scratch("lines_compressed");
    let args = [NIGHTLY, "--policy", "edf"];
    let (plain, lines) = simulated(&dir, "s.jsonl", &args);
    let printed = |file: &Path| {
        let checked = done(&["check", NIGHTLY, text(file), "--format", "json"]);
        let explained = done(&["explain", text(file), "billing", "--workload", NIGHTLY]);
        (checked, explained)
    };
    let expected = printed(&plain);
    assert_eq!(printed(&simulated(&dir, "s.json", &args).0).1, expected.1);
    for (ending, magic) in [("gz", &[0x1f, 0x8b][..]), ("zst", &[0x28, 0xb5, 0x2f, 0xfd])] {
        let (file, bytes) = simulated(&dir, &format!("s.jsonl.{ending}"), &args);
        assert!(bytes.starts_with(magic) && bytes.len() < lines.len() / 2, "{ending}");
        assert_eq!(printed(&file), expected, "{ending}");
        let damaged = dir.join(format!("damaged.jsonl.{ending}"));
        fs::write(&damaged, &bytes[..bytes.len() - 9]).unwrap();
        let ran = run(&["check", NIGHTLY, text(&damaged)]);
        assert!(ran.code == Some(2) && ran.err.contains("found damaged"), "{}", ran.err);
    }
    // From a pipe, the first line shows the format.
    let piped = run_with(&["check", NIGHTLY, "-", "--format", "json"], &lines);
    assert_eq!((piped.code, piped.out), (Some(0), expected.0), "{}", piped.err);
    let printed = done(&["simulate", NIGHTLY, "--policy", "edf", "--format", "jsonl"]);
    assert_eq!(printed.as_bytes(), lines);
}

#[test]
fn the_example_is_feasible() {
    let checked = done(&["check", CONTRACT, "examples/contract/schedule.jsonl"]);
    assert!(checked.starts_with("feasible"), "{checked}");
}

#[test]
fn lines_that_were_cut_off_or_changed_do_not_pass() {
    let dir = scratch("lines_wrong");
    let (file, bytes) = simulated(&dir, "s.jsonl", &[CONTRACT, "--policy", "fifo"]);
    let lines = String::from_utf8(bytes).unwrap();
    let check = |changed: &str| {
        fs::write(&file, changed).unwrap();
        run(&["check", CONTRACT, text(&file)])
    };
    let last = lines.trim_end().rfind('\n').unwrap() + 1;
    for cut in [last, last + 20, last - 20] {
        let ran = check(&lines[..cut]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        let number = lines[..cut].lines().count();
        let expected =
            format!("s.jsonl:{number}:1: found the end of the file after this line, expected a last line");
        assert!(ran.err.contains(&expected), "{}", ran.err);
    }
    for (from, to, expected) in [
        ("\"start\": 10.0, \"end\": 20.0", "\"start\": 9.0, \"end\": 19.0", "overlaps"),
        ("\"start\": 10.0, \"end\": 20.0", "\"start\": 10.0, \"end\": 19.0", "ends after 9 s, expected 10 s"),
        ("\"start\": 20.0, \"end\": 25.0", "\"start\": 19.0, \"end\": 24.0", "overlaps"),
        ("\"completion\": 25.0", "\"completion\": 24.0", "found completion 24, expected 25"),
        ("\"makespan\":25.0", "\"makespan\":24.0", "metric makespan: found 24, expected 25"),
        ("\"cost\":60.0", "\"cost\":59.0", "cost: found 59, expected 60"),
        ("\"node-0/0-1\", \"node-1/0-1\"", "\"node-0/0-1\", \"node-2/0-1\"", "found machine \"node-2\""),
    ] {
        assert!(lines.contains(from), "{from}\n{lines}");
        let ran = check(&lines.replacen(from, to, 1));
        assert!(ran.code == Some(1) && ran.out.contains(expected), "{expected}: {}{}", ran.out, ran.err);
    }
    let mut kept: Vec<&str> = lines.lines().collect();
    let row = kept.iter().position(|line| line.contains("\"job\"")).unwrap();
    kept.remove(row);
    let ran = check(&(kept.join("\n") + "\n"));
    assert!(ran.code == Some(1) && ran.out.contains("found no finished attempt"), "{}{}", ran.out, ran.err);
    // In another order it is the same schedule.
    let mut kept: Vec<&str> = lines.lines().collect();
    let end = kept.len() - 1;
    kept[1..end].reverse();
    let ran = check(&(kept.join("\n") + "\n"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

#[test]
fn nothing_half_written_stays_and_a_closed_pipe_is_quiet() {
    let dir = scratch("lines_pipe");
    let nowhere = dir.join("nowhere").join("s.jsonl");
    let ran = run(&["simulate", CONTRACT, "--policy", "fifo", "--output", text(&nowhere)]);
    assert!(
        ran.code == Some(2) && ran.err.contains("expected a file in an existing directory"),
        "{}",
        ran.err
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    let workload = dir.join("w.json");
    done(&["generate", "facebook-day", "--set", "jobs=400", "--output", text(&workload)]);
    let mut child = program()
        .args(["simulate", text(&workload), "--policy", "fifo", "--format", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("piped"));
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
