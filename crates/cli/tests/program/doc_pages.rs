//! Tests the tutorials: their commands run in the order of the page and print the output on the page.
//!
//! A shell runs each `console` block, in a directory that contains only `examples`; the `text` block after it
//! is the expected output. Rows are compared word by word, since widths depend on the terminal, and `…`
//! stands for omitted text. Commands that need more or take long are in `sh` blocks, and output that changes
//! is in `txt` blocks.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{ran, scratch};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The commands of a page, each with the output that follows it.
fn commands(page: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    // Every other part is a block, of which the first line is the kind.
    for block in page.split("\n```").skip(1).step_by(2) {
        let (kind, content) = block.split_once('\n').unwrap();
        match kind {
            "console" => found.push((content.to_owned(), None)),
            "text" => {
                let last = found.last_mut().expect("a command before its output");
                assert!(last.1.replace(content.to_owned()).is_none(), "two outputs of\n{}", last.0);
            }
            _ => {}
        }
    }
    found
}

fn check(name: &str, outputs: usize) {
    let dir = scratch(name);
    copy(&Path::new(ROOT).join("examples"), &dir.join("examples"));
    let page = fs::read_to_string(format!("{ROOT}/docs/{name}.md")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_slackline")).parent().unwrap();
    let mut path = OsString::from(program);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let commands = commands(&page);
    assert_eq!(commands.iter().filter(|(_, output)| output.is_some()).count(), outputs);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (command, expected) in commands {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &command]).current_dir(&dir).env("PATH", &path).env("SLACKLINE_CONFIG", "");
        let ran = ran(&shell.output().expect("a shell"));
        assert_eq!(ran.code, Some(0), "{command}\n{}{}", ran.out, ran.err);
        let said = words(&format!("{}\n{}", ran.out, ran.err));
        let rows = expected.iter().flat_map(|text| text.lines());
        for row in rows.filter(|row| !row.starts_with(['─', '…'])).map(words).filter(|row| !row.is_empty())
        {
            let is_there = said.windows(row.len()).any(|part| part == row);
            assert!(
                is_there,
                "docs/{name}.md: {row:?} is not in what\n{command}\nsays:\n{}{}",
                ran.out, ran.err
            );
        }
    }
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn concepts_are_as_drawn() {
    check("concepts", 2);
}

#[test]
fn the_commands_of_the_page_on_a_log_print_its_output() {
    check("i-have-a-log", 5);
}

#[test]
fn the_commands_of_the_page_on_nightly_flows_print_its_output() {
    check("i-have-nightly-flows", 7);
}

#[test]
fn the_commands_of_the_page_on_a_cluster_print_its_output() {
    check("i-have-a-cluster", 1);
}

#[test]
fn the_commands_of_the_page_on_a_policy_print_its_output() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: found no python3, expected one to start the policy of the page");
        return;
    }
    check("i-have-a-policy", 4);
}
