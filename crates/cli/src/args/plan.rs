//! The flags of the search for a plan.

use clap::Args;

use super::value;

/// Flags of planning that a schedule records.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PlanArgs {
    /// Search for this time, and use the best plan found
    ///
    /// With the policy auto, the search uses the whole time, unless it proves that the plan is optimal. Other
    /// policies may end earlier. Without a budget searches end after a number of steps, and the plan is the
    /// same on every machine.
    #[arg(long, value_name = "DURATION", value_parser = value::seconds)]
    pub(crate) budget: Option<f64>,
}
