//! Verbs that run flows and show runs: `run`, `status`, `logs`, `history`, `clean`, `agent`.

pub(crate) mod agent;
pub(crate) mod clean;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod programs;
#[expect(clippy::module_inception, reason = "the group of verbs has the name of its first verb")]
pub(crate) mod run;
pub(crate) mod status;
