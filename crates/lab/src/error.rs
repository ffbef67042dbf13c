//! What can be wrong with a specification, and with making a figure.

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
        /// The figure.
        figure: String,
        /// What is wrong with it.
        problem: Box<dyn std::error::Error + Send + Sync>,
    },
}
