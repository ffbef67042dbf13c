//! `record/messages.txt`: all messages of the program, so that a reader can judge them in one go.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::counters;

const FILE: &str = "record/messages.txt";
/// Code that only developers run.
const DEVELOPERS: [&str; 2] = ["crates/lab/src/bin/", "crates/testkit/"];

/// The messages by file of the code, each once.
fn file(root: &Path) -> anyhow::Result<String> {
    let mut out = String::from(
        "Messages, headings and their parts, from the code of the program; {} is filled in. Help is in docs/verbs.\n\
         Made by `cargo xtask bless`; a test fails when this file is stale.\n",
    );
    let mut known = BTreeSet::new();
    for (path, texts) in counters::texts(root)? {
        if DEVELOPERS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let mut heading = Some(path);
        for text in texts {
            let text = text.trim().replace('\n', "\\n");
            if known.insert(text.clone()) {
                if let Some(path) = heading.take() {
                    let _ = write!(out, "\n{path}\n");
                }
                let _ = writeln!(out, "  {text}");
            }
        }
    }
    Ok(out)
}

/// Writes the file.
///
/// # Errors
/// Files that cannot be read or written.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    fs::write(root.join(FILE), file(root)?).context(FILE)
}

#[test]
fn the_file_of_messages_is_current() {
    let root = Path::new(crate::ROOT);
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        write(root).unwrap();
    }
    let (messages, kept) = (file(root).unwrap(), fs::read_to_string(root.join(FILE)).unwrap());
    assert!(messages.lines().count() > 1_000);
    let stale = messages.lines().zip(kept.lines()).find(|(is, was)| is != was);
    assert!(messages == kept, "{FILE} is stale: run `cargo xtask bless`; the first difference: {stale:?}");
}
