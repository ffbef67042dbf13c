//! The events of a Spark event log, as Spark's `JsonProtocol` writes them: fields are only ever added there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// An event that the importer uses.
#[derive(Debug)]
pub(super) enum Event {
    ApplicationStart(ApplicationStart),
    Environment(Environment),
    JobStart(JobStart),
    JobEnd(JobEnd),
    /// Of a stage that was submitted or has ended.
    Stage(StageInfo),
    TaskEnd(TaskEnd),
    Other,
}

#[derive(Deserialize)]
struct EventName<'a> {
    #[serde(rename = "Event", borrow)]
    event: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ApplicationStart {
    #[serde(rename = "App ID")]
    pub(super) id: Option<String>,
    #[serde(rename = "App Attempt ID")]
    pub(super) attempt: Option<String>,
    #[serde(rename = "Timestamp")]
    pub(super) millis: i64,
    #[serde(rename = "User")]
    pub(super) user: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Environment {
    #[serde(rename = "Spark Properties", default)]
    properties: BTreeMap<String, Value>,
}

impl Environment {
    /// A property with a non-empty value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name)?.as_str().filter(|value| !value.is_empty())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct JobStart {
    #[serde(rename = "Job ID")]
    pub(super) id: i64,
    #[serde(rename = "Submission Time")]
    pub(super) millis: Option<i64>,
    #[serde(rename = "Stage Infos", default)]
    pub(super) stages: Vec<StageInfo>,
    #[serde(rename = "Stage IDs", default)]
    pub(super) stage_ids: Vec<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobEnd {
    #[serde(rename = "Job ID")]
    pub(super) id: i64,
    #[serde(rename = "Completion Time")]
    pub(super) millis: Option<i64>,
    #[serde(rename = "Job Result")]
    pub(super) result: Option<JobResult>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobResult {
    #[serde(rename = "Result")]
    pub(super) result: String,
}

#[derive(Deserialize)]
struct StageEvent {
    #[serde(rename = "Stage Info")]
    stage: StageInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct StageInfo {
    #[serde(rename = "Stage ID")]
    pub(super) id: i64,
    #[serde(rename = "Number of Tasks", default)]
    pub(super) tasks: u64,
    #[serde(rename = "Parent IDs", default)]
    pub(super) parents: Vec<i64>,
    #[serde(rename = "RDD Info", default)]
    data_sets: Vec<DataSet>,
}

#[derive(Debug, Deserialize)]
struct DataSet {
    #[serde(rename = "RDD ID")]
    id: i64,
}

impl StageInfo {
    /// The last data set, which identifies a stage.
    pub(super) fn last_data_set(&self) -> Option<i64> {
        self.data_sets.iter().map(|set| set.id).max()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct TaskEnd {
    #[serde(rename = "Stage ID")]
    pub(super) stage: i64,
    #[serde(rename = "Stage Attempt ID", default)]
    pub(super) attempt: i64,
    #[serde(rename = "Task End Reason")]
    pub(super) reason: Option<Reason>,
    #[serde(rename = "Task Info")]
    pub(super) task: Option<TaskInfo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Reason {
    #[serde(rename = "Reason")]
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TaskInfo {
    #[serde(rename = "Index")]
    pub(super) index: i64,
    /// Which part of the data, whichever attempt of the stage; since Spark 3.3.
    #[serde(rename = "Partition ID")]
    pub(super) partition: Option<i64>,
    #[serde(rename = "Launch Time")]
    pub(super) launched: i64,
    #[serde(rename = "Finish Time")]
    pub(super) finished: i64,
    #[serde(rename = "Speculative", default)]
    pub(super) speculative: bool,
}

/// The event of a line; `None` if it is no event.
pub(super) fn read(line: &str) -> Option<Event> {
    let EventName { event } = serde_json::from_str(line).ok()?;
    let event = match &*event {
        "SparkListenerApplicationStart" => Event::ApplicationStart(serde_json::from_str(line).ok()?),
        "SparkListenerEnvironmentUpdate" => Event::Environment(serde_json::from_str(line).ok()?),
        "SparkListenerJobStart" => Event::JobStart(serde_json::from_str(line).ok()?),
        "SparkListenerJobEnd" => Event::JobEnd(serde_json::from_str(line).ok()?),
        "SparkListenerStageSubmitted" | "SparkListenerStageCompleted" => {
            Event::Stage(serde_json::from_str::<StageEvent>(line).ok()?.stage)
        }
        "SparkListenerTaskEnd" => Event::TaskEnd(serde_json::from_str(line).ok()?),
        _ => Event::Other,
    };
    Some(event)
}
