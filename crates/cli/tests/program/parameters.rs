//! Parameters of documents, one flow per value, and inputs from other flows, on the command line.

use crate::{Ran, program, ran};

const EXAMPLE: &str = "examples/nightly-run.toml";

fn slackline(args: &[&str]) -> Ran {
    ran(&program().args(args).output().expect("the program starts"))
}

#[test]
fn values_on_the_command_line_reach_run_sections() {
    let shown = slackline(&["import", EXAMPLE, "--set", "night=2026-03-02", "--set", "requests=7"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("target/nightly-run/2026-03-02/log"), "{}", shown.out);
    assert!(shown.out.contains("REQUESTS = \"7\""), "{}", shown.out);
    assert!(shown.out.contains("{ n[$2] += $1 }"), "braces of commands stay: {}", shown.out);
    assert!(shown.out.contains("id = \"nightly\""), "{}", shown.out);
}

#[test]
fn a_backfill_is_a_flow_a_value() {
    let shown = slackline(&["import", EXAMPLE, "--for", "night=2026-02-28..2026-03-01"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for expected in ["nightly#2026-02-28", "nightly#2026-03-01", "target/nightly-run/2026-02-28/hosts"] {
        assert!(shown.out.contains(expected), "{expected}: {}", shown.out);
    }
    let week = r#"inputs = ["@nightly#2026-02-28/hosts", "@nightly#2026-03-01/hosts"]"#;
    assert!(shown.out.contains(week), "{}", shown.out);
}

#[test]
fn errors_of_parameters_are_reported_before_the_run() {
    for (args, expected) in [
        (
            ["--set", "nigth=1"],
            "found a value for parameter \"nigth\", expected one of night, requests; did you mean \"night\"?",
        ),
        (["--for", "nigth=1"], "did you mean \"night\"?"),
        (["--set", "night"], "expected NAME=VALUE"),
        (["--set", "=1"], "expected NAME=VALUE"),
        (["--set", "night=a\nb"], "--set: found \"a\\nb\", expected a text without NUL"),
        (["--for", "night=3..1"], "--for: found the range 3..1, expected the first no later than the last"),
        (["--for", "night=2026-03-01..x"], "--for: found the range 2026-03-01..x, expected days"),
    ] {
        let refused = slackline(&["run", EXAMPLE, args[0], args[1], "--state", "target/never-begun"]);
        assert!(refused.code == Some(2) && refused.err.contains(expected), "{args:?}: {}", refused.err);
    }
    let twice = slackline(&["run", EXAMPLE, "--set", "night=1", "--for", "night=1..2"]);
    assert!(twice.code == Some(2) && twice.err.contains("\"night\" a second time"), "{}", twice.err);
}

#[test]
fn flows_that_wait_for_others_are_only_run() {
    let verbs = [
        vec!["simulate", "--policy", "fifo"],
        vec!["compare", "--policies", "fifo"],
        vec!["plan", "--policy", "flex"],
        vec!["bound"],
    ];
    for verb in verbs {
        let refused = slackline(&[&verb[..], &[EXAMPLE, "--machines", "1", "--slots", "2"]].concat());
        assert_eq!(refused.code, Some(2), "{verb:?}: {}{}", refused.out, refused.err);
        let expected =
            "found the input \"@nightly/hosts\", expected none from another flow: only `run` can wait for it";
        assert!(refused.err.contains(expected), "{verb:?}: {}", refused.err);
    }
}
