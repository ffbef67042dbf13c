//! `--failure-policy` and `failure_policy`: what a failed job leaves of its flow.

use std::path::Path;

use super::{Ran, program, ran, scratch, text};

/// `bad` fails while `long` runs; `tail` waits for `long`, `dep` for `bad`, and `last` for both.
const FLOWS: &str = r#"
slackline = 1
[[flows]]
id = "dag"
jobs = [
  { id = "long", run = { command = "sleep 1; echo long" } },
  { id = "bad", run = { command = "sleep 0.2; exit 9", attempts = 1 } },
  { id = "tail", after = ["long"], run = { command = "echo tail" } },
  { id = "dep", after = ["bad"], run = { command = "echo dep" } },
  { id = "last", after = ["tail", "dep"], run = { command = "echo last" } },
]
[[flows]]
id = "other"
jobs = [{ id = "good", run = { command = "sleep 0.5; echo good" } }]
"#;

fn go(dir: &Path, flows: &str, more: &[&str]) -> Ran {
    let file = dir.join("flows.toml");
    std::fs::write(&file, flows).unwrap();
    let state = dir.join("state");
    let mut command = program();
    command.args(["run", text(&file), "--slots", "3", "--state", text(&state)]).args(more);
    ran(&command.output().unwrap())
}

/// The jobs with output, and the jobs that the summary calls unfinished.
fn jobs(ran: &Ran) -> (Vec<&'static str>, Option<String>) {
    let outputs = ran.out.split("outputs: ").nth(1).unwrap_or_default();
    let has = |job: &&str| outputs.contains(&format!("_{job}-"));
    let unfinished = ran.out.split("not finished: ").nth(1);
    let unfinished = unfinished.map(|text| text.lines().next().unwrap().to_owned());
    (["long", "tail", "dep", "last", "good"].into_iter().filter(has).collect(), unfinished)
}

#[test]
fn a_failed_job_ends_what_the_policy_says() {
    let cases: [(&[&str], &[&str], &str); 4] = [
        (&[], &["long", "tail", "good"], "dep, last"),
        (&["--failure-policy", "continue"], &["long", "tail", "good"], "dep, last"),
        (&["--failure-policy", "finish"], &["long", "good"], "tail, dep, last"),
        (&["--failure-policy", "stop"], &["good"], "long, tail, dep, last"),
    ];
    for (k, (options, done, unfinished)) in cases.into_iter().enumerate() {
        let ran = go(&scratch(&format!("failure-policy-{k}")), FLOWS, options);
        assert_eq!(ran.code, Some(1), "{options:?}: {}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("1 flow finished, 1 failed\nfailed: dag: job bad: "), "{}", ran.out);
        assert_eq!(jobs(&ran), (done.to_vec(), Some(unfinished.to_owned())), "{options:?}: {}", ran.out);
    }
}

#[test]
fn the_job_says_it_itself_and_a_rerun_does_what_is_left() {
    let dir = scratch("failure-policy-of-job");
    let stop = FLOWS.replace("attempts = 1 }", "attempts = 1, failure_policy = \"stop\" }");
    let ran = go(&dir, &stop, &["--failure-policy", "continue"]);
    assert_eq!(jobs(&ran).1.as_deref(), Some("long, tail, dep, last"), "{}{}", ran.out, ran.err);
    let again = go(&dir, &FLOWS.replace("exit 9", "echo good"), &[]);
    assert_eq!((again.code, again.out.lines().next()), (Some(0), Some("2 flows finished")), "{}", again.err);
    let twice = go(&dir, &FLOWS.replace("exit 9", "echo good"), &[]);
    assert_eq!(twice.code, Some(0), "{}", twice.err);
}

#[test]
fn two_jobs_that_fail_and_a_retry_beside_them() {
    let retried = r#"exit 9", attempts = 2, retry_delay = "0.3s", retry_backoff = 2"#;
    let flows = FLOWS.replace("sleep 1; echo long", "sleep 0.4; exit 3");
    let flows = flows.replace("exit 9\", attempts = 1", retried);
    let ran = go(&scratch("failure-policy-two"), &flows, &["--attempts", "1"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("dag/bad failed, attempt 2, the last"), "{}", ran.err);
    assert!(ran.err.contains("dag/long failed, attempt 1, the last"), "{}", ran.err);
    assert_eq!(jobs(&ran).0, ["good"], "{}", ran.out);
}

#[test]
fn a_flow_that_reads_from_a_failing_flow_runs_if_its_input_comes() {
    let reader = r#"
[[flows]]
id = "reader"
jobs = [{ id = "read", run = { command = "cat > /dev/null; echo read", inputs = ["@dag/tail"] } }]
"#;
    let ran = go(&scratch("failure-policy-reader"), &format!("{FLOWS}{reader}"), &[]);
    assert!(ran.out.starts_with("2 flows finished, 1 failed"), "{}{}", ran.out, ran.err);
    let reader = reader.replace("@dag/tail", "@dag/dep");
    let ran = go(&scratch("failure-policy-no-input"), &format!("{FLOWS}{reader}"), &[]);
    assert!(ran.out.starts_with("1 flow finished, 2 failed"), "{}{}", ran.out, ran.err);
}

#[test]
fn reduces_that_wait_for_a_failed_map_end() {
    let dir = scratch("failure-policy-reduces");
    let inputs: Vec<String> = (0..4).map(|k| text(&dir.join(format!("in-{k}"))).to_owned()).collect();
    for name in &inputs {
        std::fs::write(name, "a\nb\n").unwrap();
    }
    std::fs::write(&inputs[3], "fail\n").unwrap();
    // The reduce takes its slot after the first map, and would wait for ever for the one that fails.
    let mapper = "while read x; do sleep 0.1; test $x = fail && exit 4; echo $x; done";
    let flows = format!(
        r#"
slackline = 1
flows = [{{ id = "mr", jobs = [
  {{ id = "j", run = {{ mapper = "{mapper}", reducer = "cat", reducers = 1, inputs = {inputs:?}, output = {:?}, attempts = 1 }} }},
  {{ id = "side", run = {{ command = "sleep 1; echo side" }} }},
] }}]
"#,
        text(&dir.join("out"))
    );
    let ran = go(&dir, &flows, &["--slowstart", "0.05"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("failed: mr: job j") && ran.out.contains("mr_side-"), "{}{}", ran.out, ran.err);
}

#[test]
fn wrong_policies_and_factors_are_refused() {
    let dir = scratch("failure-policy-wrong");
    let with = |setting: &str| {
        let ran = go(&dir, &FLOWS.replace("attempts = 1 }", &format!("attempts = 1, {setting} }}")), &[]);
        assert_eq!(ran.code, Some(2), "{setting}: {}{}", ran.out, ran.err);
        ran.err
    };
    let policy = with("failure_policy = \"go\"");
    assert!(policy.contains("found \"go\", expected continue, finish or stop"), "{policy}");
    assert!(with("retry_backoff = 2").contains("expected retry_delay"));
    assert!(with("retry_delay = 1, retry_backoff = 0.5").contains("expected a factor from 1 to 100"));
    let ran = go(&dir, FLOWS, &["--failure-policy", "go"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}
