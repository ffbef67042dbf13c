//! Reads inputs of verbs, prints the remarks of importers and warnings, and names the flags that would mend
//! an error.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use slackline::import::{ImportError, Loaded, MissingOption, WorkloadOptions};
use slackline::report::headline;
use slackline::{PolicySpec, recorded};
use slackline_model::{Draft, Instance};
use slackline_trace::Diagnostic;

use crate::terminal::out;

pub(crate) use slackline::import::Source;

/// Reads a file that results are made of, which must not be the one they go to: it would be lost.
///
/// # Errors
/// A file that cannot be read, or that is the output.
pub(crate) fn read(input: &Path, output: Option<&Path>) -> anyhow::Result<Source> {
    refuse_output(input, output)?;
    Ok(Source::read(input)?)
}

/// Reads a workload for conversion to another document, prints its diagnostics, and returns its name and its
/// draft.
///
/// # Errors
/// As [`read`]; an invalid workload under these options.
pub(crate) fn draft(
    input: &Path,
    output: Option<&Path>,
    options: &WorkloadOptions,
) -> anyhow::Result<(String, Draft)> {
    let source = read(input, output)?;
    let (draft, diagnostics) = source.shape(options)?.into_draft()?;
    report_diagnostics(&source.name, &diagnostics);
    Ok((source.name, draft))
}

/// Opens such a file to be read once, under the name that messages call it; `-` is standard input.
///
/// # Errors
/// As [`read`].
pub(crate) fn open(input: &Path, output: Option<&Path>) -> anyhow::Result<(String, Box<dyn Read + Send>)> {
    refuse_output(input, output)?;
    if input.as_os_str() == "-" {
        return Ok(("stdin".to_owned(), Box::new(std::io::stdin())));
    }
    let name = input.display().to_string();
    let file = File::open(input).with_context(|| format!("{name}: cannot be read"))?;
    Ok((name, Box::new(file)))
}

fn refuse_output(input: &Path, output: Option<&Path>) -> anyhow::Result<()> {
    let place = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    if let Some(output) = output
        && place(input).is_some_and(|input| Some(input) == place(output))
    {
        bail!("--output: found {}, which is an input, expected another file", output.display());
    }
    Ok(())
}

/// Prints the diagnostics of an importer on standard error.
pub(crate) fn report_diagnostics(name: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        out::talk(format_args!("{name}: {diagnostic}"));
    }
}

/// Prints on standard error which parts of their files policies ignore.
pub(crate) fn report_remarks(policies: &[PolicySpec]) {
    for policy in policies {
        for remark in policy.remarks() {
            out::talk(format_args!("{}: {remark}", policy.name()));
        }
    }
}

/// Warns if a log has a recorded execution but no measure of the error of simulations; returns the warning.
pub(crate) fn warn_of_recorded(
    loaded: &Loaded,
    beside: Option<&[PolicySpec]>,
    has_profile: bool,
) -> Option<String> {
    let is_map_reduce = loaded.instance.cluster().is_map_reduce();
    let warning =
        loaded.recorded.as_ref().and_then(|_| recorded::yardstick(beside, has_profile, is_map_reduce))?;
    out::warn(&warning);
    Some(warning)
}

/// Warns if the load is more than the cluster can process.
pub(crate) fn warn_of_load(instance: &Instance) {
    for warning in headline::warnings(instance) {
        out::warn(warning);
    }
}

/// The error with options as the flags that they are here.
pub(crate) fn with_flags(error: anyhow::Error) -> anyhow::Error {
    let flagged = match error.downcast_ref::<ImportError>() {
        Some(ImportError::Option { name, problem }) => format!("--{name}: {problem}"),
        Some(ImportError::NoCluster { name }) => format!(
            "{name}: has no cluster: pass --machines N with --slots S, or with --map-slots A --reduce-slots B"
        ),
        Some(ImportError::Missing { name, found, option }) => {
            let flags = match option {
                MissingOption::Machines => "--machines N",
                MissingOption::Slots => "--slots S, or --map-slots A --reduce-slots B,",
            };
            format!("{name}: found {found}, expected {flags} as well")
        }
        _ => return error,
    };
    anyhow::anyhow!(flagged)
}
