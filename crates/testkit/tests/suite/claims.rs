//! The statements about results in the comments of the examples are true.

use std::collections::BTreeMap;
use std::path::Path;

use slackline::import::{Source, WorkloadOptions};
use slackline::{Options, Registry, SideBySide, compare};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Missed deadlines of an example under each policy.
fn missed(example: &str, policies: &[&str]) -> BTreeMap<String, u64> {
    let path = format!("{}/../../{example}", env!("CARGO_MANIFEST_DIR"));
    let mut loaded = Source::read(path.as_ref()).unwrap().load(&WorkloadOptions::default()).unwrap();
    loaded.prepare(None).unwrap();
    let policies: Vec<_> = policies.iter().map(|name| Registry::standard().parse(name).unwrap()).collect();
    let compared = compare(&loaded.instance, &policies, &Options::exact(), None, SideBySide::default());
    let missed = |run: &slackline::Simulated| {
        let entries = run.metrics.entries();
        entries.iter().find(|(name, _)| *name == "missed").map(|(_, value)| *value as u64).unwrap()
    };
    compared.iter().map(|one| (one.policy.spec().to_owned(), missed(one.result.as_ref().unwrap()))).collect()
}

#[test]
fn the_command_of_the_example_shows_that_only_woha_meets_all_three_deadlines() {
    let example = read("examples/three-workflows.toml");
    let policies = example.split("--policies ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let names: Vec<&str> = policies.trim().split(',').collect();
    for (policy, missed) in missed("examples/three-workflows.toml", &names) {
        assert_eq!(missed, u64::from(!policy.starts_with("woha")), "{policy}");
    }
}

#[test]
fn the_comment_of_the_nightly_example_counts_missed_deadlines_right() {
    let found = missed("examples/nightly.toml", &["fifo", "fair", "edf"]);
    assert_eq!((found["fifo"], found["fair"], found["edf"]), (7, 4, 1));
    let comment = read("examples/nightly.toml");
    for said in ["seven of nine deadlines are missed", "four are missed", "EDF misses one"] {
        assert!(comment.contains(said), "found no {said:?}");
    }
}
