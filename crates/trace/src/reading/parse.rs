//! Parses our documents in TOML, JSON or YAML into structs; errors are the same in all three.

use serde::Deserialize;

use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::source::places;
use crate::reading::tree::{Node, Value, fault};
use crate::reading::{json, signatures, tree};

/// The name of documents in messages.
pub(crate) const WORKLOAD: &str = "a workload";
pub(crate) const SCHEDULE: &str = "a schedule";
pub(crate) const HISTORY: &str = "a history";

/// The version of the documents that this program reads and writes.
pub const VERSION: u32 = 1;

/// Reads a document; `kind` is its kind in messages: `a schedule`.
///
/// JSON is read without a tree, because schedules have hundreds of megabytes; only on a failure a tree finds
/// the reason, with the same message as in the other forms.
///
/// # Errors
/// Broken syntax, wrong types, unknown or missing fields, fields given twice, another version.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    file: &str,
    text: &'a str,
    format: Format,
    kind: &str,
) -> Result<T, TraceError> {
    if format == Format::Json
        && let Ok(document) = json::from_str(text)
    {
        return Ok(document);
    }
    let another = |found: &str| TraceError::input(file, None, format!("found {found}, expected {kind}"));
    // Importers use their own texts.
    let is_ours = [WORKLOAD, SCHEDULE, HISTORY].contains(&kind);
    if let Some(found) = signatures::of_hadoop(text).filter(|_| is_ours) {
        return Err(another(found));
    }
    let no_tree = |parse_error: tree::ParseError| {
        if is_csv(text) { another("rows of a table (CSV)") } else { parse_error.into_error(file, text) }
    };
    let tree = tree::read(text, format).map_err(no_tree)?;
    T::deserialize(&tree).map_err(|error| {
        // A document of another version or kind may well have other fields; the version or kind is the better
        // error.
        let other = other_version(file, text, &tree);
        let other = other.or_else(|| kind_of(&tree).filter(|found| *found != kind).map(another));
        other.unwrap_or_else(|| error.into_error(file, text))
    })
}

/// The kind of a document, by fields that only this kind has.
pub(crate) fn kind_of(tree: &Node<'_>) -> Option<&'static str> {
    const MARKS: [(&[&str], &str); 8] = [
        (&["policies", "seeds"], "a comparison"),
        (&["policy", "flows"], SCHEDULE),
        (&["pareto"], "the result of a search for splits of slots"),
        (&["tried", "until"], "the result of a search for the smallest cluster"),
        (&["slackline", "history"], HISTORY),
        (&["bounds", "objective"], "a list of lower bounds"),
        (&["chain", "waits"], "an explanation"),
        (&["slackline", "flows"], WORKLOAD),
    ];
    let has = |fields: &[&str]| fields.iter().all(|field| tree.get(field).is_some());
    MARKS.iter().find(|(fields, _)| has(fields)).map(|(_, kind)| *kind)
}

/// Whether the first line is the header of a table: names with commas between them.
fn is_csv(text: &str) -> bool {
    let header = text.lines().next().unwrap_or_default();
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    header.contains(',') && header.split(',').all(is_name)
}

fn other_version(file: &str, text: &str, tree: &Node<'_>) -> Option<TraceError> {
    let node = tree.get("slackline")?;
    match *node.value() {
        Value::Text(ref found) if matches!(found.parse(), Ok(VERSION)) => {
            let what =
                format!("found text {found:?}, expected the version as a number without quotes: {VERSION}");
            Some(fault(file, text, node.offset, "slackline".to_owned(), what))
        }
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
