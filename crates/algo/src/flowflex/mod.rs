//! FlowFlex
pub mod chain;
pub mod deadlines;
pub mod list;
pub mod network;
pub mod orders;
mod plan;
pub mod search;
pub mod shape;
#[cfg(test)]
mod tests;

pub use plan::{Candidate, Config, Plan, Realisation, Refusal, Source, plan, ready_list};
