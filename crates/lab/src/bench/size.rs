//! The size of a suite.

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds in a test build.
    Small,
    /// The size of the numbers in `record/`.
    Large,
}
