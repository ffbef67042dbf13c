//! Allocations and node lists of Slurm.

pub mod allocation;
pub mod nodes;
