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

/// The commands of the README's part on a log, each with what the README shows of its output.
fn shown() -> Vec<(Vec<String>, String)> {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let part =
        readme.split("\n## ").find(|part| part.starts_with("Last week's log")).expect("the part on a log");
    let block = |text: &str, kind: &str| {
        let after = text.split_once(&format!("```{kind}\n")).expect("a block").1;
        after.split_once("\n```").expect("its end").0.to_owned()
    };
    let parts = part.split("```console").skip(1).map(|part| format!("```console{part}"));
    parts
        .map(|part| {
            let command = block(&part, "console").replace("\\\n", " ");
            let words = command.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
            (words.skip(1).collect(), block(&part, "text"))
        })
        .collect()
}

#[test]
fn the_readme_shows_what_the_program_says_of_its_log() {
    let shown = shown();
    assert_eq!(shown.len(), 2);
    // Widths are those of a terminal; what stands in a row is not.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (command, expected) in shown {
        let ran = run(&command.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let said = words(&ran.out);
        for row in expected.lines().filter(|line| !line.starts_with('─')).map(words) {
            assert!(said.windows(row.len()).any(|part| part == row), "{row:?} is not in\n{}", ran.out);
        }
    }
}

#[test]
fn the_recorded_cluster_is_simulated_as_closely_as_the_readme_says() {
    let (command, _) = shown().swap_remove(0);
    let profile =
        command.iter().position(|word| word == "--profile").map(|at| command[at + 1].clone()).unwrap();
    let policy = "recorded,yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml";
    let out = done(&[
        "compare",
        "examples/hadoop-log",
        "-p",
        policy,
        "--profile",
        &profile,
        "--seeds",
        "20",
        "--format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&out).unwrap();
    let metrics = &document["policies"][1]["metrics"];
    let mean = |name: &str| metrics[name]["mean"].as_f64().unwrap();
    assert!(mean("completion_error_mean") <= 0.15, "{metrics}");
    assert!(mean("makespan_error").abs() <= 0.05, "{metrics}");
}

#[test]
fn a_log_is_written_for_hadoops_simulator() {
    let file = scratch("export").join("sls.json");
    let ran = run(&["export", "examples/hadoop-log", "--format", "synth", "--output", text(&file)]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("28 jobs of 28 kinds: SLS draws as many by their weights"), "{}", ran.err);
    let trace: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&trace["num_jobs"], &trace["num_nodes"]), (&28.into(), &4.into()));
    let tasks = |workload: &Value| workload["job_classes"][0]["tasks"].as_array().unwrap().clone();
    let count: f64 = trace["workloads"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(tasks)
        .map(|tasks| tasks["count"]["val"].as_f64().unwrap())
        .sum();
    assert_eq!(count, 225.0);
    // What is no workload of such jobs is refused, and nothing is written.
    let ran = run(&["export", "testdata/formats/swim/day.tsv", "--output", text(&file)]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let ran = run(&["export", "examples/hadoop-log", "--output", text(&scratch("export").join("sls.toml"))]);
    assert!(ran.code == Some(2) && ran.err.contains("ends in .toml, expected"), "{}", ran.err);
}

#[test]
fn a_file_beside_a_trace_may_be_compressed() {
    let topology = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formats/rumen/topology.json");
    let packed = scratch("topology").join("topology.json.gz");
    let bytes = fs::read(topology).unwrap();
    let write = |out: &mut dyn std::io::Write| out.write_all(&bytes);
    slackline_trace::Compression::Gzip.write(&mut fs::File::create(&packed).unwrap(), write).unwrap();
    let imported = |file: &str| done(&["import", TRACE, "--topology", file, "--format", "json"]);
    assert_eq!(imported(text(&packed)), imported(topology));
}

const LOG: &str = "examples/hadoop-log";

#[test]
fn another_number_of_machines_alike_needs_no_slots() {
    let slots = |machines: &str| {
        let out = done(&["compare", LOG, "-p", "fifo", "--machines", machines]);
        out.split_once('(').unwrap().1.split(' ').next().unwrap().to_owned()
    };
    assert_eq!([slots("4"), slots("6")], ["12", "18"], "those of the log have three each");
    let file = scratch("unlike").join("w.toml");
    let unlike =
        "slackline = 1\ncluster.machines = [{ name = \"a\", slots = 2 }, { name = \"b\", slots = 3 }]\n";
    fs::write(&file, unlike).unwrap();
    let ran = run(&["compare", text(&file), "--machines", "4"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("found 2 machines that differ (2 to 3 slots each)"), "{}", ran.err);
    assert!(ran.err.contains("expected --slots S"), "{}", ran.err);
}

#[test]
fn a_file_that_is_none_is_said_to_be_read_as_what() {
    let ran = run(&["compare", "README.md"]);
    assert!(
        ran.code == Some(2)
            && ran.err.contains("README.md:3:")
            && ran.err.contains(": read as a flow file (TOML): "),
        "{}",
        ran.err
    );
    let ran = run(&["compare", LOG, "-p", "yarn-fair:file=README.md"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("read as a queue file (fair-scheduler.xml, XML): "),
        "{}",
        ran.err
    );
}
