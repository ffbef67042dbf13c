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
    /// Where in the document, such as `flows[3].jobs[1].min_slots`; empty if the parser did not say.
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
                write!(f, ": {}", fault.path)?;
            }
            write!(f, ": {}", clipped(&fault.what))?;
        }
        match self.list.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: {more} more like these", self.file),
        }
    }
}

/// A message without its middle if it quotes a megabyte of garbage.
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

/// A parser's message, with the nearest valid name where it says that a name is unknown.
pub(crate) fn with_suggestion(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return message.to_owned();
    }
    // All parsers quote the name they found; not all quote the valid ones.
    let mut parts = message.splitn(3, '`').skip(1);
    let (found, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let names = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    match nearest(found, names.filter(|name| !["", "expected", "one", "of", "or"].contains(name))) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_owned(),
    }
}

/// The name that `found` was probably meant to be; ties by order.
pub(crate) fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long rubbish is nobody's slip of the finger, and the distance is quadratic.
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
        let message = "unknown field `min_slot`, expected one of `id`, `min_slots`, `max_slots`";
        assert!(with_suggestion(message).ends_with("; did you mean `min_slots`?"));
        let message = "unknown field `colour`, expected `id` or `after`";
        assert_eq!(with_suggestion(message), message);
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
