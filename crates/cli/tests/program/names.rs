//! For a mistyped name, the error suggests the right one, in every table of names.

use crate::{CONTRACT, NIGHTLY, done, run};

#[test]
fn every_kind_of_name_is_answered_with_the_one_that_was_meant() {
    let simulate = ["simulate", NIGHTLY, "--policy"];
    for (args, meant) in [
        ([&simulate[..], &["FIFO"]].concat(), "fifo"),
        ([&simulate[..], &["wohalpf"]].concat(), "woha-lpf"),
        ([&simulate[..], &["fifo:bye=flow"]].concat(), "by"),
        ([&simulate[..], &["fifo:by=Flow"]].concat(), "flow"),
        (vec!["compare", NIGHTLY, "--policies", "edf,Fair"], "fair"),
        (vec!["policies", "FLEX"], "flex"),
        (vec!["compare", NIGHTLY, "--metric", "Response"], "response"),
        (vec!["compare", NIGHTLY, "--metric", "tardines"], "tardiness"),
        (vec!["compare", NIGHTLY, "--combine", "SUM"], "sum"),
        (vec!["compare", NIGHTLY, "--knowledge", "Learned"], "learned"),
        (vec!["compare", NIGHTLY, "--format", "JSON"], "json"),
        (vec!["import", NIGHTLY, "--format", "YAML"], "yaml"),
        (vec!["import", NIGHTLY, "--from", "SWIM"], "swim"),
        (vec!["import", NIGHTLY, "--from", "swim:durations=lognorml"], "lognormal"),
        (vec!["generate", "Purdue"], "purdue"),
        (vec!["generate", "purdue", "--set", "job=3"], "jobs"),
        (vec!["generate", "purdue", "--set", "spread=Normal"], "normal"),
        (vec!["run", "nowhere.toml", "--engine", "Local"], "local"),
        (vec!["run", "nowhere.toml", "--engine", "local:slot=2"], "slots"),
        (vec!["repro", "Flex"], "flex"),
        (vec!["repro", "flex", "fig5"], "fig5a"),
        (vec!["tune", CONTRACT, "--method", "mk_sf_jr"], "mk-sf-jr"),
        (vec!["capacity", CONTRACT, "--until", "mised:0", "--policy", "edf"], "missed"),
        (vec!["man", "simulat"], "simulate"),
    ] {
        let ran = run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.out);
        let expected = format!("; did you mean {meant:?}?");
        assert!(ran.err.contains(&expected), "{args:?}: expected {expected} in {}", ran.err);
    }
}

#[test]
fn all_names_every_policy() {
    let csv = |more: &[&str]| done(&[&["compare", CONTRACT, "--format", "csv"], more].concat());
    let all = csv(&["--policies", "all"]);
    assert!(all.lines().count() > 13, "{all}");
    let more = csv(&["-p", "all,fifo:by=flow"]);
    assert_eq!(more.lines().count(), all.lines().count() + 1);
    let help = done(&["compare", "--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Policies, or all [default: fifo,fair,edf,auto]")
            && words.contains("[possible values: all, fifo,"),
        "{help}"
    );
}

#[test]
fn a_condition_needs_no_quotes() {
    let args = |until| {
        let args = [
            "capacity",
            NIGHTLY,
            "--machines",
            "1..50",
            "--policy",
            "edf",
            "--format",
            "json",
            "--until",
            until,
        ];
        done(&args)
    };
    let document = args("missed:0");
    assert!(document.contains("missed<=0") && document.contains("\"found\": 9.0"), "{document}");
    assert_eq!(args("missed<=0"), document);
    let apart = ["capacity", NIGHTLY, "--machines", "1..50", "--policy", "edf", "--format", "json"];
    assert_eq!(done(&[&apart[..], &["--until", "missed", "--at-most", "0"]].concat()), document);
    let ran = run(&["capacity", NIGHTLY, "--machines", "1..50", "--until", "missed", "--policy", "edf"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected missed:N, or --at-most N"), "{}", ran.err);
}

#[test]
fn a_negative_number_is_a_number() {
    for (flag, expected) in [
        ("--jitter", "expected a number from 0 to 3"),
        ("--heartbeat", "expected seconds or a duration such as 90s, 1.5h or 2d, from 0"),
        ("--speed", "expected a number from 0.000001"),
        ("--machines", "expected a number from 1"),
        ("--slots", "expected a whole number from 1"),
        ("--seed", "expected a whole number from 0"),
        ("--seeds", "expected a whole number from 1 to 10000"),
    ] {
        let ran = run(&["compare", NIGHTLY, flag, "-1"]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains("'-1'") && ran.err.contains(expected), "{flag}: {}", ran.err);
        assert!(!ran.err.contains("-- -1"), "{}", ran.err);
    }
}

#[test]
fn generators_are_listed_where_none_is_named() {
    let list = done(&["generate"]);
    assert!(list.lines().count() >= 9 && list.contains("\n  facebook-day"), "{list}");
    let ran = run(&["generate", "--output", "w.toml"]);
    assert!(ran.code == Some(2) && ran.err.contains("missing argument NAME"), "{}", ran.err);
    assert_eq!(run(&["generate", "--set", "jobs=3"]).code, Some(2));
}

#[test]
fn faults_that_are_alike_are_two_lines_and_a_count() {
    let job = |k: u32| format!("{{ id = 'j{k}', map = {{ tasks = {k}, seconds = [1.0, 2.0] }} }}");
    let jobs: Vec<String> = (3..18).map(job).collect();
    let text = format!("slackline = 1\n[[flows]]\nid = 'a'\njobs = [{}]\n", jobs.join(", "));
    let ran = crate::run_with(&["bound", "-", "--slots", "2", "--machines", "2"], text.as_bytes());
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.err);
    assert!(lines[2].ends_with("13 more like these"), "{}", ran.err);
}

#[test]
fn a_specification_that_is_wrong_is_one_line_with_its_place() {
    let dir = crate::scratch("names_spec");
    let file = dir.join("mine.toml");
    let head = "slackline = 1\ntitle = 't'\npaper = 'p'\n[[figures]]\nid = 'f'\ntitle = 't'\nkind = 'sweep'\nseeds = 1\n[figures.settings]\n";
    for (text, expected) in [
        ("slackline = 1\ntitle = \n".to_owned(), "mine.toml:2:"),
        (
            head.replace("kind = 'sweep'", "kind = 'sweap'"),
            "mine.toml:7:8: figures[0].kind: found kind \"sweap\"",
        ),
        (head.to_owned() + "by = 'simulat'\n", "mine.toml:10:6: figures[0].settings.by: found \"simulat\""),
    ] {
        std::fs::write(&file, &text).unwrap();
        let ran = run(&["repro", "--spec", crate::text(&file)]);
        assert_eq!(ran.code, Some(2), "{}", ran.out);
        let errors: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && errors[0].contains(expected), "{expected:?} in {}", ran.err);
    }
}
