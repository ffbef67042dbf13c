//! Same command, same bytes; another seed, other bytes; a reader that closes the output early.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::{NIGHTLY, TRACE, done, program, run_with};

#[test]
fn the_same_command_gives_the_same_bytes() {
    let noisy = ["--noise", "0.4", "--jitter", "0.2", "--heartbeat", "3", "--slowstart", "0.05"];
    let failing = ["--crash-rate", "9000", "--repair", "300", "--seed", "5"];
    for args in [
        vec!["compare", NIGHTLY],
        vec!["compare", NIGHTLY, "--format", "json", "--seeds", "2"],
        [&["compare", NIGHTLY, "--threads", "2"], &noisy[..], &failing[..]].concat(),
        [&["simulate", NIGHTLY, "--policy", "fair", "--format", "json"], &noisy[..]].concat(),
        vec!["generate", "facebook-day", "--set", "jobs=40"],
        vec!["policies", "--format", "json"],
    ] {
        assert_eq!(done(&args), done(&args), "{args:?}");
    }
}

#[test]
fn threads_change_nothing() {
    let one = done(&["compare", NIGHTLY, "--format", "csv", "--threads", "1"]);
    assert_eq!(one, done(&["compare", NIGHTLY, "--format", "csv", "--threads", "3"]));
}

#[test]
fn another_seed_gives_something_else() {
    for args in [
        vec!["generate", "facebook-day", "--set", "jobs=40"],
        vec!["compare", NIGHTLY, "--jitter", "0.2"],
        vec!["simulate", NIGHTLY, "--policy", "fifo", "--crash-rate", "3000", "--repair", "100"],
    ] {
        let seed = |seed| done(&[&args[..], &["--seed", seed]].concat());
        assert_ne!(seed("1"), seed("2"), "{args:?}");
    }
    let seed = |seed| {
        let args = ["compare", "-", "--machines", "2", "--slots", "3", "--seed", seed];
        run_with(&args, TRACE.as_bytes()).out
    };
    assert_ne!(seed("1"), seed("2"), "durations of a trace are drawn");
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let mut child = program()
        .args(["generate", "facebook-day", "--set", "jobs=4000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("piped"));
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
