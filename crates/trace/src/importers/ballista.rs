//! Event logs of Ballista: what its scheduler writes with `--event-log-dir`, one `JOB.eventlog` a job, or a folder of them.
//!
//! A job becomes a flow, released when it was queued; a stage becomes a job with a map phase of its tasks, each as long as
//! its executor took. What comes after what is in the graph that the last record holds (`dot`); where a log has none,
//! because its job was not over, a stage comes after those that were over when it began. Attempts that failed are
//! counted and left out. Tasks that the events do not tell of, but the summary at the end does, are taken from there. The
//! first job is queued at second 0. Ballista knows neither users nor queues.
//!
//! A last line that is cut short is left out; so is any other line that holds no record, and both are counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slackline_model::Draft;
use slackline_model::calendar::Zone;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::Settings;

use crate::diagnostic::Diagnostics;
use crate::error::TraceError;
use crate::folder::Folder;
use crate::importer::{ImportFolder, Importer, Input, Output};
use crate::importers::dag::{Span, bridged, waited_for};
use crate::importers::log::{each_line, to_micros};
use crate::place::Place;
use crate::source::SourceMap;

/// The version of the records that is read; records of an earlier one are read too, as Ballista does.
const VERSION: u32 = 1;

pub(super) const IMPORTER: Importer = Importer {
    name: "ballista",
    summary: "event logs of Ballista: of a job, or a folder of them",
    endings: &["eventlog"],
    looks_like,
    params: &[],
    shaped: Importer::every_setting,
    import,
    lines: None,
    folder: Some(ImportFolder {
        looks_like: |folder| folder.files().iter().any(|file| looks_like(&folder.head(file))),
        import: import_folder,
    }),
};

/// Whether the first line is a record.
fn looks_like(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(80).filter(|c| !c.is_whitespace()).collect();
    head.starts_with("{\"ev\":\"") && head.contains("\"version\":")
}

/// What a record is; its data is read once that is known.
#[derive(Deserialize)]
struct Record {
    ev: String,
    version: u32,
}

#[derive(Deserialize)]
struct With<T> {
    data: T,
}

/// The data of a record.
fn data<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str::<With<T>>(line).ok().map(|with| with.data)
}

#[derive(Deserialize)]
struct JobStart {
    job_id: String,
    #[serde(default)]
    queued_at: i64,
    #[serde(default)]
    submitted_at: i64,
}

#[derive(Deserialize)]
struct TaskEnd {
    stage_id: u64,
    task_id: u64,
    status: Value,
    #[serde(default)]
    start_exec_time: i64,
    #[serde(default)]
    end_exec_time: i64,
}

#[derive(Deserialize)]
struct JobEnd {
    status: Value,
    #[serde(default)]
    dot: String,
    stages: Option<Stages>,
}

#[derive(Deserialize)]
struct Stages {
    #[serde(default)]
    stages: Vec<StageSummary>,
}

/// A stage as the REST interface tells of it; only ever added to, but for the parts that are not looked at.
#[derive(Deserialize)]
struct StageSummary {
    /// A text or a number.
    stage_id: Value,
    #[serde(default)]
    tasks: Vec<Option<TaskSummary>>,
}

#[derive(Deserialize)]
struct TaskSummary {
    id: Option<u64>,
    status: Value,
    #[serde(default)]
    start_exec_time: i64,
    #[serde(default)]
    end_exec_time: i64,
}

/// A job as its log tells of it.
#[derive(Default)]
struct Log {
    start: Option<JobStart>,
    stages: BTreeMap<u64, Stage>,
    /// A stage, and one that it reads.
    edges: Option<BTreeSet<(u64, u64)>>,
    /// A line that holds no record, until it is known whether it is the last.
    bad: Option<u32>,
    line: u32,
}

#[derive(Default)]
struct Stage {
    /// When the tasks that succeeded began and ended, by their numbers.
    done: BTreeMap<u64, (i64, i64)>,
}

