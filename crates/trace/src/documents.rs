//! Slackline's own documents: workloads, schedules, comparisons, tuning results and histories.

pub mod comparison;
pub(crate) mod counts;
pub mod history;
pub mod parameters;
pub mod schedule;
#[cfg(test)]
pub(crate) mod schema;
pub mod tuning;
pub mod workload;
