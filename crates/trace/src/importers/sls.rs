//! Traces of Hadoop's Scheduler Load Simulator (SLS): JSON objects one after the other, a job each, with a
//! task for each container; and the file of nodes that belongs to them. `hadoop_log` converts the jobs to
//! flows.
//!
//! - Times are milliseconds from the start of the trace. A task has a start and an end, or only a duration
//!   (`duration.ms`): then there is no recorded execution, and a reduce is not early.
//! - `count` of a task and `job.count` stand for that number of copies.
//! - A node has as many slots as containers of SLS's defaults (1,024 MB and a core) fit in: `memory-mb` and
//!   `vcores`, by default 10,240 and 10. A task is one slot, even if its container is larger.
//! - In a trace of `dag` type, containers are requested after a delay, which is counted and ignored, since it
//!   names no predecessors. An object with the numbers of nodes and racks is ignored.

use serde::Deserialize;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Outcome;
use slackline_model::{PhaseKind, Start};

use super::objects::{Object, Objects};
use crate::importers::hadoop_log::{
    FAILED_JOBS, Host, JOB_SKEW, Log, LoggedAttempt, LoggedJob, LoggedLines, LoggedObjects, LoggedTask,
    Topology, import_objects,
};
use crate::importers::importer::{Importer, Input, Output};
use crate::importers::line_import::LineImport;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::signatures::is_sls;

/// The name of the objects of either file in messages.
const JOB: &str = "a job of an SLS trace";
const RACK: &str = "a rack of an SLS file of nodes";

/// A container, and the resources of a node by default: SLS's defaults (`yarn.sls.container.*`,
/// `yarn.sls.nm.*`).
const CONTAINER_MB: u64 = 1024;
const NODE_MB: u64 = 10_240;
const NODE_CORES: u64 = 10;

/// The limit on tasks that counts add to a trace, or to one object of a stream: larger counts are mistakes,
/// and each task takes memory.
const COUNTED_MAX: u64 = 1_000_000;

/// The latest valid time, milliseconds: a thousand years.
const MILLIS_MAX: i64 = 31_557_600_000_000;

pub(super) const IMPORTER: Importer = Importer {
    endings: &["json"],
    params: &[
        Param::new("nodes", "", Values::TextOfFile, "file of nodes of an SLS trace"),
        FAILED_JOBS,
        JOB_SKEW,
    ],
    // The length of the wait for a job has no effect on the workload: a later job is refused.
    shaped: |settings, name| match name {
        "nodes" => !settings.text(name).is_empty(),
        name => name != JOB_SKEW.name,
    },
    lines: Some(open),
    ..Importer::new("sls", "a trace of Hadoop's Scheduler Load Simulator (SLS)", is_sls, import)
};

#[derive(Deserialize)]
struct Job {
    #[serde(rename = "job.id")]
    id: Option<String>,
    #[serde(rename = "job.user")]
    user: Option<String>,
    #[serde(rename = "job.queue.name")]
    queue: Option<String>,
    #[serde(rename = "job.priority")]
    priority: Option<u32>,
    #[serde(rename = "job.start.ms")]
    start: Option<i64>,
    #[serde(rename = "job.end.ms")]
    end: Option<i64>,
    #[serde(rename = "job.count")]
    count: Option<u64>,
    #[serde(rename = "job.tasks")]
    tasks: Option<Vec<Task>>,
    #[serde(rename = "num.nodes")]
    nodes: Option<u64>,
}

#[derive(Deserialize)]
struct Task {
    count: Option<u64>,
    #[serde(rename = "container.host")]
    host: Option<String>,
    #[serde(rename = "container.start.ms")]
    start: Option<i64>,
    #[serde(rename = "container.end.ms")]
    end: Option<i64>,
    #[serde(rename = "duration.ms", alias = "container.duration.ms")]
    duration: Option<i64>,
    #[serde(rename = "container.type")]
    kind: Option<String>,
    #[serde(rename = "container.request.delay")]
    delay: Option<i64>,
    #[serde(rename = "container.memory")]
    memory: Option<u64>,
    #[serde(rename = "container.vcores")]
    vcores: Option<u64>,
}

