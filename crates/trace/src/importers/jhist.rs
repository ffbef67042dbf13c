//! Job histories of Hadoop 2 and 3: `.jhist` files, in JSON or binary Avro, and whole folders of a JobHistory
//! server.
//!
//! A file has the events of one job: `JOB_SUBMITTED`, `MAP_ATTEMPT_STARTED`, …. `hadoop_log` converts it to a
//! flow.
//!
//! - An optional value may be null, a plain value, or a table that names its type, depending on the version
//!   of Hadoop.
//! - The history of a running job, or of an ApplicationMaster that died, ends within an event or without the
//!   end of the job. The events so far count. Attempts without an end are left out.
//! - A restarted ApplicationMaster writes the events of its predecessor again: the last event of an attempt
//!   counts.
//! - In a folder, files that are damaged, or cut off before their job was submitted, are ignored and counted.
//! - In a folder, the configuration of a job (`job_…_conf.xml`) gives its queue, priority and workflow if the
//!   history does not.
//! - Hadoop 1 wrote lines such as `Job JOBID="…"`; these are refused by name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use slackline_model::PhaseKind;
use slackline_model::params::Settings;
use slackline_model::schedule::Outcome;

use super::objects::Objects;
use crate::importers::hadoop_log::{
    FAILED_JOBS, Host, Log, LoggedAttempt, LoggedJob, LoggedTask, Workflow, adjacencies, priority, time,
};
use crate::importers::importer::{ImportFolder, Importer, Input, Output};
use crate::reading::avro;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;
use crate::reading::place::Place;
use crate::reading::signatures::{HADOOP_1, is_job_history};
use crate::reading::source::SourceMap;

/// The name of one line in messages.
const KIND: &str = "an event of a job history";

/// The ending of histories, with its dot.
const ENDING: &str = ".jhist";

/// The finding for a file that does not start as a history does.
const NO_HISTORY: &str = "found something else";

pub(super) const IMPORTER: Importer = Importer {
    endings: &["jhist"],
    params: &[FAILED_JOBS],
    folder: Some(ImportFolder { looks_like: has_histories, import: import_folder }),
    ..Importer::new(
        "jhist",
        "a job history of Hadoop (.jhist, Avro as JSON or binary), or a folder of them",
        is_job_history,
        import,
    )
};

/// Reads the history of one job.
///
/// # Errors
/// A file that is no history, with the line.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let mut log = Log::new(settings);
    let job = history(input.file, input.text, &mut log)?;
    log.add(job);
    Ok(log.finish(input.file, None))
}

fn has_histories(folder: &Folder) -> bool {
    folder.files().iter().any(|name| is_history(name))
}

fn is_history(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with(ENDING)
}

/// Whether a file only accompanies histories: configurations, summaries, descriptions, checksums.
fn is_beside_histories(name: &str) -> bool {
    [".xml", ".summary", ".crc", ".md", ".txt", "README"].iter().any(|end| name.ends_with(end))
}

