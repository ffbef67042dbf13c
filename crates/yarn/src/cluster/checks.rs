//! Checks before the start: whether the cluster follows the table and the priorities, and accepts
//! submissions.

use slackline_executor::run::error::EngineError;
use slackline_model::names::listed;
use slackline_model::params::ParamError;

use crate::rest::http::{Address, HttpError};
use crate::rest::resource_manager::{App, AppFilter, Queue, ResourceManager, Scheduler};
use crate::submitter::SubmitterInfo;

/// The only scheduler that calls the plug-in, by the name it reports.
const CAPACITY: &str = "capacityScheduler";

/// Default of `yarn.scheduler.minimum-allocation-mb`, MiB.
const MINIMUM: u64 = 1024;

/// Default of `yarn.scheduler.maximum-allocation-mb`, MiB.
const MAXIMUM: u64 = 8192;

/// Refuses an address without a ResourceManager. Other Hadoop daemons have web interfaces too, which are
/// easily mistaken for it.
pub(crate) fn check_manager(address: &Address, manager: &ResourceManager) -> Result<(), EngineError> {
    let Err(error) = manager.info() else { return Ok(()) };
    if !error.is_missing() && !matches!(error, HttpError::Unknown { .. }) {
        return Err(EngineError::other(error));
    }
    Err(EngineError::other(format!(
        "{address}: found no ResourceManager there, expected its web address (usually port 8088); {error}"
    )))
}

/// Refuses a cluster that ignores priorities in the queue of a run, or lacks that queue. Where YARN decides
/// by itself, any order of applications is accepted.
pub(crate) fn check_run_queue(
    manager: &ResourceManager,
    queue: &str,
    by_cluster: bool,
) -> Result<(), EngineError> {
    let scheduler = manager.scheduler().map_err(EngineError::other)?;
    match (by_cluster, scheduler.kind == CAPACITY) {
        // Other schedulers name queues by other rules.
        (true, false) => Ok(()),
        (true, true) => queue_of_run(&scheduler, queue).map(drop),
        (false, _) => {
            check_scheduler(&scheduler)?;
            check_ordering(queue_of_run(&scheduler, queue)?.as_slice())
        }
    }
}

/// Refuses a configuration that submits jobs to no cluster, such as Hadoop's default.
pub(crate) fn check_framework(about: &SubmitterInfo) -> Result<(), EngineError> {
    let Some(framework) = about.framework.as_deref().filter(|name| *name != "yarn") else {
        return Ok(());
    };
    Err(EngineError::other(format!(
        "found mapreduce.framework.name {framework:?} in the configuration of Hadoop, expected \"yarn\": set the option conf, or the variable HADOOP_CONF_DIR, to the directory with the cluster's mapred-site.xml"
    )))
}

/// Refuses queues, given by their full paths, that do not order applications by priority.
pub(crate) fn check_queue_order(scheduler: &Scheduler, queues: &[String]) -> Result<(), EngineError> {
    let queues: Vec<&Queue> = scheduler.queues.iter().filter(|queue| queues.contains(&queue.path)).collect();
    check_ordering(&queues)
}

/// Refuses schedulers that do not call the plug-in.
pub(crate) fn check_scheduler(scheduler: &Scheduler) -> Result<(), EngineError> {
    if scheduler.kind == CAPACITY {
        return Ok(());
    }
    Err(EngineError::other(format!(
        "found the scheduler {:?} in the ResourceManager, expected {CAPACITY:?}, the only one that uses the plug-in: set yarn.resourcemanager.scheduler.class in its yarn-site.xml",
        scheduler.kind
    )))
}

fn check_ordering(queues: &[&Queue]) -> Result<(), EngineError> {
    let Some(Queue { path, .. }) = queues.iter().find(|queue| queue.ordering == "fair") else {
        return Ok(());
    };
    Err(EngineError::other(format!(
        "found the ordering policy \"fair\" in the queue {path}, expected \"fifo\", the only one that follows priorities: set yarn.scheduler.capacity.{path}.ordering-policy in the ResourceManager's capacity-scheduler.xml"
    )))
}

/// The queue of a run, by its own name or its full path, as YARN resolves it; `None` if the first application
/// creates it.
fn queue_of_run<'a>(scheduler: &'a Scheduler, name: &str) -> Result<Option<&'a Queue>, EngineError> {
    let grows = |above: &String| name.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('.'));
    match queues_named(scheduler, name).as_slice() {
        [queue] => Ok(Some(queue)),
        [] if scheduler.growing.iter().any(grows) => Ok(None),
        several => Err(ambiguous_queue(scheduler, several, name)),
    }
}

