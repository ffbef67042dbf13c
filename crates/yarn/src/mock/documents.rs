//! The documents of the mock cluster, as Hadoop 3.5.0 writes them.

use serde_json::{Value, json};
use slackline_model::PhaseKind;

use super::{MockApp, MockAttempt, Shape, State};
use crate::rest::id::{AppId, TaskId};
use crate::rest::resource_manager::AppState;

pub(super) struct Request {
    pub(super) method: String,
    /// The path and what follows the `?`.
    pub(super) address: String,
    pub(super) body: Vec<u8>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn page(status: u16, title: &str) -> Self {
        let body = format!("<!DOCTYPE html>\n<html><head><title>{title}</title></head></html>");
        Self { status, kind: "text/html;charset=utf-8", body }
    }

    fn json(document: &Value) -> Self {
        Self { status: 200, kind: "application/json;charset=utf-8", body: document.to_string() }
    }

    fn missing(message: &str) -> Self {
        let exception = json!({ "exception": "NotFoundException", "message": message,
            "javaClassName": "org.apache.hadoop.yarn.webapp.NotFoundException" });
        Self { status: 404, ..Self::json(&json!({ "RemoteException": exception })) }
    }
}

pub(super) fn answer(state: &mut State, request: &Request) -> Answer {
    let (path, query) = request.address.split_once('?').unwrap_or((&request.address, ""));
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["conf"]) => property(state, query),
        ("GET", ["ws", "v1", "cluster", rest @ ..]) => cluster(state, rest, query),
        ("PUT", ["ws", "v1", "cluster", "apps", id, what]) => put(state, id, what, &request.body),
        ("GET", ["proxy", id, "ws", "v1", "mapreduce", rest @ ..]) => {
            match app(state, id).filter(|app| app.state == AppState::Running) {
                Some(app) => jobs(&[app], rest, Shape::Arrays),
                None => Answer::page(200, "Redirecting to the history"),
            }
        }
        ("GET", ["ws", "v1", "history", "info"]) => {
            Answer::json(&json!({ "historyInfo": { "startedOn": 1 } }))
        }
        ("GET", ["ws", "v1", "history", "mapreduce", rest @ ..]) => {
            let is_wanted = |app: &&MockApp| {
                let since = parameter(query, "startedTimeBegin").and_then(|since| since.parse::<u64>().ok());
                let is_so = parameter(query, "state").is_none_or(|state| state == job_state(app));
                app.state.is_over() && is_so && since.is_none_or(|since| app.submitted_ms >= since)
            };
            let over: Vec<&MockApp> = state.apps.values().filter(is_wanted).collect();
            jobs(&over, rest, Shape::Singles)
        }
        _ => Answer::page(404, "Error 404 Not Found"),
    }
}

fn app<'a>(state: &'a State, id: &str) -> Option<&'a MockApp> {
    state.apps.get(&id.parse().ok()?)
}

fn list(shape: Shape, outer: &str, inner: &str, mut elements: Vec<Value>) -> Value {
    match (shape, elements.len()) {
        (Shape::Arrays, 0) => json!({ outer: {} }),
        (Shape::Singles, 0) => json!({ outer: "" }),
        (Shape::Singles, 1) => json!({ outer: { inner: elements.remove(0) } }),
        _ => json!({ outer: { inner: elements } }),
    }
}

