//! Verbs of the scheduler service: the service itself, and its clients.

pub(crate) mod drain;
pub(crate) mod queue;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod submission;
pub(crate) mod submit;
pub(crate) mod token;
pub(crate) mod top;
