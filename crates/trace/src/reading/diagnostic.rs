//! Remarks of importers: repairs, caps and oddities, with counts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reading::place::Place;

/// A remark on some rows of a trace, or flows of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The finding, and its consequence.
    pub what: String,
    /// The counted thing: `row`, `flow`, `file`, or a part of a log, such as `attempt`.
    pub of: &'static str,
    pub count: u64,
    /// The first of them, with their lines.
    pub first: Option<Place>,
    /// The file of the first one within a folder.
    pub file: Option<String>,
    /// Whether the log has something that simulations leave out, so that their results differ from it.
    pub is_unmodelled: bool,
}

impl Diagnostic {
    /// A remark without a place.
    pub fn new(of: &'static str, count: u64, what: impl Into<String>) -> Self {
        Self { what: what.into(), of, count, first: None, file: None, is_unmodelled: false }
    }

    /// What simulations leave out of a log, of these remarks.
    pub fn simplifications(diagnostics: &[Self]) -> Vec<Simplification> {
        let left_out = diagnostics.iter().filter(|diagnostic| diagnostic.is_unmodelled);
        let of = |diagnostic: &Self| Simplification {
            count: diagnostic.count,
            of: diagnostic.of.to_owned(),
            what: diagnostic.what.clone(),
        };
        left_out.map(of).collect()
    }
}

/// Something in a log that simulations leave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Simplification {
    /// How many there are in the log.
    pub count: u64,
    /// The counted thing, such as `job` or `attempt`.
    pub of: String,
    /// What the log has, and the consequence.
    pub what: String,
}

impl fmt::Display for Simplification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_counted(f, self.count, &self.of, &self.what)
    }
}

fn write_counted(f: &mut fmt::Formatter<'_>, count: u64, of: &str, what: &str) -> fmt::Result {
    let s = if count == 1 { "" } else { "s" };
    write!(f, "{count} {of}{s}: {what}")
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, of, count, first, file, .. } = self;
        write_counted(f, *count, of, what)?;
        match (first, file) {
            (_, Some(file)) if *of == "file" => write!(f, " (first {file})"),
            (None, _) => Ok(()),
            (Some(first), None) => write!(f, " (first at line {})", first.line),
            (Some(first), Some(file)) => write!(f, " (first at line {} of {file})", first.line),
        }
    }
}

/// Counts remarks by their text, in the order in which they first came.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    file: Option<String>,
    /// Whether the file of the lines is unknown.
    is_past_files: bool,
}

impl Diagnostics {
    /// Counts a row of that line under that text.
    pub fn add(&mut self, line: u32, what: &str) {
        self.count(1, Some(line), what, "row");
    }

    /// Counts the flow of that line under that text.
    pub fn add_flow(&mut self, line: u32, what: &str) {
        self.count(1, Some(line), what, "flow");
    }

    /// Remarks from here on concern a folder as a whole: they have no lines.
    pub fn leave_files(&mut self) {
        (self.file, self.is_past_files) = (None, true);
    }

    /// Following lines belong to that file of a folder.
    pub fn enter_file(&mut self, file: &str) {
        self.file = Some(file.to_owned());
    }

    /// The same in case of a folder.
    pub(crate) fn return_to_file(&mut self, file: &str) {
        if self.file.is_some() {
            self.enter_file(file);
        }
    }

    /// Counts that file of a folder under that text.
    pub fn add_file(&mut self, file: &str, what: &str) {
        self.enter_file(file);
        self.count(1, None, what, "file");
    }

    /// Adds `count` occurrences under a text, the first of them on that line.
    pub fn add_of(&mut self, of: &'static str, count: u64, line: u32, what: &str) {
        self.count(count, Some(line), what, of);
    }

    /// Adds `count` occurrences without a line under a text.
    pub fn add_all(&mut self, of: &'static str, count: u64, what: &str) {
        self.count(count, None, what, of);
    }

    /// Adds `count` things that the log has and simulations leave out; the first of them on that line.
    pub fn add_unmodelled(&mut self, of: &'static str, count: u64, line: u32, what: &str) {
        self.count(count, Some(line), what, of);
        if let Some(known) = self.list.iter_mut().find(|d| d.what == what) {
            known.is_unmodelled = true;
        }
    }

    fn count(&mut self, count: u64, line: Option<u32>, what: &str, of: &'static str) {
        if let Some(known) = self.list.iter_mut().find(|d| d.what == what) {
            known.count += count;
        } else if count > 0 {
            let line = line.filter(|_| !self.is_past_files);
            let (first, file) = (line.map(|line| Place { line, column: 1 }), self.file.clone());
            self.list.push(Diagnostic { first, file, ..Diagnostic::new(of, count, what) });
        }
    }

    /// Adds the same remark for `count` flows, of which the first is at `place`.
    pub(crate) fn add_flows(&mut self, count: u64, first: Place, what: String) {
        self.list.push(Diagnostic { first: Some(first), ..Diagnostic::new("flow", count, what) });
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}
