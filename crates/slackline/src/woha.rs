//! Progress plans from plan files.

mod plan_file;

pub use plan_file::{PlanFile, PlanFileError, PlanMismatch};
pub use slackline_algo::woha::Plan;
