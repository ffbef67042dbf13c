//! Our own workload document as formats: TOML, JSON and YAML here, JSON lines in `lines`.

pub(super) mod lines;

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;

use super::importer::{Import, Importer, Input, Output};
use crate::documents::workload;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

pub(super) use lines::LINES;

pub(super) const TOML: Importer = importer(
    Format::Toml,
    "a Slackline document as TOML",
    |text| Format::Toml.looks_like(text),
    |input, _| read(input, Format::Toml),
);

pub(super) const JSON: Importer = importer(
    Format::Json,
    "a Slackline document as JSON",
    |text| Format::Json.looks_like(text),
    |input, _| read(input, Format::Json),
);

pub(super) const YAML: Importer = importer(
    Format::Yaml,
    "a Slackline document as YAML",
    |text| Format::Yaml.looks_like(text),
    |input, _| read(input, Format::Yaml),
);

const fn importer(
    format: Format,
    summary: &'static str,
    looks_like: fn(&str) -> bool,
    import: Import,
) -> Importer {
    Importer { endings: format.endings(), ..Importer::new(format.name(), summary, looks_like, import) }
}

fn read(input: &Input<'_>, format: Format) -> Result<Output, TraceError> {
    let (draft, source) = workload::read(input.file, input.text, format, input.now, input.parameters)?;
    let mut diagnostics = Diagnostics::default();
    warn_of_impossible_deadlines(&draft, &source, &mut diagnostics);
    Ok(Output::new(draft, diagnostics, source))
}

/// Warns of deadlines before the release of their flow: they are valid, and rarely meant.
fn warn_of_impossible_deadlines(draft: &Draft, source: &SourceMap, diagnostics: &mut Diagnostics) {
    let is_impossible = |flow: &FlowDraft| flow.deadline.is_some_and(|deadline| deadline < flow.release);
    let mut impossible = draft.flows.iter().enumerate().filter(|(_, flow)| is_impossible(flow));
    let Some((k, flow)) = impossible.next() else { return };
    let place = source.places(&[&format!("flows[{k}].deadline")])[0].unwrap_or(Place { line: 1, column: 1 });
    let what =
        format!("the deadline is before the release, as of {:?}, so that no schedule meets it", flow.id);
    diagnostics.add_flows(1 + impossible.count() as u64, place, what);
}
