//! The commit that the program is built from, for `--version`: of the checkout, or as the package that it
//! came in records it. Without either there is none, and nothing fails.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = of_package().or_else(of_checkout);
    let short = commit.as_deref().map_or_else(String::new, |commit| format!(" ({})", &commit[..12]));
    println!("cargo::rustc-env=SLACKLINE_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=SLACKLINE_COMMIT_SHORT={short}");
    println!("cargo::rustc-env=SLACKLINE_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

/// What `cargo package` records.
fn of_package() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').map(str::to_owned).find(|word| is_commit(word))
}

/// The commit of the checkout that has this file: a package that lies in another one's is not of it.
fn of_checkout() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // The file of `HEAD` changes with the branch, its log with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"]).filter(|word| is_commit(word))
}

fn is_commit(word: &str) -> bool {
    word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
