//! The visible state of a run while it is active, after a kill and after its end; and its exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::processes::{Family, ended, signal};
use crate::runs::{RUN, command};
use crate::{Ran, ran, scratch};

/// A flow of a short job, one that hangs until there is a file `go`, and one after it; and a flow alone.
pub(crate) fn hanging(test: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = format!(
        r#"
slackline = 1
[[flows]]
id = "f"
deadline = 3000.0
jobs = [
  {{ id = "quick", run = {{ program = "wordcount", inputs = ["in.txt"], output = "quick" }} }},
  {{ id = "slow", map = {{ tasks = 1, seconds = 2 }}, run = {{ mapper = "cat; echo hello >&2; test -e go || sleep {}", inputs = ["@quick"], output = "slow" }} }},
  {{ id = "last", map = {{ tasks = 1, seconds = 2 }}, run = {{ mapper = "cat", inputs = ["@slow"], output = "last" }} }},
]
"#,
        Family::long()
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").expect("an input");
    dir
}

pub(crate) fn slackline(dir: &Path, args: &[&str]) -> Ran {
    ran(&command(dir, args).output().expect("the program starts"))
}

pub(crate) fn done(dir: &Path, args: &[&str]) -> String {
    let ran = slackline(dir, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
    ran.out
}

pub(crate) fn status(dir: &Path) -> Value {
    let found = done(dir, &["status", "--state", "state", "--format", "json"]);
    let document: Value = serde_json::from_str(&found).expect("the document is JSON");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/status.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    validator.validate(&document).unwrap_or_else(|error| panic!("{document:#}: {error}"));
    document
}

#[test]
fn a_run_is_seen_while_it_continues_after_it_was_killed_and_at_its_end() {
    let (dir, family) = (hanging("run-watched"), Family::new("run-watched"));
    let mut engine = family.start(&dir, &RUN);
    family.awaits(&format!("sleep {}", Family::long()));
    let seen = status(&dir);
    assert_eq!((&seen["status"], &seen["policy"]), (&"running".into(), &"auto".into()));
    assert_eq!((&seen["tasks"], &seen["done"]), (&4.into(), &2.into()));
    let flow = &seen["flows"][0];
    assert_eq!((&flow["status"], &flow["late"]), (&"running".into(), &false.into()), "{flow:#}");
    assert!(flow["predicted"].as_f64().is_some_and(|at| at > 0.0), "{flow:#}");
    assert_eq!(flow["jobs"][0]["maps"]["records_in"], 3);
    assert!(!seen["at_work"].as_array().unwrap().is_empty());
    let printed = done(&dir, &["explain", "--state", "state", "f"]);
    for words in ["not finished yet, deadline", "slow  ", "last  ", "waits for its input: slow"] {
        assert!(printed.contains(words), "{words:?} in\n{printed}");
    }
    assert!(!printed.contains("failed"), "{printed}");
    let text = done(&dir, &["status", "--state", "state"]);
    for words in ["state: running since", "2 of 4 tasks done", "f/quick", "running: 1 attempt"] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    assert_eq!((&status(&dir)["status"], &status(&dir)["done"]), (&"stopped".into(), &2.into()));
    let printed = done(&dir, &["explain", "state", "f", "slow"]);
    assert!(printed.contains("repeat its command to resume it"), "{printed}");
    family.is_gone();
    fs::write(dir.join("go"), "").expect("a file");
    let rest = family.slackline(&dir, &[&RUN[..], &["--stats"]].concat());
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert!(rest.out.contains("records"), "{}", rest.out);
    let seen = status(&dir);
    assert_eq!((&seen["status"], &seen["flows"][0]["status"]), (&"finished".into(), &"finished".into()));
    assert!(done(&dir, &["explain", "--state", "state", "f"]).contains("on time"));
    let followed = done(&dir, &["status", "--state", "state", "--follow"]);
    assert!(followed.contains("state: finished"), "{followed}");
}

#[test]
fn the_only_run_there_is_needs_no_name_and_what_there_is_not_is_reported() {
    let dir = scratch("run-named");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let flow = |output: &str| {
        format!(
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ {{ id = 'j', run = {{ mapper = 'cat', inputs = ['in.txt'], \
             output = '{output}' }} }} ]\n"
        )
    };
    fs::write(dir.join("a.toml"), flow("a")).expect("a flow file");
    fs::write(dir.join("b.toml"), flow("b")).expect("a flow file");
    let refused = |args: &[&str]| {
        let ran = slackline(&dir, args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        ran.err
    };
    assert!(refused(&["status"]).contains(".slackline: found no run"));
    done(&dir, &["run", "a.toml"]);
    assert!(done(&dir, &["status"]).starts_with(".slackline/a: finished"));
    done(&dir, &["run", "b.toml"]);
    assert!(refused(&["status"]).contains("2 runs found; choose one with --state: .slackline/a, "));
    assert!(done(&dir, &["status", "b.toml"]).starts_with(".slackline/b: finished"));
    assert!(done(&dir, &["status", ".slackline/b", "--format", "csv"]).contains("\nf,finished,0,"));
    assert!(refused(&["status", "c.toml"]).contains(".slackline/c: found no run, expected"));
    assert!(refused(&["explain", "--state", "no/such", "f"]).contains("no/such: found no run, expected"));
    assert!(refused(&["logs", "g", "j", "--workload", "a.toml"]).contains("found flow \"g\", expected f"));
    assert!(refused(&["logs", "f", "jj", "-w", "a.toml"]).contains("found job \"jj\", expected j"));
    assert!(refused(&["logs", "f", "j", "map-7", "-w", "a.toml"]).contains("has 1 map (numbered from 0)"));
    assert!(refused(&["logs", "f", "j", "mop", "-w", "a.toml"]).contains("expected map-N, reduce-N"));
}

#[test]
fn status_explain_and_logs_take_a_run_in_one_way() {
    let dir = scratch("run-one-way");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let flow = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ { id = 'j', run = { mapper = 'cat; echo said >&2', inputs = \
                ['in.txt'], output = 'out' } } ]\n";
    fs::write(dir.join("a.toml"), flow).expect("a flow file");
    done(&dir, &["run", "a.toml"]);
    let all = |run: &[&str]| {
        let with = |args: &[&str]| done(&dir, &[args, run].concat());
        let explained = with(&["explain", "f", "j"]);
        assert!(explained.starts_with("f under auto: finished at "), "{run:?}: {explained}");
        assert!(with(&["status"]).starts_with(".slackline/a: finished"), "{run:?}");
        assert!(with(&["logs", "f", "j"]).ends_with("said\n"), "{run:?}");
    };
    // The only log.
    all(&[]);
    fs::create_dir(dir.join(".slackline/b")).expect("a directory");
    fs::copy(dir.join(".slackline/a/journal.log"), dir.join(".slackline/b/journal.log")).expect("a copy");
    for run in [".slackline/a", "a.toml", ".slackline/a/schedule.json", ".slackline/a/workload.json"] {
        all(&["--state", run]);
    }
    assert!(done(&dir, &["explain", "a.toml", "f", "j"]).starts_with("f under auto"));
    let several = slackline(&dir, &["explain", "f"]);
    assert!(several.err.contains("2 runs found; choose one with --state:"), "{}", several.err);
    let none = slackline(&dir, &["status", "--state", "c.toml"]);
    assert!(none.err.contains("c.toml: found no run, expected its state directory"), "{}", none.err);
}

#[test]
fn a_run_in_which_nothing_is_done_yet_or_nothing_was_left_to_do_says_so_in_words() {
    let (dir, family) = (scratch("run-empty"), Family::new("run-empty"));
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let write = |mapper: &str| {
        let flow = format!(
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ {{ id = 'j', run = {{ mapper = '{mapper}', inputs = \
             ['in.txt'], output = 'out' }} }} ]\n"
        );
        fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    };
    write(&format!("cat; test -e go || sleep {}", Family::long()));
    let mut engine = family.start(&dir, &RUN);
    family.awaits(&format!("sleep {}", Family::long()));
    let text = || done(&dir, &["status", "--state", "state"]);
    let seen = text();
    assert!(seen.contains("0 of 1 task done") && seen.contains("\nno task has ended yet\n"), "{seen}");
    assert!(!seen.contains("records"), "{seen}");
    fs::write(dir.join("go"), "").expect("a file");
    engine.kill().expect("it can be killed");
    engine.wait().expect("it is gone");
    family.is_gone();
    done(&dir, &RUN);
    let seen = text();
    assert!(!seen.contains("no task has ended yet") && seen.contains("records"), "{seen}");
    // The flow file is restored after a failure: all its jobs are finished, and the new run has no jobs.
    let good = fs::read(dir.join("flow.toml")).expect("the flow file");
    write("exit 7");
    assert_eq!(slackline(&dir, &RUN).code, Some(1));
    fs::write(dir.join("flow.toml"), good).expect("a flow file");
    done(&dir, &RUN);
    let seen = text();
    assert!(seen.starts_with("state: finished: started at"), "{seen}");
    assert!(seen.contains("\nnothing to run: all jobs were finished before\n"), "{seen}");
    assert!(!seen.contains("deadline") && !seen.contains("0 of 0"), "{seen}");
    let document = status(&dir);
    assert_eq!((&document["status"], &document["flows"]), (&"finished".into(), &Value::Array(Vec::new())));
}

