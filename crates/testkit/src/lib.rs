//! What the tests of several crates share: oracles, small instances, and a way to run and judge.
//!
//! In reading order:
//! - [`oracle`]: the comparison document's metrics and the objective, recomputed from the definitions;
//! - [`brute`](mod@brute): the best cost of any schedule of a tiny instance, by exhaustive search;
//! - [`instances`]: every small instance, one after the other;
//! - [`harness`]: simulate with the audit on, judge, compare with the oracle;
//! - [`conformance`]: what every policy of a registry is held to.
//!
//! The suites themselves are in `tests/suite`, with the random instances, which need proptest.
//!
//! **Never knows**: how any algorithm works. The oracles share no code with what they check.

pub mod brute;
pub mod conformance;
pub mod harness;
pub mod instances;
pub mod oracle;