/// Reads the histories in a folder, file by file. A file that is damaged, or cut off before it names its job,
/// is ignored unless all are: a server that was stopped leaves such files among thousands.
///
/// # Errors
/// The first file that is no history, with its line; a folder without histories.
fn import_folder(folder: &Folder, settings: &Settings) -> Result<Output, TraceError> {
    let mut log = Log::new(settings);
    let (mut read, mut broken) = (0, None);
    // The same history twice, packed and not, is one job.
    let mut jobs = BTreeSet::new();
    for name in folder.files() {
        if !is_history(name) {
            if !is_beside_histories(name) {
                log.diagnostics.add_file(name, "file that is no job history, left out");
            }
            continue;
        }
        log.diagnostics.enter_file(name);
        let text = folder.text(name);
        let mut job = match text.and_then(|text| history(&folder.name_of(name), &text, &mut log)) {
            Ok(job) => job,
            Err(error) if is_broken(&error) => {
                log.diagnostics
                    .add_file(name, "damaged, or cut off before the submission of its job, left out");
                broken = broken.or(Some(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        read += 1;
        if !jobs.insert((job.id.clone(), job.submitted)) {
            log.diagnostics.add_file(name, "of the same job as another file, left out");
            continue;
        }
        if let Some(conf) = configuration(name).filter(|conf| folder.has(conf)) {
            match folder.text(&conf).ok().and_then(|text| properties(&text)) {
                Some(properties) => configure(&mut job, &properties),
                None => {
                    log.diagnostics.add_of("job", 1, 1, "with an invalid configuration, ignored");
                }
            }
        }
        log.add(job);
    }
    if let Some(error) = broken.filter(|_| read == 0) {
        return Err(error);
    }
    log.diagnostics.leave_files();
    // Lines mean nothing with several files.
    Ok(Output { source: SourceMap::marks(folder.name(), Vec::new()), ..log.finish(folder.name(), None) })
}

/// The name of the configuration that belongs to a history.
fn configuration(name: &str) -> Option<String> {
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let id = file.split(['-', '.']).next().filter(|id| id.starts_with("job_"))?;
    let slash = if folder.is_empty() { "" } else { "/" };
    Some(format!("{folder}{slash}{id}_conf.xml"))
}

/// The properties of a Hadoop configuration; `None` if the text is not one.
fn properties(text: &str) -> Option<BTreeMap<String, String>> {
    let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options).ok()?;
    let child = |of: roxmltree::Node<'_, '_>, name: &str| {
        let found = of.children().find(|node| node.has_tag_name(name))?;
        Some(found.text().unwrap_or_default().trim().to_owned())
    };
    let properties = document.root_element().children().filter(|node| node.has_tag_name("property"));
    Some(properties.filter_map(|node| Some((child(node, "name")?, child(node, "value")?))).collect())
}

/// Adds values that a history lacks.
fn configure(job: &mut LoggedJob, properties: &BTreeMap<String, String>) {
    let given = |names: [&str; 2]| names.iter().find_map(|name| properties.get(*name)).cloned();
    job.queue = job.queue.take().or_else(|| given(["mapreduce.job.queuename", "mapred.job.queue.name"]));
    job.user = job.user.take().or_else(|| given(["mapreduce.job.user.name", "user.name"]));
    job.priority = job
        .priority
        .or_else(|| given(["mapreduce.job.priority", "mapred.job.priority"]).as_deref().and_then(priority));
    if job.workflow.edges.is_empty() {
        let texts = properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let configured = Workflow::of_properties(texts);
        let Workflow { id, node, dependants, .. } = std::mem::take(&mut job.workflow);
        job.workflow = Workflow {
            id: id.or(configured.id),
            node: node.or(configured.node),
            edges: configured.edges,
            dependants,
        };
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    event: BTreeMap<String, Fields>,
}

/// The fields of events that are used here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    jobid: VersionedValue,
    job_name: VersionedValue,
    user_name: VersionedValue,
    job_queue_name: VersionedValue,
    #[serde(alias = "jobPriority")]
    priority: VersionedValue,
    submit_time: VersionedValue,
    workflow_id: VersionedValue,
    workflow_node_name: VersionedValue,
    workflow_adjacencies: VersionedValue,
    taskid: VersionedValue,
    task_type: VersionedValue,
    split_locations: VersionedValue,
    attempt_id: VersionedValue,
    start_time: VersionedValue,
    finish_time: VersionedValue,
    tracker_name: VersionedValue,
    hostname: VersionedValue,
    rackname: VersionedValue,
}

/// A value as any version writes it: plain, null, or in a table that names its type.
#[derive(Default, Deserialize)]
#[serde(from = "serde_json::Value")]
enum VersionedValue {
    #[default]
    Nothing,
    Text(String),
    Whole(i64),
}

impl From<serde_json::Value> for VersionedValue {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Number(number) => number.as_i64().map_or(Self::Nothing, Self::Whole),
            serde_json::Value::Object(table) => {
                table.into_iter().next_back().map_or(Self::Nothing, |(_, value)| value.into())
            }
            _ => Self::Nothing,
        }
    }
}

impl VersionedValue {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
            Self::Whole(number) => Some(number.to_string()),
            Self::Nothing => None,
        }
    }

    fn whole(&self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads the text of one history.
fn history(file: &str, text: &str, log: &mut Log) -> Result<LoggedJob, TraceError> {
    let wrong = |line, what: &str| TraceError::input(file, Some(Place { line, column: 1 }), what);
    if text.starts_with(HADOOP_1) {
        let what = "found a job history of Hadoop 1 (lines such as Job JOBID=\"…\"), expected one of Hadoop 2 or 3 \
                    (.jhist); Rumen's TraceBuilder makes a trace of it, which can be read";
        return Err(wrong(1, what));
    }
    if text.trim().is_empty() {
        return Err(wrong(1, "found the end of the file, expected a job history: the file is empty"));
    }
    let rest = text.strip_prefix(avro::JSON).and_then(|rest| rest.split_once('\n'));
    let Some((_, rest)) = rest.filter(|(first, _)| first.trim().is_empty()) else {
        return Err(wrong(
            1,
            &format!("{NO_HISTORY}, expected a job history: Avro-Json or Avro-Binary on the first line"),
        ));
    };
    // The second line is the schema; the values repeat it.
    let Some((_, events)) = rest.split_once('\n') else {
        return Err(wrong(
            2,
            "found the end of the file within the schema, expected events after it: the file is cut off",
        ));
    };
    let mut reader = Reader::default();
    for object in Objects::new(file, events, 3) {
        let object = match object {
            Ok(object) => object,
            Err(error) if is_cut(&error) && !reader.job.id.is_empty() => {
                let line =
                    error.faults().list.first().and_then(|fault| fault.place).map_or(1, |place| place.line);
                log.diagnostics.add_of("file", 1, line, "cut off within an event, read up to that event");
                break;
            }
            Err(error) => return Err(error),
        };
        let Event { kind, event } = object.read(KIND)?;
        for fields in event.into_values() {
            reader.event(&kind, fields, object.line());
        }
    }
    if reader.job.id.is_empty() && events.trim().is_empty() {
        return Err(wrong(
            3,
            "found the end of the file, expected events: the file is cut off after its schema",
        ));
    }
    if reader.job.id.is_empty() {
        return Err(wrong(3, "found no event JOB_SUBMITTED, expected one with the id of the job"));
    }
    Ok(reader.finish(log))
}

/// Whether a text was cut off.
fn is_cut(error: &TraceError) -> bool {
    error.faults().list.iter().any(|fault| fault.what.starts_with("found the end of the file"))
}

/// Whether a file is damaged, or empty or cut off.
fn is_broken(error: &TraceError) -> bool {
    let is_damaged = |what: &str| what.starts_with("found damaged") || what.starts_with(NO_HISTORY);
    is_cut(error) || error.faults().list.iter().any(|fault| is_damaged(&fault.what))
}

#[derive(Default)]
struct Reader {
    job: LoggedJob,
    is_over: bool,
    /// Tasks by their ids, which are in the order of their numbers.
    tasks: BTreeMap<String, LoggedTask>,
    /// Attempts by their ids: the task, and the events so far.
    attempts: BTreeMap<String, (String, LoggedAttempt)>,
}

impl Reader {
    fn event(&mut self, kind: &str, fields: Fields, line: u32) {
        match kind {
            "JOB_SUBMITTED" => self.submitted(fields, line),
            "JOB_QUEUE_CHANGED" => self.job.queue = fields.job_queue_name.text().or(self.job.queue.take()),
            "JOB_PRIORITY_CHANGED" => {
                let named = fields.priority.text();
                self.job.priority = named.as_deref().and_then(priority).or(self.job.priority);
            }
            "JOB_FINISHED" | "JOB_FAILED" | "JOB_KILLED" | "JOB_ERROR" => {
                self.is_over = true;
                self.job.failed |= kind != "JOB_FINISHED";
                self.job.finished = time(fields.finish_time.whole());
            }
            "TASK_STARTED" => {
                self.job.located += u64::from(fields.split_locations.text().is_some());
                if let (Some(id), Some(phase)) =
                    (fields.taskid.text(), phase(fields.task_type.text().as_deref()))
                {
                    self.tasks.entry(id).or_insert(LoggedTask { phase, attempts: Vec::new() });
                }
            }
            _ => self.attempt(kind, fields),
        }
    }

    fn submitted(&mut self, fields: Fields, line: u32) {
        let job = &mut self.job;
        // A second ApplicationMaster repeats it.
        job.id = fields.jobid.text().unwrap_or_else(|| std::mem::take(&mut job.id));
        job.name = fields.job_name.text();
        job.user = fields.user_name.text();
        job.queue = fields.job_queue_name.text();
        job.submitted = time(fields.submit_time.whole());
        job.workflow.id = fields.workflow_id.text();
        job.workflow.node = fields.workflow_node_name.text();
        job.workflow.edges =
            fields.workflow_adjacencies.text().map_or_else(Vec::new, |text| adjacencies(&text));
        job.line = line;
    }

    fn attempt(&mut self, kind: &str, fields: Fields) {
        let Some((_, what)) = kind.rsplit_once("_ATTEMPT_") else { return };
        let (Some(task), Some(id)) = (fields.taskid.text(), fields.attempt_id.text()) else { return };
        if let Some(phase) = phase(fields.task_type.text().as_deref()) {
            self.tasks.entry(task.clone()).or_insert(LoggedTask { phase, attempts: Vec::new() });
        }
        let fresh =
            || LoggedAttempt { start: None, end: None, length: None, host: None, outcome: Outcome::Killed };
        let (_, attempt) = self.attempts.entry(id).or_insert_with(|| (task, fresh()));
        let rack = fields.rackname.text();
        let named = fields.hostname.text().or_else(|| fields.tracker_name.text());
        let host = named.and_then(|name| Host::of(&name, rack.as_deref()));
        // The start names no rack.
        if attempt.host.is_none() || rack.is_some() {
            attempt.host = host.or(attempt.host.take());
        }
        match what {
            "STARTED" => attempt.start = time(fields.start_time.whole()),
            "FINISHED" | "FAILED" | "KILLED" => {
                attempt.end = time(fields.finish_time.whole());
                attempt.outcome = match what {
                    "FINISHED" => Outcome::Done,
                    "FAILED" => Outcome::Failed,
                    _ => Outcome::Killed,
                };
            }
            _ => {}
        }
    }

    fn finish(mut self, log: &mut Log) -> LoggedJob {
        if !self.is_over {
            let what = "without an end in the log, kept as far as the log goes";
            log.diagnostics.add_of("job", 1, self.job.line, what);
        }
        for (task, attempt) in std::mem::take(&mut self.attempts).into_values() {
            if let Some(task) = self.tasks.get_mut(&task) {
                task.attempts.push(attempt);
            }
        }
        LoggedJob { tasks: self.tasks.into_values().collect(), ..self.job }
    }
}

/// The phase of a type of tasks; `None` for tasks that set up and clean up a job.
fn phase(kind: Option<&str>) -> Option<PhaseKind> {
    match kind {
        Some("MAP") => Some(PhaseKind::Map),
        Some("REDUCE") => Some(PhaseKind::Reduce),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
