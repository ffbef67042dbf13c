//! The interface of formats that are read line by line, and therefore as a stream.

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;
use slackline_model::params::Settings;

use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::place::Place;

/// Reads a workload line by line, in the order of the file.
pub trait LineImport {
    /// The content of a line.
    ///
    /// # Errors
    /// A line that is not in the format.
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError>;

    /// The place in the line of a part of its flow, by a path such as `jobs[0].map`.
    fn place(&self, line: &Line<'_>, _path: &str) -> Place {
        Place { line: line.number, column: 1 }
    }

    /// Returns the remaining content after the last line; called until it returns [`LineContent::Nothing`].
    ///
    /// # Errors
    /// An incomplete file.
    fn end(&mut self, file: &str, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError>;
}

/// A flow and its line.
pub type FlowAtLine = (FlowDraft, u32);

/// Begins to read a file; the moment is that of [`super::importer::Input::now`].
pub type OpenLines = fn(Option<&slackline_model::Start>, &Settings) -> Box<dyn LineImport>;

#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The file in messages.
    pub file: &'a str,
    /// Its number, from 1.
    pub number: u32,
    /// Its content, without its end.
    pub text: &'a str,
}

impl Line<'_> {
    /// An error at that column, counted in characters from 1.
    pub fn error(&self, column: u32, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, Some(Place { line: self.number, column }), what)
    }
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LineContent {
    Nothing,
    /// Everything but the flows; it precedes them. The last of several heads counts.
    Head(Box<Draft>),
    Flow(Box<FlowDraft>),
    /// Both: the first flow of a log determines second 0.
    HeadAndFlow(Box<Draft>, Box<FlowDraft>),
    /// Flows of earlier lines that are complete now.
    Flows(Vec<FlowAtLine>),
}

impl LineContent {
    /// These flows, if any.
    pub fn flows(flows: Vec<FlowAtLine>) -> Self {
        if flows.is_empty() { Self::Nothing } else { Self::Flows(flows) }
    }

    /// The head, if there is one, and flows with their lines.
    pub(crate) fn parts(self, line: u32) -> (Option<Draft>, Vec<FlowAtLine>) {
        match self {
            Self::Nothing => (None, Vec::new()),
            Self::Head(head) => (Some(*head), Vec::new()),
            Self::Flow(flow) => (None, vec![(*flow, line)]),
            Self::HeadAndFlow(head, flow) => (Some(*head), vec![(*flow, line)]),
            Self::Flows(flows) => (None, flows),
        }
    }
}