#[test]
fn logs_show_failures_with_their_output() {
    let dir = scratch("run-logs");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let mapper = "cat; echo why it failed >&2; mkdir first && exit 3; exit 0";
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ {{ id = 'j', run = {{ mapper = '{mapper}', \
         inputs = ['in.txt'], output = 'out' }} }} ]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    done(&dir, &RUN);
    let failed = done(&dir, &["logs", "f", "j", "--state", "state", "--failed"]);
    assert!(failed.starts_with("── f/j, attempt 1, failed at "), "{failed}");
    assert!(failed.contains("exit status: 3") && failed.contains("\nwhy it failed\n"), "{failed}");
    let second = slackline(&dir, &["logs", "f", "j", "map-0", "--state", "state", "--attempt", "1"]);
    assert_eq!(second.out, failed);
    let none = slackline(&dir, &["logs", "f", "j", "reduce", "--state", "state"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
}

/// A flow of jobs `a`, `b` and so on, each of which reads the previous one, prints its name and runs one of
/// the commands.
fn chain(dir: &Path, commands: &[&str]) {
    let mut input = "in.txt".to_owned();
    let jobs = ["a", "b", "c"].iter().zip(commands).map(|(id, command)| {
        let mapper = format!("cat; echo this is {id} >&2; {command}");
        let input = std::mem::replace(&mut input, format!("@{id}"));
        format!(
            "  {{ id = '{id}', run = {{ mapper = '{mapper}', inputs = ['{input}'], output = '{id}' }} }},\n"
        )
    });
    let jobs: String = jobs.collect();
    fs::write(dir.join("flow.toml"), format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n{jobs}]\n"))
        .expect("a flow file");
}

/// The names of the logs that there are.
fn logs(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("state/logs")).expect("logs");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a log").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn jobs_that_earlier_runs_have_done_are_in_the_status() {
    let dir = scratch("run-kept-status");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    chain(&dir, &["true", "true"]);
    done(&dir, &RUN);
    let first = status(&dir);
    assert_eq!(first["kept"], Value::Array(Vec::new()));
    let printed = |dir: &Path| done(dir, &["status", "--state", "state"]);
    assert!(!printed(&dir).contains("earlier runs"), "{}", printed(&dir));
    // It stays so in the next run, and in one without open jobs.
    let expected = serde_json::json!([
        { "flow": "f", "job": "a", "maps": 1, "reduces": 0, "started": first["started"] }
    ]);
    for command in ["sleep 0", "sleep 0.0", "sleep 0.0"] {
        chain(&dir, &["true", command]);
        done(&dir, &RUN);
        let seen = status(&dir);
        assert_eq!((&seen["kept"], &seen["tasks"]), (&expected, &1.into()), "{command}");
        let printed = printed(&dir);
        let (_, section) =
            printed.split_once("\nfinished by earlier runs:\n").expect("there is such a section");
        let row = section.lines().last().expect("a row");
        assert!(
            row.split_whitespace().collect::<Vec<_>>().starts_with(&["f", "a", "1", "task"]),
            "{section}"
        );
    }
    done(&dir, &[&RUN[..], &["--force", "a"]].concat());
    assert_eq!(status(&dir)["kept"], Value::Array(Vec::new()));
}