impl Log {
    /// Takes a line.
    ///
    /// # Errors
    /// A record of a later version, whose meaning nobody here knows.
    fn take(
        &mut self,
        file: &str,
        number: u32,
        line: &str,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), TraceError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if let Some(bad) = self.bad.take() {
            diagnostics.add(bad, "line that holds no record, left out");
        }
        if self.line == 0 {
            self.line = number;
        }
        let Ok(record) = serde_json::from_str::<Record>(line) else {
            self.bad = Some(number);
            return Ok(());
        };
        if record.version > VERSION {
            let what = format!(
                "found version {} of Ballista's event log, expected at most {VERSION}",
                record.version
            );
            return Err(TraceError::input(file, Some(Place { line: number, column: 1 }), what));
        }
        if self.record(number, &record.ev, line, diagnostics).is_none() {
            self.bad = Some(number);
        }
        Ok(())
    }

    /// Takes a record; `None` if it is not what it should be. Kinds that are not known are left alone.
    fn record(&mut self, number: u32, kind: &str, line: &str, diagnostics: &mut Diagnostics) -> Option<()> {
        match kind {
            "JobStart" => self.start = Some(data(line)?),
            "TaskEnd" => {
                let end: TaskEnd = data(line)?;
                let span = (end.start_exec_time, end.end_exec_time);
                self.task(number, end.stage_id, end.task_id, &end.status, span, diagnostics);
            }
            "JobEnd" => {
                let end: JobEnd = data(line)?;
                if end.status != "Succeeded" {
                    diagnostics.add_flow(number, "job that failed or was cancelled, kept as far as it ran");
                }
                self.edges = Some(edges(&end.dot)).filter(|_| !end.dot.is_empty());
                self.summary(end.stages.map(|stages| stages.stages).unwrap_or_default(), number, diagnostics);
            }
            _ => {}
        }
        Some(())
    }

    fn task(
        &mut self,
        number: u32,
        stage: u64,
        task: u64,
        status: &Value,
        span: (i64, i64),
        diagnostics: &mut Diagnostics,
    ) {
        if status != "Successful" {
            diagnostics.add(number, "attempt of a task that failed, left out");
        } else if span.1 < span.0 {
            diagnostics.add(number, "task that ends before it starts, left out");
        } else if self.stages.entry(stage).or_default().done.insert(task, span).is_some() {
            diagnostics.add(number, "task that had succeeded before, whose last attempt is kept");
        }
    }

    /// Takes from the summary what no event told of.
    fn summary(&mut self, stages: Vec<StageSummary>, number: u32, diagnostics: &mut Diagnostics) {
        for stage in stages {
            let text = stage.stage_id.as_str().and_then(|text| text.parse().ok());
            let Some(id) = text.or_else(|| stage.stage_id.as_u64()) else { continue };
            let done = self.stages.get(&id).map(|stage| stage.done.clone()).unwrap_or_default();
            for task in stage.tasks.into_iter().flatten() {
                let Some(number_of_task) = task.id.filter(|task| !done.contains_key(task)) else { continue };
                if task.status == "Successful" {
                    let span = (task.start_exec_time, task.end_exec_time);
                    self.task(number, id, number_of_task, &task.status, span, diagnostics);
                }
            }
        }
    }

    /// When the job was queued, milliseconds after 1970.
    fn begun(&self) -> Option<i64> {
        let start = self.start.as_ref()?;
        Some(if start.queued_at > 0 { start.queued_at } else { start.submitted_at })
    }

    /// The flow of all stages of which tasks are over, unless there is none.
    fn flow(&self, name: &str, diagnostics: &mut Diagnostics) -> Option<FlowDraft> {
        let ran: Vec<(u64, &Stage)> = self
            .stages
            .iter()
            .filter(|(_, stage)| !stage.done.is_empty())
            .map(|(&id, stage)| (id, stage))
            .collect();
        if ran.is_empty() {
            diagnostics.add_flow(self.line, "job of which no task is over, left out");
            return None;
        }
        let after = if let Some(edges) = &self.edges {
            along(edges, &ran)
        } else {
            diagnostics.add_flow(
                self.line,
                "job without the graph of its stages: one comes after those that were over when it began",
            );
            let spans: Vec<Span> = ran.iter().map(|(_, stage)| stage.span()).collect();
            waited_for(&spans)
        };
        let name_of = |k: usize| format!("stage-{}", ran[k].0);
        let jobs = ran.iter().zip(after).enumerate().map(|(k, ((_, stage), after))| {
            let seconds =
                stage.done.values().map(|(from, to)| to_micros((*to as f64 - *from as f64) / 1000.0));
            JobDraft {
                id: name_of(k),
                after: after.into_iter().map(name_of).collect(),
                map: Some(TasksDraft::Each(seconds.collect()).into()),
                ..JobDraft::default()
            }
        });
        let id = self.start.as_ref().map_or(name, |start| &start.job_id);
        Some(FlowDraft::new(id, jobs.collect()))
    }
}

impl Stage {
    fn span(&self) -> Span {
        Span {
            begun: self.done.values().map(|(from, _)| *from).min(),
            over: self.done.values().map(|(_, to)| *to).max(),
        }
    }
}

/// Which stage reads which, in the graph of a job: its lines between nodes such as `stage_1_0 -> stage_3_0_0`.
fn edges(dot: &str) -> BTreeSet<(u64, u64)> {
    let stage = |node: &str| node.trim().strip_prefix("stage_")?.split('_').next()?.parse().ok();
    let edge = |line: &str| {
        let (from, to) = line.split_once("->")?;
        Some((stage(to)?, stage(from)?))
    };
    dot.lines().filter_map(edge).filter(|(to, from)| to != from).collect()
}

