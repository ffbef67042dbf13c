//! Slackline's own documents: workloads, schedules, comparisons and histories.

pub mod comparison;
pub(crate) mod counts;
pub mod history;
pub mod parameters;
pub mod schedule;
#[cfg(test)]
pub(crate) mod schema;
pub mod workload;
