//! Workloads in: our own document in three formats, and every format that can be imported.

mod convert;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

use sha2::{Digest, Sha256};
use slackline_model::Draft;

use crate::diagnostic::Diagnostic;
use crate::error::TraceError;
use crate::format::{Format, text};
use crate::options::ImportOptions;
use crate::parse::{check_version, parse};
use crate::source::SourceMap;
use crate::{oozie, swim, wfformat, woha_xml};

pub use write::write_workload;

/// A workload that was read, and what is to be said of it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The workload, unchecked; without machines if the source has none.
    pub draft: Draft,
    /// What was repaired, capped or looked odd, with counts.
    pub diagnostics: Vec<Diagnostic>,
    /// SHA-256 of the bytes as they were given, in lower-case hexadecimal.
    pub sha256: String,
    /// Where its parts stand, for what is found wrong later.
    pub source: SourceMap,
    /// The format it is in.
    pub format: Format,
}

/// Reads a workload from the bytes of a file, gzip or not. O(bytes).
///
/// `name` is what messages call the file; without a `format` it is guessed from the name and the
/// content. The options shape what an importer makes of a trace and leave our own documents alone.
///
/// # Errors
/// Whatever keeps the bytes from being a workload document or trace, with lines. That the draft is a
/// valid instance is not checked here; see [`TraceError::from_invalid`].
pub fn read_workload(
    name: &str,
    bytes: &[u8],
    format: Option<Format>,
    options: &ImportOptions,
) -> Result<Imported, TraceError> {
    let text = text(name, bytes)?;
    let Some(format) = format.or_else(|| Format::guess(name, &text)) else {
        let known = Format::ALL.map(Format::name).join(", ");
        let what = format!("found neither a known file name nor a known content, expected one of {known}");
        return Err(TraceError::input(name, None, what));
    };
    let (draft, diagnostics, source) = match format {
        Format::Swim => swim::import(name, &text, options)?,
        Format::Woha => woha_xml::import(name, &text, options)?,
        Format::Oozie => oozie::import(name, &text, options)?,
        Format::WfFormat => wfformat::import(name, &text, options)?,
        Format::Toml | Format::Json | Format::Yaml => {
            let source = SourceMap::document(name, &text, format);
            (read_document(name, &text, format, &source)?, Vec::new(), source)
        }
    };
    Ok(Imported { draft, diagnostics, sha256: sha256(bytes), source, format })
}

fn read_document(name: &str, text: &str, format: Format, source: &SourceMap) -> Result<Draft, TraceError> {
    let document: wire::Workload = parse(name, text, format)?;
    check_version(name, text, format, document.slackline)?;
    convert::to_draft(document).map_err(|faults| source.error(faults))
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("invariant: half a byte");
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