/// The queues of `attach`: one queue by its full path or its own name, or all below a parent queue; `root.`
/// is optional.
pub(crate) fn attach_queues<'a>(scheduler: &'a Scheduler, name: &str) -> Result<Vec<&'a Queue>, EngineError> {
    let is_whole = name == "root" || name.starts_with("root.");
    let above = if is_whole { format!("{name}.") } else { format!("root.{name}.") };
    let below: Vec<&Queue> = scheduler.queues.iter().filter(|queue| queue.path.starts_with(&above)).collect();
    let named = queues_named(scheduler, name);
    match (named.as_slice(), below.as_slice()) {
        ([_], []) => Ok(named),
        ([], [_, ..]) => Ok(below),
        _ => Err(ambiguous_queue(scheduler, &[named, below].concat(), name)),
    }
}

/// The leaf queues of this full path or own name. Several may share a name.
fn queues_named<'a>(scheduler: &'a Scheduler, name: &str) -> Vec<&'a Queue> {
    let is_meant = |queue: &&Queue| queue.path == name || queue.path.rsplit('.').next() == Some(name);
    scheduler.queues.iter().filter(is_meant).collect()
}

/// The error for a name of several queues or of none.
fn ambiguous_queue(scheduler: &Scheduler, several: &[&Queue], name: &str) -> EngineError {
    let among = if several.is_empty() { scheduler.queues.iter().collect() } else { several.to_vec() };
    let paths: Vec<String> = among.into_iter().map(|queue| queue.path.clone()).collect();
    let expected = format!("one of the queues that accept jobs: {}", listed(&paths));
    ParamError::Value { name: "queue", found: format!("{name:?}"), expected }.into()
}

/// The container memory of other users' jobs in these queues, MiB, and the reason: the average of running
/// containers, rounded to smallest containers; without any, the smallest container.
pub(crate) fn observed_container_mb(
    manager: &ResourceManager,
    queues: &[String],
) -> Result<(u64, String), EngineError> {
    let (minimum, maximum) = (minimum_mb(manager)?, maximum_mb(manager)?);
    let apps = manager.apps(&AppFilter::default()).map_err(EngineError::other)?;
    let is_its = |app: &&App| app.kind == "MAPREDUCE" && queues.iter().any(|queue| app.is_in(queue));
    let sizes =
        apps.iter().filter(is_its).filter_map(|app| Some((app.allocated_mb?, app.running_containers?)));
    // AMs are excluded, since their size may differ.
    let (all_mb, containers) =
        sizes.filter(|(_, count)| *count > 1).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if containers == 0 {
        let why = "the smallest that the cluster grants (yarn.scheduler.minimum-allocation-mb)".to_owned();
        return Ok((minimum.min(maximum), why));
    }
    let steps = (all_mb as f64 / containers as f64 / minimum as f64).round().max(1.0) as u64;
    let why = format!("the mean of the {containers} running containers");
    Ok(((steps * minimum).min(maximum), why))
}

fn minimum_mb(manager: &ResourceManager) -> Result<u64, EngineError> {
    configured_mb(manager, "yarn.scheduler.minimum-allocation-mb", MINIMUM)
}

fn maximum_mb(manager: &ResourceManager) -> Result<u64, EngineError> {
    configured_mb(manager, "yarn.scheduler.maximum-allocation-mb", MAXIMUM)
}

fn configured_mb(manager: &ResourceManager, name: &str, default: u64) -> Result<u64, EngineError> {
    let value = manager.property(name).map_err(EngineError::other)?;
    Ok(value.and_then(|text| text.trim().parse().ok()).unwrap_or(default).max(1))
}

/// The memory granted to a request of this size, MiB: the scheduler rounds up.
pub(crate) fn granted_container_mb(manager: &ResourceManager, asked: u64) -> Result<u64, EngineError> {
    let (minimum, maximum) = (minimum_mb(manager)?, maximum_mb(manager)?);
    if asked > maximum {
        let expected = format!(
            "at most {maximum}MiB, the largest container that the cluster grants \
             (yarn.scheduler.maximum-allocation-mb in the ResourceManager's yarn-site.xml)"
        );
        return Err(ParamError::Value { name: "memory", found: format!("{asked}MiB"), expected }.into());
    }
    Ok((asked.max(1).div_ceil(minimum) * minimum).min(maximum))
}
