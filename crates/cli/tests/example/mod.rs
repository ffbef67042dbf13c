//! Runs the examples as programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The example as `cargo test` builds it, or built now.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    if !program.exists() {
        let build = ["build", "--quiet", "--package", "slackline-cli", "--example", name];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    program
}

/// Runs the example in a directory.
pub(crate) fn run(name: &str, dir: &Path, args: &[&str]) -> Output {
    Command::new(program(name)).args(args).current_dir(dir).env("SLACKLINE_CONFIG", "").output().unwrap()
}

/// The output of the example, which has to succeed.
pub(crate) fn said(name: &str, dir: &Path, args: &[&str]) -> String {
    let output = run(name, dir, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
