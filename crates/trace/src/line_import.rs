//! Formats in which a line is all that is needed to make a flow: they can be read as a stream.

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;
use slackline_model::params::Settings;

use crate::diagnostic::Diagnostics;
use crate::error::TraceError;
use crate::importer::{Input, Output};
use crate::place::Place;
use crate::source::SourceMap;

/// Reads a workload line by line, in the order of the file.
pub trait LineImport {
    /// What a line says.
    ///
    /// # Errors
    /// Whatever keeps the line from being one of the format.
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<Said, TraceError>;

    /// Where in the line the part of its flow at a path such as `jobs[0].map` stands.
    fn place(&self, line: &Line<'_>, _path: &str) -> Place {
        Place { line: line.number, column: 1 }
    }

    /// There are no more lines: flows that are still to come, each with its line. It is asked again until none are left.
    ///
    /// # Errors
    /// A file that lacks something.
    fn end(&mut self, file: &str, diagnostics: &mut Diagnostics) -> Result<Vec<Marked>, TraceError>;
}

/// A flow and its line.
pub type Marked = (FlowDraft, u32);

/// Begins to read a file; the moment is that of [`Input::now`].
pub type OpenLines = fn(Option<&slackline_model::Start>, &Settings) -> Box<dyn LineImport>;

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// What messages call the file.
    pub file: &'a str,
    /// Its number, from 1.
    pub number: u32,
    /// What it holds, without its end.
    pub text: &'a str,
}

impl Line<'_> {
    /// Something is wrong at that column, counted in characters from 1.
    pub fn error(&self, column: u32, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, Some(Place { line: self.number, column }), what)
    }
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// Nothing.
    Nothing,
    /// Everything but the flows; comes before them, if it comes. Of several the last one counts.
    Head(Box<Draft>),
    /// A flow.
    Flow(Box<FlowDraft>),
    /// Both: the first flow of a log says when second 0 is.
    First(Box<Draft>, Box<FlowDraft>),
    /// Flows that stand on earlier lines and are known as a whole now.
    Earlier(Vec<Marked>),
}

fn take(marked: Vec<Marked>, draft: &mut Draft, numbers: &mut Vec<u32>) {
    for (flow, number) in marked {
        draft.flows.push(flow);
        numbers.push(number);
    }
}

/// Reads a whole text by its lines; what `origin` makes of the lines of the flows says where their parts stand.
pub(crate) fn import_lines(
    input: &Input<'_>,
    mut lines: Box<dyn LineImport>,
    origin: impl FnOnce(Vec<u32>) -> SourceMap,
) -> Result<Output, TraceError> {
    let mut draft = Draft::default();
    let mut diagnostics = Diagnostics::default();
    let mut numbers = Vec::new();
    for (number, text) in (1u32..).zip(input.text.lines()) {
        match lines.line(&Line { file: input.file, number, text }, &mut diagnostics)? {
            Said::Nothing => {}
            Said::Head(head) => draft = Draft { flows: draft.flows, ..*head },
            Said::Flow(flow) => take(vec![(*flow, number)], &mut draft, &mut numbers),
            Said::First(head, flow) => {
                draft = Draft { flows: draft.flows, ..*head };
                take(vec![(*flow, number)], &mut draft, &mut numbers);
            }
            Said::Earlier(marked) => take(marked, &mut draft, &mut numbers),
        }
    }
    loop {
        let rest = lines.end(input.file, &mut diagnostics)?;
        if rest.is_empty() {
            break;
        }
        take(rest, &mut draft, &mut numbers);
    }
    Ok(Output::new(draft, diagnostics, origin(numbers)))
}
