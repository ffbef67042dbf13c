//! The documents of the ResourceManager's web interface (Hadoop 3, `/ws/v1/cluster`).
//!
//! Times are milliseconds since 1970. A missing field or -1 is `None`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::rest::http::{Address, Client, HttpError, Query, Settings};
use crate::rest::id::{AppAttemptId, AppId, ContainerId};
use crate::rest::json;
use crate::rest::json::{count, many, millis, number, text, whole};
use crate::rest::mapreduce::MapReduce;

#[derive(Clone, Debug)]
pub struct ResourceManager {
    client: Client,
}

/// The cluster (`/info`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInfo {
    /// The start time of this ResourceManager: another value is another process.
    #[serde(default, deserialize_with = "millis")]
    pub started_on: Option<u64>,
    /// `STARTED`.
    #[serde(default, deserialize_with = "text")]
    pub state: String,
    /// `ACTIVE` or `STANDBY`.
    #[serde(default, deserialize_with = "text")]
    pub ha_state: String,
    /// Of Hadoop, such as `3.5.0`.
    #[serde(default, rename = "hadoopVersion", deserialize_with = "text")]
    pub version: String,
}

/// Totals of the cluster (`/metrics`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// NodeManagers that accept containers.
    #[serde(default, deserialize_with = "count")]
    pub active_nodes: u64,
    /// Their memory in MiB.
    #[serde(default, rename = "totalMB", deserialize_with = "count")]
    pub total_mb: u64,
    /// Their processors.
    #[serde(default, deserialize_with = "count")]
    pub total_virtual_cores: u64,
    /// Memory of containers in MiB.
    #[serde(default, rename = "allocatedMB", deserialize_with = "count")]
    pub allocated_mb: u64,
    #[serde(default, deserialize_with = "count")]
    pub containers_allocated: u64,
    /// Requested containers.
    #[serde(default, deserialize_with = "count")]
    pub containers_pending: u64,
}

/// The state of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AppState {
    /// Being created.
    New,
    /// Being written to the state store.
    NewSaving,
    /// On its way to the scheduler.
    Submitted,
    /// Waiting for its ApplicationMaster (AM).
    Accepted,
    Running,
    /// Ended by its own report.
    Finished,
    Failed,
    Killed,
    /// An unknown state of a newer Hadoop; treated as active.
    #[default]
    #[serde(other)]
    Other,
}

impl AppState {
    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Killed)
    }
}

/// The states of active applications, as a parameter.
const LIVE: &str = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING";

/// The outcome that an application reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FinalStatus {
    Succeeded,
    Failed,
    Killed,
    /// Active, or without a report.
    #[default]
    #[serde(other)]
    Undefined,
}

/// The purpose of a container of a MapReduce job, from the priority of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// The AM (0).
    ApplicationMaster,
    /// A map (20, opportunistic 19).
    Map,
    /// A rerun map (5).
    FailedMap,
    /// A reduce (10).
    Reduce,
    /// Another priority, not of MapReduce.
    Other,
}

impl Purpose {
    /// By `RMContainerAllocator` of Hadoop's MapReduce.
    fn of_priority(priority: u64) -> Self {
        match priority {
            0 => Self::ApplicationMaster,
            5 => Self::FailedMap,
            10 => Self::Reduce,
            19 | 20 => Self::Map,
            _ => Self::Other,
        }
    }
}

/// The containers that an application requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// AMs: 1 while it waits for its own.
    pub ams: u64,
    pub maps: u64,
    /// Rerun maps.
    pub failed_maps: u64,
    pub reduces: u64,
    /// Not of MapReduce.
    pub other: u64,
}

