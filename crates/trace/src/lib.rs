//! Documents in, documents out: workloads, schedules and comparisons, and what else can be imported.
//!
//! In reading order:
//! - [`random`]: seeded random numbers for importers and generators.
//!
//! **Never knows**: scheduling.

pub mod random;
