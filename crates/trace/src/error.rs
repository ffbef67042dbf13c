//! What is wrong with a document, and where: `file:line:column: path: what was found, what was expected`.

use std::borrow::Cow;
use std::fmt;

use crate::place::Place;

/// How many faults a message shows before it says how many more there are.
const SHOWN: usize = 20;
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

/// Faults of one file, in the order in which they were found; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The file, as its reader called it.
    pub file: String,
    /// The faults.
    pub list: Vec<Fault>,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the file, if it is known.
    pub place: Option<Place>,
    /// Where in the document, such as `flows[3].jobs[1].min_slots`; empty at its top and in broken syntax.
    pub path: String,
    /// What was found and what was expected.
    pub what: String,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.list.iter().take(SHOWN).enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", self.file)?;
            if let Some(place) = fault.place {
                write!(f, ":{place}")?;
            }
            if !fault.path.is_empty() {
                write!(f, ": {}", clipped(&fault.path))?;
            }
            write!(f, ": {}", clipped(&fault.what))?;
        }
        match self.list.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: {more} more like these", self.file),
        }
    }
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

    /// The faults, whichever kind they are.
    pub fn faults(&self) -> &Faults {
        match self {
            Self::Input(faults) | Self::Mismatch(faults) => faults,
        }
    }
}

/// The name that `found` was probably meant to be; ties by order.
pub(crate) fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A very long word is no typing error, and the distance is quadratic.
    if found.len() > 64 {
        return None;
    }
    let distance = |name: &str| strsim::damerau_levenshtein(found, name);
    names
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|&(distance, name)| distance <= (name.len() / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_suggested_and_others_not() {
        assert_eq!(nearest("min_slot", ["id", "min_slots", "max_slots"]), Some("min_slots"));
        assert_eq!(nearest("colour", ["id", "after"]), None);
        assert_eq!(nearest("relaese", ["weight", "release"]), Some("release"));
    }

    #[test]
    fn a_flood_of_faults_is_cut() {
        let fault = Fault { place: None, path: "flows[0]".into(), what: "found nothing".into() };
        let faults = Faults { file: "w".into(), list: vec![fault; 50] };
        let text = faults.to_string();
        assert_eq!(text.lines().count(), 21);
        assert!(text.ends_with("w: 30 more like these"));
    }
}
