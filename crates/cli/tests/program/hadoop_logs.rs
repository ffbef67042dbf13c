//! Logs of Hadoop: compared with the recorded execution, written as documents, and read from folders.

use std::fs;

use serde_json::Value;

use crate::{done, run, scratch, text};

const TRACE: &str = "testdata/formats/rumen/two-jobs.json";
const HISTORY_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formats/jhist/sort.jhist");
const HISTORY: &str = "testdata/formats/jhist/sort.jhist";

#[test]
fn the_recorded_execution_is_shown_beside_simulations() {
    let out = done(&["compare", LOG, "-p", &format!("{QUEUES},fifo")]);
    assert!(out.contains("\nrecorded "), "{out}");
    // Only the cluster's own scheduler is meant to be like the recorded run.
    let said = out.split("simulation error: ").nth(1).expect("distances");
    assert!(said.contains("\n  yarn-capacity:file=capacity-scheduler.xml: "), "{said}");
    assert!(
        said.contains("; makespan ") && !said.contains("recorded: ") && !said.contains("fifo: "),
        "{said}"
    );
    // Without `--policies` the recorded execution is first.
    let document: Value = serde_json::from_str(&done(&["compare", TRACE, "--format", "json"])).unwrap();
    let policies = document["policies"].as_array().unwrap();
    assert_eq!((&policies[0]["policy"], &policies[1]["policy"]), (&"recorded".into(), &"fifo".into()));
    // The last task ends at 39.5 s, and the job finishes at 61.5 s.
    assert_eq!(policies[0]["metrics"]["makespan"], 61.5);
    assert!(policies[1]["metrics"]["completion_error_mean"].is_null(), "{}", policies[1]);
    // Another cluster changes only the other policies.
    let other = done(&["compare", TRACE, "--machines", "9", "--slots", "2", "--format", "json"]);
    let other: Value = serde_json::from_str(&other).unwrap();
    assert_eq!(other["policies"][0]["metrics"]["makespan"], 61.5);
}

