//! Policies that are separate programs, in every command that takes a policy.

use std::fs;
use std::path::PathBuf;

use crate::runs::{RUN, checked, command, prepared};
use crate::{CONTRACT, NIGHTLY, done, program, ran, run, scratch, text};

/// A script of the shell that answers nothing but `{}`, so that phases are served by number.
const BY_NUMBER: &str = r#"
read -r hello
echo '{"protocol": 1, "style": "order"}'
while read -r line; do echo '{}'; done
"#;

/// A file with that script, and the policy that starts it.
fn script(test: &str, content: &str) -> (PathBuf, String) {
    let dir = scratch(test);
    fs::write(dir.join("policy.sh"), content).unwrap();
    let policy = format!("command:sh '{}' --x 1,2 fifo:by=flow", text(&dir.join("policy.sh")));
    (dir, policy)
}

#[test]
fn a_schedule_names_its_program_and_is_read_back() {
    let (dir, policy) = script("command_schedule", BY_NUMBER);
    let file = dir.join("schedule.json");
    done(&["simulate", NIGHTLY, "--policy", &policy, "--output", text(&file)]);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(document["policy"], policy);
    done(&["check", NIGHTLY, text(&file)]);
    assert!(done(&["explain", text(&file), "audit", "--workload", NIGHTLY]).contains("audit"));
    let plan = done(&["plan", NIGHTLY, "--policy", &policy, "--format", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((&plan["cost"], &plan["policy"]), (&document["cost"], &document["policy"]));
}

#[test]
fn in_a_list_everything_after_the_colon_belongs_to_the_program() {
    let (dir, policy) = script("command_compare", BY_NUMBER);
    let kept = dir.join("kept");
    let list = format!("edf,fair:by=flow,{policy}");
    let shown = done(&[
        "compare",
        NIGHTLY,
        "--policies",
        &list,
        "-p",
        "fifo",
        "--format",
        "csv",
        "--schedules",
        text(&kept),
    ]);
    let mut rows = csv::Reader::from_reader(shown.as_bytes());
    let names: Vec<String> = rows.records().map(|row| row.unwrap()[0].to_owned()).collect();
    assert_eq!(names, ["edf", "fair:by=flow", &policy, "fifo"]);
    let mut files: Vec<String> =
        fs::read_dir(&kept).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files.len(), 4);
    assert!(files[0].starts_with("command-sh-"), "{files:?}");
    done(&["check", NIGHTLY, text(&kept.join(&files[0]))]);
    let smallest =
        done(&["capacity", CONTRACT, "--machines", "1..3", "--until", "makespan:30", "--policy", &policy]);
    let has = |row: &[&str]| {
        smallest.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().starts_with(row))
    };
    assert!(has(&["1", "no"]) && has(&["2", "yes", "25.0"]), "{smallest}");
}

#[test]
fn a_program_that_fails_is_exit_code_1_and_every_line_says_error() {
    let failing = "command:sh -c 'echo sorry >&2; echo nonsense'";
    let expected = "error: command:sh -c 'echo sorry >&2; echo nonsense': found no JSON object, expected one, such as {} \
                    for no change; print other text to standard error\n\
                    error: the request was: line 1, hello\nerror: it answered: nonsense\n\
                    error: its standard error ends:\nerror:   sorry\n";
    for args in [["simulate", CONTRACT, "--policy", failing], ["plan", CONTRACT, "--policy", failing]] {
        let ran = run(&args);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(1), "", expected));
    }
    let until = ["capacity", CONTRACT, "--machines", "1..3", "--until", "makespan:30", "--policy", failing];
    let ran = run(&until);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("nonsense': machines 2: found no JSON object"), "{}", ran.err);
    let ran = run(&["compare", CONTRACT, "--policies", &format!("fifo,{failing}")]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("\nfifo ") && ran.out.contains("\nit answered: nonsense\n"), "{}", ran.out);
    let late = ["simulate", CONTRACT, "--policy-timeout", "300ms", "--policy", "command:sleep 100"];
    let ran = run(&late);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("error: command:sleep 100: no answer within 0.3 s, expected"), "{}", ran.err);
}