impl Pending {
    fn of(requests: &[wire::Request]) -> Self {
        let mut pending = Self::default();
        // A request for a host is also one for its rack and for any host, which counts all.
        for request in requests.iter().filter(|request| request.resource_name == "*") {
            let of = match Purpose::of_priority(request.priority) {
                Purpose::ApplicationMaster => &mut pending.ams,
                Purpose::Map => &mut pending.maps,
                Purpose::FailedMap => &mut pending.failed_maps,
                Purpose::Reduce => &mut pending.reduces,
                Purpose::Other => &mut pending.other,
            };
            *of += request.num_containers;
        }
        pending
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "wire::App")]
pub struct App {
    pub id: AppId,
    pub name: String,
    /// The full path of its queue, such as `root.jobs`.
    pub queue: String,
    pub user: String,
    /// `MAPREDUCE`, `SPARK`, …
    pub kind: String,
    pub state: AppState,
    pub final_status: FinalStatus,
    /// From 0 to 100.
    pub progress: f64,
    /// A higher one goes first.
    pub priority: u64,
    /// Its tags, which YARN makes lower case, in the order of the text.
    pub tags: Vec<String>,
    /// When it was submitted.
    pub started_ms: Option<u64>,
    /// When its AM left, which may hold its container for some seconds.
    pub finished_ms: Option<u64>,
    /// Its containers, with that of the AM; `None` after its end.
    pub running_containers: Option<u64>,
    /// Their memory in MiB.
    pub allocated_mb: Option<u64>,
    pub allocated_cores: Option<u64>,
    /// Its open requests.
    pub pending: Pending,
    /// The container of its current or last AM.
    pub am_container: Option<ContainerId>,
    /// The reason of its end, or of its wait.
    pub diagnostics: String,
}

impl App {
    /// Whether it is in a queue, given by its full path. Schedulers report the path or the own name.
    pub fn is_in(&self, queue: &str) -> bool {
        queue == self.queue || queue.strip_suffix(&self.queue).is_some_and(|above| above.ends_with('.'))
    }

    /// The value of the tag `name=value`.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags
            .iter()
            .find_map(|tag| tag.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    }

    /// Whether it may hold containers.
    pub fn holds_containers(&self) -> bool {
        self.running_containers.is_some_and(|n| n > 0)
    }
}

/// One attempt of an AM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppAttempt {
    #[serde(rename = "appAttemptId")]
    pub id: AppAttemptId,
    /// `RUNNING`, `FAILED`, … (`RMAppAttemptState`).
    #[serde(default, rename = "appAttemptState", deserialize_with = "text")]
    pub state: String,
    #[serde(default, rename = "containerId", deserialize_with = "json::id")]
    pub container: Option<ContainerId>,
    /// When it was started.
    #[serde(default, rename = "startTime", deserialize_with = "millis")]
    pub started_ms: Option<u64>,
    #[serde(default, rename = "finishedTime", deserialize_with = "millis")]
    pub finished_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "wire::Container")]
pub struct Container {
    pub id: ContainerId,
    pub purpose: Purpose,
    /// The host of its NodeManager, without the port, which changes with each start.
    pub host: String,
    /// When YARN granted it.
    pub started_ms: Option<u64>,
    /// `ACQUIRED`, `RUNNING`, `COMPLETE`, …
    pub state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "wire::Node")]
pub struct Node {
    /// By the name that containers use.
    pub host: String,
    /// Its rack, such as `/default-rack`.
    pub rack: String,
    /// `RUNNING`, `LOST`, `DECOMMISSIONED`, …
    pub state: String,
    pub containers: u64,
    /// Memory of containers, in MiB.
    pub used_mb: u64,
    /// Free memory, in MiB.
    pub free_mb: u64,
    /// Processors of containers.
    pub used_cores: u64,
    /// Free processors.
    pub free_cores: u64,
}

impl Node {
    /// Whether it accepts containers.
    pub fn is_up(&self) -> bool {
        self.state == "RUNNING"
    }
}

/// The scheduler (`/scheduler`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// `capacityScheduler`, `fairScheduler` or `fifoScheduler`.
    pub kind: String,
    /// The leaf queues.
    pub queues: Vec<Queue>,
    /// The full paths of queues below which YARN makes a queue when an application names one.
    pub growing: Vec<String>,
}

