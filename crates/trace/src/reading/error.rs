//! Errors of documents, with their place: `file:line:column: path: what was found, what was expected`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::reading::place::Place;

/// Most faults in a message, before the number of the rest.
const SHOWN: usize = 20;
/// Most faults that differ only in numbers and names: one more is no help.
const ALIKE: usize = 2;
/// Characters kept at either end of a message that is too long.
const KEPT: usize = 400;

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The input is wrong: unreadable, of the wrong form, or no valid instance (exit code 2).
    #[error("{0}")]
    Input(Faults),
    /// The document is well formed, but speaks of a flow, job, phase, machine or slot that the
    /// workload does not have, or contradicts itself: the schedule is wrong (exit code 1).
    #[error("{0}")]
    Mismatch(Faults),
}

impl TraceError {
    /// The same with a note that the file was read as `what`, if it is not one at all: for a name that does
    /// not show the format.
    #[must_use]
    pub fn read_as(mut self, what: &str) -> Self {
        let (Self::Input(faults) | Self::Mismatch(faults)) = &mut self;
        if let Some(fault) = faults.list.first_mut().filter(|fault| fault.path.is_empty()) {
            fault.what = format!("read as {what}: {}", fault.what);
        }
        self
    }
}

/// Faults of one file, in the order in which they were found; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The file, as its reader called it.
    pub file: String,
    pub list: Vec<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place in the file, if known.
    pub place: Option<Place>,
    /// The path in the document, such as `flows[3].jobs[1].min_slots`; empty at its top and for broken
    /// syntax.
    pub path: String,
    /// The value found and the value expected.
    pub what: String,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut alike, mut shown) = (BTreeMap::new(), 0);
        for fault in &self.list {
            let kind: &mut usize = alike.entry((pattern(&fault.path), pattern(&fault.what))).or_default();
            *kind += 1;
            if *kind > ALIKE || shown == SHOWN {
                continue;
            }
            if shown > 0 {
                writeln!(f)?;
            }
            shown += 1;
            write!(f, "{}", self.file)?;
            if let Some(place) = fault.place {
                write!(f, ":{place}")?;
            }
            if !fault.path.is_empty() {
                write!(f, ": {}", clipped(&fault.path))?;
            }
            write!(f, ": {}", clipped(&fault.what))?;
        }
        match self.list.len() - shown {
            0 => Ok(()),
            more => write!(f, "\n{}: {more} more like these", self.file),
        }
    }
}

/// A message or path without the numbers and quoted names in it.
fn pattern(text: &str) -> String {
    let unquoted = text.split('"').step_by(2);
    unquoted.flat_map(str::chars).filter(|c| !c.is_ascii_digit()).collect()
}

/// A message or path without its middle if it quotes a megabyte of garbage.
fn clipped(what: &str) -> Cow<'_, str> {
    if what.len() <= 2 * KEPT {
        return Cow::Borrowed(what);
    }
    let head: String = what.chars().take(KEPT).collect();
    let tail: String = what.chars().rev().take(KEPT).collect();
    Cow::Owned(format!("{head} … {}", tail.chars().rev().collect::<String>()))
}

impl TraceError {
    /// One fault of the input as a whole or at a place.
    pub fn input(file: &str, place: Option<Place>, what: impl Into<String>) -> Self {
        let fault = Fault { place, path: String::new(), what: what.into() };
        Self::Input(Faults { file: file.to_owned(), list: vec![fault] })
    }

    /// The same, of a part of a document: the paths go on from that of the part.
    pub(crate) fn within(mut self, part: &str) -> Self {
        let (Self::Input(faults) | Self::Mismatch(faults)) = &mut self;
        for fault in &mut faults.list {
            let is_step = fault.path.is_empty() || part.is_empty() || fault.path.starts_with('[');
            fault.path = format!("{part}{}{}", if is_step { "" } else { "." }, fault.path);
        }
        self
    }

    /// The same, of a text that is that line of the file.
    pub(crate) fn on_line(mut self, line: u32) -> Self {
        let (Self::Input(faults) | Self::Mismatch(faults)) = &mut self;
        for fault in &mut faults.list {
            let column = fault.place.map_or(1, |place| place.column);
            fault.place = Some(Place { line, column });
        }
        self
    }

    /// The faults, whichever kind they are.
    pub fn faults(&self) -> &Faults {
        match self {
            Self::Input(faults) | Self::Mismatch(faults) => faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_faults_is_cut() {
        let word = |k: u32| char::from_u32(u32::from('a') + k).unwrap();
        let fault = |k| Fault { place: None, path: "flows[0]".into(), what: format!("found {}", word(k)) };
        let faults = Faults { file: "w".into(), list: (0..25).map(fault).collect() };
        let text = faults.to_string();
        assert_eq!(text.lines().count(), 21, "{text}");
        assert!(text.ends_with("w: 5 more like these"), "{text}");
    }

    #[test]
    fn two_faults_that_are_alike_stand_for_all() {
        let alike = |k: u32| Fault {
            place: None,
            path: format!("flows[{k}].jobs[0].map"),
            what: format!("found tasks = {k} beside the seconds of job \"j{k}\""),
        };
        let mut list: Vec<Fault> = (0..15).map(alike).collect();
        list.push(Fault { place: None, path: "flows[3].weight".into(), what: "found -1".into() });
        let text = Faults { file: "w".into(), list }.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].contains("flows[1]") && lines[2].ends_with("flows[3].weight: found -1"), "{text}");
        assert_eq!(lines[3], "w: 13 more like these");
    }
}
