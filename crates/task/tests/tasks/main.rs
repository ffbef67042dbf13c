//! Whole jobs, task by task, against computations that share nothing with them; and what a task says
//! when something goes wrong.
#![expect(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "helpers of tests")]

mod container;
mod failures;
mod job;
mod process;
mod programs;
mod streaming;