#[test]
fn a_comparison_stops_a_slow_program_and_the_others_end() {
    let (_, slow) = script("command_slow", &BY_NUMBER.replace("do echo", "do sleep 0.5; echo"));
    let list = format!("fifo,{slow}");
    let ran = run(&["compare", NIGHTLY, "-p", &list, "--timeout", "2", "--format", "json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["policies"][0]["refused"], serde_json::Value::Null);
    assert_eq!(document["policies"][1]["refused"], "not finished in 2 s");
}

#[test]
fn a_command_that_is_none_is_wrong_use() {
    for (policy, expected) in [
        ("command:", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command:x 'y", "policy command: found x 'y, in which a quote is not closed"),
    ] {
        let ran = run(&["simulate", CONTRACT, "--policy", policy]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
    assert_eq!(run(&["simulate", CONTRACT, "-p", "fifo", "--policy-timeout", "0"]).code, Some(2));
}

#[test]
fn specifications_and_defaults_may_name_one() {
    let (dir, policy) = script("command_spec", BY_NUMBER);
    let spec = |policy: &str| {
        let file = dir.join("spec.toml");
        let content = format!(
            "slackline = 1\ntitle = \"t\"\npaper = \"flex\"\n[[figures]]\nid = \"f\"\ntitle = \"t\"\nkind = \"sweep\"\n\
             seeds = 1\n[figures.settings]\nby = \"simulate\"\nworkload = {{ generator = \"woha-fig7\" }}\n\
             policies = [\"edf\", {policy:?}]\nmeasures = [\"makespan\"]\n"
        );
        fs::write(&file, content).unwrap();
        run(&["repro", "--spec", text(&file), "--output", text(&dir)])
    };
    let made = spec(&policy);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(fs::read_to_string(dir.join("f.csv")).unwrap().contains(&policy));
    let failed = spec("command:false");
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(failed.err.contains("it ended without an answer (exit status: 1)"), "{}", failed.err);

    let config = dir.join("config.toml");
    fs::write(&config, format!("policy = {policy:?}\n")).unwrap();
    let simulated = program().env("SLACKLINE_CONFIG", &config).args(["simulate", CONTRACT]).output().unwrap();
    let simulated = ran(&simulated);
    assert_eq!(simulated.code, Some(0), "{}", simulated.err);
    assert!(simulated.err.contains(&policy), "{}", simulated.err);
}

#[test]
fn the_table_help_and_completions_know_it() {
    assert!(done(&["policies"]).contains("your own program in any language: command:PROGRAM ARGUMENTS"));
    assert!(done(&["policies", "command"]).contains("kept if the program says so"));
    assert!(done(&["policies", "fair:by=flow"]).starts_with("fair\n"));
    assert_eq!(run(&["policies", "comand"]).code, Some(2));
    assert!(done(&["simulate", "--help"]).contains("command"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(&["completions", shell]).contains("command"), "{shell}");
    }
}

#[test]
fn a_policy_is_tested_a_line_for_each_check() {
    let (_, policy) = script("command_test", BY_NUMBER);
    let shown = done(&["policies", "--test", &policy]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[..12].iter().all(|line| line.starts_with("ok      ")), "{shown}");
    assert_eq!(lines[12], format!("12 checks of {policy} on 15 workloads, 0 failed"));
    let places_nothing = BY_NUMBER.replace("order", "placements");
    let (_, idle) = script("command_test_idle", &places_nothing);
    let tested = run(&["policies", "--test", &idle]);
    assert_eq!(tested.code, Some(1), "{}", tested.err);
    assert!(tested.out.starts_with("FAILED  plain: chain.toml: 7 flows did not finish\n"), "{}", tested.out);
    assert!(tested.out.ends_with("on 15 workloads, 12 failed\n"), "{}", tested.out);
    assert_eq!(run(&["policies", "fifo", "--test", "fifo"]).code, Some(2));
    // Any policy may be tested.
    assert!(
        done(&["policies", "--test", "mk-jr"]).ends_with("12 checks of mk-jr on 15 workloads, 0 failed\n")
    );
}

#[test]
fn a_real_run_stops_when_the_program_fails_and_the_same_command_resumes_it() {
    let dir = prepared("command_run");
    let failing = "read -r hello\necho '{\"protocol\": 1, \"style\": \"order\"}'\nn=0\n\
                   while read -r line; do n=$((n + 1)); if [ $n = 4 ] && ! [ -e fixed ]; then exit 7; fi; echo '{}'; done\n";
    fs::write(dir.join("policy.sh"), failing).unwrap();
    let args = [&RUN[..], &["--policy", "command:sh policy.sh"]].concat();
    let first = ran(&command(&dir, &args).output().unwrap());
    assert_eq!(first.code, Some(1), "{}{}", first.out, first.err);
    assert!(
        first.err.contains("error: command:sh policy.sh: it ended without an answer (exit status: 7)"),
        "{}",
        first.err
    );
    assert!(first.err.contains("stopped; the same command resumes it"), "{}", first.err);
    fs::write(dir.join("fixed"), "").unwrap();
    let second = ran(&command(&dir, &args).output().unwrap());
    assert_eq!(second.code, Some(0), "{}{}", second.out, second.err);
    assert!(second.err.contains("resuming the run: "), "{}", second.err);
    checked(&dir);
}
