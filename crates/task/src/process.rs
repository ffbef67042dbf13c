//! Worker processes: their documents, limits, control groups, and how they end.

pub mod cgroups;
pub mod limits;
pub mod memory;
pub mod process_tree;
pub mod report;
pub mod shutdown;
pub mod spec;
pub mod worker_command;
