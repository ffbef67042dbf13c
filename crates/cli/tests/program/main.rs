//! Tests the program as its users run it: the built binary, its output, its exit codes.
//!
//! - `verbs`: the basic function of every command;
//! - `samples`: figures over days, files and seeds;
//! - `same`: same command, same bytes; another seed, other bytes;
//! - `pins`: results stay as they are;
//! - `plans`: plans pass `check`, refusals have reasons;
//! - `checks`: written schedules pass `check`, manipulated ones do not;
//! - `runs`: real runs of flows, also after kill -9;
//! - `runs_faults`: runs continue when signals, commands, disks or attempts fail, if they can;
//! - `outputs`: damaged parts are noticed, and no result mixes two outputs of one map;
//! - `runs_state`: the files of earlier or other runs are neither lost nor mistaken;
//! - `segments`: runs that are resumed with other settings;
//! - `runs_watched`: status, explanation and logs of active, killed and finished runs; exit codes;
//! - `globs`: matches of patterns, inputs given twice, ends of files, CSV over several lines, long lists;
//! - `fleet`: flows on several machines, with mocks of ssh and Slurm;
//! - `cluster`: flows on a mock Hadoop cluster have the same outputs as on this machine;
//! - `run_messages`: events, hooks, verbosity, other runs at the same time, and cleaning up after runs;
//! - `runs_terminal`: bars of runs on a terminal;
//! - `serve`: the service, its commands, and kill -9 of it;
//! - `service_limits`: input from outside is limited, cut and escaped, and secrets stay out of command lines;
//! - `never_starts`: work that never starts has a reason;
//! - `service_answers`: the answers of its commands when something waits or is wrong;
//! - `service_stalls`: the service answers and ends in time while files, locks, pipes, hosts or children
//!   hang;
//! - `serve_users`: root is refused, users share a service by roles, and the inbox of docs/serve.md submits
//!   each file;
//! - `nightly_run`: the nightly example runs, and the page on `run` names existing flags;
//! - `parameters`: values of parameters, one flow per value, inputs from other flows;
//! - `paths`: texts that a shell would read differently, paths and commands;
//! - `profiles`: simulated Hadoop clusters;
//! - `processes`: processes that tests start, find and kill;
//! - `edges`: workloads without work, phases without length;
//! - `exports`: schedules as timelines, tables and charts; `chrome_trace` validates that format;
//! - `help`: help fits the terminal; completion scripts of shells have all names;
//! - `inputs`: inputs of a run are read correctly or refused;
//! - `files`: file names match contents;
//! - `hadoop_logs`: logs of Hadoop, and the recorded execution beside the simulated one;
//! - `doc_pages`: the tutorials show the output of the program;
//! - `specifications`: figures from your own specifications;
//! - `lines`: schedules as JSON lines have the contents of documents;
//! - `surroundings`: signals, descriptors, limits and optional files at the start of the program;
//! - `streams`: workloads in lines are simulated while they are read;
//! - `names`: errors for mistyped names suggest the right one;
//! - `command`: policies that are separate programs;
//! - `config`: the user's defaults file;
//! - `explain`: why a flow is late, or an error that names the problem;
//! - `tables`: tables fit the terminal, show the requested columns, and have one number format; the
//!   comparison document follows its schema;
//! - `times`: durations and clock times, from documents and options to tables;
//! - `reports`: pages for a browser;
//! - `trials`: problems that people found who tried the program;
//! - `rubbish`: wrong use and wrong input end with exit code 2 and a message that names the place.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod capacity_draws;
mod certificates;
mod checks;
mod chrome_trace;
mod clock;
mod cluster;
mod command;
mod config;
mod doc_pages;
mod edges;
mod explain;
mod exports;
mod failure_policies;
mod fake_system;
mod files;
mod fleet;
mod globs;
mod hadoop_logs;
mod help;
mod history;
mod inputs;
mod lines;
mod load;
mod names;
mod never_starts;
mod nightly_run;
mod nights;
mod outputs;
mod parameters;
mod paths;
mod pins;
mod plans;
mod processes;
mod profiles;
#[path = "../../../../testdata/real.rs"]
mod real_data;
mod reports;
mod reuse;
mod rubbish;
mod run_messages;
mod runs;
mod runs_faults;
mod runs_state;
mod runs_terminal;
mod runs_watched;
mod same;
mod samples;
mod segments;
mod serve;
mod serve_nights;
mod serve_users;
mod service_answers;
mod service_limits;
mod service_stalls;
mod soak;
mod specifications;
mod streams;
mod surroundings;
mod tables;
mod times;
mod trials;
mod verbs;

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The exit code and the output of a run of the program.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The program in the repository's root.
fn program() -> Command {
    processes::have_default_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    // The user's defaults are not used.
    command.env("SLACKLINE_CONFIG", "");
    command
}

fn ran(output: &std::process::Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    let ran = Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

fn run<S: AsRef<OsStr>>(args: &[S]) -> Ran {
    ran(&program().args(args).output().expect("the program starts"))
}

/// Runs the program with bytes on standard input.
fn run_with(args: &[&str], input: &[u8]) -> Ran {
    let mut child = program()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may refuse its arguments before it reads.
    let _ = child.stdin.take().expect("piped").write_all(input);
    ran(&child.wait_with_output().expect("the program ends"))
}

/// Standard output of a run that must succeed.
fn done(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
    ran.out
}

/// An empty directory for one test.
fn scratch(test: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("an old directory can go");
    }
    std::fs::create_dir_all(&dir).expect("a directory can be made");
    dir
}

/// A path as text.
fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

const NIGHTLY: &str = "examples/nightly.toml";
const MORNING: &str = "examples/morning.toml";
const PURDUE: &str = "examples/purdue-30.toml";
const CONTRACT: &str = "examples/contract/workload.toml";

/// A few rows in the form of the SWIM traces, made up.
const TRACE: &str = "\
job0\t10\t10\t740773\t2339561\t627471
job1\t25\t15\t9000000000\t4000000000\t1000000000
job2\t25\t0\t0\t0\t0
job3\t900\t875\t300000000\t0\t300000000
";
