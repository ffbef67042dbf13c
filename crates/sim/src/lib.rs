#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`options`]: the options of a simulation, checked once;
//! - `queue`: pending events in a total order (time, class, id);
//! - [`engine`]: batches end, machines fail and return, flows arrive;
//! - `heartbeat`: machines that report by heartbeats;
//! - [`crashes`]: machine failures from a script or a rate;
//! - [`membership`]: machines that join and leave;
//! - `profile`: startup times of a Hadoop cluster: submissions, ApplicationMasters, containers;
//! - `speculation`: speculative attempts of slow tasks;
//! - [`noise`]: estimates with errors.
//!
//! Equal tasks that start together are one event, for any number of tasks: a run takes time per *batch*.
#![deny(clippy::unwrap_used)]

pub mod crashes;
pub mod engine;
mod heartbeat;
mod in_vain;
pub mod membership;
pub mod noise;
pub mod options;
mod profile;
mod queue;
mod speculation;

pub use crashes::{Crash, Crashes};
pub use engine::Sim;
pub use membership::Membership;
pub use options::Options;
