//! The whole program with one more engine and one more format.
//!
//! `cargo run -p slackline-cli --example own_program -- run examples/first-run.toml --engine
//! part:fraction=0.25`

use std::num::NonZeroUsize;
use std::process::ExitCode;

use slackline::model::Draft;
use slackline::model::cluster::Slots;
use slackline::model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline::model::params::{Param, Values};
use slackline::run::{EngineEntry, EngineError, LocalEngine, Settings, WorkerCommand};
use slackline::trace::{Diagnostics, Importer, Output, Place, SourceMap};
use slackline_cli::Tables;

/// An engine: some of this machine's processors. One that is not made of another implements `Backend`.
const PART: EngineEntry = EngineEntry {
    name: "part",
    summary: "a part of this machine's processors",
    params: &[Param::new("fraction", "0.5", Values::Real(0.01, 1.0), "which part")],
    make: |settings| {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let slots = (processors as f64 * settings.real("fraction")).ceil() as u32;
        let worker = WorkerCommand::this_program().map_err(EngineError::other)?;
        Ok(Box::new(LocalEngine::new(Slots::Generic(slots), Settings::new(worker))))
    },
};

/// A format: one job per line, its name and its seconds after a comma.
const LINES: Importer = Importer {
    name: "lines",
    summary: "one job per line: name,seconds",
    endings: &["lines"],
    looks_like: |_| false,
    params: &[Param::new("stretch", "1", Values::Real(0.0, 1e3), "factor on all seconds")],
    shaped: Importer::every_setting,
    import: |input, settings| {
        let mut draft = Draft::default();
        let mut lines = Vec::new();
        for (line, row) in (1..).zip(input.text.lines()) {
            let place = Place { line, column: 1 };
            let wrong = || input.error(Some(place), format!("found {row:?}, expected name,seconds"));
            let (name, seconds) = row.split_once(',').ok_or_else(wrong)?;
            let seconds = seconds.parse::<f64>().map_err(|_| wrong())? * settings.real("stretch");
            let map = Some(TasksDraft::Uniform { tasks: 1, seconds }.into());
            draft.flows.push(FlowDraft::new(
                name,
                vec![JobDraft { id: name.to_owned(), map, ..JobDraft::default() }],
            ));
            lines.push(line);
        }
        Ok(Output::new(draft, Diagnostics::default(), SourceMap::rows(input.file, lines)))
    },
    lines: None,
    folder: None,
};

fn main() -> ExitCode {
    slackline_cli::main_with(Tables::default().with_engine(PART).with_importer(LINES))
}
