//! The state of a cluster: what an engine reads from it, what it tells it, and which slots hold which tasks.

pub(crate) mod am_polling;
pub(crate) mod capacity;
pub(crate) mod checks;
pub(crate) mod container_ledger;
pub(crate) mod control;
pub(crate) mod desired_state;
pub(crate) mod fair_polling;
pub mod observer;
pub mod table;
pub(crate) mod table_location;
pub(crate) mod task_inference;
