//! A MapReduce job in the documents of its ApplicationMaster (AM) while it runs, and of the JobHistory server
//! afterwards.
//!
//! Both have the same documents; the history adds times and omits pending tasks. Times are milliseconds since
//! 1970, durations milliseconds. A missing field, -1 or 0 is `None`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::rest::http::{Address, Client, HttpError, Settings};
use crate::rest::id::{AppId, ContainerId, TaskAttemptId, TaskId};
use crate::rest::json;
use crate::rest::json::{count, many, millis, number, text, whole};

/// A source of jobs: see [`ResourceManager::application_master`](crate::ResourceManager::application_master)
/// and [`MapReduce::history`].
#[derive(Clone, Debug)]
pub struct MapReduce {
    client: Client,
    root: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapReduceJob {
    pub id: AppId,
    #[serde(default, deserialize_with = "text")]
    pub name: String,
    /// Its queue, by the name at submission; only in the history.
    #[serde(default, deserialize_with = "text")]
    pub queue: String,
    /// `RUNNING`, `SUCCEEDED`, `FAILED`, `KILLED`, … (`JobState`).
    #[serde(default, deserialize_with = "text")]
    pub state: String,
    /// The time of submission; only in the history.
    #[serde(default, rename = "submitTime", deserialize_with = "millis")]
    pub submitted_ms: Option<u64>,
    #[serde(default, rename = "startTime", deserialize_with = "millis")]
    pub started_ms: Option<u64>,
    #[serde(default, rename = "finishTime", deserialize_with = "millis")]
    pub finished_ms: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub maps_total: u64,
    /// Finished maps.
    #[serde(default, deserialize_with = "count")]
    pub maps_completed: u64,
    /// Maps with a container.
    #[serde(default, deserialize_with = "count")]
    pub maps_running: u64,
    #[serde(default, deserialize_with = "count")]
    pub reduces_total: u64,
    /// Finished reduces.
    #[serde(default, deserialize_with = "count")]
    pub reduces_completed: u64,
    /// Reduces with a container.
    #[serde(default, deserialize_with = "count")]
    pub reduces_running: u64,
    /// The mean duration of maps; only in the history.
    #[serde(default, rename = "avgMapTime", deserialize_with = "whole")]
    pub mean_map_ms: Option<u64>,
    /// The mean duration of the shuffle of reduces; only in the history.
    #[serde(default, rename = "avgShuffleTime", deserialize_with = "whole")]
    pub mean_shuffle_ms: Option<u64>,
    /// The mean duration of the merge after it; only in the history.
    #[serde(default, rename = "avgMergeTime", deserialize_with = "whole")]
    pub mean_merge_ms: Option<u64>,
    /// The mean duration of reduces after the merge; only in the history.
    #[serde(default, rename = "avgReduceTime", deserialize_with = "whole")]
    pub mean_reduce_ms: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    pub diagnostics: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// It contains the phase and the number.
    pub id: TaskId,
    /// `SCHEDULED`, `RUNNING`, `SUCCEEDED`, `FAILED`, `KILLED` (`TaskState`).
    #[serde(default, deserialize_with = "text")]
    pub state: String,
    /// From 0 to 100.
    #[serde(default, deserialize_with = "number")]
    pub progress: Option<f64>,
    #[serde(default, rename = "startTime", deserialize_with = "millis")]
    pub started_ms: Option<u64>,
    #[serde(default, rename = "finishTime", deserialize_with = "millis")]
    pub finished_ms: Option<u64>,
    /// The attempt with the output.
    #[serde(default, rename = "successfulAttempt", deserialize_with = "json::id")]
    pub successful: Option<TaskAttemptId>,
}

/// One attempt of a task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAttempt {
    pub id: TaskAttemptId,
    /// `STARTING` (its container is granted), `RUNNING`, `SUCCEEDED`, `FAILED`, `KILLED`
    /// (`TaskAttemptState`).
    #[serde(default, deserialize_with = "text")]
    pub state: String,
    /// From 0 to 100.
    #[serde(default, deserialize_with = "number")]
    pub progress: Option<f64>,
    #[serde(default, rename = "assignedContainerId", deserialize_with = "json::id")]
    pub container: Option<ContainerId>,
    /// The web address of its NodeManager; the port changes with each start of that.
    #[serde(default, deserialize_with = "text")]
    pub node_http_address: String,
    #[serde(default, rename = "startTime", deserialize_with = "millis")]
    pub started_ms: Option<u64>,
    #[serde(default, rename = "finishTime", deserialize_with = "millis")]
    pub finished_ms: Option<u64>,
    /// When a reduce had fetched its input.
    #[serde(default, rename = "shuffleFinishTime", deserialize_with = "millis")]
    pub shuffled_ms: Option<u64>,
    /// When a reduce had merged its input.
    #[serde(default, rename = "mergeFinishTime", deserialize_with = "millis")]
    pub merged_ms: Option<u64>,
    /// Its current step.
    #[serde(default, deserialize_with = "text")]
    pub status: String,
    #[serde(default, deserialize_with = "text")]
    pub diagnostics: String,
}

