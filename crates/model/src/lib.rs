#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`id`]: newtypes for indices;
//! - [`table`], [`reorder_buffer`]: rows by ids that come and go; items that leave in the order of their
//!   numbers;
//! - [`time`]: integer microseconds, and all conversions between them and seconds as `f64`;
//! - [`cluster`]: machines, slots, slot kinds;
//! - [`tasks`]: the tasks of a phase, run-length encoded;
//! - [`cost`]: objectives and the cost of completing a flow at a time;
//! - [`draft`]: an instance as a document states it, unchecked;
//! - [`load`]: a draft at another load;
//! - [`job_positions`]: the jobs of a flow by id;
//! - [`instance`]: a valid instance;
//! - [`schedule`]: where and when each task ran;
//! - [`profile`]: the startup times and delays of a simulated Hadoop cluster;
//! - [`history`]: durations of finished tasks, from run to run;
//! - [`bytes`], [`duration`]: sizes and durations in text form;
//! - [`calendar`]: conversion of dates and times of day to seconds after the start;
//! - [`seed`]: a number for each component from one root;
//! - [`random`]: seeded random numbers, equal on every machine;
//! - [`params`]: parameters of policies, generators and importers: declared once, read by name;
//! - [`names`]: suggestions for mistyped names;
//! - [`printable`]: escapes in text from outside;
//! - [`shell`]: paths and commands that a shell would read differently;
//! - [`key`]: seconds and costs as keys of ordered collections;
//! - [`tolerance`]: the largest difference of two amounts in documents that count as the same.
#![warn(missing_docs)]
#![deny(clippy::unwrap_used)]

pub mod bytes;
pub mod calendar;
pub mod cluster;
pub mod cost;
pub mod draft;
pub mod duration;
pub mod error;
pub mod history;
pub mod id;
pub mod instance;
pub mod job_positions;
pub mod key;
pub mod load;
mod named;
pub mod names;
pub mod params;
pub mod printable;
pub mod profile;
pub mod quota;
pub mod random;
pub mod reorder_buffer;
pub mod schedule;
pub mod seed;
pub mod shell;
pub mod table;
pub mod tasks;
pub mod time;
pub mod tolerance;

pub use calendar::{Start, TimeSpec};
pub use cluster::{Cluster, SlotKind, SlotRange};
pub use cost::{Combine, CostFn, Metric, Objective};
pub use draft::Draft;
pub use error::{Invalid, Problem};
pub use history::History;
pub use id::{FlowId, GroupId, JobId, MachineId, PhaseId, PhaseKind};
pub use instance::Instance;
pub use key::Key;
pub use profile::Profile;
pub use reorder_buffer::ReorderBuffer;
pub use schedule::Schedule;
pub use seed::Seed;
pub use table::Table;
pub use time::{Span, Time, WallTime, Work};
