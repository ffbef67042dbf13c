#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`options`]: what may be simulated, checked once;
//! - `queue`: pending events in a total order (time, class, id);
//! - [`engine`]: the engine: batches end, machines die and come back, flows arrive;
//! - `heartbeat`: machines that report only now and then;
//! - [`crashes`]: machine failures from a script or a rate;
//! - [`membership`]: machines that join and leave;
//! - `profile`: what starting takes on a cluster of Hadoop: masters, containers;
//! - `speculation`: second attempts of slow tasks;
//! - [`noise`]: estimates with errors.
//!
//! Equal tasks that start together are one event, for any number of tasks: a run takes time per *batch*.
#![deny(clippy::unwrap_used)]

pub mod crashes;
pub mod engine;
mod heartbeat;
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
