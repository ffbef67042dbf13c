//! Reads a workload in any format: [`read_workload`], [`read_folder`].

use slackline_model::Draft;
use slackline_model::draft::RunDraft;
use slackline_model::names::one_of;

use crate::importers::Importers;
use crate::importers::importer::{Importer, Input, Output};
use crate::importers::options::ImportOptions;
use crate::importers::unsupported_formats::{self, unknown_format};
use crate::reading::diagnostic::Diagnostic;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;
use crate::reading::format::{Format, ending};
use crate::reading::source::SourceMap;
use crate::reading::text::{sha256, text};

/// A workload that was read, with its diagnostics and its source.
#[derive(Clone, Debug)]
pub struct ImportedWorkload {
    /// The workload, unchecked; without machines if the source has none.
    pub draft: Draft,
    /// Repairs, caps and oddities, with counts.
    pub diagnostics: Vec<Diagnostic>,
    /// SHA-256 of the bytes as they were given, in lower-case hexadecimal.
    pub sha256: String,
    /// The places of its parts, for later errors.
    pub source: SourceMap,
    pub importer: Importer,
}

/// Reads a workload from the bytes of a file, compressed (gzip, zstd) or not. O(bytes).
///
/// `name` is the file in messages; `from` names its format (one of [`ImportOptions::importers`]), which
/// otherwise is guessed from the name and the content. The options affect how an importer converts a trace;
/// our own documents ignore them.
///
/// # Errors
/// Bytes that are no workload document or trace; errors have lines. Whether the draft is a valid instance is
/// not checked here; see [`TraceError::from_invalid`].
pub fn read_workload(
    name: &str,
    bytes: &[u8],
    from: Option<&str>,
    options: &ImportOptions,
) -> Result<ImportedWorkload, TraceError> {
    let text = text(name, bytes)?;
    let importer = importer_of(name, &text, from, options)?;
    refuse_parameters(name, &importer, options)?;
    let settings =
        options.settings(&importer).map_err(|error| TraceError::input(name, None, error.to_string()))?;
    let input = Input { file: name, text: &text, now: options.now(), parameters: options.parameters() };
    let output = (importer.import)(&input, &settings).map_err(|error| {
        // Missing keys of our documents mean nothing in a file of another kind.
        let guessed = Format::from_name(importer.name).filter(|_| from.is_none());
        let other = guessed
            .and_then(|format| unsupported_formats::not_a_document(name, &text, format, options.importers()));
        let unnamed =
            guessed.filter(|format| !ending(name).is_some_and(|e| format.endings().contains(&e.as_str())));
        other.unwrap_or_else(|| match unnamed {
            Some(format) => error.read_as(&format!("a flow file ({})", format.name().to_uppercase())),
            None => error,
        })
    });
    let Output { draft, mut diagnostics, source } = output?;
    let faults = if options.trusts_texts() { Vec::new() } else { texts_of_a_shell(&draft) };
    if !faults.is_empty() {
        return Err(source.error(faults));
    }
    diagnostics.extend(options.without_effect(&importer));
    Ok(ImportedWorkload { draft, diagnostics, sha256: sha256(bytes), source, importer })
}

/// Each job with a path or a command that a shell would read differently, with its place in the document.
fn texts_of_a_shell(draft: &Draft) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for (f, flow) in draft.flows.iter().enumerate() {
        for (k, job) in flow.jobs.iter().enumerate() {
            if let Some(Err((key, what))) = job.run.as_ref().map(RunDraft::check_texts) {
                let what = format!("flow {}, job {}: {what}", flow.id, job.id);
                faults.push((format!("flows[{f}].jobs[{k}].run.{key}"), what));
            }
        }
    }
    faults
}

/// Reads a folder whose files are one workload; see [`read_workload`]. The hash is that of the names and
/// hashes of its files.
///
/// # Errors
/// A folder of an unknown format, or of one that is read only from files; files that are not in the format.
pub fn read_folder(
    folder: &Folder,
    from: Option<&str>,
    options: &ImportOptions,
) -> Result<ImportedWorkload, TraceError> {
    let wrong = |what: String| TraceError::input(folder.name(), None, what);
    let importers = options.importers();
    let known: Vec<&str> =
        importers.all().iter().filter(|known| known.folder.is_some()).map(|known| known.name).collect();
    let found = match from {
        Some(from) => importers.get(from),
        None => only_format_of(folder, importers)?,
    };
    let importer = *found.ok_or_else(|| {
        let n = folder.files().len();
        let of_none =
            || format!("found a folder of {n} files in no known format, expected {}", one_of(&known));
        wrong(from.map_or_else(of_none, |from| unknown_format(from, &known)))
    })?;
    let Some(reader) = importer.folder else {
        return Err(wrong(format!(
            "found a folder, expected a file for the format {} (a folder can be {})",
            importer.name,
            one_of(&known)
        )));
    };
    refuse_parameters(folder.name(), &importer, options)?;
    let settings = options.settings(&importer).map_err(|error| wrong(error.to_string()))?;
    let Output { draft, mut diagnostics, source } = (reader.import)(folder, &settings)?;
    diagnostics.extend(options.without_effect(&importer));
    Ok(ImportedWorkload { draft, diagnostics, sha256: sha256(&folder.manifest()?), source, importer })
}

/// The format of a folder, if it has one.
///
/// # Errors
/// A folder with files of several formats: read as one of them, it would lack the others.
fn only_format_of<'i>(folder: &Folder, importers: &'i Importers) -> Result<Option<&'i Importer>, TraceError> {
    let found: Vec<&Importer> = importers.of_folder(folder).collect();
    let [one, other, ..] = found[..] else { return Ok(found.first().copied()) };
    let what = format!(
        "found files of the formats {} and {}, expected one format: choose it with --from",
        one.name, other.name
    );
    Err(TraceError::input(folder.name(), None, what))
}

/// The format of a file: the named one, or else the one guessed from its name and its text, or the beginning
/// of it.
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
    found.copied().ok_or_else(|| match from {
        Some(from) => {
            let known: Vec<&str> = importers.names().collect();
            TraceError::input(name, None, unknown_format(from, &known))
        }
        None => unsupported_formats::unreadable_file(name, text, importers),
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
