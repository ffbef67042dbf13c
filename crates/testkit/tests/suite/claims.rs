//! The statements about results in the README and in the comments of the examples are true.

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

/// The policies of the command below `intro` in the README.
fn policies_of_command(intro: &str) -> Vec<String> {
    let readme = read("README.md");
    let after = &readme[readme.find(intro).expect("the README has the claim")..];
    let command = after.split("```").nth(1).unwrap();
    let list = command.split("--policies ").nth(1).unwrap().trim();
    list.split(',').map(str::to_owned).collect()
}

#[test]
fn the_readmes_command_shows_that_only_woha_meets_all_three_deadlines() {
    let policies = policies_of_command("On three workflows in the form of WOHA's evaluation");
    let names: Vec<&str> = policies.iter().map(String::as_str).collect();
    for (policy, missed) in missed("examples/three-workflows.toml", &names) {
        assert_eq!(missed, u64::from(!policy.starts_with("woha")), "{policy}");
    }
    assert_eq!(
        missed("examples/three-workflows.toml", &["fifo"])["fifo"],
        0,
        "plain FIFO, as the README says"
    );
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

#[test]
fn the_librarys_example_is_the_one_that_is_compiled() {
    let readme = read("README.md");
    let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(example.contains("fn main()") && read("crates/slackline/README.md").contains(example));
}
