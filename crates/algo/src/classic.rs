//! Textbook scheduling algorithms as functions.
//!
//! - [`rules`]: orders of jobs on one machine (Smith, Jackson, Moore-Hodgson, ATC);
//! - [`fluid`]: executes schedules of work that whole slots share, under any rule;
//! - [`water_line`]: max-min fair shares with minima, maxima and weights;
//! - [`budget`]: the step budgets of searches.

pub mod budget;
mod even_line;
pub mod fluid;
pub mod rules;
mod water_line;

pub(crate) use even_line::EvenLine;
pub(crate) use water_line::water_line_of;
pub use water_line::{Claim, water_line};
