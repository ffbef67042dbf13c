//! Flows of Azkaban: a `.flow` file (Flow 2.0, YAML), or a folder of them or of `.job` files (Flow 1.0,
//! properties).
//!
//! - A node becomes a job of one map task. Azkaban has no durations: they come from a side file (`actions`,
//!   as for Oozie, with the nodes' names); without an entry a task takes [`SECONDS_ASSUMED`]. `noop` takes no
//!   time.
//! - `dependsOn` and `dependencies` become the order of jobs. An embedded flow is replaced by its nodes,
//!   whose names begin with its own: `embedded:node`; its successors follow its last nodes.
//! - Conditions are not evaluated: every job runs after the end of its predecessors. They are counted.
//! - In a folder of `.job` files every job without successors ends a flow of its name, unless it is embedded
//!   in another; in a folder of `.flow` files every file is a flow.
//! - Cycles, and names of missing nodes, are refused.
//!
//! Children: `graph` (from nodes to jobs), `project` (folders and `.job` files).

mod graph;
mod project;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::Settings;

use self::graph::{FlatGraph, Node};
use crate::importers::importer::{ImportFolder, Importer, Input, Output};
use crate::importers::oozie::side::Side;
use crate::importers::oozie::{ACTIONS, SECONDS_ASSUMED};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::{Format, ending};
use crate::reading::parse::parse;
use crate::reading::source::SourceMap;

/// The name of such a file in messages.
const KIND: &str = "a flow of Azkaban";

pub(super) const IMPORTER: Importer = Importer {
    endings: &["flow", "job"],
    params: &[ACTIONS],
    // An empty text is no side file.
    shaped: |settings, name| !settings.text(name).is_empty(),
    folder: Some(ImportFolder {
        looks_like: |folder| {
            folder.files().iter().any(|file| matches!(ending(file).as_deref(), Some("flow" | "job")))
        },
        import: project::import,
    }),
    ..Importer::new(
        "azkaban",
        "a .flow file of Azkaban, or a folder of .flow or .job files",
        |text| text.lines().any(|line| line.trim_end() == "nodes:") && !text.contains("\nslackline:"),
        import,
    )
};

#[derive(Deserialize)]
struct File {
    nodes: Vec<Node>,
}

fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let side = Side::read(settings.text(ACTIONS.name))?;
    let mut diagnostics = Diagnostics::default();
    let (flow, source) = if ending(input.file).as_deref() == Some("job") {
        let what = "found one job of a project, expected the folder of all its files";
        let flow = project::single(input.file, input.text, &side, &mut diagnostics)?;
        (flow.ok_or_else(|| input.error(None, what))?, SourceMap::rows(input.file, vec![1]))
    } else {
        let (flow, paths) = read_flow(input.file, input.text, &side, &mut diagnostics)?;
        (flow, SourceMap::of_jobs(input.file, input.text, Format::Yaml, paths))
    };
    side.refuse_unknown(|| flow.jobs.iter().map(|job| job.id.as_str()))?;
    let flow = FlowDraft { deadline: side.deadline(), ..flow };
    Ok(Output::new(Draft { flows: vec![flow], ..Draft::default() }, diagnostics, source))
}

/// The flow of a `.flow` file, and the place of each of its jobs in the document.
fn read_flow(
    file: &str,
    text: &str,
    side: &Side,
    diagnostics: &mut Diagnostics,
) -> Result<(FlowDraft, Vec<String>), TraceError> {
    let document: File = parse(file, text, Format::Yaml, KIND)?;
    let flat = FlatGraph::of(&document.nodes).map_err(|fault| {
        SourceMap::document(file, text, Format::Yaml).error(vec![(fault.path, fault.what)])
    })?;
    if flat.jobs.is_empty() {
        return Err(TraceError::input(file, None, "found no nodes, expected a flow of at least one"));
    }
    let paths = flat.jobs.iter().map(|job| job.path.clone()).collect();
    Ok((FlowDraft::new(name_of(file), drafts(flat, side, diagnostics)), paths))
}

/// The name of a flow: that of its file.
fn name_of(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

fn drafts(flat: FlatGraph, side: &Side, diagnostics: &mut Diagnostics) -> Vec<JobDraft> {
    let names: Vec<String> = flat.jobs.iter().map(|job| job.name.clone()).collect();
    let draft = |(job, after): (graph::Job, Vec<usize>)| {
        if job.is_conditional {
            diagnostics.add(
                1,
                "condition that is not evaluated: its job runs when all its dependencies have finished",
            );
        }
        let known = side.action(&job.name);
        let of_phase = |phase: usize, tasks: u32| {
            let tasks = known.and_then(|known| known.tasks(phase)).unwrap_or(tasks);
            let assumed = if job.is_noop { 0.0 } else { SECONDS_ASSUMED };
            let seconds = known.and_then(|known| known.seconds(phase)).unwrap_or(assumed);
            (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds }.into())
        };
        if known.is_none() && !job.is_noop {
            let what =
                format!("job without durations in the side file, given one task of {SECONDS_ASSUMED} s");
            diagnostics.add(1, &what);
        }
        let (map, reduce) = (of_phase(0, 1), of_phase(1, 0));
        let after = after.into_iter().map(|before| names[before].clone()).collect();
        JobDraft { id: job.name, after, map, reduce, ..JobDraft::default() }
    };
    flat.jobs.into_iter().zip(flat.after).map(draft).collect()
}
