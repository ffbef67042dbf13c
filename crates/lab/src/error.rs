//! The errors of specifications, and of making figures.

use slackline::PolicySpec;
use slackline::plan::PlanError;
use slackline::simulate::SimulateError;
use slackline_trace::TraceError;

/// An error in a specification, with its line.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SpecError(#[from] TraceError);

/// Why a figure could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReproError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The settings of a figure are no valid workload.
    #[error("figure {figure}: {problem}")]
    Figure {
        figure: String,
        /// The error.
        problem: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A policy that failed.
#[derive(Debug, thiserror::Error)]
#[error("{policy}: {failure}")]
pub struct PolicyFailure {
    policy: String,
    failure: String,
}

impl ReproError {
    /// Whether the only error is that a policy failed.
    pub fn is_policy_failure(&self) -> bool {
        matches!(self, Self::Figure { problem, .. } if problem.is::<PolicyFailure>())
    }
}

impl PolicyFailure {
    /// The error of a simulation under a policy.
    pub(crate) fn of_simulation(policy: &PolicySpec, error: SimulateError) -> crate::workload::Problem {
        match error {
            SimulateError::Policy(failure) => Self { policy: policy.spec().to_owned(), failure }.into(),
            other => other.into(),
        }
    }

    /// The error of a plan of a policy.
    pub(crate) fn of_plan(policy: &PolicySpec, error: PlanError) -> crate::workload::Problem {
        match error {
            PlanError::Policy(failure) => Self { policy: policy.spec().to_owned(), failure }.into(),
            other => other.into(),
        }
    }
}
