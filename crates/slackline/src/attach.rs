//! Schedules the MapReduce jobs that other users submit to a Hadoop cluster, under any policy.
//!
//! - [`Cluster`], [`AttachOptions`]: the cluster and the options; [`drive`]: the loop;
//! - [`Watcher`], [`AttachEvent`], [`Status`]: progress reports; [`prospects`]: predicted completions of
//!   applications;
//! - [`Events`]: the events as lines of JSON.

mod events;
mod prospects;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use slackline_executor::spec::job_cost::records;
use slackline_executor::store::history::{CountsOfJobs, HistoryStore, Note, PastRun};
use slackline_model::{History, Objective};
use slackline_policy::{Config, Learning};
use slackline_task::base::clock;
pub use slackline_yarn::attach::{
    Application, AttachEvent, AttachOptions, AttachSummary, Cluster, PARAMS, Phase, Stage, Status, Watcher,
};

pub use self::events::Events;
pub use self::prospects::prospects;
use crate::policy_spec::PolicySpec;
use crate::run::{EngineError, RunError};

/// The policy and the history.
#[derive(Clone, Debug)]
pub struct Request {
    /// The policy.
    pub policy: PolicySpec,
    /// The history: a store of the durations of jobs in earlier runs. Created if it does not exist.
    pub history: Option<PathBuf>,
}

/// Schedules the applications of a cluster until `stop` is set or the time limit is reached, and records
/// their durations in the history. Returns what is left on the cluster.
///
/// # Errors
/// An invalid history; the cluster state cannot be read; the policy fails.
pub fn drive(
    cluster: Cluster,
    request: &Request,
    stop: Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Result<AttachSummary, RunError> {
    let started = clock::unix_micros();
    let store = request.history.as_deref().map(HistoryStore::new).transpose()?;
    let known = store.as_ref().map(HistoryStore::latest).transpose()?;
    // Durations in the history replace those that the cluster remembers.
    let mut jobs = cluster.past().clone();
    jobs.extend(known.unwrap_or_default());
    let known: History = records(&jobs);
    let machines = cluster.empty().cluster();
    let mut policy = request.policy.build(machines, &Objective::default());
    let learning = Learning::new(machines, &known).guessing();
    // The limit on failures of a task is a setting of its application, and the driver has none.
    let config = Config { attempts_max: u16::MAX, learning: Some(learning), ..Config::plain() };
    let driven = cluster.drive(policy.as_mut(), config, stop, watcher);
    let closed = driven.map_err(|error| match error {
        EngineError::Policy(failure) => {
            RunError::Policy { policy: request.policy.spec().to_owned(), failure }
        }
        error => error.into(),
    })?;
    if let Some(store) = store.filter(|_| !closed.learned.is_empty()) {
        let jobs = closed.learned.clone();
        let note = Note { workload: "attach".to_owned(), policy: request.policy.spec().to_owned() };
        // The tasks belong to other users, so their counters are unknown.
        store.remember(&PastRun { started, note, jobs, counts: CountsOfJobs::new() })?;
    }
    Ok(closed)
}
