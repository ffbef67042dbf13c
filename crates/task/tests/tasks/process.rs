//! The worker as a process: its protocol, and that nothing of it outlives its engine.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "processes are waited for")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use slackline_task::attempt;
use slackline_task::attempt::plan;
use slackline_task::process::report::Report;
use slackline_task::process::spec::{Spec, Task};

use crate::failures::PATIENCE;
use crate::job::{Trial, text};

/// Starts a worker as an engine does.
fn start(spec: &Spec) -> Child {
    start_as(Command::new(env!("CARGO_BIN_EXE_slackline-worker")), spec)
}

pub(crate) fn start_as(mut command: Command, spec: &Spec) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let line = serde_json::to_string(spec).unwrap() + "\n";
    child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    child
}

pub(crate) fn report(child: &mut Child) -> Report {
    serde_json::from_str(&answer(child)).unwrap()
}

/// The next line that a worker says; the pipe stays open.
fn answer(child: &mut Child) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while child.stdout.as_mut().unwrap().read(&mut byte).unwrap() > 0 && byte != *b"\n" {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// Gives a worker another attempt.
fn tell(child: &mut Child, spec: &Spec) {
    let line = serde_json::to_string(spec).unwrap() + "\n";
    child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
}

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process still runs: it is there and no zombie.
pub(crate) fn runs(pid: &str) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8(output.stdout).unwrap();
    !state.trim().is_empty() && !state.starts_with('Z')
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// A job whose mapper leaves two sleeping processes' ids in a file, and hangs.
fn hanging() -> Trial {
    Trial::of(json!({ "mapper": "sleep 600 & echo $! $$ > pids.new; mv pids.new pids; sleep 600" }))
}

/// The processes of the hanging mapper, once they are there.
fn pids(file: &Path) -> Vec<String> {
    eventually("the mapper has started", || file.exists());
    let pids: Vec<String> = fs::read_to_string(file).unwrap().split_whitespace().map(str::to_owned).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)));
    pids
}

/// The hanging job's map, its file of ids in the trial's directory.
fn hanging_map(trial: &mut Trial) -> Spec {
    let file = trial.write("in", "a\n");
    let slackline_task::process::spec::Job::Commands { mapper, .. } = &mut trial.job else {
        panic!("no commands")
    };
    *mapper = format!("cd {}; {mapper}", trial.dir.path().display());
    trial.map_of(&file)
}

#[test]
fn a_worker_runs_attempt_after_attempt_until_its_input_ends() {
    let trial = Trial::program("wordcount", json!({}));
    let file = trial.write("in", "a b a\n");
    let mut child = start(&trial.map_of(&file));
    for round in 0..3 {
        let Report::Done(outcome) = report(&mut child) else { panic!("failed") };
        assert_eq!(
            (outcome.counts.records_in, outcome.counts.records_out, outcome.counts.bytes_in),
            (1, 2, 6),
            "{round}"
        );
        tell(&mut child, &trial.map_of("/nowhere"));
        let Report::Failed { message, .. } = report(&mut child) else { panic!("done") };
        assert!(message.starts_with("cannot read /nowhere: "), "{message}");
        tell(&mut child, &trial.map_of(&file));
    }
    assert!(matches!(report(&mut child), Report::Done(_)));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_report_stays_short_however_long_a_command_or_its_words_are() {
    // A control character takes six bytes of JSON, and more in the quoted command.
    let long = "\u{1}".repeat(100_000);
    let trial = Trial::of(json!({ "mapper": format!("cat; echo why >&2; exit 3 # {long}") }));
    let file = trial.write("in", "a\n");
    let mut child = start(&trial.map_of(&file));
    let text = answer(&mut child);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    let Ok(Report::Failed { message, .. }) = serde_json::from_str(&text) else { panic!("{text}") };
    assert!(message.starts_with("mapper \"cat; echo why") && message.ends_with("\nwhy"), "{message}");
    assert!(message.contains("…\""), "{message}");
}

#[test]
fn a_worker_without_an_attempt_says_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_slackline-worker")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("{\"failed\":{\"message\":\"standard input holds no attempt: "), "{text}");
}

