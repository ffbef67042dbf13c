//! Folders of an Azkaban project: `.flow` files, or `.job` files, each a job in Java's properties.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;
use slackline_model::names::did_you_mean;
use slackline_model::params::Settings;

use super::graph::{FlatGraph, Node};
use super::{ACTIONS, drafts, name_of, read_flow};
use crate::importers::importer::Output;
use crate::importers::oozie::side::{Side, properties};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

/// How deep flows may be embedded.
const DEPTH_MAX: usize = 32;

/// Most nodes that embedded flows may add to a flow.
const NODES_MAX: usize = 100_000;

struct Job {
    file: String,
    kind: String,
    dependencies: Vec<String>,
    /// The flow that it embeds.
    embeds: Option<String>,
}

impl Job {
    fn read(file: String, text: &str) -> Self {
        let mut properties = properties(text);
        let names = properties.get("dependencies").or_else(|| properties.get("dependson"));
        let names = names.map(|names| names.split(',').map(str::trim).filter(|name| !name.is_empty()));
        let dependencies = names.map(|names| names.map(str::to_owned).collect()).unwrap_or_default();
        let kind = properties.remove("type").unwrap_or_default();
        let embeds = properties.remove("flow.name").filter(|_| kind == "flow");
        Self { file, kind, dependencies, embeds }
    }
}

pub(super) fn import(folder: &Folder, settings: &Settings) -> Result<Output, TraceError> {
    let side = Side::read(settings.text(ACTIONS.name))?;
    let mut diagnostics = Diagnostics::default();
    let named =
        |ending: &str| folder.files().iter().filter(move |file| file.ends_with(ending)).collect::<Vec<_>>();
    let (flows, jobs) = (named(".flow"), named(".job"));
    let mut found = Vec::new();
    if flows.is_empty() {
        found = of_jobs(folder, &jobs, &side, &mut diagnostics)?;
    } else {
        for job in jobs {
            diagnostics.add_file(job, ".job file beside .flow files, left out");
        }
        for file in flows {
            diagnostics.enter_file(file);
            let text = folder.text(file)?;
            let (flow, _) = read_flow(&folder.name_of(file), &text, &side, &mut diagnostics)?;
            found.push((file.clone(), flow));
        }
    }
    if found.is_empty() {
        let what = "found neither .flow nor .job files, expected those of a project of Azkaban";
        return Err(TraceError::input(folder.name(), None, what));
    }
    side.refuse_unknown(|| found.iter().flat_map(|(_, flow)| &flow.jobs).map(|job| job.id.as_str()))?;
    let (mut flows, mut places) = (Vec::new(), Vec::new());
    for (file, flow) in found {
        flows.push(FlowDraft { deadline: side.deadline(), ..flow });
        places.push((file, 1));
    }
    let draft = Draft { flows, ..Draft::default() };
    Ok(Output::new(draft, diagnostics, SourceMap::files(folder, places)))
}

/// The flow of a job without predecessors and embedded flows.
pub(super) fn single(
    file: &str,
    text: &str,
    side: &Side,
    diagnostics: &mut Diagnostics,
) -> Result<Option<FlowDraft>, TraceError> {
    let job = Job::read(file.to_owned(), text);
    if !job.dependencies.is_empty() || job.embeds.is_some() {
        return Ok(None);
    }
    let jobs = BTreeMap::from([(name_of(file).to_owned(), job)]);
    flow(name_of(file), &jobs, side, diagnostics, &|file| file.to_owned()).map(Some)
}

/// The flows of `.job` files, each with the file of the job that ends it.
fn of_jobs(
    folder: &Folder,
    files: &[&String],
    side: &Side,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<(String, FlowDraft)>, TraceError> {
    let wrong = |file: &str, what: String| {
        TraceError::input(&folder.name_of(file), Some(Place { line: 1, column: 1 }), what)
    };
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".job").to_owned();
        let job = Job::read((*file).clone(), &folder.text(file)?);
        if let Some(other) = jobs.get(&name) {
            return Err(wrong(file, format!("found a second job {name:?}, the first is {}", other.file)));
        }
        jobs.insert(name, job);
    }
    let mut waited_for = BTreeSet::new();
    for job in jobs.values() {
        for name in job.dependencies.iter().chain(&job.embeds) {
            if !jobs.contains_key(name) {
                let hint = did_you_mean(name, jobs.keys().map(String::as_str));
                return Err(wrong(&job.file, format!("found {name:?}, expected a job of the project{hint}")));
            }
            waited_for.insert(name.as_str());
        }
    }
    let mut flows = Vec::new();
    for name in jobs.keys().filter(|name| !waited_for.contains(name.as_str())) {
        let file = &jobs[name].file;
        diagnostics.enter_file(file);
        flows.push((file.clone(), flow(name, &jobs, side, diagnostics, &|file| folder.name_of(file))?));
    }
    if flows.is_empty() && !jobs.is_empty() {
        // Every one is waited for: the flow of any has the cycle.
        for name in jobs.keys() {
            flow(name, &jobs, side, diagnostics, &|file| folder.name_of(file))?;
        }
        return Err(TraceError::input(
            folder.name(),
            None,
            "found only jobs that other jobs depend on or embed, expected a last job",
        ));
    }
    Ok(flows)
}

/// The flow that a job ends.
fn flow(
    name: &str,
    jobs: &BTreeMap<String, Job>,
    side: &Side,
    diagnostics: &mut Diagnostics,
    name_of: &dyn Fn(&str) -> String,
) -> Result<FlowDraft, TraceError> {
    let wrong = |what: String| {
        TraceError::input(&name_of(&jobs[name].file), Some(Place { line: 1, column: 1 }), what)
    };
    let mut n = 0;
    let nodes = nodes(name, jobs, 0, &mut n).map_err(wrong)?;
    let flat = FlatGraph::of(&nodes).map_err(|fault| wrong(fault.what))?;
    Ok(FlowDraft::new(name, drafts(flat, side, diagnostics)))
}

/// The nodes of the flow that a job ends: all that it waits for, and itself.
fn nodes(name: &str, jobs: &BTreeMap<String, Job>, depth: usize, n: &mut usize) -> Result<Vec<Node>, String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(jobs[name].dependencies.iter().map(String::as_str));
        }
    }
    *n += found.len();
    if depth > DEPTH_MAX || *n > NODES_MAX {
        return Err(format!(
            "found flows embedded more than {DEPTH_MAX} deep, or of more than {NODES_MAX} jobs: check whether a flow embeds itself"
        ));
    }
    let node = |name: &str| {
        let job = &jobs[name];
        let inner = job.embeds.as_ref().map(|flow| nodes(flow, jobs, depth + 1, n)).transpose()?;
        Ok(Node {
            name: name.to_owned(),
            kind: job.kind.clone(),
            depends_on: Some(job.dependencies.clone()),
            condition: None,
            nodes: inner,
        })
    };
    found.into_iter().map(node).collect()
}
