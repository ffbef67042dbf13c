//! The flags of the search for a plan.

use clap::Args;

use super::value;

/// Flags of planning that a schedule records.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PlanArgs {
    /// End searches after this many seconds with the best plan so far
    ///
    /// Without it they count steps, so that the plan is the same everywhere.
    #[arg(long, value_name = "DURATION", value_parser = value::seconds)]
    pub(crate) budget: Option<f64>,
}