/// A leaf queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its full path, such as `root.jobs`.
    pub path: String,
    /// Its ordering policy, such as `fifo` or `fair`; empty if not reported.
    pub ordering: String,
}

/// Adds the leaf queues at and below a queue; `above` is the path of its parent.
fn take_queues(queue: &Value, above: &str, to: &mut Scheduler) {
    let text = |key: &str| queue[key].as_str();
    let name = text("queueName").unwrap_or_default();
    let joined = || if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
    let path = text("queuePath").map_or_else(joined, str::to_owned);
    let below = match &queue["queues"]["queue"] {
        Value::Array(queues) => queues.as_slice(),
        queue @ Value::Object(_) => std::slice::from_ref(queue),
        _ => &[],
    };
    let grows = text("autoCreationEligibility").is_some_and(|eligible| eligible != "off");
    if grows {
        to.growing.push(path.clone());
    } else if below.is_empty() && !path.is_empty() {
        let ordering = text("orderingPolicyInfo").unwrap_or_default().to_owned();
        to.queues.push(Queue { path: path.clone(), ordering });
    }
    for queue in below {
        take_queues(queue, &path, to);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppFilter {
    /// Only those of this queue.
    pub queue: Option<String>,
    /// Only those with one of these tags; all if there is none.
    pub tags: Vec<String>,
    /// Include ended applications.
    pub ended: bool,
}

impl ResourceManager {
    /// The ResourceManager at an address; nothing is sent.
    pub fn new(address: &Address, settings: Settings) -> Self {
        Self { client: Client::new(address, settings) }
    }

    /// The cluster. Waits a little for a ResourceManager that is starting.
    ///
    /// # Errors
    /// See [`HttpError`]; also for the other functions.
    pub fn info(&self) -> Result<ClusterInfo, HttpError> {
        let path = "/ws/v1/cluster/info";
        self.client.read_object(path, &self.client.get_while_starting(path, &[])?, "clusterInfo")
    }

    /// Totals of the cluster.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn metrics(&self) -> Result<Metrics, HttpError> {
        self.client.get_object("/ws/v1/cluster/metrics", "clusterMetrics")
    }

    /// The applications with all their requests, by one request.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn apps(&self, which: &AppFilter) -> Result<Vec<App>, HttpError> {
        let tags = which.tags.join(",");
        let mut query =
            vec![("deSelects", "timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo")];
        if !which.ended {
            query.push(("states", LIVE));
        }
        if let Some(queue) = &which.queue {
            query.push(("queue", queue));
        }
        if !tags.is_empty() {
            query.push(("applicationTags", &tags));
        }
        self.client.get_list("/ws/v1/cluster/apps", &query, &["apps", "app"])
    }

    /// One application; `None` if the ResourceManager does not know it.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn app(&self, id: AppId) -> Result<Option<App>, HttpError> {
        match self.client.get_object(&format!("/ws/v1/cluster/apps/{id}"), "app") {
            Err(error) if error.is_missing() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The attempts of an application's AM.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn attempts(&self, app: AppId) -> Result<Vec<AppAttempt>, HttpError> {
        let path = format!("/ws/v1/cluster/apps/{app}/appattempts");
        self.client.get_list(&path, &[], &["appAttempts", "appAttempt"])
    }

    /// The live containers of an attempt.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn containers(&self, attempt: AppAttemptId) -> Result<Vec<Container>, HttpError> {
        let path = format!("/ws/v1/cluster/apps/{}/appattempts/{attempt}/containers", attempt.app);
        self.client.get_list(&path, &[], &["containers", "container"])
    }

    /// The NodeManagers, also those that are lost.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn nodes(&self) -> Result<Vec<Node>, HttpError> {
        self.client.get_list("/ws/v1/cluster/nodes", &[], &["nodes", "node"])
    }

    /// The scheduler and its queues.
    ///
    /// # Errors
    ///
    /// See [`HttpError`].
    pub fn scheduler(&self) -> Result<Scheduler, HttpError> {
        let document: Value = self.client.get_object("/ws/v1/cluster/scheduler", "scheduler")?;
        let root = &document["schedulerInfo"];
        let kind = root["type"].as_str().unwrap_or_default().to_owned();
        let mut scheduler = Scheduler { kind, queues: Vec::new(), growing: Vec::new() };
        take_queues(root, "", &mut scheduler);
        Ok(scheduler)
    }

    /// The value of a property in the ResourceManager's configuration (Hadoop's `ConfServlet`); `None` if it
    /// is not set.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn property(&self, name: &str) -> Result<Option<String>, HttpError> {
        let query = [("format", "json"), ("name", name)];
        let properties: Vec<wire::Property> =
            match self.client.get_list("/conf", &query, &["properties", "property"]) {
                Err(error) if error.is_missing() => return Ok(None),
                answer => answer?,
            };
        Ok(properties.into_iter().find(|property| property.key == name).map(|property| property.value))
    }

    /// Sets the priority of an application; a higher one goes first. The ResourceManager writes it to its
    /// state store, which takes some 40 ms, and cuts it to `yarn.cluster.max-application-priority`. Returns
    /// the new priority.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn set_priority(&self, app: AppId, priority: u64) -> Result<u64, HttpError> {
        let path = format!("/ws/v1/cluster/apps/{app}/priority");
        let answer = self.client.put(&path, &json!({ "priority": priority }))?;
        self.client.read_object(&path, &answer, "priority")
    }

    /// Kills an application; this may take a moment.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn kill(&self, app: AppId) -> Result<(), HttpError> {
        self.client.put(&format!("/ws/v1/cluster/apps/{app}/state"), &json!({ "state": "KILLED" })).map(drop)
    }

    /// The AM of a MapReduce application, through the ResourceManager's proxy. After the application's end
    /// the proxy answers with pages ([`HttpError::NotJson`]), and the history has the job.
    pub fn application_master(&self, app: AppId) -> MapReduce {
        MapReduce::through(self.client.clone(), format!("/proxy/{app}/ws/v1/mapreduce"))
    }
}

