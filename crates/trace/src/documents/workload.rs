//! The workload document in TOML, JSON and YAML: read into a draft, and written from one.

pub(crate) mod convert;
mod foreign;
mod parameters;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

use slackline_model::{Draft, Start};

use super::parameters::Parameters;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::{WORKLOAD, check_version, parse};
use crate::reading::source::SourceMap;

pub use write::{write_workload, write_workload_lines};

/// Reads a document whose second 0 is `now`, or by default the one in the document.
///
/// # Errors
/// A text that is not a workload document; the error has the place.
pub(crate) fn read(
    file: &str,
    text: &str,
    format: Format,
    now: Option<&Start>,
    parameters: &Parameters,
) -> Result<(Draft, SourceMap), TraceError> {
    let source = SourceMap::document(file, text, format);
    let document: wire::Workload = parse(file, text, format, WORKLOAD)?;
    check_version(file, text, format, document.slackline)?;
    let applied = parameters::apply(document, parameters).map_err(|faults| source.error(faults))?;
    let (document, source) = (applied.document, source.with_origins(applied.origins));
    let draft = convert::to_draft(document, now).map_err(|faults| source.error(faults))?;
    let faults = foreign::faults(&draft);
    if !faults.is_empty() {
        return Err(source.error(faults));
    }
    Ok((draft, source))
}