#[test]
fn recorded_attempts_stay_in_the_document() {
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
    assert!(ran.out.contains("recorded: the workload has no recorded run"), "{}{}", ran.out, ran.err);
    let ran = run(&["simulate", TRACE, "-p", "recorded"]);
    assert!(ran.code != Some(0) && ran.err.contains("which is the run recorded in a log"), "{}", ran.err);
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

#[test]
fn the_recorded_cluster_is_simulated_as_closely_as_the_readme_says() {
    let policy = "recorded,yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml";
    let out = done(&[
        "compare",
        "examples/hadoop-log",
        "-p",
        policy,
        "--profile",
        "hadoop-log",
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
fn a_file_beside_a_trace_may_be_compressed() {
    let topology = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formats/rumen/topology.json");
    let packed = scratch("topology").join("topology.json.gz");
    let bytes = fs::read(topology).unwrap();
    let write = |out: &mut dyn std::io::Write| out.write_all(&bytes);
    slackline_trace::Compression::Gzip.write(&mut fs::File::create(&packed).unwrap(), write).unwrap();
    let imported = |file: &str| {
        done(&["import", TRACE, "--from", &format!("rumen:topology={file}"), "--format", "json"])
    };
    assert_eq!(imported(text(&packed)), imported(topology));
}

const LOG: &str = "examples/hadoop-log";
const QUEUES: &str = "recorded,yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml";
const PROFILE: &str = "hadoop-log";

#[test]
fn a_log_without_what_it_is_measured_by_is_warned_of() {
    let alone = run(&["compare", LOG, "-p", "fifo,flex"]);
    for lacking in ["--profile hadoop-log", "-p recorded", "yarn-capacity:file=", "docs/hadoop-logs.md"] {
        assert!(alone.err.contains(lacking), "{lacking} in {}", alone.err);
    }
    let without = run(&["compare", LOG, "-p", QUEUES]);
    assert!(
        without.err.contains("--profile hadoop") && !without.err.contains("-p recorded"),
        "{}",
        without.err
    );
    let all = run(&["compare", LOG, "-p", QUEUES, "--profile", PROFILE]);
    assert!(!all.err.contains("not calibrated"), "{}", all.err);
    let until = ["--machines", "4..6", "--until", "makespan:1h", "-p", "fifo"];
    let tuned = run(&[&["capacity", LOG, "--slots", "3"][..], &until].concat());
    assert!(tuned.err.contains("--profile hadoop") && !tuned.err.contains("-p recorded"), "{}", tuned.err);
    // Without a file it has one queue, unlike most clusters.
    let bare = run(&["compare", LOG, "-p", "recorded,yarn-capacity", "--profile", PROFILE]);
    assert!(bare.err.contains("not calibrated: add the cluster's own scheduler"), "{}", bare.err);
    // With map and reduce slots ApplicationMasters hold none.
    let map_reduce = run(&["compare", TRACE, "-p", "fifo", "--map-slots", "2", "--reduce-slots", "1"]);
    assert!(map_reduce.err.contains("--profile hadoop-log:am-share=0 "), "{}", map_reduce.err);
    assert!(!map_reduce.err.contains("yarn-"), "Hadoop 1 has no YARN: {}", map_reduce.err);
    let other = run(&["compare", crate::NIGHTLY, "-p", "fifo"]);
    assert!(!other.err.contains("--profile"), "nothing happened there: {}", other.err);
}

#[test]
fn a_log_is_compared_with_the_scheduler_whose_queue_file_is_in_its_folder() {
    let csv = done(&["compare", LOG, "--format", "csv"]);
    let names: Vec<&str> = csv.lines().skip(1).map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(names[1], format!("yarn-capacity:file={LOG}/capacity-scheduler.xml"));
    assert_eq!([names[0], names[2], names[3]], ["recorded", "fair", "auto"]);
}

#[test]
fn a_workload_without_flows_is_warned_of() {
    let file = scratch("no-flows").join("w.toml");
    fs::write(&file, "slackline = 1\nflows = []\ncluster.machines = [{ name = \"m\", slots = 1 }]\n")
        .unwrap();
    let until = ["--machines", "1..2", "--until", "makespan:1h", "-p", "fifo"];
    for asked in
        [&["compare", text(&file), "-p", "fifo"][..], &[&["capacity", text(&file)][..], &until].concat()]
    {
        assert!(run(asked).err.contains("the workload has no flows"), "{asked:?}");
    }
}

#[test]
fn ams_that_hold_most_slots_are_named() {
    const CROWDED: &str = "ApplicationMasters held two thirds of the slots or more";
    let both = done(&["compare", LOG, "-p", "flex,fair", "--profile", PROFILE]);
    let said = both.split_once(CROWDED).unwrap().1;
    assert!(said.contains("\n  fair: for ") && !said.contains("flex: for "), "{said}");
    assert!(said.contains("am-share=0.3"), "{said}");
    let limited = done(&["compare", LOG, "-p", "fair", "--profile", &format!("{PROFILE}:am-share=0.3")]);
    assert!(!limited.contains(CROWDED), "{limited}");
    let simulated = run(&["simulate", LOG, "-p", "fair", "--profile", PROFILE, "--format", "csv"]);
    assert!(simulated.err.contains(CROWDED), "{}", simulated.err);
}

#[test]
fn groups_and_sizes_keep_what_tells_their_rows_apart() {
    let by = ["--by", "pool", "--columns", "mean_response"];
    let one = done(&[&["compare", LOG, "-p", QUEUES][..], &by].concat());
    assert!(one.contains("\nyarn-capacity:file=capacity-scheduler.xml  root.prod "), "{one}");
    let seeds = ["--profile", PROFILE, "--seeds", "2"];
    let two = done(&[&["compare", LOG, "-p", "fifo,flex"][..], &by, &seeds].concat());
    let rows: Vec<&str> = two.lines().filter(|line| line.contains(" root.")).collect();
    assert!(rows.len() == 4 && rows[0].starts_with("fifo    root.prod"), "{two}");
    let csv =
        done(&[&["compare", LOG, "-p", "fifo", "--by", "pool", "--format", "csv"][..], &seeds].concat());
    assert!(csv.starts_with("policy,pool,flows,metric,seeds,mean,sd,ci95\n"), "{csv}");
    let response = csv.lines().find(|line| line.starts_with("fifo,root.prod,13,mean_response,2,")).unwrap();
    // The mean of both seeds, each of which can be requested alone.
    let of_seed = |seed: &str| -> f64 {
        let args = [
            "compare",
            LOG,
            "-p",
            "fifo",
            "--profile",
            PROFILE,
            "--format",
            "json",
            "--seeds",
            "1",
            "--seed",
            seed,
        ];
        let document: Value = serde_json::from_str(&done(&args)).unwrap();
        let groups = document["policies"][0]["groups"].as_array().unwrap();
        let pool = groups.iter().find(|group| group["name"] == "root.prod").unwrap();
        pool["metrics"]["mean_response"].as_f64().unwrap()
    };
    let mean: f64 = response.split(',').nth(5).unwrap().parse().unwrap();
    assert!((mean - f64::midpoint(of_seed("0"), of_seed("1"))).abs() < 1e-9, "{response}");
    let sizes = done(&["compare", LOG, "-p", "fifo,flex", "--machines", "4,6", "--columns", "makespan"]);
    assert!(sizes.contains("machines  policy  makespan"), "{sizes}");
}

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
fn a_file_of_no_format_is_reported_with_the_format_it_was_read_as() {
    let ran = run(&["compare", "docs/run.md"]);
    assert!(
        ran.code == Some(2)
            && ran.err.contains("docs/run.md:3:")
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
