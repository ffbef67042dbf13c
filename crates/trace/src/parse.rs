//! Text to wire structs in any of the three forms of our documents, with one kind of error.

use serde::Deserialize;

use crate::error::TraceError;
use crate::format::Format;
use crate::json;
use crate::source::places;
use crate::tree::{self, Node, Value, fault};

/// The version of the documents that this program reads and writes.
pub(crate) const VERSION: u32 = 1;

/// Reads a document.
///
/// JSON is read without a tree, because schedules have hundreds of megabytes; only if that fails, a tree says
/// why, in the same words as of the other forms.
///
/// # Errors
/// Broken syntax, wrong types, unknown or missing fields, fields given twice, another version.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    file: &str,
    text: &'a str,
    format: Format,
) -> Result<T, TraceError> {
    if format == Format::Json
        && let Ok(document) = json::from_str(text)
    {
        return Ok(document);
    }
    let tree = tree::read(text, format).map_err(|wrong| wrong.into_error(file, text))?;
    T::deserialize(&tree).map_err(|error| {
        // A document of another version may well have other fields; say that rather than those.
        other_version(file, text, &tree).unwrap_or_else(|| error.into_error(file, text))
    })
}

fn other_version(file: &str, text: &str, tree: &Node<'_>) -> Option<TraceError> {
    let node = tree.get("slackline")?;
    match *node.value() {
        Value::Whole(found) if found != u64::from(VERSION) => {
            Some(fault(file, text, node.offset, String::new(), not_ours(found)))
        }
        _ => None,
    }
}

/// Refuses versions other than ours.
pub(crate) fn check_version(file: &str, text: &str, format: Format, version: u32) -> Result<(), TraceError> {
    if version == VERSION {
        return Ok(());
    }
    let place = places(text, format, &["slackline"])[0];
    Err(TraceError::input(file, place, not_ours(u64::from(version))))
}

fn not_ours(version: u64) -> String {
    format!("found slackline = {version}, expected version {VERSION}")
}
