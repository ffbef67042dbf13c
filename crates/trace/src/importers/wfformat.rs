//! Workflow instances of WfCommons: WfFormat 1.5.
//!
//! A JSON file holds one workflow: `workflow.specification.tasks` with ids and parents, and
//! `workflow.execution.tasks` with the runtime of each. It becomes one flow; a task becomes a job with a
//! map phase of one task. Runtimes are multiplied by `runtime-scale`; runtimes of zero, which Nextflow
//! records for short tasks, are kept and counted. Files, machines and memory are ignored: the format's
//! units differ by workflow system, and the recorded makespan includes queueing.
//!
//! Older layouts (up to 1.4) name parents instead of giving their ids and are refused by their version.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::{Param, Settings, Values};

use crate::importers::durations::whole_micros;
use crate::importers::importer::{Importer, Input, Output};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::parse;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

/// The name of such a document in messages.
const KIND: &str = "a WfFormat instance";

/// The version this importer reads.
const VERSION: &str = "1.5";
/// How many characters of a file are searched to guess its format: `schemaVersion` comes early.
const HEAD: usize = 4096;

pub(super) const IMPORTER: Importer = Importer {
    endings: &["json"],
    params: &[Param::new("runtime-scale", "1", Values::Real(1e-9, 1e9), "factor on all runtimes")],
    ..Importer::new("wfformat", "a workflow instance of WfCommons: WfFormat 1.5, as JSON", looks_like, import)
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemaVersion {
    schema_version: String,
}

#[derive(Deserialize)]
struct Instance {
    name: String,
    workflow: Workflow,
}

#[derive(Deserialize)]
struct Workflow {
    specification: Specification,
    execution: Execution,
}

#[derive(Deserialize)]
struct Specification {
    tasks: Vec<Task>,
    #[serde(default)]
    files: Vec<DataFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataFile {
    #[serde(default)]
    size_in_bytes: f64,
}

#[derive(Deserialize)]
struct Task {
    id: String,
    #[serde(default)]
    parents: Vec<String>,
}

#[derive(Deserialize)]
struct Execution {
    tasks: Vec<TaskExecution>,
    #[serde(default)]
    machines: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskExecution {
    id: String,
    runtime_in_seconds: f64,
    core_count: Option<f64>,
    memory_in_bytes: Option<f64>,
}

/// Counts what an instance has and simulations leave out.
fn count_unmodelled(workflow: &Workflow, diagnostics: &mut Diagnostics) {
    let (files, tasks) = (&workflow.specification.files, &workflow.execution.tasks);
    let bytes: f64 = files.iter().map(|file| file.size_in_bytes.max(0.0)).sum();
    let what = format!("with {bytes:.0} bytes in total, whose transfer takes no time");
    diagnostics.add_unmodelled("file", files.len() as u64, 1, &what);
    let count = |is: fn(&TaskExecution) -> bool| tasks.iter().filter(|task| is(task)).count() as u64;
    let cores = count(|task| task.core_count.is_some_and(|cores| cores > 1.0));
    diagnostics.add_unmodelled("task", cores, 1, "with several cores, given one slot");
    let memory = count(|task| task.memory_in_bytes.is_some_and(|bytes| bytes > 0.0));
    diagnostics.add_unmodelled("task", memory, 1, "with known memory, which limits no task");
    let machines = workflow.execution.machines.len() as u64;
    diagnostics.add_unmodelled(
        "machine",
        machines,
        1,
        "of the recorded run: cores, speed and memory are ignored",
    );
}

/// Whether a text could be an instance: JSON that names its schema's version and is not one of ours.
fn looks_like(text: &str) -> bool {
    let head = text.char_indices().nth(HEAD).map_or(text, |(at, _)| &text[..at]);
    head.trim_start().starts_with('{')
        && head.contains("\"schemaVersion\"")
        && !head.contains("\"slackline\"")
}

/// Reads an instance into a draft without machines.
///
/// # Errors
/// Broken JSON, another version, missing fields, tasks without a runtime or with one that is no time,
/// tasks given twice.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let Input { file, text, .. } = *input;
    let scale = settings.real("runtime-scale");
    let wrong = |path: String, what: String| {
        Err(SourceMap::document(file, text, Format::Json).error(vec![(path, what)]))
    };
    let recorded = |k: usize| format!("workflow.execution.tasks[{k}]");
    let SchemaVersion { schema_version } = parse(file, text, Format::Json, KIND)?;
    if schema_version != VERSION {
        let what = format!("found WfFormat version {schema_version:?}, expected {VERSION:?}");
        return wrong("schemaVersion".to_owned(), what);
    }
    let instance: Instance = parse(file, text, Format::Json, KIND)?;
    let lines = Lines::of(text);
    let mut diagnostics = Diagnostics::default();
    count_unmodelled(&instance.workflow, &mut diagnostics);
    let mut runtimes = BTreeMap::new();
    for (k, task) in instance.workflow.execution.tasks.into_iter().enumerate() {
        let seconds = task.runtime_in_seconds;
        if !(seconds >= 0.0 && seconds.is_finite()) {
            let what = format!("task {:?}: found runtime {seconds}, expected seconds from 0", task.id);
            return wrong(recorded(k) + ".runtimeInSeconds", what);
        }
        if seconds == 0.0 {
            diagnostics.add(lines.of_task(&task.id), "runtime of 0 s, kept");
        }
        if let Some((_, first)) = runtimes.insert(task.id.clone(), (k, seconds)) {
            let what = format!("task {:?}: found a second runtime, expected only {first} s", task.id);
            return wrong(recorded(k), what);
        }
    }
    let (mut jobs, mut marks) = (Vec::new(), Vec::new());
    for (k, task) in instance.workflow.specification.tasks.into_iter().enumerate() {
        let Some((_, seconds)) = runtimes.remove(&task.id) else {
            let what =
                format!("task {:?}: found no runtime, expected one in workflow.execution.tasks", task.id);
            return wrong(format!("workflow.specification.tasks[{k}]"), what);
        };
        marks.push((format!("flows[0].jobs[{k}]"), Place { line: lines.of_task(&task.id), column: 1 }));
        let seconds = whole_micros(seconds * scale);
        jobs.push(JobDraft {
            id: task.id,
            after: task.parents,
            map: Some(TasksDraft::Uniform { tasks: 1, seconds }.into()),
            ..JobDraft::default()
        });
    }
    if let Some((id, (k, _))) = runtimes.into_iter().next() {
        let what = format!("found a runtime of task {id:?}, expected it in workflow.specification.tasks");
        return wrong(recorded(k), what);
    }
    let name = instance.name.strip_suffix(".json").unwrap_or(&instance.name);
    let draft = Draft { flows: vec![FlowDraft::new(name, jobs)], ..Draft::default() };
    Ok(Output::new(draft, diagnostics, SourceMap::marks(file, marks)))
}

/// The line on which each task is named first.
struct Lines<'a>(BTreeMap<&'a str, u32>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut lines = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((_, rest)) = line.split_once("\"id\":")
                && let Some(id) = rest.split('"').nth(1)
            {
                lines.entry(id).or_insert(number);
            }
        }
        Self(lines)
    }

    fn of_task(&self, id: &str) -> u32 {
        self.0.get(id).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;

    const CHAIN: &str = r#"{ "name": "two", "schemaVersion": "1.5", "workflow": {
  "specification": { "tasks": [
    { "name": "a", "id": "a", "parents": [], "children": ["b"] },
    { "name": "b", "id": "b", "parents": ["a"], "children": [] } ] },
  "execution": { "makespanInSeconds": 9, "tasks": [
    { "id": "a", "runtimeInSeconds": 1.5 }, { "id": "b", "runtimeInSeconds": 0 } ] } } }"#;

    #[test]
    fn what_simulations_leave_out_is_counted() {
        let text = CHAIN
            .replace(
                "\"children\": [] } ] },",
                "\"children\": [] } ], \"files\": [{ \"id\": \"x\", \"sizeInBytes\": 2500000 }] },",
            )
            .replace(
                "\"runtimeInSeconds\": 1.5",
                "\"runtimeInSeconds\": 1.5, \"coreCount\": 4, \"memoryInBytes\": 9",
            )
            .replace("\"makespanInSeconds\": 9,", "\"makespanInSeconds\": 9, \"machines\": [{}, {}],");
        let imported = read(&text, "1").unwrap();
        let left_out = crate::Diagnostic::simplifications(&imported.diagnostics);
        let found: Vec<_> = left_out.iter().map(|l| (l.count, l.of.as_str(), l.what.as_str())).collect();
        let expected = [
            (1, "file", "with 2500000 bytes in total, whose transfer takes no time"),
            (1, "task", "with several cores, given one slot"),
            (1, "task", "with known memory, which limits no task"),
            (2, "machine", "of the recorded run: cores, speed and memory are ignored"),
        ];
        assert_eq!(found, expected);
    }

    fn read(text: &str, scale: &str) -> Result<ImportedWorkload, TraceError> {
        let options = ImportOptions::from_pairs([("runtime-scale", scale)]).unwrap();
        read_workload("two.json", text.as_bytes(), None, &options)
    }

    #[test]
    fn tasks_become_jobs_of_one_flow() {
        let imported = read(CHAIN, "2").unwrap();
        assert_eq!(imported.importer.name, "wfformat");
        let [flow] = imported.draft.flows.as_slice() else { panic!("one flow") };
        assert_eq!(flow.id, "two");
        assert_eq!(flow.jobs[1].after, ["a"]);
        assert_eq!(flow.jobs[0].map, Some(TasksDraft::Uniform { tasks: 1, seconds: 3.0 }.into()));
        let said: Vec<String> = imported.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["1 row: runtime of 0 s, kept (first at line 4)"]);
    }

    #[test]
    fn invalid_values_are_refused() {
        let error = |from: &str, to: &str| read(&CHAIN.replace(from, to), "1").unwrap_err().to_string();
        assert!(error("1.5\"", "1.4\"").contains(r#"found WfFormat version "1.4", expected "1.5""#));
        assert!(
            error("Seconds\": 0 ", "Seconds\": -1 ").contains("found runtime -1, expected seconds from 0")
        );
        assert!(error(r#""id": "b", "run"#, r#""id": "c", "run"#).contains(r#"task "b": found no runtime"#));
        assert!(error(", \"runtimeInSeconds\": 0", "").contains("runtimeInSeconds"));
        for (from, to) in [
            ("1.5\"", "1.4\""),
            ("Seconds\": 0 ", "Seconds\": -1 "),
            (r#""id": "b", "run"#, r#""id": "c", "run"#),
        ] {
            let error = error(from, to);
            assert!(
                error.split(':').nth(1).is_some_and(|line| line.parse::<u32>().is_ok()),
                "no line: {error}"
            );
        }
    }

    #[test]
    fn the_public_instances_are_read() {
        let Some(folder) = crate::real_data::real("wfcommons") else { return };
        let mut n = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let name = path.display().to_string();
            let mut imported = read_workload(&name, &bytes, None, &ImportOptions::default()).unwrap();
            let node = slackline_model::draft::MachineDraft {
                name: "n".into(),
                count: 4,
                speed: 1.0,
                slots: slackline_model::cluster::Slots::Generic(4),
                rack: None,
            };
            imported.draft.machines.push(node);
            let instance = slackline_model::Instance::new(&imported.draft).unwrap();
            assert!(instance.jobs().len() >= 5, "{name}");
            n += 1;
        }
        assert!(n >= 12, "found {n} instances");
    }
}
