//! What can be wrong with a specification, and with making a figure.

use slackline::PolicySpec;
use slackline::plan::PlanError;
use slackline::simulate::SimulateError;
use slackline_trace::TraceError;

/// What is wrong with a specification, with its line.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SpecError(#[from] TraceError);

/// Why a figure could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReproError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The words of a figure make no workload.
    #[error("figure {figure}: {problem}")]
    Figure {
        figure: String,
        /// What is wrong with it.
        problem: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A policy could not go on.
#[derive(Debug, thiserror::Error)]
#[error("{policy}: {failure}")]
pub struct PolicyFailure {
    policy: String,
    failure: String,
}

impl ReproError {
    /// Whether it is only that a policy could not go on.
    pub fn is_policy_failure(&self) -> bool {
        matches!(self, Self::Figure { problem, .. } if problem.is::<PolicyFailure>())
    }
}

impl PolicyFailure {
    /// Why there is no simulation under a policy.
    pub(crate) fn of_simulation(policy: &PolicySpec, error: SimulateError) -> crate::workload::Problem {
        match error {
            SimulateError::Policy(failure) => Self { policy: policy.spec().to_owned(), failure }.into(),
            other => other.into(),
        }
    }

    /// Why there is no plan of a policy.
    pub(crate) fn of_plan(policy: &PolicySpec, error: PlanError) -> crate::workload::Problem {
        match error {
            PlanError::Policy(failure) => Self { policy: policy.spec().to_owned(), failure }.into(),
            other => other.into(),
        }
    }
}