#[test]
fn the_logs_of_jobs_that_earlier_runs_have_done_stay() {
    let dir = scratch("run-kept-logs");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    chain(&dir, &["true", "true", "true"]);
    done(&dir, &RUN);
    assert_eq!(logs(&dir), ["f.a.map-0.0.log", "f.b.map-0.1.log", "f.c.map-0.2.log"]);
    let printed =
        |job: &str, more: &[&str]| done(&dir, &[&["logs", "f", job, "--state", "state"][..], more].concat());
    let check = |expected: &[&str]| {
        assert_eq!(logs(&dir), expected);
        let of_first = printed("a", &[]);
        assert!(of_first.starts_with("── f/a, attempt 1, done at "), "{of_first}");
        assert!(of_first.ends_with("\nthis is a\n"), "{of_first}");
    };
    // A run of the other jobs fails, is resumed and ends; its numbers start again.
    chain(&dir, &["true", "sleep 0", "mkdir begun && exit 3; exit 0"]);
    let failed = slackline(&dir, &[&RUN[..], &["--attempts", "1"]].concat());
    assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
    check(&["f.a.map-0.0.log", "f.b.map-0.0.log", "f.c.map-0.1.log"]);
    done(&dir, &RUN);
    check(&["f.a.map-0.0.log", "f.b.map-0.0.log", "f.c.map-0.1.log", "f.c.map-0.2.log"]);
    assert!(printed("c", &["--failed"]).contains("exit status: 3"));
    // One more, after a run that had not run the first job itself.
    chain(&dir, &["true", "sleep 0.0", "exit 0"]);
    done(&dir, &RUN);
    check(&["f.a.map-0.0.log", "f.b.map-0.0.log", "f.c.map-0.1.log"]);
    let refused = |job: &str, task: &str| slackline(&dir, &["logs", "f", job, task, "--state", "state"]).err;
    assert!(refused("a", "map-7").contains("has 1 map (numbered from 0)"));
    let other = refused("d", "map");
    assert!(other.contains("found job \"d\", expected one of ") && other.contains(" a"), "{other}");
}

