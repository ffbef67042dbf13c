//! Drives the MapReduce jobs that others submit to a Hadoop cluster, under any policy.
//!
//! - [`Cluster`], [`AttachOptions`]: the cluster, and what is asked for; [`drive`]: the loop;
//! - [`Watcher`], [`AttachEvent`], [`Status`]: what is told meanwhile; [`prospects`]: when applications are
//!   going to be done;
//! - [`Events`]: all of it as lines of JSON.

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

/// Who decides, and what is known.
#[derive(Clone, Debug)]
pub struct Request {
    /// The policy.
    pub policy: PolicySpec,
    /// The store of what jobs took in earlier runs; begun if it is not there.
    pub history: Option<PathBuf>,
}

/// Drives the applications of a cluster until `stop` is set or the time is over, and tells the history what
/// they took. What is left on the cluster is given.
///
/// # Errors
/// A history that is none; the table cannot be had; the policy fails.
pub fn drive(
    cluster: Cluster,
    request: &Request,
    stop: Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Result<AttachSummary, RunError> {
    let started = clock::unix_micros();
    let store = request.history.as_deref().map(HistoryStore::new).transpose()?;
    let known = store.as_ref().map(HistoryStore::latest).transpose()?;
    // What was seen here says more than what the cluster remembers.
    let mut jobs = cluster.past().clone();
    jobs.extend(known.unwrap_or_default());
    let known: History = records(&jobs);
    let machines = cluster.empty().cluster();
    let mut policy = request.policy.build(machines, &Objective::default());
    let learning = Learning::new(machines, &known).guessing();
    // How often a task may fail is the business of its application.
    let config = Config::plain().with_attempts_max(u16::MAX).with_learning(Some(learning));
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
        // Its tasks are none of ours: nobody tells what they counted.
        store.remember(&PastRun { started, note, jobs, counts: CountsOfJobs::new() })?;
    }
    Ok(closed)
}
