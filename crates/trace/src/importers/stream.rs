//! Reads a workload flow by flow, in the memory of a few lines.

use std::collections::VecDeque;
use std::io::Read;

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;
use slackline_model::instance::Refused;

use crate::importers::import::{importer_of, refuse_parameters};
use crate::importers::importer::Importer;
use crate::importers::line_import::{FlowAtLine, Line, LineContent, LineImport};
use crate::importers::options::ImportOptions;
use crate::reading::diagnostic::{Diagnostic, Diagnostics};
use crate::reading::error::{Fault, Faults, TraceError};
use crate::reading::hashed_lines::HashedLines;
use crate::reading::line_reader::LineReader;
use crate::reading::place::Place;

/// A workload that is read flow by flow, in the order of the file.
pub struct WorkloadStream {
    source: HashedLines,
    importer: Importer,
    import: Box<dyn LineImport>,
    head: Draft,
    /// Flows that were read and have not left yet, with their lines.
    read: VecDeque<FlowAtLine>,
    is_ended: bool,
    diagnostics: Diagnostics,
}

impl WorkloadStream {
    /// Begins to read a workload, compressed (gzip, zstd) or not, in a format that can be read line by line
    /// ([`Importer::lines`]); see [`crate::read_workload`].
    ///
    /// # Errors
    /// A file that cannot be read; another format; errors before the first flow.
    pub fn open(
        name: &str,
        source: impl Read + Send + 'static,
        from: Option<&str>,
        options: &ImportOptions,
    ) -> Result<Self, TraceError> {
        let mut source = HashedLines::open(name, source)?;
        let head = if from.is_none() { source.lines.head()? } else { String::new() };
        let importer = importer_of(name, &head, from, options)?;
        refuse_parameters(name, &importer, options)?;
        let Some(open) = importer.lines else {
            let known = options.importers().all().iter().filter(|known| known.lines.is_some());
            let known: Vec<&str> = known.map(|known| known.name).collect();
            let what = format!(
                "found a workload in the format {}, expected one that is read line by line, as {}",
                importer.name,
                slackline_model::names::one_of(&known)
            );
            return Err(TraceError::input(name, None, what));
        };
        let settings = options.settings(&importer);
        let settings = settings.map_err(|error| TraceError::input(name, None, error.to_string()))?;
        let import = open(options.now(), &settings);
        let (head, diagnostics) = (Draft::default(), Diagnostics::default());
        let read = VecDeque::new();
        let mut stream = Self { source, importer, import, head, read, is_ended: false, diagnostics };
        // Our own document has everything else on its first line; a log may have it on several.
        let is_headed = |stream: &Self| stream.importer.is_native() || !stream.read.is_empty();
        while stream.read_line()? && !is_headed(&stream) {}
        Ok(stream)
    }

    /// Reads to the next line with content, or more of the rest at the end of the file; returns false when
    /// everything is read.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        while self.source.lines.next()? {
            let LineReader { ref file, ref text, number, .. } = self.source.lines;
            match self.import.line(&Line { file, number, text }, &mut self.diagnostics)? {
                LineContent::Nothing => {}
                content => {
                    self.take(content, number);
                    return Ok(true);
                }
            }
        }
        if !self.is_ended {
            let rest = self.import.end(&self.source.lines.file, &mut self.diagnostics)?;
            self.is_ended = matches!(rest, LineContent::Nothing);
            self.take(rest, self.source.lines.number);
        }
        Ok(!self.is_ended)
    }

    fn take(&mut self, content: LineContent, line: u32) {
        let (head, flows) = content.parts(line);
        self.head = head.unwrap_or_else(|| std::mem::take(&mut self.head));
        self.read.extend(flows);
    }

    /// The workload without flows; without machines if the format has none.
    pub fn head(&self) -> &Draft {
        &self.head
    }

    pub fn importer(&self) -> &Importer {
        &self.importer
    }

    /// The next flow, unchecked, and its line; `None` at the end.
    ///
    /// # Errors
    /// An invalid line; a file that ends too early.
    pub fn next_flow(&mut self) -> Result<Option<(FlowDraft, u32)>, TraceError> {
        while self.read.is_empty() && self.read_line()? {}
        let Some((mut flow, line)) = self.read.pop_front() else { return Ok(None) };
        let is_known = |pool: &String| self.head.pools.iter().any(|known| known.id == *pool);
        if !self.importer.is_native() && flow.pool.take_if(|pool| !is_known(pool)).is_some() {
            let what = "with a pool, which is ignored in a stream";
            self.diagnostics.add_flow(line, what);
        }
        Ok(Some((flow, line)))
    }

    /// The fault of a flow that was marked with its line.
    pub fn refused(&self, refused: &Refused) -> TraceError {
        let LineReader { ref file, ref text, number, .. } = self.source.lines;
        let place = |path: &str| match refused.mark {
            line if line == number => self.import.place(&Line { file, number, text }, path),
            line => Place { line, column: 1 },
        };
        let fault = |problem: &slackline_model::Problem| Fault {
            place: Some(place(&problem.path)),
            path: problem.path.clone(),
            what: problem.what.clone(),
        };
        let list = refused.invalid.problems.iter().map(fault).collect();
        TraceError::Input(Faults { file: file.clone(), list })
    }

    /// A fault of the workload as a whole.
    pub fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::input(&self.source.lines.file, None, what)
    }

    /// The hash of the file's bytes, read to their end, and the repairs and oddities so far.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn finish(self) -> Result<(String, Vec<Diagnostic>), TraceError> {
        Ok((self.source.sha256()?, self.diagnostics.into_vec()))
    }
}

impl std::fmt::Debug for WorkloadStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("WorkloadStream");
        debug.field("file", &self.source.lines.file).field("line", &self.source.lines.number);
        debug.finish_non_exhaustive()
    }
}
