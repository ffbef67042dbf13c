//! An importer: the entry that the file of a format declares and the table of formats lists.
//!
//! Only the entry describes the format. The guess of the format, the flags of the program and their help, the
//! options in a schedule and their reading follow from it.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Draft, Start};

use crate::documents::parameters::Parameters;
use crate::importers::line_import::{Line, LineContent, LineImport, OpenLines};
use crate::reading::diagnostic::{Diagnostic, Diagnostics};
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;
use crate::reading::format::Format;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

/// The parameter of importers with random draws: the seed of the program (`--seed`), recorded if it affected
/// the workload.
pub const SEED: Param = Param::new("seed", "0", Values::Count(0, u64::MAX), "seed of all random numbers");

/// A format of workloads, with its readers.
#[derive(Clone, Copy, Debug)]
pub struct Importer {
    /// Its name on the command line.
    pub name: &'static str,
    /// The description, in one line.
    pub summary: &'static str,
    /// Endings of file names that are its own, without the dot, in lower case.
    pub endings: &'static [&'static str],
    /// Whether a text could be in this format; called if the name of the file does not decide.
    pub looks_like: fn(&str) -> bool,
    /// The assumptions for missing values. Each is a flag of the program, so its name must differ from other
    /// flags; importers that share a name share the flag.
    pub params: &'static [Param],
    /// Whether the setting of that name affected the workload: these are recorded with a schedule, defaults
    /// included, so that a later version with other defaults imports the same.
    pub shaped: fn(&Settings, &str) -> bool,
    pub import: Import,
    /// Reads a file line by line, if one line is enough for a flow: then a trace in order of time can be
    /// simulated while it is read.
    pub lines: Option<OpenLines>,
    /// Reads a folder whose files are one workload.
    pub folder: Option<ImportFolder>,
}

/// The reader of a folder whose files are one workload.
#[derive(Clone, Copy, Debug)]
pub struct ImportFolder {
    /// Whether a folder could be in this format.
    pub looks_like: fn(&Folder) -> bool,
    pub import: fn(&Folder, &Settings) -> Result<Output, TraceError>,
}

/// Reads a text with a valid value for each parameter of the importer.
///
/// Fails on a text that is not in the format; the error has the line. That the draft is a valid instance is
/// not checked here.
pub type Import = fn(&Input<'_>, &Settings) -> Result<Output, TraceError>;

#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The file in messages.
    pub file: &'a str,
    pub text: &'a str,
    /// The moment of second 0 if its flows are about to run; otherwise the text has it.
    pub now: Option<&'a Start>,
    /// Values of the parameters that it declares, for our documents; empty for other formats.
    pub parameters: &'a Parameters,
}

/// The result of an importer.
#[derive(Clone, Debug)]
pub struct Output {
    /// The workload, unchecked; without machines if the format has none.
    pub draft: Draft,
    /// Repairs, caps and oddities, with counts.
    pub diagnostics: Vec<Diagnostic>,
    /// The places of its parts, for later errors.
    pub source: SourceMap,
}

impl Importer {
    /// A format that is read from whole files, is recognised by their text alone, and has no parameters.
    /// Struct update syntax changes the rest.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        looks_like: fn(&str) -> bool,
        import: Import,
    ) -> Self {
        Self {
            name,
            summary,
            endings: &[],
            looks_like,
            params: &[],
            shaped: Self::every_setting,
            import,
            lines: None,
            folder: None,
        }
    }

    /// Whether it reads our own documents, which are complete and have no import options.
    pub fn is_native(&self) -> bool {
        Format::from_name(self.name).is_some() || self.name == super::workload::lines::NAME
    }

    /// [`Importer::shaped`] for importers whose settings all affect the workload.
    pub fn every_setting(_: &Settings, _: &str) -> bool {
        true
    }
}

impl Input<'_> {
    /// An error at a place of the text, or in all of it.
    pub fn error(&self, place: Option<Place>, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, place, what)
    }
}

impl Output {
    /// A workload and its diagnostics.
    pub fn new(draft: Draft, diagnostics: Diagnostics, source: SourceMap) -> Self {
        Self { draft, diagnostics: diagnostics.into_vec(), source }
    }
}

/// Reads a whole text line by line; `origin` makes a source map of the line numbers of the flows.
pub(crate) fn import_lines(
    input: &Input<'_>,
    mut lines: Box<dyn LineImport>,
    origin: impl FnOnce(Vec<u32>) -> SourceMap,
) -> Result<Output, TraceError> {
    let mut draft = Draft::default();
    let mut diagnostics = Diagnostics::default();
    let mut numbers = Vec::new();
    let mut take = |content: LineContent, line| {
        let (head, flows) = content.parts(line);
        if let Some(head) = head {
            draft = Draft { flows: std::mem::take(&mut draft.flows), ..head };
        }
        let (flows, lines): (Vec<_>, Vec<_>) = flows.into_iter().unzip();
        draft.flows.extend(flows);
        numbers.extend(lines);
    };
    for (number, text) in (1u32..).zip(input.text.lines()) {
        take(lines.line(&Line { file: input.file, number, text }, &mut diagnostics)?, number);
    }
    loop {
        match lines.end(input.file, &mut diagnostics)? {
            LineContent::Nothing => break,
            rest => take(rest, 0),
        }
    }
    Ok(Output::new(draft, diagnostics, origin(numbers)))
}
