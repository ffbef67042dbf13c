//! Your own specifications of figures, with workloads from files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{NIGHTLY, TRACE, done, run, scratch, text};

const HEAD: &str = "slackline = 1\ntitle = 't'\npaper = 'none'\n";

/// A figure of a workload under two policies; more of its settings, and its workload.
fn figure(id: &str, workload: &str, more: &str) -> String {
    format!(
        "[[figures]]\nid = '{id}'\ntitle = 't'\nkind = 'sweep'\nseeds = 1\n[figures.settings]\nby = 'simulate'\n\
         workload = {workload}\npolicies = ['fifo', 'edf']\nmeasures = ['cost', 'makespan']\n{more}\n"
    )
}

/// A directory with `mine.toml` beside a workload of ours and a trace.
fn beside(name: &str, figures: &str) -> (PathBuf, PathBuf) {
    let dir = scratch(name);
    fs::create_dir_all(dir.join("data")).unwrap();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    fs::copy(root.join(NIGHTLY), dir.join("data/nightly.toml")).unwrap();
    fs::write(dir.join("data/small.tsv"), TRACE).unwrap();
    let file = dir.join("mine.toml");
    fs::write(&file, format!("{HEAD}{figures}")).unwrap();
    (dir, file)
}

/// Mean of a measure under a policy.
fn mean(csv: &Path, x: &str, policy: &str, measure: &str) -> f64 {
    let mut rows = csv::Reader::from_path(csv).unwrap();
    let found = rows.records().map(Result::unwrap).find(|row| {
        let is = |column: usize, wanted: &str| &row[column] == wanted;
        is(1, x) && is(3, policy) && is(4, measure)
    });
    found.unwrap_or_else(|| panic!("{}: no row of {x:?} {policy} {measure}", csv.display()))[7]
        .parse()
        .unwrap()
}

#[test]
fn workloads_are_files_beside_the_specification() {
    let night =
        figure("night", "{ file = 'data/nightly.toml' }", "vary = { param = 'machines', values = [2, 3] }");
    let trace = figure(
        "trace",
        "{ file = 'data/small.tsv', from = 'swim', set = { durations = 'rate', map-rate = '20MB' } }",
        "cluster = { machines = 3, map_slots = 2, reduce_slots = 1 }",
    );
    let (dir, file) = beside("specifications_files", &format!("{night}{trace}"));
    let out = dir.join("out");
    done(&["repro", text(&file), "--output", text(&out)]);
    let nightly = dir.join("data/nightly.toml");
    for machines in ["2", "3"] {
        let args = ["simulate", text(&nightly), "-p", "edf", "--machines", machines, "--format", "json"];
        let schedule: serde_json::Value = serde_json::from_str(&done(&args)).unwrap();
        let cost = mean(&out.join("night.csv"), machines, "edf", "cost");
        assert_eq!(Some(cost), schedule["cost"].as_f64(), "{machines} machines");
    }
    let small = dir.join("data/small.tsv");
    let size = ["--machines", "3", "--map-slots", "2", "--reduce-slots", "1"];
    let simulate = [
        &[
            "simulate",
            text(&small),
            "-p",
            "fifo",
            "--from",
            "swim:durations=rate,map-rate=20MB",
            "--format",
            "json",
        ],
        &size[..],
    ];
    let schedule: serde_json::Value = serde_json::from_str(&done(&simulate.concat())).unwrap();
    let cost = mean(&out.join("trace.csv"), "", "fifo", "cost");
    assert_eq!(Some(cost), schedule["cost"].as_f64());

    // Another content is another figure.
    let page = dir.join("page");
    let report = ["repro", text(&file), "night", "--report", text(&page)];
    assert!(!run(&report).err.contains("are kept"));
    assert!(run(&report).err.contains("1 of 1 figures exist and are kept"));
    let changed = fs::read_to_string(&nightly).unwrap() + "\n# once more\n";
    fs::write(&nightly, changed).unwrap();
    assert!(!run(&report).err.contains("are kept"));
}

#[test]
fn errors_of_files_have_a_place() {
    let nightly = "{ file = 'data/nightly.toml' }";
    for (workload, more, expected) in [
        (
            "{ file = 'data/nighly.toml' }",
            "",
            "mine.toml:11:21: figures[0].settings.workload.file: found \"data/nighly.toml\"",
        ),
        ("{ file = 'mine.toml' }", "", "mine.toml:11:21: figures[0].settings.workload.file: "),
        (
            "{ file = 'data/nightly.toml', generator = 'woha-fig7' }",
            "",
            "mine.toml:11:12: figures[0].settings.workload: found generator and file, expected",
        ),
        ("{ set = {} }", "", "figures[0].settings.workload: found neither generator nor file"),
        ("{ file = 'data/small.tsv', from = 'swimm' }", "", "did you mean \"swim\"?"),
        (
            "{ file = 'data/small.tsv', set = { map-rat = 3 } }",
            "",
            "figures[0].settings.workload.set: option map-rat",
        ),
        (
            "{ file = 'data/nightly.toml', set = { map-rate = '3MB' } }",
            "",
            "import options apply only to traces",
        ),
        ("{ file = 'data/small.tsv' }", "", "figure f: found no cluster, expected machines and slots"),
        (nightly, "vary = { param = 'machine', values = [1] }", "figures[0].settings.vary: "),
    ] {
        let (_, file) = beside("specifications_wrong", &figure("f", workload, more));
        let ran = run(&["repro", text(&file)]);
        assert_eq!(ran.code, Some(2), "{workload}: {}", ran.out);
        let errors: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && errors[0].contains(expected), "{expected:?} in {}", ran.err);
    }
    let (dir, file) = beside("specifications_wrong", &figure("f", nightly, ""));
    let broken =
        fs::read_to_string(dir.join("data/nightly.toml")).unwrap().replacen("slots = {", "slotz = {", 1);
    fs::write(dir.join("data/nightly.toml"), broken).unwrap();
    let ran = run(&["repro", text(&file)]);
    assert!(ran.code == Some(2) && ran.err.contains("data/nightly.toml:"), "{}", ran.err);
    let ran = run(&["repro", "nowhere.toml"]);
    assert!(ran.code == Some(2) && ran.err.contains("nowhere.toml: cannot be read"), "{}", ran.err);
}
