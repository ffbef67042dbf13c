//! TODO: one sentence.

pub mod allocation;
pub mod nodes;
