//! What an importer repaired or found odd: counted and shown, never silent.

use std::fmt;

use crate::place::Place;

/// A remark on some rows of a trace, or flows of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What was found and what became of it.
    pub what: String,
    /// What is counted: `row` or `flow`.
    pub of: &'static str,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Place,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, of, count, first } = self;
        let s = if *count == 1 { "" } else { "s" };
        write!(f, "{count} {of}{s}: {what} (first at line {})", first.line)
    }
}

/// Counts remarks by their text, in the order in which they first came.
#[derive(Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Counts a row of that line under that text.
    pub fn add(&mut self, line: u32, what: &str) {
        self.count(line, what, "row");
    }

    /// Counts the flow of that line under that text.
    pub fn add_flow(&mut self, line: u32, what: &str) {
        self.count(line, what, "flow");
    }

    fn count(&mut self, line: u32, what: &str, of: &'static str) {
        if let Some(known) = self.0.iter_mut().find(|d| d.what == what) {
            known.count += 1;
        } else {
            let first = Place { line, column: 1 };
            self.0.push(Diagnostic { what: what.to_owned(), of, count: 1, first });
        }
    }

    /// Says the same of so many flows, of which the first is there.
    pub(crate) fn add_flows(&mut self, count: u64, first: Place, what: String) {
        self.0.push(Diagnostic { what, of: "flow", count, first });
    }

    /// The remarks.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.0
    }
}