impl Client {
    pub(crate) fn get_list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
        keys: &[&str],
    ) -> Result<Vec<T>, HttpError> {
        let answer = self.get(path, query)?;
        json::list(&answer, keys).map_err(|why| HttpError::Unknown { url: self.url(path), why })
    }

    pub(crate) fn get_object<T: DeserializeOwned>(&self, path: &str, key: &str) -> Result<T, HttpError> {
        self.read_object(path, &self.get(path, &[])?, key)
    }

    fn read_object<T: DeserializeOwned>(&self, path: &str, answer: &[u8], key: &str) -> Result<T, HttpError> {
        json::object(answer, key).map_err(|why| HttpError::Unknown { url: self.url(path), why })
    }
}

/// The documents, field by field.
mod wire {
    use super::{
        AppId, AppState, ContainerId, Deserialize, FinalStatus, Pending, Purpose, count, many, millis,
        number, text, whole,
    };

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct App {
        id: AppId,
        #[serde(default, deserialize_with = "text")]
        name: String,
        #[serde(default, deserialize_with = "text")]
        queue: String,
        #[serde(default, deserialize_with = "text")]
        user: String,
        #[serde(default, deserialize_with = "text")]
        application_type: String,
        #[serde(default)]
        state: AppState,
        #[serde(default)]
        final_status: FinalStatus,
        #[serde(default, deserialize_with = "number")]
        progress: Option<f64>,
        #[serde(default, deserialize_with = "count")]
        priority: u64,
        #[serde(default, deserialize_with = "text")]
        application_tags: String,
        #[serde(default, deserialize_with = "millis")]
        started_time: Option<u64>,
        #[serde(default, deserialize_with = "millis")]
        finished_time: Option<u64>,
        #[serde(default, deserialize_with = "whole")]
        running_containers: Option<u64>,
        #[serde(default, rename = "allocatedMB", deserialize_with = "whole")]
        allocated_mb: Option<u64>,
        #[serde(default, rename = "allocatedVCores", deserialize_with = "whole")]
        allocated_vcores: Option<u64>,
        #[serde(default, deserialize_with = "many")]
        resource_requests: Vec<Request>,
        #[serde(default, deserialize_with = "text")]
        am_container_logs: String,
        #[serde(default, deserialize_with = "text")]
        diagnostics: String,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Request {
        #[serde(default, deserialize_with = "whole_or_other")]
        pub(super) priority: u64,
        #[serde(default, deserialize_with = "text")]
        pub(super) resource_name: String,
        #[serde(default, deserialize_with = "count")]
        pub(super) num_containers: u64,
    }

    /// A priority; a text that is not a number is none of MapReduce.
    fn whole_or_other<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Ok(whole(deserializer)?.unwrap_or(u64::MAX))
    }

