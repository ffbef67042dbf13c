//! A run on a cluster, from its opening to its end.

use std::path::PathBuf;
use std::sync::Arc;

use slackline_executor::run;

use crate::cluster::table::Table;
use crate::flows::cluster_config::{ClusterConfig, RunFiles};
use crate::rest::id::AppId;

pub(super) struct YarnSession {
    pub(super) session: run::Session,
    /// The table of a single run, until the run starts; `None` in a shared engine.
    pub(super) table: Option<Table>,
    pub(super) context: RunContext,
}

/// The context of a run beside its session.
pub(super) struct RunContext {
    pub(super) config: ClusterConfig,
    pub(super) state: PathBuf,
    pub(super) files: Arc<RunFiles>,
    /// Applications of earlier sessions.
    pub(super) earlier: Vec<AppId>,
}

impl YarnSession {
    /// A session for a shared engine.
    pub(super) fn of(session: run::Session, context: RunContext) -> Self {
        Self { session, table: None, context }
    }
}