fn property(state: &State, query: &str) -> Answer {
    let name = parameter(query, "name").unwrap_or_default();
    match state.properties.get(name) {
        Some(value) => {
            let property =
                json!({ "key": name, "value": value, "isFinal": false, "resource": "yarn-site.xml" });
            Answer::json(&json!({ "property": property }))
        }
        None => Answer::page(404, &format!("Error 404 Property {name} not found")),
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

fn cluster(state: &State, path: &[&str], query: &str) -> Answer {
    let shape = state.shape;
    match path {
        ["info"] => {
            Answer::json(&json!({ "clusterInfo": { "id": state.started_on, "startedOn": state.started_on,
            "state": "STARTED", "haState": "ACTIVE", "hadoopVersion": "3.5.0" } }))
        }
        ["metrics"] => Answer::json(&metrics(state)),
        ["nodes"] => {
            let nodes = state
                .hosts
                .iter()
                .enumerate()
                .map(|(n, (host, is_up))| node(n, host, *is_up, state))
                .collect();
            Answer::json(&list(shape, "nodes", "node", nodes))
        }
        ["scheduler"] => Answer::json(&scheduler(state)),
        ["apps"] => {
            let wanted: Vec<&MockApp> = state.apps.values().filter(|app| is_wanted(app, query)).collect();
            let apps = wanted.into_iter().map(|app| application(app, shape)).collect();
            Answer::json(&list(shape, "apps", "app", apps))
        }
        ["apps", id, rest @ ..] => match app(state, id) {
            Some(app) => one_app(app, shape, rest),
            None => Answer::missing(&format!("java.lang.Exception: app with id: {id} not found")),
        },
        _ => Answer::page(404, "Error 404 Not Found"),
    }
}

fn one_app(app: &MockApp, shape: Shape, path: &[&str]) -> Answer {
    match path {
        [] => Answer::json(&json!({ "app": application(app, shape) })),
        ["appattempts"] => {
            let lives = (1..=app.life).map(|life| {
                json!({ "id": life, "appAttemptId": format!("appattempt_{}_{:04}_{life:06}", app.id.cluster, app.id.number),
                    "containerId": "", "nodeId": "127.0.0.2:37363", "startTime": 1, "finishedTime": 0,
                    "appAttemptState": if life == app.life { "RUNNING" } else { "FAILED" } })
            });
            Answer::json(&list(shape, "appAttempts", "appAttempt", lives.collect()))
        }
        ["appattempts", attempt, "containers"] if *attempt == app.am().attempt.to_string() => {
            let am = app.has_am.then(|| container(&app.am().to_string(), 0, "127.0.0.2", 1));
            let tasks = app.running().map(|attempt| {
                let priority = if attempt.id.task.kind == PhaseKind::Map { 20 } else { 10 };
                container(&attempt.container.to_string(), priority, &attempt.host, attempt.started_ms)
            });
            // This list has no object around it.
            let list = list(shape, "containers", "container", am.into_iter().chain(tasks).collect());
            Answer::json(if list["containers"].is_object() { &list["containers"] } else { &list })
        }
        _ => Answer::missing("java.lang.Exception: not found"),
    }
}

fn container(id: &str, priority: u32, host: &str, started_ms: u64) -> Value {
    json!({ "containerId": id, "allocatedMB": 512, "allocatedVCores": 1, "assignedNodeId": format!("{host}:39019"),
        "priority": priority, "startedTime": started_ms, "finishedTime": 0, "elapsedTime": 5, "nodeId": format!("{host}:39019"),
        "logUrl": format!("http://{host}:8042/node/containerlogs/{id}/me"), "containerExitStatus": 0,
        "containerState": "RUNNING", "nodeHttpAddress": format!("http://{host}:8042") })
}

fn is_wanted(app: &MockApp, query: &str) -> bool {
    let state = name_of(app.state);
    let list = |name| parameter(query, name).map(|list| list.replace("%2C", ",").replace("%3D", "="));
    list("states").is_none_or(|states| states.split(',').any(|s| s == state))
        && list("applicationTags")
            .is_none_or(|tags| tags.split(',').any(|tag| app.tags.split(',').any(|its| its == tag)))
        && parameter(query, "queue").is_none_or(|queue| app.queue == queue)
}

fn name_of(state: AppState) -> &'static str {
    match state {
        AppState::New => "NEW",
        AppState::NewSaving => "NEW_SAVING",
        AppState::Submitted => "SUBMITTED",
        AppState::Accepted => "ACCEPTED",
        AppState::Running => "RUNNING",
        AppState::Finished => "FINISHED",
        AppState::Failed => "FAILED",
        AppState::Killed => "KILLED",
        AppState::Other => "OTHER",
    }
}

fn application(app: &MockApp, shape: Shape) -> Value {
    let running = app.running().count() + usize::from(app.has_am);
    let mut document = json!({
        "id": app.id.to_string(), "user": "me", "name": app.name, "queue": app.queue,
        "state": name_of(app.state), "finalStatus": final_status(app.state), "progress": progress(app),
        "trackingUI": "ApplicationMaster", "diagnostics": app.diagnostics, "clusterId": app.id.cluster, "applicationType": app.kind,
        "applicationTags": app.tags, "priority": app.priority, "startedTime": app.submitted_ms, "launchTime": 0,
        "finishedTime": app.finished_ms, "elapsedTime": 1, "allocatedMB": -1, "allocatedVCores": -1,
        "runningContainers": -1, "memorySeconds": 1, "vcoreSeconds": 1, "preemptedResourceMB": 0,
        "logAggregationStatus": "DISABLED", "unmanagedApplication": false, "amNodeLabelExpression": "",
    });
    if app.has_am {
        let logs = format!("http://127.0.0.2:8042/node/containerlogs/{}/me", app.am());
        document["amContainerLogs"] = logs.into();
        document["amHostHttpAddress"] = "127.0.0.2:8042".into();
    }
    if running > 0 || !app.state.is_over() {
        document["runningContainers"] = running.into();
        document["allocatedMB"] = (512 * running).into();
        document["allocatedVCores"] = running.into();
    }
    let waits = u32::from(app.state == AppState::Accepted && !app.has_am);
    let pending = [(0, waits), (10, app.pending(PhaseKind::Reduce)), (20, app.pending(PhaseKind::Map))];
    let mut requests: Vec<Value> =
        pending.iter().filter(|(_, n)| *n > 0).map(|(p, n)| request("*", *p, *n)).collect();
    // A request for a host is part of the request for any host.
    if let Some((priority, number)) = pending.iter().find(|(_, number)| *number > 0) {
        requests.push(request("127.0.0.2", *priority, *number));
    }
    match (shape, requests.len()) {
        (_, 0) => {}
        (Shape::Singles, 1) => document["resourceRequests"] = requests.remove(0),
        _ => document["resourceRequests"] = requests.into(),
    }
    document
}

fn request(place: &str, priority: u32, number: u32) -> Value {
    json!({ "priority": priority, "resourceName": place, "capability": { "memory": 512, "vCores": 1,
        "resourceInformations": { "resourceInformation": [{ "name": "memory-mb", "value": 512, "units": "Mi" }] } },
        "numContainers": number, "relaxLocality": true, "nodeLabelExpression": "",
        "executionTypeRequest": { "executionType": "GUARANTEED", "enforceExecutionType": false } })
}

fn final_status(state: AppState) -> &'static str {
    match state {
        AppState::Finished => "SUCCEEDED",
        AppState::Failed => "FAILED",
        AppState::Killed => "KILLED",
        _ => "UNDEFINED",
    }
}

