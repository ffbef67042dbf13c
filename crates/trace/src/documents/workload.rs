//! The workload document, in three forms and as lines: read into a draft, written from one.

mod convert;
mod foreign;
pub(crate) mod lines;
mod parameters;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;

use crate::importers::importer::{Import, Importer, Input, Output};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::{WORKLOAD, check_version, parse};
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

pub(crate) use convert::from_cluster;
pub(crate) use lines::LINES;
pub use lines::write_workload_lines;
pub use write::write_workload;

/// The document as TOML.
pub(crate) const TOML: Importer = importer(
    Format::Toml,
    "our own document as TOML",
    |text| Format::Toml.looks_like(text),
    |input, _| read(input, Format::Toml),
);

/// The document as JSON.
pub(crate) const JSON: Importer = importer(
    Format::Json,
    "our own document as JSON",
    |text| Format::Json.looks_like(text),
    |input, _| read(input, Format::Json),
);

/// The document as YAML.
pub(crate) const YAML: Importer = importer(
    Format::Yaml,
    "our own document as YAML",
    |text| Format::Yaml.looks_like(text),
    |input, _| read(input, Format::Yaml),
);

const fn importer(
    format: Format,
    summary: &'static str,
    looks_like: fn(&str) -> bool,
    import: Import,
) -> Importer {
    let (name, endings) = (format.name(), format.endings());
    Importer {
        name,
        summary,
        endings,
        looks_like,
        params: &[],
        shaped: Importer::every_setting,
        import,
        lines: None,
        folder: None,
    }
}

fn read(input: &Input<'_>, format: Format) -> Result<Output, TraceError> {
    let Input { file, text, now, parameters } = *input;
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
    let mut diagnostics = Diagnostics::default();
    remark_hopeless(&draft, &source, &mut diagnostics);
    Ok(Output::new(draft, diagnostics, source))
}

/// Remarks on deadlines that are over when their flow is released: they are legal, and hardly ever meant.
fn remark_hopeless(draft: &Draft, source: &SourceMap, diagnostics: &mut Diagnostics) {
    let is_hopeless = |flow: &FlowDraft| flow.deadline.is_some_and(|deadline| deadline < flow.release);
    let mut hopeless = draft.flows.iter().enumerate().filter(|(_, flow)| is_hopeless(flow));
    let Some((k, flow)) = hopeless.next() else { return };
    let place = source.places(&[&format!("flows[{k}].deadline")])[0].unwrap_or(Place { line: 1, column: 1 });
    let what =
        format!("the deadline is before the release, as of {:?}, so that no schedule meets it", flow.id);
    diagnostics.add_flows(1 + hopeless.count() as u64, place, what);
}
