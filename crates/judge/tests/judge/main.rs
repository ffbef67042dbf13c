//! The judge accepts honest schedules and names every kind of broken one.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod build;
mod claims;
mod failures;
mod inputs;
mod masters;
mod minima;
mod plans;
mod property;
mod seconds;
mod segments;
mod streams;
mod tasks;
