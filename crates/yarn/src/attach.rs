//! Drives MapReduce jobs that other users submit to a cluster. The jobs themselves need no change.
//!
//! Every application of the chosen queues is a flow of one job. The engine holds it until a slot is free for
//! its ApplicationMaster (AM). It arrives at the policy when the AM reports the number of its tasks. All
//! other containers count as taken slots.
//!
//! In reading order:
//! - [`Cluster`]: the checks before the start; [`Cluster::drive`]: the loop; [`AttachSummary`]: the result;
//! - [`Watcher`], [`Status`], [`AttachEvent`]: the reports meanwhile;
//! - `engine`: the engine of a policy; `application`: one application; `job_name`: its name and its tags;
//!   `past_jobs`: durations of earlier jobs of that name.

mod application;
mod engine;
mod job_name;
mod past_jobs;
mod watcher;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use slackline_executor::run::error::EngineError;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_model::draft::{Draft, MachineDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{FlowId, Instance};
use slackline_policy::log::{FlowEnd, Sink};
use slackline_policy::plans::Plans;
use slackline_policy::{Config, Driver, Policy};

pub use crate::attach::engine::AttachSummary;
use crate::attach::engine::{AttachConfig, AttachEngine, task_seconds};
pub use crate::attach::watcher::{Application, AttachEvent, Phase, Stage, Status, Watcher};
use crate::clock::unix_millis;
use crate::cluster::capacity::{AM_SHARE, Rules, slots};
use crate::cluster::checks;
use crate::cluster::control::{CYCLE, Control, HIGHEST_PROPERTY};
use crate::cluster::observer::{Observer, PollIntervals};
use crate::cluster::table::Table;
use crate::cluster::table_location::{TABLE, VALID, table_path};
use crate::rest::http;
use crate::rest::http::Address;
use crate::rest::resource_manager::{ResourceManager, Scheduler};

/// The options of `attach`.
pub const PARAMS: &[Param] = &[MEMORY, AM_SHARE, TABLE, JOB_HISTORY];

/// The jobs choose the size of their containers themselves.
const MEMORY: Param = Param::new(
    "memory",
    "cluster",
    Values::Bytes,
    "memory of a slot; cluster: mean of the running containers",
)
.or_word("cluster");

const JOB_HISTORY: Param = Param::new(
    "job-history",
    "cluster",
    Values::Text("HOST:PORT"),
    "JobHistory server, for durations of earlier jobs; cluster: its own, none: do not use one",
);

/// The options of `attach` that are no engine parameters.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// Queues, by their full paths, or by their own names where these are unique. A parent queue stands for
    /// all queues below it.
    pub queues: Vec<String>,
    /// Only observe the cluster.
    pub dry_run: bool,
    /// Time between two polls; [`AttachOptions::new`] sets 250 ms.
    pub cycle: Duration,
    /// Time between two calls of [`Watcher::status`].
    pub every: Duration,
    /// Time after which to end; `None`: run until stopped.
    pub lasts: Option<Duration>,
}

impl AttachOptions {
    /// Drives these queues until stopped, with a status every ten seconds.
    pub fn new(queues: Vec<String>) -> Self {
        Self { queues, dry_run: false, cycle: CYCLE, every: Duration::from_secs(10), lasts: None }
    }
}

/// A cluster whose configuration was checked.
#[derive(Debug)]
pub struct Cluster {
    address: Address,
    config: AttachConfig,
    table: Option<PathBuf>,
    slot: String,
    remarks: Vec<String>,
    past: JobHistory,
    empty: Instance,
}

