//! The scheduling textbook as functions.
//!
//! - [`fluid`]: executes schedules of work that whole slots share, whatever rule gives them out;
//! - [`water_line`]: max-min fair shares with minima, maxima and weights.

pub mod fluid;
mod water_line;

pub use water_line::{Claim, water_line};
