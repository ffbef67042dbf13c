//! Durations of earlier jobs, from the JobHistory server.

use std::collections::BTreeMap;
use std::time::Duration;

use slackline_executor::run::error::EngineError;
use slackline_executor::spec::job_cost::{JobCost, JobHistory, JobName};

use crate::attach::job_name::{job_name_from, name_properties, without_numbers};
use crate::clock::Stopwatch;
use crate::rest::http;
use crate::rest::http::{Address, HttpError};
use crate::rest::mapreduce::{MapReduce, MapReduceJob};
use crate::rest::resource_manager::ResourceManager;

/// The most jobs to ask for. Each takes two requests, with an answer of some hundred kilobytes.
const JOBS_MAX: usize = 100;

/// The most jobs of one name.
const JOBS_PER_NAME: usize = 3;

/// Their greatest age, ms.
const SINCE_MS: u64 = 7 * 24 * 3_600_000;

/// Time limit for all requests.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The JobHistory server of the option; `None` if the user wants none.
pub(super) fn history_server(
    given: &str,
    address: &Address,
    manager: &ResourceManager,
) -> Result<Option<MapReduce>, EngineError> {
    let address = match given {
        "none" => return Ok(None),
        "cluster" => {
            let property = manager.property("mapreduce.jobhistory.webapp.address");
            let configured =
                property.map_err(EngineError::other)?.unwrap_or_else(|| "0.0.0.0:19888".to_owned());
            // It listens on all addresses, so it is assumed to run on the machine of the ResourceManager.
            let port = configured.trim().strip_prefix("0.0.0.0:");
            port.map_or(configured.clone(), |port| address.with_port(port))
        }
        given => given.to_owned(),
    };
    let address = Address::parse(&address).map_err(EngineError::other)?;
    let settings = http::Settings { retries: 0, ..http::Settings::default() };
    Ok(Some(MapReduce::history(&address, settings)))
}

/// Durations of the newest jobs of these queues that succeeded in the last seven days.
///
/// # Errors
/// The server does not answer. A job that it does not know is left out.
pub(super) fn recent_jobs(
    server: &MapReduce,
    queues: &[String],
    now_ms: u64,
) -> Result<JobHistory, HttpError> {
    let mut jobs = server.succeeded(now_ms.saturating_sub(SINCE_MS))?;
    jobs.retain(|job| {
        queues.iter().any(|queue| *queue == job.queue || queue.ends_with(&format!(".{}", job.queue)))
    });
    jobs.sort_by_key(|job| std::cmp::Reverse((job.finished_ms, job.id)));
    let mut of_name: BTreeMap<String, usize> = BTreeMap::new();
    jobs.retain(|job| {
        let known = of_name.entry(without_numbers(&job.name)).or_default();
        *known += 1;
        *known <= JOBS_PER_NAME
    });
    let (watch, mut past) = (Stopwatch::start(), JobHistory::new());
    for job in jobs.iter().take(JOBS_MAX).take_while(|_| watch.elapsed() < TIME_LIMIT) {
        if let Some((name, cost)) = measured(server, job) {
            let so_far = past.entry(name).or_default();
            *so_far = std::mem::take(so_far).and(&cost);
        }
    }
    Ok(past)
}

/// The name of a job and its durations; `None` if the server does not know them.
fn measured(server: &MapReduce, job: &MapReduceJob) -> Option<(JobName, JobCost)> {
    let report = server.job(job.id).ok()??;
    // The number of tasks and their total time; zero if the server gives no mean.
    let phase = |tasks: u64, means: &[Option<u64>]| {
        let mean = means.iter().flatten().fold(0, |sum: u64, &ms| sum.saturating_add(ms));
        if mean > 0 { (tasks, tasks.saturating_mul(mean).saturating_mul(1000)) } else { (0, 0) }
    };
    let (maps, map_micros) = phase(report.maps_completed, &[report.mean_map_ms]);
    let (reduces, reduce_micros) = phase(
        report.reduces_completed,
        &[report.mean_shuffle_ms, report.mean_merge_ms, report.mean_reduce_ms],
    );
    let cost = JobCost { maps, map_micros, reduces, reduce_micros, ..JobCost::default() };
    let properties = server.properties(job.id, &name_properties()).ok()?;
    (cost.maps + cost.reduces > 0).then(|| (job_name_from(&job.name, &properties), cost))
}