#[derive(Deserialize)]
struct Rack {
    rack: Option<String>,
    nodes: Option<Vec<Node>>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "node")]
    name: Option<String>,
    #[serde(rename = "memory-mb")]
    memory: Option<u64>,
    vcores: Option<u64>,
}

/// Reads a trace into a draft with the machines of its nodes, or else the machines in the trace.
///
/// # Errors
/// The first object that is not a job, with its line; an invalid file of nodes.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let nodes = nodes(settings.text("nodes"))?;
    import_objects(input, settings, Trace { counted: Some(0), ..Trace::default() }, nodes.as_ref())
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    let trace = nodes(settings.text("nodes")).map(|nodes| Trace { nodes, ..Trace::default() });
    Box::new(LoggedLines::new(settings, trace))
}

#[derive(Default)]
struct Trace {
    /// Machines that are known before the jobs.
    nodes: Option<Topology>,
    jobs: u64,
    /// Number of tasks that counts have added, if all are in memory.
    counted: Option<u64>,
}

impl LoggedObjects for Trace {
    const NOTHING: &'static str =
        "found no job, expected an SLS trace: JSON objects with job.tasks, one job each";

    fn log(settings: &Settings) -> Log {
        Log::new(settings).relative()
    }

    fn take(&mut self, object: &Object<'_>, log: &mut Log) -> Result<bool, TraceError> {
        let job = object.read::<Job>(JOB)?;
        if job.tasks.is_none() && job.nodes.is_some() {
            return Ok(false);
        }
        self.jobs += 1;
        self.check_counts(object, &job)?;
        add(object, &job, self.jobs, log);
        Ok(true)
    }

    fn machines(&mut self, _: &mut Diagnostics) -> Result<Vec<MachineDraft>, TraceError> {
        Ok(self.nodes.as_ref().map_or(Vec::new(), Topology::machines))
    }
}

impl Trace {
    /// Refuses counts that no memory holds: of tasks that are listed the file is as long itself.
    fn check_counts(&mut self, object: &Object<'_>, job: &Job) -> Result<(), TraceError> {
        let listed = || job.tasks.iter().flatten();
        let each = listed().fold(0_u64, |sum, task| sum.saturating_add(task.count()));
        let all = job.count.unwrap_or(1).saturating_mul(each.max(1));
        let more = self.counted.unwrap_or(0).saturating_add(all.saturating_sub(listed().count() as u64));
        if more > COUNTED_MAX {
            let up_to = if self.counted.is_some() { "up to" } else { "of" };
            let what = format!(
                "found counts for {more} more tasks {up_to} this job, expected at most {COUNTED_MAX}"
            );
            return Err(object.error(what));
        }
        self.counted = self.counted.map(|_| more);
        Ok(())
    }
}

impl Task {
    fn count(&self) -> u64 {
        self.count.unwrap_or(1)
    }
}

/// Adds the copies of a job.
fn add(object: &Object<'_>, job: &Job, number: u64, log: &mut Log) {
    let line = object.line();
    let listed = job.tasks.as_deref().unwrap_or_default();
    let delayed = listed.iter().filter(|task| task.delay.is_some_and(|delay| delay != 0)).count() as u64;
    log.diagnostics.add_unmodelled("task", delayed, line, "requested with a delay, which is ignored");
    let is_large = |task: &&Task| {
        task.memory.is_some_and(|memory| memory > CONTAINER_MB)
            || task.vcores.is_some_and(|vcores| vcores > 1)
    };
    let large = listed.iter().filter(is_large).map(Task::count).fold(0, u64::saturating_add);
    let what = "with a container of more memory or cores than a slot, given one slot";
    log.diagnostics.add_unmodelled("task", large, line, what);
    for copy in 0..job.count.unwrap_or(1) {
        let id = job.id.clone().unwrap_or_else(|| format!("job_{number}"));
        let start = job.start.filter(|start| (0..=MILLIS_MAX).contains(start));
        let of_task = |task: &Task| (0..task.count()).map(|_| logged(task)).collect::<Vec<_>>();
        log.add(LoggedJob {
            id: if copy == 0 { id } else { format!("{id} ({})", copy + 1) },
            user: job.user.clone(),
            queue: job.queue.clone(),
            priority: job.priority,
            submitted: start.or(Some(0)),
            finished: job.end.filter(|end| (0..=MILLIS_MAX).contains(end)),
            tasks: listed.iter().flat_map(of_task).collect(),
            line,
            ..LoggedJob::default()
        });
    }
}

