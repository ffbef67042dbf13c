//! Text to wire structs in any of the three forms of our documents, with one kind of error.

use serde::Deserialize;

use crate::error::{TraceError, with_suggestion};
use crate::format::Format;
use crate::place::Place;
use crate::source::places;

/// The version of the documents that this program reads and writes.
pub(crate) const VERSION: u32 = 1;

/// Reads a document.
///
/// # Errors
/// Broken syntax, wrong types, unknown or missing fields, fields given twice, another version.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    file: &str,
    text: &'a str,
    format: Format,
) -> Result<T, TraceError> {
    match raw(text, format) {
        Ok(document) => Ok(document),
        Err((place, what)) => {
            // A document of another version may well have other fields; say that rather than those.
            if let Ok(Versioned { slackline: Some(version) }) = raw(text, format) {
                check_version(file, text, format, version)?;
            }
            Err(TraceError::input(file, place, with_suggestion(&what)))
        }
    }
}

/// Refuses versions other than ours.
pub(crate) fn check_version(file: &str, text: &str, format: Format, version: u32) -> Result<(), TraceError> {
    if version == VERSION {
        return Ok(());
    }
    let place = places(text, format, &["slackline"])[0];
    Err(TraceError::input(file, place, format!("found slackline = {version}, expected version {VERSION}")))
}

#[derive(Deserialize)]
struct Versioned {
    slackline: Option<u32>,
}

fn raw<'a, T: Deserialize<'a>>(text: &'a str, format: Format) -> Result<T, (Option<Place>, String)> {
    match format {
        Format::Toml => toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| Place::of_offset(text.as_bytes(), span.start));
            (place, error.message().trim_end().replace('\n', ", "))
        }),
        Format::Yaml => serde_saphyr::from_str_with_options(text, yaml_limits(text)).map_err(|error| {
            let place =
                error.location().map(|at| Place { line: at.line() as u32, column: at.column() as u32 });
            (place, yaml_message(&error))
        }),
        Format::Json => serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let place = (line > 0).then_some(Place { line: line as u32, column: column.max(1) as u32 });
            let message = error.to_string();
            let what = message.strip_suffix(&format!(" at line {line} column {column}"));
            (place, what.unwrap_or(&message).to_owned())
        }),
    }
}

/// Limits for a text of this length: what is written out counts as often as it is written, so only
/// aliases and depth need a bound of their own.
fn yaml_limits(text: &str) -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    let most = text.len() + 16;
    budget.max_events = 4 * most;
    budget.max_nodes = 4 * most;
    budget.max_total_scalar_bytes = 4 * most;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options.with_snippet = false;
    options
}

/// The parser's message without the position that it repeats.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    let at = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    at.and_then(|at| message.strip_suffix(&at).map(str::to_owned)).unwrap_or(message)
}
