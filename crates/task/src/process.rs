//! TODO: one sentence.

pub mod cgroups;
pub mod limits;
pub mod memory;
pub mod process_tree;
pub mod report;
pub mod shutdown;
pub mod spec;
pub mod worker_command;
