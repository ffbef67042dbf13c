//! Documents in, documents out: workloads, schedules and comparisons, and what else can be imported.
//!
//! In reading order:
//! - [`generate`]: the synthetic workloads of the papers;
//! - [`random`]: seeded random numbers for importers and generators.
//!
//! **Never knows**: scheduling.

pub mod generate;
pub mod random;