const FAILS: &str = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [ { id = 'j', run = { mapper = 'exit 7', \
                     inputs = ['in.txt'], output = 'out' } } ]\n";

fn failing(test: &str) -> PathBuf {
    let dir = scratch(test);
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    fs::write(dir.join("flow.toml"), FAILS).expect("a flow file");
    dir
}

#[test]
fn a_reader_that_closes_does_not_turn_failed_flows_into_success() {
    let dir = failing("run-closed");
    let mut child = command(&dir, &[&RUN[..], &["--attempts", "1"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let ended = ended(child);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("1 flow failed"), "{}", ended.err);
}

#[test]
fn a_full_device_is_named() {
    let dir = failing("run-full-device");
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let ran =
        ran(&command(&dir, &["run", "--list-programs"]).stdout(full).output().expect("the program starts"));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(
        ran.err.starts_with("error: cannot write standard output: No space left on device"),
        "{}",
        ran.err
    );
}

#[test]
fn one_failed_flow_is_reported_in_the_singular() {
    let dir = failing("run-singular");
    let ran = slackline(&dir, &[&RUN[..], &["--attempts", "1", "--stats"]].concat());
    assert!(ran.out.contains("1 flow failed and is left out of the metrics"), "{}", ran.out);
    assert!(ran.out.contains("f/j"), "{}", ran.out);
    let seen = status(&dir);
    assert_eq!((&seen["status"], &seen["flows"][0]["failed_attempts"]), (&"failed".into(), &1.into()));
}

#[test]
fn a_failed_job_is_the_cause_of_all_that_did_not_run() {
    let dir = scratch("run-cause");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    let flow = r#"
slackline = 1
[[flows]]
id = "etl"
jobs = [
  { id = "load", run = { command = "echo no such table >&2; exit 3", output = "load" } },
  { id = "clean", after = ["load"], run = { command = "true", output = "clean" } },
]
[[flows]]
id = "bi"
jobs = [ { id = "report", run = { mapper = "cat", inputs = ["@etl/load"], output = "report" } } ]
[[flows]]
id = "fine"
jobs = [ { id = "j", run = { mapper = "cat", inputs = ["in.txt"], output = "fine" } } ]
"#;
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    let ran = slackline(&dir, &[&RUN[..], &["--attempts", "1"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("fine/j done (1 task)") && ran.err.contains("etl/load failed, "), "{}", ran.err);
    let summary = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "1 flow finished, 2 failed failed: etl: job load: command",
        "no such table slackline logs etl load --state state not finished: clean failed: bi: it reads from etl/load, which failed: ",
        "outputs: fine",
    ] {
        assert!(summary.contains(words), "{words:?} in {}", ran.out);
    }
    for (flow, not_run) in [("etl", "clean"), ("bi", "report")] {
        let words = done(&dir, &["explain", flow, "--state", "state"]);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("cause: job etl/load failed (command"), "{words}");
        assert!(words.contains(&format!("these jobs did not run because of it: {not_run} ")), "{words}");
        let document: Value =
            serde_json::from_str(&done(&dir, &["explain", flow, "--state", "state", "--format", "json"]))
                .unwrap();
        let cause = &document["cause"];
        assert_eq!((&cause["flow"], &cause["job"]), (&"etl".into(), &"load".into()));
        assert_eq!(cause["not_run"], serde_json::json!([not_run]));
        assert!(cause["reason"].as_str().is_some_and(|reason| reason.contains("exit status: 3")), "{cause}");
    }
    let log = done(&dir, &["logs", "etl", "load", "--state", "state"]);
    assert!(log.starts_with("── etl/load, attempt 1, failed at "), "{log}");
}

#[test]
fn a_deadline_that_has_passed_starts_the_run_and_is_reported_as_late() {
    let dir = scratch("run-late-already");
    fs::write(dir.join("in.txt"), "one\n").expect("an input");
    fs::write(dir.join("flow.toml"), FAILS.replace("exit 7", "cat")).expect("a flow file");
    let ran = slackline(&dir, &[&RUN[..], &["--deadline", "f=2020-01-01T00:00:00Z"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("flow f is already late: its deadline, 2020-01-01T00:00:00Z"), "{}", ran.err);
    assert!(ran.out.starts_with("1 flow finished, 1 late\nlate: f: finished at "), "{}", ran.out);
    assert!(ran.out.contains("\n  slackline explain f --state state\noutputs: "), "{}", ran.out);
}

#[test]
fn differences_are_reported_before_the_remedy() {
    let dir = failing("run-differs");
    slackline(&dir, &RUN);
    fs::write(dir.join("flow.toml"), format!("{FAILS}\n# another\n")).expect("a flow file");
    let ran = slackline(&dir, &RUN);
    if ran.code == Some(2) {
        let (found, advice) =
            (ran.err.find("found the run of"), ran.err.find("--again starts this one over"));
        assert!(found.is_some() && found < advice, "{}", ran.err);
    }
}

#[test]
fn a_run_that_is_interrupted_ends_with_130() {
    let (dir, family) = (hanging("run-130"), Family::new("run-130"));
    let engine = family.start(&dir, &RUN);
    family.awaits(&format!("sleep {}", Family::long()));
    signal("INT", engine.id());
    let stopped = ended(engine);
    assert_eq!(stopped.code, Some(130), "{}{}", stopped.out, stopped.err);
    assert!(stopped.err.contains("stopped; the same command resumes it"), "{}", stopped.err);
    assert_eq!(status(&dir)["status"], "stopped");
}
