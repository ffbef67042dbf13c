//! Job traces of Rumen: the input of Hadoop's own simulators, converted from job histories by its
//! TraceBuilder.
//!
//! JSON objects in sequence, one per job, with every task and attempt: times in milliseconds, hosts,
//! outcomes. The topology that Rumen writes beside a trace is optional. `hadoop_log` converts the jobs to
//! flows.
//!
//! - Names may have their dots escaped (`node1\.example\.com`).
//! - A machine is named by `hostName` (`/rack/host`), or else by `location`.
//! - The location of a map's input is counted and not used: durations are those measured there.
//! - Distributions (`…CDFs`), counters and usage are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Outcome;
use slackline_model::{PhaseKind, Start};

use super::objects::Object;
use crate::importers::hadoop_log::{
    FAILED_JOBS, Host, JOB_SKEW, Log, LoggedAttempt, LoggedJob, LoggedLines, LoggedObjects, LoggedTask,
    Topology, Workflow, import_objects, priority, time,
};
use crate::importers::importer::{Importer, Input, Output};
use crate::importers::line_import::LineImport;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::signatures::is_rumen;

/// The name of an object of a trace in messages.
const KIND: &str = "a job of a Rumen trace";

pub(super) const IMPORTER: Importer = Importer {
    endings: &["json"],
    params: &[
        Param::new("topology", "", Values::TextOfFile, "topology file of the cluster of a Rumen trace"),
        FAILED_JOBS,
        JOB_SKEW,
    ],
    // The length of the wait for a job has no effect on the workload: a later job is refused.
    shaped: |settings, name| match name {
        "topology" => !settings.text(name).is_empty(),
        name => name != JOB_SKEW.name,
    },
    lines: Some(open),
    ..Importer::new("rumen", "a job trace of Hadoop's Rumen: JSON objects, one job each", is_rumen, import)
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    #[serde(rename = "jobID")]
    id: String,
    #[serde(rename = "jobName")]
    name: Option<String>,
    user: Option<String>,
    queue: Option<String>,
    priority: Option<String>,
    outcome: Option<String>,
    submit_time: Option<i64>,
    launch_time: Option<i64>,
    finish_time: Option<i64>,
    #[serde(rename = "jobMapMB")]
    map_memory: Option<i64>,
    #[serde(rename = "jobReduceMB")]
    reduce_memory: Option<i64>,
    total_maps: Option<i64>,
    total_reduces: Option<i64>,
    map_tasks: Option<Vec<Task>>,
    reduce_tasks: Option<Vec<Task>>,
    direct_dependant_jobs: Option<Vec<String>>,
    #[serde(rename = "jobProperties")]
    properties: Option<BTreeMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    attempts: Option<Vec<Attempt>>,
    preferred_locations: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    result: Option<String>,
    start_time: Option<i64>,
    finish_time: Option<i64>,
    host_name: Option<String>,
    location: Option<Location>,
}

#[derive(Deserialize)]
struct Location {
    layers: Option<Vec<String>>,
}

/// Reads a trace into a draft with the machines that it names.
///
/// # Errors
/// The first object that is no job, with its line; an invalid topology.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let topology = Topology::of_rumen(settings.text("topology"))?;
    import_objects(input, settings, Trace { topology: None }, topology.as_ref())
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    let trace = Topology::of_rumen(settings.text("topology")).map(|topology| Trace { topology });
    Box::new(LoggedLines::new(settings, trace))
}

struct Trace {
    /// Machines with an unknown number of slots.
    topology: Option<Topology>,
}

impl LoggedObjects for Trace {
    const NOTHING: &'static str = "found nothing, expected a Rumen trace: JSON objects, one job each";

    fn take(&mut self, object: &Object<'_>, log: &mut Log) -> Result<bool, TraceError> {
        let job = object.read::<Job>(KIND)?;
        let line = object.line();
        let announced = |total: Option<i64>| u64::try_from(total.unwrap_or(0)).unwrap_or(0);
        let listed = |tasks: &Option<Vec<Task>>| tasks.as_ref().map_or(0, Vec::len) as u64;
        let missing = announced(job.total_maps).saturating_sub(listed(&job.map_tasks))
            + announced(job.total_reduces).saturating_sub(listed(&job.reduce_tasks));
        log.diagnostics.add_of(
            "task",
            missing,
            line,
            "counted by the job but not listed in the log, left out",
        );
        let has_memory =
            [job.map_memory, job.reduce_memory].into_iter().flatten().any(|megabytes| megabytes > 0);
        let memory = "with the memory of its containers, which limits no task";
        log.diagnostics.add_unmodelled("job", u64::from(has_memory), line, memory);
        log.add(logged(job, line));
        Ok(true)
    }

    fn machines(&mut self, diagnostics: &mut Diagnostics) -> Result<Vec<MachineDraft>, TraceError> {
        let named = self.topology.as_ref().map_or(0, Topology::len) as u64;
        diagnostics.add_all("machine", named, "in the topology, which has no slot counts: ignored");
        Ok(Vec::new())
    }
}

fn logged(job: Job, line: u32) -> LoggedJob {
    let failed = matches!(job.outcome.as_deref(), Some("FAILED" | "KILLED"));
    let workflow = workflow(&job);
    let located = |task: &Task| task.preferred_locations.as_ref().is_some_and(|places| !places.is_empty());
    let of = |tasks: Option<Vec<Task>>, phase| {
        let task = move |task: Task| LoggedTask {
            phase,
            attempts: task.attempts.unwrap_or_default().into_iter().map(attempt).collect(),
        };
        tasks.unwrap_or_default().into_iter().map(task)
    };
    LoggedJob {
        failed,
        workflow,
        located: job.map_tasks.iter().flatten().filter(|task| located(task)).count() as u64,
        tasks: of(job.map_tasks, PhaseKind::Map).chain(of(job.reduce_tasks, PhaseKind::Reduce)).collect(),
        id: job.id,
        name: job.name,
        user: job.user,
        queue: job.queue,
        priority: job.priority.as_deref().and_then(priority),
        submitted: time(job.submit_time).or(time(job.launch_time)),
        finished: time(job.finish_time),
        line,
    }
}

fn attempt(attempt: Attempt) -> LoggedAttempt {
    let outcome = match attempt.result.as_deref() {
        Some("SUCCESS" | "SUCCEEDED") => Outcome::Done,
        Some("FAILED") => Outcome::Failed,
        _ => Outcome::Killed,
    };
    let named = attempt.host_name.as_deref().and_then(Host::parse);
    let located = || {
        let layers = attempt.location.and_then(|location| location.layers)?;
        let (name, racks) = layers.split_last()?;
        Host::of(name, Some(&racks.join("/")))
    };
    LoggedAttempt {
        start: time(attempt.start_time),
        end: time(attempt.finish_time),
        length: None,
        host: named.or_else(located),
        outcome,
    }
}

/// The workflow in the properties of a job.
fn workflow(job: &Job) -> Workflow {
    let properties = job.properties.iter().flatten();
    let texts = properties.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    Workflow {
        dependants: job.direct_dependant_jobs.clone().unwrap_or_default(),
        ..Workflow::of_properties(texts)
    }
}

#[cfg(test)]
mod tests;