/// Counters of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CounterGroup {
    /// The name of the group, such as `org.apache.hadoop.mapreduce.TaskCounter`.
    #[serde(rename = "counterGroupName")]
    pub name: String,
    #[serde(default, rename = "counter", deserialize_with = "many")]
    pub counters: Vec<Counter>,
}

/// One counter of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    pub name: String,
    /// Of maps and reduces together.
    #[serde(default, rename = "totalCounterValue", deserialize_with = "count")]
    pub total: u64,
}

/// A property of a job's configuration.
#[derive(Deserialize)]
struct Property {
    #[serde(default, deserialize_with = "text")]
    name: String,
    #[serde(default, deserialize_with = "text")]
    value: String,
}

impl MapReduce {
    /// The JobHistory server at an address; sends nothing. A job appears there one to three seconds after its
    /// end.
    pub fn history(address: &Address, settings: Settings) -> Self {
        Self::through(Client::new(address, settings), "/ws/v1/history/mapreduce".to_owned())
    }

    pub(crate) fn through(client: Client, root: String) -> Self {
        Self { client, root }
    }

    /// Checks that a server answers, and that it is a history server.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn check(&self) -> Result<(), HttpError> {
        // The history server has this document above the jobs, an AM beside them.
        let root = self.root.strip_suffix("/mapreduce").filter(|root| root.ends_with("/history"));
        self.client.get(&format!("{}/info", root.unwrap_or(&self.root)), &[]).map(drop)
    }

    /// The jobs: the one of an AM, or all of the history.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn jobs(&self) -> Result<Vec<MapReduceJob>, HttpError> {
        self.client.get_list(&format!("{}/jobs", self.root), &[], &["jobs", "job"])
    }

    /// Jobs of the history that have succeeded and started at this time or later, in milliseconds since 1970.
    /// They lack means.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn succeeded(&self, since_ms: u64) -> Result<Vec<MapReduceJob>, HttpError> {
        let since = since_ms.to_string();
        let which = [("state", "SUCCEEDED"), ("startedTimeBegin", since.as_str())];
        self.client.get_list(&format!("{}/jobs", self.root), &which, &["jobs", "job"])
    }

    /// One job; `None` if the server does not know it.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn job(&self, id: AppId) -> Result<Option<MapReduceJob>, HttpError> {
        match self.client.get_object(&self.path(id, ""), "job") {
            Err(error) if error.is_missing() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The tasks of a job.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn tasks(&self, id: AppId) -> Result<Vec<Task>, HttpError> {
        self.client.get_list(&self.path(id, "/tasks"), &[], &["tasks", "task"])
    }

    /// The attempts of a task.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn attempts(&self, task: TaskId) -> Result<Vec<TaskAttempt>, HttpError> {
        let path = self.path(task.app, &format!("/tasks/{task}/attempts"));
        self.client.get_list(&path, &[], &["taskAttempts", "taskAttempt"])
    }

    /// The counters of a job.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn counters(&self, id: AppId) -> Result<Vec<CounterGroup>, HttpError> {
        self.client.get_list(&self.path(id, "/counters"), &[], &["jobCounters", "counterGroup"])
    }

    /// Properties of a job's configuration by name, as far as it has them. The document has all, some hundred
    /// kilobytes.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn properties(&self, id: AppId, names: &[&str]) -> Result<BTreeMap<String, String>, HttpError> {
        let all: Vec<Property> = self.client.get_list(&self.path(id, "/conf"), &[], &["conf", "property"])?;
        let wanted = all.into_iter().filter(|property| names.contains(&property.name.as_str()));
        Ok(wanted.map(|property| (property.name, property.value)).collect())
    }

    fn path(&self, id: AppId, below: &str) -> String {
        format!("{}/jobs/{}{below}", self.root, id.job())
    }
}
