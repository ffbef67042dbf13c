//! The settings of a run on a cluster, and its file systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use slackline_executor::run::error::EngineError;
use slackline_executor::store::layout::Layout;
use slackline_task::process::worker_command::WorkerCommand;

use crate::cluster::capacity::Rules;
use crate::cluster::observer::{Observer, PollIntervals};
use crate::cluster::table::Table;
use crate::cluster::table_location::VALID;
use crate::flows::applications::{FlowCluster, JobSubmitter};
use crate::flows::engine::Timeouts;
use crate::flows::hdfs_placeholders::Placeholders;
use crate::flows::remote_files::FileSystem;
use crate::rest::http;
use crate::rest::http::Address;
use crate::rest::resource_manager::ResourceManager;
use crate::submitter::{Launch, Submitter, SubmitterInfo};

/// Options of the submitter's JVM, for a fast start and little memory.
const SUBMITTER_OPTIONS: &[&str] = &["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct ClusterConfig {
    pub(super) address: Address,
    pub(super) queue: String,
    pub(super) table: Option<PathBuf>,
    pub(super) java: PathBuf,
    pub(super) class_path: Vec<PathBuf>,
    /// Memory of a container as YARN grants it, MiB.
    pub(crate) slot_mb: u64,
    pub(super) am_share: f64,
    pub(super) by_cluster: bool,
    pub(super) split_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) hash: bool,
    pub(super) worker: WorkerCommand,
    pub(super) timeouts: Timeouts,
}

impl ClusterConfig {
    /// The cluster with its submitter.
    pub(super) fn cluster(&self, table: Option<Table>, submitter: Arc<dyn JobSubmitter>) -> FlowCluster {
        // The next poll retries a failed request.
        let settings = http::Settings { retries: 0, ..http::Settings::default() };
        let manager = ResourceManager::new(&self.address, settings);
        let observer = Observer::new(PollIntervals { lasts: self.timeouts.asks, ..PollIntervals::default() });
        FlowCluster::new(manager, observer, table, VALID, submitter)
    }

    pub(super) fn rules(&self) -> Rules {
        Rules { am_share: self.am_share, slot_mb: self.slot_mb, by_cluster: self.by_cluster }
    }

    /// Opens the table of the plug-in, unless YARN decides by itself or the user wants none.
    pub(super) fn open_table(&self) -> Result<Option<Table>, EngineError> {
        self.table.as_deref().map(|path| Table::open(path, VALID)).transpose().map_err(EngineError::other)
    }

    pub(super) fn submitter(&self) -> Result<Submitter, EngineError> {
        let launch = Launch::java(&self.java, &self.class_path, SUBMITTER_OPTIONS);
        Submitter::start(launch.map_err(EngineError::other)?).map_err(EngineError::other)
    }
}

/// The file systems of a cluster for one run.
pub(super) struct RunFiles {
    pub(super) submitter: Arc<dyn JobSubmitter>,
    pub(super) file_system: Arc<dyn FileSystem>,
    pub(super) placeholders: Arc<Placeholders>,
    /// The state directory, absolute.
    pub(super) state: PathBuf,
}

impl RunFiles {
    pub(super) fn new(
        submitter: Arc<Submitter>,
        about: &SubmitterInfo,
        state: &Path,
    ) -> Result<Self, EngineError> {
        let file = |problem| EngineError::File { path: state.display().to_string(), problem };
        let state = std::path::absolute(state).map_err(file)?;
        let directory = Layout::new(&state).mirror();
        let file_system: Arc<dyn FileSystem> = submitter.clone();
        let placeholders =
            Arc::new(Placeholders::new(directory, file_system.clone(), &about.default_fs, &about.user));
        Ok(Self { submitter, file_system, placeholders, state })
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        let layout = Layout::new(&self.state);
        if layout.mirror().exists() && !layout.journal().exists() {
            // The run has not started. What cannot be removed does no harm.
            let _ = slackline_executor::engine::external_runs::clear(&layout.mirror());
            let _ = fs::remove_dir(&self.state);
        }
    }
}
