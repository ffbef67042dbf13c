//! Workloads in, from any format: [`read_workload`].

use slackline_model::Draft;
use slackline_model::names::{one_of, unknown};

use crate::diagnostic::Diagnostic;
use crate::error::TraceError;
use crate::format::Format;
use crate::importer::{Importer, Input, Output};
use crate::options::ImportOptions;
use crate::source::SourceMap;
use crate::text::{sha256, text};

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
    pub importer: Importer,
}

/// Reads a workload from the bytes of a file, compressed (gzip, zstd) or not. O(bytes).
///
/// `name` is what messages call the file; `from` names its format (one of [`ImportOptions::importers`]), which
/// otherwise is guessed from the name and the content. The options shape what an importer makes of a trace and
/// leave our own documents alone.
///
/// # Errors
/// Whatever keeps the bytes from being a workload document or trace, with lines. That the draft is a
/// valid instance is not checked here; see [`TraceError::from_invalid`].
pub fn read_workload(
    name: &str,
    bytes: &[u8],
    from: Option<&str>,
    options: &ImportOptions,
) -> Result<Imported, TraceError> {
    let text = text(name, bytes)?;
    let importer = importer_of(name, &text, from, options)?;
    refuse_parameters(name, &importer, options)?;
    let settings =
        options.settings(&importer).map_err(|error| TraceError::input(name, None, error.to_string()))?;
    let Output { draft, diagnostics, source } = (importer.import)(
        &Input { file: name, text: &text, now: options.now(), parameters: options.parameters() },
        &settings,
    )?;
    Ok(Imported { draft, diagnostics, sha256: sha256(bytes), source, importer })
}

/// The format of a file: the one that is named, or else the one that its name and its text, or the beginning of it, say.
pub(crate) fn importer_of(
    name: &str,
    text: &str,
    from: Option<&str>,
    options: &ImportOptions,
) -> Result<Importer, TraceError> {
    let importers = options.importers();
    let found = match from {
        Some(from) => importers.get(from),
        None => importers.guess(name, text),
    };
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = importers.names().collect();
        let what = from.map_or_else(
            || format!("found neither a known file name nor a known content, expected {}", one_of(&known)),
            |from| unknown("format", from, &known),
        );
        TraceError::input(name, None, what)
    })
}

/// Refuses values for parameters with a format that declares none.
pub(crate) fn refuse_parameters(
    name: &str,
    importer: &Importer,
    options: &ImportOptions,
) -> Result<(), TraceError> {
    if options.parameters().is_empty() || Format::from_name(importer.name).is_some() {
        return Ok(());
    }
    let what =
        format!("found values for parameters, expected none: the format {} declares none", importer.name);
    Err(TraceError::input(name, None, what))
}
