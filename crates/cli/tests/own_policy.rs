//! The example `own_policy`: a program with one more policy. The policy is available everywhere and passes
//! the conformance tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod example;

use std::path::Path;

use slackline::Registry;

#[allow(dead_code, reason = "its main is the program that the other test starts")]
#[path = "../examples/own_policy.rs"]
mod own_policy;

fn said(args: &[&str]) -> String {
    example::said("own_policy", Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")), args)
}

#[test]
fn it_is_wherever_policies_are() {
    assert!(said(&["compare", "examples/nightly.toml"]).contains("\nshortest-first "));
    assert!(said(&["simulate", "examples/nightly.toml", "--policy", "shortest-first"]).contains("cost"));
    assert!(
        said(&["plan", "examples/nightly.toml", "--policy", "shortest-first"]).contains("shortest-first: ")
    );
    let longest = said(&["simulate", "examples/nightly.toml", "--policy", "shortest-first:order=longest"]);
    assert!(longest.contains("cost"));
    assert!(said(&["policies"]).contains("the phase with the least work left first"));
    assert!(said(&["simulate", "--help"]).contains("shortest-first"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["completions", shell]).contains("shortest-first"), "{shell}");
    }
}

#[test]
fn it_passes_the_tests_for_every_policy() {
    let registry = Registry::empty().with(own_policy::ENTRY).unwrap();
    slackline_testkit::conformance::check(&registry).unwrap();
}
