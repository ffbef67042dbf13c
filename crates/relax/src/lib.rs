//! Relaxations and exact tests that are both bound and algorithm step.
//!
//! - [`malleable`]: malleable jobs, what the next three talk about;
//! - [`deadlines`]: the exact deadline test and EDF water filling;
//! - [`minimax`](mod@minimax): the optimum of any minimax objective;
//! - [`levels`]: step costs, exact for few jobs and relaxed for many.
//!
//! **Never knows**: policies, engines.
#![deny(clippy::unwrap_used)]

pub mod deadlines;
pub mod levels;
pub mod malleable;
pub mod minimax;