fn progress(app: &MockApp) -> f64 {
    let done = app.count(PhaseKind::Map, "SUCCEEDED") + app.count(PhaseKind::Reduce, "SUCCEEDED");
    100.0 * f64::from(done) / f64::from((app.maps + app.reduces).max(1))
}

fn scheduler(state: &State) -> Value {
    let queues = state.queues.iter().map(|path| {
        let name = path.rsplit('.').next();
        json!({ "type": "capacitySchedulerLeafQueueInfo", "queuePath": path, "queueName": name,
            "orderingPolicyInfo": state.ordering, "autoCreationEligibility": "off" })
    });
    let queues = json!({ "queue": queues.collect::<Vec<_>>() });
    json!({ "scheduler": { "schedulerInfo": { "type": "capacityScheduler", "queueName": "root", "queues": queues } } })
}

fn metrics(state: &State) -> Value {
    let up = state.hosts.iter().filter(|(_, is_up)| *is_up).count();
    let containers: usize =
        state.apps.values().map(|app| app.running().count() + usize::from(app.has_am)).sum();
    json!({ "clusterMetrics": { "activeNodes": up, "lostNodes": state.hosts.len() - up, "totalMB": 1024 * up,
        "totalVirtualCores": 2 * up, "allocatedMB": 512 * containers, "containersAllocated": containers,
        "containersPending": -1 } })
}