#[test]
fn a_thousand_map_outputs_are_merged_with_few_open_files() {
    let trial = Trial::program("sort", json!({})).with(1, 5, 1 << 20);
    let lines: Vec<String> = (0..1000).map(|i| format!("{:04}\n", i * 7 % 1000)).collect();
    let plan = plan::plan(&trial.job, &[trial.write("in", lines.concat())], trial.split_bytes).unwrap();
    let mut maps = Vec::new();
    for (index, splits) in (0..).zip(plan) {
        let directory = trial.path(&format!("map-{index}"));
        let task = Task::Map { index, maps: 1000, splits, partitions: 1, prepared: None };
        attempt::run(&trial.spec(task, &directory)).unwrap();
        maps.push(directory);
    }
    assert_eq!(maps.len(), 1000);
    for limit in [256, 64, 32] {
        let directory = trial.path(&format!("reduce-{limit}"));
        let mut command = Command::new("sh");
        let ulimit = format!("ulimit -n {limit}; exec \"$0\"");
        command.args(["-c", &ulimit, env!("CARGO_BIN_EXE_slackline-worker")]);
        let task = Task::Reduce { partition: 0, maps: maps.clone() };
        let mut child = start_as(command, &trial.spec(task, &directory));
        let ended = report(&mut child);
        assert!(matches!(ended, Report::Done(_)), "{limit}: {ended:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        let sorted: Vec<String> = (0..1000).map(|i| format!("{i:04}\n")).collect();
        assert!(fs::read_to_string(directory.join("part-00000")).unwrap() == sorted.concat());
    }
}

#[test]
fn closing_its_input_ends_a_worker_and_its_commands() {
    let mut trial = hanging();
    let mut child = start(&hanging_map(&mut trial));
    let pids = pids(&trial.path("pids"));
    drop(child.stdin.take());
    eventually("the worker is dead", || !runs(&child.id().to_string()));
    eventually("its commands are dead", || !pids.iter().any(|pid| runs(pid)));
    assert!(!child.wait().unwrap().success());
}

/// Set where this test program is to be the engine that is killed.
const ENGINE: &str = "SLACKLINE_TEST_ENGINE";

/// No test unless [`ENGINE`] is set: an engine that starts a worker, says its id and waits.
#[test]
fn engine_to_be_killed() {
    let Ok(spec) = std::env::var(ENGINE) else { return };
    let mut child = start(&serde_json::from_str(&spec).unwrap());
    // Held, because `wait` closes it.
    let _stdin = child.stdin.take();
    println!("\nworker {}", child.id());
    child.wait().unwrap();
}

#[test]
fn killing_the_engine_ends_workers_and_their_commands() {
    let mut trial = hanging();
    let spec = serde_json::to_string(&hanging_map(&mut trial)).unwrap();
    let mut engine = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::engine_to_be_killed", "--nocapture"])
        .env(ENGINE, spec)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe stays open: an engine that cannot write to it would end by itself.
    let mut lines = BufReader::new(engine.stdout.take().unwrap()).lines().map(Result::unwrap);
    let worker = lines.find_map(|line| line.strip_prefix("worker ").map(str::to_owned)).unwrap();
    let pids = pids(&trial.path("pids"));
    assert!(runs(&worker));
    kill("-KILL", engine.id());
    engine.wait().unwrap();
    eventually("the worker is dead", || !runs(&worker));
    eventually("its commands are dead", || !pids.iter().any(|pid| runs(pid)));
}

/// The worker reports once the command has ended, with all its output, for any process that holds any of its
/// pipes. By then no process that the command left is running, in any session.
#[test]
fn background_processes_are_not_waited_for_and_do_not_stay() {
    let input = text(3, 6_000);
    assert!(input.len() > 1 << 16, "a pipe holds it");
    let cases = [
        ("holds standard error", "cat; (sleep 600 >/dev/null) &", true),
        ("holds both outputs", "cat; sleep 600 &", true),
        ("holds the input, which no process reads", "exec 3<&0; sleep 600 >/dev/null 2>&1 &", false),
        ("never stops talking", "cat; yes >&2 & ", true),
        ("is of another session", "cat; setsid sleep 600 >/dev/null 2>&1 &", true),
        (
            "takes no notice",
            "cat; (trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep 600' ) >/dev/null 2>&1 &",
            true,
        ),
    ];
    let trial = Trial::of(json!({ "mapper": "" })).with(0, 1 << 30, 1 << 20);
    let file = trial.write("in", &input);
    let pid = trial.path("pid");
    let spec_of = |mapper: &str| {
        let mut spec = trial.map_of(&file);
        let mapper = format!("{mapper}\necho $! > {}; sleep 0.05", pid.display());
        spec.job = serde_json::from_value(json!({ "mapper": mapper })).unwrap();
        spec
    };
    let mut child = start(&spec_of(cases[0].1));
    for (i, (what, _, copies)) in cases.iter().enumerate() {
        let ended = report(&mut child);
        assert!(matches!(ended, Report::Done(_)), "{what}: {ended:?}");
        let part = fs::read_to_string(trial.path("map-0/part-00000")).unwrap();
        assert!(part == if *copies { input.as_str() } else { "" }, "{what}: {} bytes", part.len());
        let pid = fs::read_to_string(&pid).unwrap().trim().to_owned();
        assert!(!runs(&pid) && children(child.id()) == 0, "{what}: it is still there");
        if let Some((_, mapper, _)) = cases.get(i + 1) {
            tell(&mut child, &spec_of(mapper));
        }
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// How many processes a process has below it, dead ones included.
fn children(pid: u32) -> usize {
    let output = Command::new("ps").args(["-o", "pid=", "--ppid", &pid.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().count()
}

/// What a command sends its own process group does not reach the worker.
#[test]
fn a_command_that_kills_its_group_kills_no_worker() {
    let trial = Trial::of(json!({ "mapper": "kill -9 0" }));
    let file = trial.write("in", "a\n");
    let mut child = start(&trial.map_of(&file));
    for _ in 0..2 {
        let Report::Failed { message, .. } = report(&mut child) else { panic!("done") };
        assert!(message.contains("signal: 9"), "{message}");
        tell(&mut child, &trial.map_of(&file));
    }
    assert!(matches!(report(&mut child), Report::Failed { .. }));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Defect 24: `setsid` children survived the end of their attempt.
#[test]
fn closing_its_input_ends_what_left_the_session_of_its_command() {
    let mut trial = Trial::of(
        json!({ "mapper": "setsid sleep 600 & echo $! $$ > pids.new; mv pids.new pids; sleep 600" }),
    );
    let mut child = start(&hanging_map(&mut trial));
    let pids = pids(&trial.path("pids"));
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success());
    assert!(!pids.iter().any(|pid| runs(pid)), "all of it is gone before the worker is");
}