    impl From<App> for super::App {
        fn from(app: App) -> Self {
            // Only the address of the logs names the container in this document.
            let am_container = app.am_container_logs.split('/').find_map(|part| part.parse().ok());
            let tags = app.application_tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Self {
                id: app.id,
                name: app.name,
                queue: app.queue,
                user: app.user,
                kind: app.application_type,
                state: app.state,
                final_status: app.final_status,
                progress: app.progress.unwrap_or(0.0),
                priority: app.priority,
                tags: tags.map(str::to_owned).collect(),
                started_ms: app.started_time,
                finished_ms: app.finished_time,
                running_containers: app.running_containers,
                allocated_mb: app.allocated_mb,
                allocated_cores: app.allocated_vcores,
                pending: Pending::of(&app.resource_requests),
                am_container,
                diagnostics: app.diagnostics,
            }
        }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Container {
        #[serde(rename = "containerId")]
        id: ContainerId,
        #[serde(default, deserialize_with = "whole_or_other")]
        priority: u64,
        #[serde(default, deserialize_with = "text")]
        node_id: String,
        #[serde(default, deserialize_with = "text")]
        assigned_node_id: String,
        #[serde(default, deserialize_with = "millis")]
        started_time: Option<u64>,
        #[serde(default, rename = "containerState", deserialize_with = "text")]
        state: String,
    }

    impl From<Container> for super::Container {
        fn from(container: Container) -> Self {
            let node =
                if container.node_id.is_empty() { &container.assigned_node_id } else { &container.node_id };
            Self {
                id: container.id,
                purpose: Purpose::of_priority(container.priority),
                host: host_of(node).to_owned(),
                started_ms: container.started_time,
                state: container.state,
            }
        }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Node {
        id: String,
        #[serde(default, deserialize_with = "text")]
        rack: String,
        #[serde(default, deserialize_with = "text")]
        state: String,
        #[serde(default, deserialize_with = "count")]
        num_containers: u64,
        #[serde(default, rename = "usedMemoryMB", deserialize_with = "count")]
        used_memory_mb: u64,
        #[serde(default, rename = "availMemoryMB", deserialize_with = "count")]
        avail_memory_mb: u64,
        #[serde(default, deserialize_with = "count")]
        used_virtual_cores: u64,
        #[serde(default, deserialize_with = "count")]
        available_virtual_cores: u64,
    }

    impl From<Node> for super::Node {
        fn from(node: Node) -> Self {
            Self {
                host: host_of(&node.id).to_owned(),
                rack: node.rack,
                state: node.state,
                containers: node.num_containers,
                used_mb: node.used_memory_mb,
                free_mb: node.avail_memory_mb,
                used_cores: node.used_virtual_cores,
                free_cores: node.available_virtual_cores,
            }
        }
    }

    /// `127.0.0.2:39019` is a NodeManager on 127.0.0.2.
    fn host_of(node: &str) -> &str {
        node.rsplit_once(':').map_or(node, |(host, _)| host)
    }

    #[derive(Deserialize)]
    pub(super) struct Property {
        #[serde(default, deserialize_with = "text")]
        pub(super) key: String,
        #[serde(default, deserialize_with = "text")]
        pub(super) value: String,
    }
}
