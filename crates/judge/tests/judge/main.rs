//! The judge accepts honest schedules and names every kind of broken one.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod ams;
mod build;
mod claims;
mod failures;
mod inputs;
mod minima;
mod plans;
mod property;
mod segments;
mod speculation;
mod streams;
mod tasks;