fn node(number: usize, host: &str, is_up: bool, state: &State) -> Value {
    let containers =
        state.apps.values().flat_map(MockApp::running).filter(|attempt| attempt.host == host).count();
    json!({ "id": format!("{host}:{}", 37_000 + number), "nodeHostName": host, "rack": "/default-rack",
        "state": if is_up { "RUNNING" } else { "LOST" }, "nodeHTTPAddress": format!("{host}:8042"),
        "numContainers": containers, "usedMemoryMB": 512 * containers, "availMemoryMB": 1024 - 512 * containers.min(2),
        "usedVirtualCores": containers, "availableVirtualCores": 2 - containers.min(2) })
}

fn put(state: &mut State, id: &str, what: &str, body: &[u8]) -> Answer {
    let (now, priority_max) = (state.now_ms, state.priority_max);
    let app = id.parse::<AppId>().ok().and_then(|id| state.apps.get_mut(&id));
    let Some(app) = app else {
        return Answer::missing(&format!("java.lang.Exception: app with id: {id} not found"));
    };
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match (what, &body) {
        ("priority", _) if matches!(app.state, AppState::New | AppState::NewSaving | AppState::Submitted) => {
            let message = format!("Application in {} state cannot update priority.", name_of(app.state));
            Answer { status: 400, ..Answer::missing(&message) }
        }
        // The answer for an ended application has its old priority.
        ("priority", _) if app.state.is_over() => Answer::json(&json!({ "priority": app.priority })),
        ("priority", body) if body["priority"].is_u64() => {
            app.priority = body["priority"].as_u64().unwrap_or_default().min(priority_max);
            Answer::json(&json!({ "priority": app.priority }))
        }
        ("state", body) if body["state"] == "KILLED" => {
            if !app.state.is_over() {
                app.end(AppState::Killed, now);
                app.release();
            }
            Answer { status: 202, ..Answer::json(&json!({ "state": "KILLED" })) }
        }
        _ => Answer { status: 400, ..Answer::missing("this is not what can be put here") },
    }
}

/// The documents of an AM or a JobHistory server below its jobs.
fn jobs(apps: &[&MockApp], path: &[&str], shape: Shape) -> Answer {
    let document = match path {
        ["info"] => json!({ "info": { "appId": "", "name": "" } }),
        ["jobs"] => list(shape, "jobs", "job", apps.iter().map(|app| job(app)).collect()),
        ["jobs", id, rest @ ..] => {
            let id = id.parse::<AppId>();
            let Some(app) = apps.iter().find(|app| Ok(app.id) == id) else {
                return Answer::missing("java.lang.Exception: job is not found");
            };
            match rest {
                [] => json!({ "job": job(app) }),
                ["tasks"] => {
                    let all = tasks(app).into_iter().map(|(id, state)| task(app, id, state)).collect();
                    // The history always has an array here.
                    list(Shape::Arrays, "tasks", "task", all)
                }
                ["tasks", task, "attempts"] => {
                    let of = |attempt: &&MockAttempt| attempt.id.task.to_string() == *task;
                    list(
                        shape,
                        "taskAttempts",
                        "taskAttempt",
                        app.attempts.iter().filter(of).map(attempt).collect(),
                    )
                }
                ["conf"] => configuration(app),
                ["counters"] => counters(app),
                _ => return Answer::missing("java.lang.Exception: not found"),
            }
        }
        _ => return Answer::page(503, "Error 503 Service Unavailable"),
    };
    Answer::json(&document)
}

fn job_state(app: &MockApp) -> &'static str {
    match app.state {
        AppState::Finished => "SUCCEEDED",
        AppState::Failed => "FAILED",
        AppState::Killed => "KILLED",
        _ => "RUNNING",
    }
}

/// The mean duration of the tasks, ms.
fn mean(app: &MockApp, kind: PhaseKind) -> u64 {
    let well = |attempt: &&MockAttempt| attempt.id.task.kind == kind && attempt.state == "SUCCEEDED";
    let took = |attempt: &MockAttempt| attempt.finished_ms.saturating_sub(attempt.started_ms);
    let times: Vec<u64> = app.attempts.iter().filter(well).map(took).collect();
    times.iter().sum::<u64>() / (times.len() as u64).max(1)
}

