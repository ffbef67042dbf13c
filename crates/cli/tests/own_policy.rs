//! The example `own_policy`: a program with one more policy, which is there wherever policies are, and is held
//! to what every policy is held to.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::path::PathBuf;
use std::process::Command;

use slackline::Registry;

#[allow(dead_code, reason = "its main is the program that the other test starts")]
#[path = "../examples/own_policy.rs"]
mod own_policy;

/// The example as `cargo test` builds it, or built now.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/own_policy");
    if !program.exists() {
        let build = ["build", "--quiet", "--package", "slackline-cli", "--example", "own_policy"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    program
}

fn said(args: &[&str]) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = Command::new(example()).args(args).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_is_wherever_policies_are() {
    assert!(said(&["compare", "examples/nightly.toml"]).contains("\nshortest-first "));
    assert!(said(&["simulate", "examples/nightly.toml", "--policy", "shortest-first"]).contains("cost"));
    assert!(
        said(&["plan", "examples/nightly.toml", "--policy", "shortest-first"]).contains("shortest-first: ")
    );
    assert!(said(&["policies"]).contains("the phase with the least work left first"));
    assert!(said(&["simulate", "--help"]).contains("shortest-first"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["completions", shell]).contains("shortest-first"), "{shell}");
    }
}

#[test]
fn it_is_held_to_what_every_policy_is_held_to() {
    let registry = Registry::empty().with(own_policy::ENTRY).unwrap();
    slackline_testkit::conformance::check(&registry).unwrap();
}