/// What each stage that ran comes after, along the edges of all stages.
fn along(edges: &BTreeSet<(u64, u64)>, ran: &[(u64, &Stage)]) -> Vec<Vec<usize>> {
    let mut nodes: Vec<u64> = ran.iter().map(|(id, _)| *id).collect();
    let others: BTreeSet<u64> = edges
        .iter()
        .flat_map(|&(to, from)| [to, from])
        .filter(|id| nodes.binary_search(id).is_err())
        .collect();
    nodes.extend(others);
    let at: BTreeMap<u64, usize> = nodes.iter().enumerate().map(|(k, &id)| (id, k)).collect();
    let mut after = vec![Vec::new(); nodes.len()];
    for (to, from) in edges {
        after[at[to]].push(at[from]);
    }
    let mut after = bridged(&after, |node| node < ran.len());
    after.truncate(ran.len());
    after
}

fn import(input: &Input<'_>, _: &Settings) -> Result<Output, TraceError> {
    let (mut log, mut diagnostics) = (Log::default(), Diagnostics::default());
    for (number, line) in (1..).zip(input.text.lines()) {
        log.take(input.file, number, line, &mut diagnostics)?;
    }
    if log.start.is_none() && log.stages.is_empty() {
        return Err(input.error(None, "found no record of a job, expected an event log of Ballista"));
    }
    let name = input.file.rsplit('/').next().unwrap_or(input.file);
    let logs = vec![(name.to_owned(), log)];
    Ok(output(logs, diagnostics, |places| {
        SourceMap::rows(input.file, places.into_iter().map(|(_, line)| line).collect())
    }))
}

fn import_folder(folder: &Folder, _: &Settings) -> Result<Output, TraceError> {
    let (mut logs, mut diagnostics) = (Vec::new(), Diagnostics::default());
    for file in folder.files() {
        if !looks_like(&folder.head(file)) {
            diagnostics.add_file(file, "file that is no event log, left out");
            continue;
        }
        let mut log = Log::default();
        each_line(folder, file, &mut diagnostics, |number, line, diagnostics| {
            log.take(&folder.name_of(file), number, line, diagnostics)
        })?;
        logs.push((file.clone(), log));
    }
    if logs.is_empty() {
        let what = "found no record of a job, expected event logs of Ballista";
        return Err(TraceError::input(folder.name(), None, what));
    }
    Ok(output(logs, diagnostics, |places| SourceMap::files(folder, places)))
}

