//! What an importer repaired or found odd: counted and shown, never silent.

use std::fmt;

use crate::place::Place;

/// A remark on some rows of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What was found and what became of it.
    pub what: String,
    /// How many rows.
    pub count: u64,
    /// The first of them.
    pub first: Place,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.count == 1 { "row" } else { "rows" };
        write!(f, "{} {rows}: {} (first at line {})", self.count, self.what, self.first.line)
    }
}

/// Counts remarks by their text, in the order in which they first came.
#[derive(Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Counts a row of that line under that text.
    pub fn add(&mut self, line: u32, what: &str) {
        if let Some(known) = self.0.iter_mut().find(|d| d.what == what) {
            known.count += 1;
        } else {
            let first = Place { line, column: 1 };
            self.0.push(Diagnostic { what: what.to_owned(), count: 1, first });
        }
    }

    /// The remarks.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.0
    }
}
