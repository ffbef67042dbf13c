//! The scheduling textbook as functions.
//!
//! - [`water_line`]: max-min fair shares with minima, maxima and weights.

mod water_line;

pub use water_line::{Claim, water_line};
