//! Allocations and node lists of Slurm.

pub(crate) mod allocation;
pub(crate) mod nodes;