fn logged(task: &Task) -> LoggedTask {
    let time = |time: Option<i64>| time.filter(|time| (0..=MILLIS_MAX).contains(time));
    let length = time(task.duration);
    let (start, end) = (time(task.start), time(task.end));
    let attempt = LoggedAttempt {
        start,
        end: end.or_else(|| Some(start? + length?)),
        length,
        host: task.host.as_deref().and_then(Host::parse),
        outcome: Outcome::Done,
    };
    let phase = if task.kind.as_deref() == Some("reduce") { PhaseKind::Reduce } else { PhaseKind::Map };
    LoggedTask { phase, attempts: vec![attempt] }
}

/// Reads the file of nodes; `None` for an empty text.
fn nodes(text: &str) -> Result<Option<Topology>, TraceError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut hosts = Vec::new();
    for object in Objects::new("the file of nodes", text, 1) {
        let object = object?;
        let Rack { rack, nodes } = object.read(RACK)?;
        for Node { name: node, memory, vcores } in nodes.into_iter().flatten() {
            // The last node of a rack may be empty.
            let Some(host) = node.as_deref().and_then(|node| Host::of(node, rack.as_deref())) else {
                continue;
            };
            let slots = (memory.unwrap_or(NODE_MB) / CONTAINER_MB).min(vcores.unwrap_or(NODE_CORES));
            if slots == 0 {
                let what = format!(
                    "found node {:?} without room for a container of {CONTAINER_MB} MB and a core",
                    host.name
                );
                return Err(object.error(what));
            }
            hosts.push((host, Some(u32::try_from(slots).unwrap_or(u32::MAX))));
        }
    }
    Ok(Some(Topology::of(hosts)))
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::TasksDraft;

    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;

    const JOBS: &str = r#"{ "num.nodes": 3, "num.racks": 1 }
{ "am.type": "mapreduce", "job.start.ms": 1500, "job.queue.name": "q", "job.id": "one", "job.user": "ann", "job.tasks": [
  { "container.host": "/r1/n1", "container.start.ms": 2000, "container.end.ms": 5000, "container.type": "map" },
  { "container.host": "/r1/n1", "container.start.ms": 2000, "container.end.ms": 4000 },
  { "container.host": "/r1/n2", "container.start.ms": 3000, "container.end.ms": 7000, "container.type": "reduce" } ] }
{ "job.start.ms": 0, "job.count": 2, "job.tasks": [
  { "count": 3, "duration.ms": 1000 }, { "duration.ms": 4000, "container.type": "reduce", "container.request.delay": 5 } ] }