impl Cluster {
    /// Reads queues, machines and the plug-in's configuration of the cluster at `yarn://HOST:PORT`.
    ///
    /// # Errors
    /// No ResourceManager answers, or it requires Kerberos or TLS; an unknown queue; no plug-in.
    pub fn ask(address: &str, settings: &Settings, wish: AttachOptions) -> Result<Self, EngineError> {
        let address = Address::parse(address).map_err(EngineError::other)?;
        let manager = ResourceManager::new(&address, http::Settings::default());
        checks::check_manager(&address, &manager)?;
        let mut remarks = Vec::new();
        let AttachOptions { queues: named, dry_run, cycle, every, lasts } = wish;
        let scheduler = manager.scheduler().map_err(EngineError::other)?;
        checks::check_scheduler(&scheduler)?;
        let queues = queues(&scheduler, &named)?;
        let (slot_mb, why) = if settings.given(MEMORY.name) {
            let asked = settings.count(MEMORY.name).div_ceil(1 << 20);
            (checks::granted_container_mb(&manager, asked)?, "set by --memory".to_owned())
        } else {
            checks::observed_container_mb(&manager, &queues)?
        };
        let machines = slots(&address, &manager, slot_mb)?;
        match checks::check_queue_order(&scheduler, &queues) {
            Err(error) if dry_run => remarks.push(error.to_string()),
            fits => fits?,
        }
        let table = match table_path(settings.text(TABLE.name), &manager) {
            Err(error) if dry_run => {
                remarks.push(error.to_string());
                None
            }
            table => table?,
        };
        let priority = manager.property(HIGHEST_PROPERTY).map_err(EngineError::other)?;
        if priority.is_none_or(|most| most.trim() == "0") {
            remarks.push(format!(
                "found no {HIGHEST_PROPERTY} above 0 in the ResourceManager's configuration, so priorities have no effect (docs/hadoop.md)"
            ));
        }
        let history = past_jobs::history_server(settings.text(JOB_HISTORY.name), &address, &manager)?;
        let past = history.map(|server| past_jobs::recent_jobs(&server, &queues, unix_millis()));
        let past = past.transpose().unwrap_or_else(|error| {
            remarks.push(format!(
                "durations of earlier jobs are not available: {error}; pass the address of the JobHistory server with --job-history HOST:PORT"
            ));
            None
        });
        let empty = Instance::new(&Draft { machines: machines.clone(), ..Draft::default() })?;
        let rules = Rules { am_share: settings.real(AM_SHARE.name), slot_mb, by_cluster: false };
        let config = AttachConfig { queues, rules, machines, dry_run, cycle, every, lasts };
        let slot = format!("{slot_mb} MiB, {why}");
        Ok(Self { address, config, table, slot, remarks, past: past.unwrap_or_default(), empty })
    }

    /// Warnings for the user before the start.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Durations of earlier jobs of these queues that succeeded, from the JobHistory server.
    pub fn past(&self) -> &JobHistory {
        &self.past
    }

    pub fn queues(&self) -> &[String] {
        &self.config.queues
    }

    /// The memory of a slot and the reason for it, for the user.
    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// The path of the plug-in's table.
    pub fn table(&self) -> Option<&PathBuf> {
        self.table.as_ref()
    }

    /// The machines; each slot is a machine.
    pub fn machines(&self) -> &[MachineDraft] {
        &self.config.machines
    }

    /// The machines without flows: the instance for which a policy is built.
    pub fn empty(&self) -> &Instance {
        &self.empty
    }

    /// Drives the applications until `stop` is set or the time is over. Then it removes the table and
    /// restores the priorities of the applications.
    ///
    /// # Errors
    /// The table cannot be opened; the policy fails.
    pub fn drive(
        self,
        policy: &mut dyn Policy,
        config: Config<'_>,
        stop: Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
    ) -> Result<AttachSummary, EngineError> {
        let path = self.table.as_deref().filter(|_| !self.config.dry_run);
        let table = path.map(|path| Table::open(path, VALID)).transpose().map_err(EngineError::other)?;
        // The next poll retries a failed request.
        let settings = http::Settings { retries: 0, ..http::Settings::default() };
        let manager = ResourceManager::new(&self.address, settings);
        let control = Control::new(manager, Observer::new(PollIntervals::default()), table, VALID);
        let mut engine = AttachEngine::new(control, self.config, stop, watcher);
        let ended = Rc::new(RefCell::new(Vec::new()));
        let mut sink = Ends(ended.clone());
        let mut driver = Driver::new(self.empty, policy, &mut engine, &mut sink, config);
        while driver.step() {
            let plans = Plans::of(&driver);
            let over = ended.take();
            let engine = driver.engine();
            engine.flows_ended(over);
            engine.apply_plans(&plans);
            if engine.is_status_due() {
                let phases = engine.phases();
                let lengths = task_seconds(&driver, &phases);
                driver.engine().report_status(&lengths);
            }
        }
        let failure = driver.close().failure;
        let closed = engine.close();
        match failure {
            Some(failure) => Err(EngineError::Policy(failure)),
            None => Ok(closed),
        }
    }
}

/// The full paths of the named queues.
fn queues(scheduler: &Scheduler, named: &[String]) -> Result<Vec<String>, EngineError> {
    let mut queues = BTreeSet::new();
    for name in named {
        queues.extend(checks::attach_queues(scheduler, name)?.into_iter().map(|queue| queue.path.clone()));
    }
    Ok(queues.into_iter().collect())
}

/// Collects the flows that have ended in the driver.
struct Ends(Rc<RefCell<Vec<FlowId>>>);

impl Sink for Ends {
    fn flow(&mut self, flow: &FlowEnd, _: &Instance) {
        self.0.borrow_mut().push(flow.flow);
    }
}
