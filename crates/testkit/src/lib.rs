#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`oracle`]: the comparison document's metrics and the objective, recomputed from the definitions;
//! - [`brute`](mod@brute): the best cost of any schedule of a tiny instance, by exhaustive search;
//! - [`instances`]: every small instance, one after the other;
//! - [`harness`]: simulate with the audit on, judge, compare with the oracle;
//! - [`conformance`]: what every policy of a registry is held to.
//!
//! The suites themselves are in `tests/suite`, with the random instances, which need proptest.

pub mod brute;
pub mod conformance;
pub mod harness;
pub mod instances;
pub mod oracle;
