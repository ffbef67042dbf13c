//! `--report`: the page that a verb writes beside its result.

use std::path::Path;

use clap::Args;
use slackline::import::RecordedOptions;
use slackline::report::page::{Page, PageOrigin};
use slackline_trace::Simplification;
use slackline_trace::reading::format::ending;

use super::path::WrittenFile;
use crate::terminal::out;

/// `--report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Write a page with charts, for a browser
    ///
    /// One file that works offline. For each policy it has the timeline of slots, the flows with their deadlines
    /// and why they waited, and the load, the backlog and distributions. docs/reports.md explains it.
    #[arg(long, value_name = "FILE.html", value_parser = page_file, help_heading = "Output")]
    pub(crate) report: Option<WrittenFile>,
}

/// Reads the name of a file that a page is written to: what cannot be written is better known before the work
/// than after it.
fn page_file(text: &str) -> Result<WrittenFile, String> {
    let file = WrittenFile::parse(text)?;
    match ending(text).as_deref() {
        Some("html" | "htm") => {}
        _ => return Err(format!("found {text}, expected a name that ends in .html")),
    }
    if Path::new(text).is_dir() {
        return Err(format!("found {text}, which is a directory, expected a file"));
    }
    Ok(file)
}

impl ReportArgs {
    /// Whether a page is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.report.is_some()
    }

    /// Writes the page, if one is asked for.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn write(&self, page: &Page<'_>) -> anyhow::Result<()> {
        let Some(file) = &self.report else { return Ok(()) };
        out::data(Some(file), |out| page.write(out))?;
        out::talk(format_args!("{}: the report; open it in a browser", file.display()));
        Ok(())
    }
}

/// What a page says of where its results come from: this command, and what it was about.
pub(crate) fn about(
    name: &str,
    verb: &str,
    seeds: Vec<u64>,
    options: RecordedOptions,
    sha256: String,
    not_modelled: Vec<Simplification>,
) -> PageOrigin {
    PageOrigin {
        name: name.to_owned(),
        verb: verb.to_owned(),
        command: command_line(),
        seeds,
        options,
        sha256,
        not_modelled,
    }
}

/// The command line as it could be typed again.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("slackline".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a POSIX shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let words = ["a.toml", "-p", "fair:by=flow", "two words", "it's", "", "$x"];
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        assert_eq!(quoted, ["a.toml", "-p", "fair:by=flow", "'two words'", r"'it'\''s'", "''", "'$x'"]);
    }

    #[test]
    fn a_page_is_called_html_and_lies_in_a_directory_that_there_is() {
        assert!(page_file("a.html").is_ok() && page_file("./b.HTM").is_ok());
        for name in ["a.json", "a", "nowhere/a.html", "/tmp"] {
            assert!(page_file(name).is_err(), "{name}");
        }
    }
}
