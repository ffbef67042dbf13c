//! The session of a run whose tasks are processes, on this machine or several.

use crate::engine::Settings;
use crate::engine::machines::visibility_check::VisibilityCheck;
use crate::fleet::agents::Agents;
use crate::run;

/// A run whose tasks are processes.
pub struct ProcessSession {
    pub session: run::Session,
    pub(crate) settings: Settings,
    /// The machines of a run on several, from its opening until its engine has them.
    pub(crate) acquired: Option<(Agents, VisibilityCheck)>,
}

impl ProcessSession {
    /// A session on this machine, or one that a shared engine takes.
    pub fn new(session: run::Session, settings: Settings) -> Self {
        Self { session, settings, acquired: None }
    }
}
