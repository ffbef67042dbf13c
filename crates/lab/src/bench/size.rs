//! How large a suite runs.

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds in a test build.
    Small,
    /// What the numbers in `record/` come from.
    Large,
}