/// The workload of all logs, by their names.
fn output(
    logs: Vec<(String, Log)>,
    mut diagnostics: Diagnostics,
    source: impl FnOnce(Vec<(String, u32)>) -> SourceMap,
) -> Output {
    let first = logs.iter().filter_map(|(_, log)| log.begun()).min().unwrap_or(0);
    let mut draft = Draft { start: Zone::default().start(first), ..Draft::default() };
    let mut places = Vec::new();
    for (name, log) in logs {
        diagnostics.back_to_file(&name);
        if let Some(bad) = log.bad {
            diagnostics.add(bad, "last line that is cut short, left out");
        }
        if log.start.is_none() {
            diagnostics.add(log.line, "log that begins in the middle of a job");
        }
        let Some(mut flow) = log.flow(&name, &mut diagnostics) else { continue };
        flow.release = to_micros((log.begun().unwrap_or(first) as f64 - first as f64) / 1000.0);
        draft.flows.push(flow);
        places.push((name, log.line));
    }
    Output::new(draft, diagnostics, source(places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Imported, read_folder, read_workload};
    use crate::importers::mutations;
    use crate::options::ImportOptions;

    fn task(stage: u64, task: u64, status: &str, from: i64, to: i64) -> String {
        format!(
            r#"{{"ev":"TaskEnd","version":1,"data":{{"stage_id":{stage},"task_id":{task},"executor_id":"e","status":{status},"launch_time":0,"start_exec_time":{from},"end_exec_time":{to},"metrics":{{}}}}}}"#
        )
    }

    /// Stage 4 reads 1 by way of 3, which did not run; one task of stage 2 is known from the summary alone.
    fn log(job: &str, queued: i64) -> String {
        let failed = r#"{"Failed":{"reason":"ExecutionError","error":"no"}}"#;
        let dot = r#"digraph G {\n\tsubgraph cluster0 {\n\t\tlabel = \"Stage 1 [Successful]\";\n\t\tstage_1_0_0 -> stage_1_0\n\t}\n\tstage_1_0 -> stage_3_0_0\n\tstage_3_0 -> stage_4_0_0\n\tstage_2_0 -> stage_4_0_1\n}"#;
        [
            format!(r#"{{"ev":"JobStart","version":1,"data":{{"job_id":"{job}","job_name":"q","queued_at":{queued},"submitted_at":{}}}}}"#, queued + 5),
            r#"{"ev":"StageStart","version":1,"data":{"stage_id":1,"partitions":2}}"#.to_owned(),
            task(1, 0, "\"Successful\"", 1000, 1500),
            task(1, 1, failed, 1000, 1100),
            task(1, 1, "\"Successful\"", 1100, 3100),
            task(2, 0, "\"Successful\"", 1000, 1250),
            r#"{"ev":"FromTheFuture","version":1,"data":[1]}"#.to_owned(),
            task(4, 0, "\"Successful\"", 3200, 4200),
            format!(r#"{{"ev":"JobEnd","version":1,"data":{{"status":"Succeeded","stages":{{"stages":[{{"stage_id":"2","tasks":[{{"id":0,"status":"Successful"}},null,{{"id":1,"status":"Successful","partition_id":[1],"start_exec_time":1000,"end_exec_time":2000}}]}}]}},"dot":"{dot}"}}}}"#),
        ]
        .join("\n")
            + "\n"
    }

    fn read(text: &str) -> Result<Imported, TraceError> {
        read_workload("logs/q.eventlog", text.as_bytes(), None, &ImportOptions::default())
    }

    fn jobs(flow: &FlowDraft) -> Vec<(&str, Vec<&str>, Vec<f64>)> {
        let mut found = Vec::new();
        for JobDraft { id, after, map, .. } in &flow.jobs {
            let Some(TasksDraft::Each(seconds)) = map.as_ref().map(|map| &map.tasks) else {
                panic!("a time for each task")
            };
            found.push((id.as_str(), after.iter().map(String::as_str).collect(), seconds.clone()));
        }
        found
    }

    #[test]
    fn stages_become_jobs_of_a_flow() {
        let imported = read(&log("j1", 1_772_323_201_000)).unwrap();
        assert_eq!(imported.importer.name, "ballista");
        let flow = &imported.draft.flows[0];
        assert_eq!((flow.id.as_str(), flow.release), ("j1", 0.0));
        assert_eq!(imported.draft.start.as_ref().unwrap().to_string(), "2026-03-01T00:00:01+00:00[UTC]");
        assert_eq!(
            jobs(flow),
            [
                ("stage-1", vec![], vec![0.5, 2.0]),
                ("stage-2", vec![], vec![0.25, 1.0]),
                ("stage-4", vec!["stage-1", "stage-2"], vec![1.0]),
            ]
        );
        let said: Vec<_> = imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect();
        assert_eq!(said, [("attempt of a task that failed, left out", 1)]);
    }

    #[test]
    fn a_log_that_was_cut_short_is_read_as_far_as_it_goes() {
        let whole = log("j1", 1000);
        let imported = read(&whole[..whole.len() - 100]).unwrap();
        assert_eq!(
            jobs(&imported.draft.flows[0]),
            [
                ("stage-1", vec![], vec![0.5, 2.0]),
                ("stage-2", vec![], vec![0.25]),
                ("stage-4", vec!["stage-1", "stage-2"], vec![1.0]),
            ],
            "both were over when it began"
        );
        let said: Vec<_> = imported.diagnostics.iter().map(|d| d.what.as_str()).collect();
        assert!(said.contains(&"last line that is cut short, left out"), "{said:?}");
        assert!(said.contains(
            &"job without the graph of its stages: one comes after those that were over when it began"
        ));
    }

    #[test]
    fn later_versions_are_refused_and_other_files_are_none() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        let later = log("j1", 1).replacen("\"version\":1", "\"version\":2", 2);
        assert_eq!(
            error(&later),
            "logs/q.eventlog:1:1: found version 2 of Ballista's event log, expected at most 1"
        );
        assert!(error("{}\n").contains("found no record of a job"));
    }

    #[test]
    fn a_folder_holds_a_job_a_file() {
        let root = std::env::temp_dir().join(format!("slackline-ballista-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("b.eventlog"), log("b", 9000)).unwrap();
        std::fs::write(root.join("a.eventlog"), log("a", 10_500)).unwrap();
        std::fs::write(root.join("notes"), "words\n").unwrap();
        let imported = read_folder(&Folder::open(&root).unwrap(), None, &ImportOptions::default()).unwrap();
        let flows: Vec<_> =
            imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.release)).collect();
        assert_eq!(
            (flows.as_slice(), imported.importer.name),
            ([("a", 1.5), ("b", 0.0)].as_slice(), "ballista")
        );
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn damaged_logs_are_survived() {
        mutations::survives(
            "ballista",
            log("j1", 1000).as_bytes(),
            &["JobEnd", "null", "stage_1_0 -> stage_1_0", "9e99", "-1"],
        );
    }
}
