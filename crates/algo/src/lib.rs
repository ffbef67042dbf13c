#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`classic`]: the textbook as functions; knows no flows and no clusters;
//! - [`auto`]: the order of the lowest estimated cost, by rollouts;
//! - [`baseline`]: FIFO, Fair and EDF, what everything else is compared with;
//! - [`dmrs`]: map and reduce tasks on machines of different speed;
//! - [`flex`]: malleable jobs and any metric: FLEX;
//! - [`flowflex`]: flows of malleable jobs with precedence and any metric: FlowFlex;
//! - [`ordering`]: job orders and slot configurations by Johnson's rule;
//! - [`policies`]: the table of policies, one line each;
//! - [`registry`]: the table of policies: what it says of each, and how each is made;
//! - [`rule`]: rules of the textbook on what is left of each flow;
//! - [`woha`]: deadlines by progress plans;
//! - [`yarn`]: Hadoop's own schedulers, with the queues of a site.
//!
//! Each paper has a folder beside these.
#![deny(clippy::unwrap_used)]

pub mod auto;
pub mod baseline;
pub mod classic;
pub mod dmrs;
mod epochs;
mod estimated;
pub mod flex;
pub mod flowflex;
pub(crate) mod machines;
pub mod ordering;
mod phase_graph;
pub mod policies;
#[cfg(test)]
#[path = "../../../testdata/real.rs"]
mod real_data;
pub mod registry;
pub mod rule;
pub mod woha;
pub mod yarn;