"#;

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
        let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
        read_workload("t.json", text.as_bytes(), None, &options)
    }

    #[test]
    fn containers_become_tasks() {
        let imported = read(JOBS, &[]).unwrap();
        assert_eq!(imported.importer.name, "sls");
        let flows = &imported.draft.flows;
        let ids: Vec<_> = flows.iter().map(|flow| (flow.id.as_str(), flow.release)).collect();
        assert_eq!(ids, [("job_2", 0.0), ("job_2 (2)", 0.0), ("one", 1.5)]);
        let uniform = |tasks, seconds| Some(TasksDraft::Uniform { tasks, seconds }.into());
        assert_eq!((&flows[0].jobs[0].map, &flows[0].jobs[0].reduce), (&uniform(3, 1.0), &uniform(1, 4.0)));
        assert_eq!(flows[2].jobs[0].map, Some(TasksDraft::Each(vec![3.0, 2.0]).into()));
        assert_eq!(flows[2].jobs[0].reduce, uniform(1, 2.0));
        assert_eq!((flows[0].jobs[0].recorded.len(), flows[2].jobs[0].recorded.len()), (0, 3));
        assert_eq!((flows[2].pool.as_deref(), flows[2].user.as_deref()), (Some("q"), Some("ann")));
        let slots: Vec<_> = imported.draft.machines.iter().map(|m| (m.name.as_str(), m.slots)).collect();
        assert_eq!(slots, [("n1", Slots::Generic(2)), ("n2", Slots::Generic(1))]);
        assert_eq!(imported.draft.start, None);
    }

    #[test]
    fn nodes_have_room_for_containers() {
        let nodes = r#"{"rack":"r1","nodes":[{"node":"n1","memory-mb":2048,"vcores":6},{"node":"n2"},{}]}
            {"rack":"r2","nodes":[{"node":"n3","memory-mb":8192,"vcores":4}]}"#;
        let imported = read(JOBS, &[("nodes", nodes)]).unwrap();
        let found: Vec<_> =
            imported.draft.machines.iter().map(|m| (m.name.as_str(), m.rack.as_deref(), m.slots)).collect();
        let expected = [("n1", "r1", 2), ("n2", "r1", 10), ("n3", "r2", 4)];
        assert_eq!(found, expected.map(|(name, rack, slots)| (name, Some(rack), Slots::Generic(slots))));
        let error = |nodes| read(JOBS, &[("nodes", nodes)]).unwrap_err().to_string();
        assert!(
            error("{\"nodes\":[{\"node\":\"a\",\"memory-mb\":5}]}")
                .starts_with("the file of nodes:1:1: found node \"a\"")
        );
        assert!(error("[").starts_with("the file of nodes:1:1: "));
    }

    #[test]
    fn invalid_jobs_are_refused() {
        let error = |text: &str| read(text, &[]).unwrap_err().to_string();
        let many = JOBS.replace("\"count\": 3", "\"count\": 30000000000");
        assert!(
            error(&many)
                .starts_with("t.json:6:1: found counts for 60000000000 more tasks up to this job, expected"),
            "{}",
            error(&many)
        );
        assert!(error(&JOBS.replace("1500", "\"x\"")).starts_with("t.json:2:"));
    }

    #[test]
    fn the_public_traces_are_read() {
        for (name, sizes) in [("inputsls.json", (2, 5)), ("sls_dag.json", (2, 5))] {
            let Some(path) = crate::real_data::real(&format!("sls/{name}")) else { return };
            let Some(nodes) = crate::real_data::real("sls/nodes.json") else { return };
            let (text, nodes) =
                (std::fs::read_to_string(path).unwrap(), std::fs::read_to_string(nodes).unwrap());
            let imported = read(&text, &[("nodes", &nodes)]).unwrap();
            assert_eq!(imported.importer.name, "sls");
            let attempts = imported.draft.flows.iter().map(|flow| flow.jobs[0].recorded.len()).sum();
            assert_eq!((imported.draft.flows.len(), attempts), sizes, "{name}: {:#?}", imported.diagnostics);
            slackline_model::Instance::new(&imported.draft).unwrap();
        }
    }

    #[test]
    fn a_stream_has_the_machines_of_its_nodes() {
        let nodes =
            r#"{ "rack": "r1", "nodes": [ { "node": "n2" }, { "node": "n1", "memory-mb": 2048 }, {} ] }"#;
        let options = ImportOptions::from_pairs([("nodes", nodes)]).unwrap();
        let source = std::io::Cursor::new(JOBS.as_bytes().to_vec());
        let mut stream = crate::WorkloadStream::open("t.json", source, None, &options).unwrap();
        let machines: Vec<_> = stream.head().machines.iter().map(|m| (m.name.as_str(), m.slots)).collect();
        assert_eq!(machines, [("n1", Slots::Generic(2)), ("n2", Slots::Generic(10))]);
        let mut flows = Vec::new();
        while let Some((flow, _)) = stream.next_flow().unwrap() {
            flows.push((flow.id, flow.release, flow.jobs.len()));
        }
        let whole = read_workload("t.json", JOBS.as_bytes(), None, &options).unwrap().draft.flows;
        assert_eq!(flows, whole.into_iter().map(|f| (f.id, f.release, f.jobs.len())).collect::<Vec<_>>());
        let bad = ImportOptions::from_pairs([("nodes", "[")]).unwrap();
        let source = std::io::Cursor::new(JOBS.as_bytes().to_vec());
        let error =
            crate::WorkloadStream::open("t.json", source, None, &bad).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the file of nodes:1:"), "{error}");
    }
}
