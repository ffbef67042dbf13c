//! The outcome of a verb, which becomes the exit code.

/// The outcome of a verb that ran without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// Not feasible, or flows failed.
    No,
    /// A run was stopped from outside; the same command resumes it.
    Stopped,
    /// Another exit code: an agent reports it to the program that started it, or the help of a verb documents
    /// it.
    Code(u8),
}