fn job(app: &MockApp) -> Value {
    json!({ "id": app.id.job(), "name": app.name, "queue": app.queue.trim_start_matches("root."), "user": "me",
        "state": job_state(app),
        "submitTime": app.id.cluster, "startTime": app.id.cluster + 5, "finishTime": app.finished_ms,
        "mapsTotal": app.maps, "mapsCompleted": app.count(PhaseKind::Map, "SUCCEEDED"),
        "mapsPending": app.pending(PhaseKind::Map), "mapsRunning": app.count(PhaseKind::Map, "RUNNING"),
        "reducesTotal": app.reduces, "reducesCompleted": app.count(PhaseKind::Reduce, "SUCCEEDED"),
        "reducesPending": app.pending(PhaseKind::Reduce), "reducesRunning": app.count(PhaseKind::Reduce, "RUNNING"),
        "avgMapTime": mean(app, PhaseKind::Map), "avgShuffleTime": 1000, "avgMergeTime": 500,
        "avgReduceTime": mean(app, PhaseKind::Reduce), "diagnostics": "" })
}

fn tasks(app: &MockApp) -> Vec<(TaskId, &'static str)> {
    let of = |kind, number| TaskId { app: app.id, kind, number };
    let maps = (0..app.maps).map(|number| of(PhaseKind::Map, number));
    let reduces = (0..app.reduces).map(|number| of(PhaseKind::Reduce, number));
    let state = |task| match app.attempts.iter().rev().find(|attempt| attempt.id.task == task) {
        Some(attempt) if matches!(attempt.state, "RUNNING" | "SUCCEEDED") => attempt.state,
        _ => "SCHEDULED",
    };
    maps.chain(reduces).map(|task| (task, state(task))).collect()
}

fn task(app: &MockApp, id: TaskId, state: &str) -> Value {
    let done = app.attempts.iter().find(|attempt| attempt.id.task == id && attempt.state == "SUCCEEDED");
    let started =
        app.attempts.iter().find(|attempt| attempt.id.task == id).map_or(0, |attempt| attempt.started_ms);
    json!({ "id": id.to_string(), "state": state, "type": if id.kind == PhaseKind::Map { "MAP" } else { "REDUCE" },
        "progress": if done.is_some() { 100.0 } else { 0.0 }, "startTime": started,
        "finishTime": done.map_or(0, |attempt| attempt.finished_ms), "elapsedTime": 0,
        "successfulAttempt": done.map_or(String::new(), |attempt| attempt.id.to_string()) })
}

fn attempt(attempt: &MockAttempt) -> Value {
    let reduces = attempt.id.task.kind == PhaseKind::Reduce;
    let mut document = json!({ "id": attempt.id.to_string(), "state": attempt.state, "rack": "/default-rack",
        "type": if reduces { "REDUCE" } else { "MAP" }, "assignedContainerId": attempt.container.to_string(),
        "nodeHttpAddress": format!("{}:8042", attempt.host), "startTime": attempt.started_ms,
        "finishTime": attempt.finished_ms, "progress": 0.0, "diagnostics": "", "status": "map" });
    if reduces {
        document["shuffleFinishTime"] = (attempt.started_ms + 1).into();
        document["mergeFinishTime"] = (attempt.started_ms + 2).into();
    }
    document
}

fn configuration(app: &MockApp) -> Value {
    let property = |(name, value)| json!({ "name": name, "value": value, "source": ["job.xml"] });
    let all: Vec<Value> = app.properties.iter().map(property).collect();
    json!({ "conf": { "path": "file:/tmp/job.xml", "property": all } })
}

fn counters(app: &MockApp) -> Value {
    let counter = json!({ "name": "MAP_INPUT_RECORDS", "totalCounterValue": app.maps, "mapCounterValue": app.maps,
        "reduceCounterValue": 0 });
    json!({ "jobCounters": { "id": app.id.job(), "counterGroup": [
        { "counterGroupName": "org.apache.hadoop.mapreduce.TaskCounter", "counter": [counter] }] } })
}
