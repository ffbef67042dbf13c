//! The outcome of a verb, which becomes the exit code.

/// The outcome of a verb that ran without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// Not feasible, or flows failed.
    No,
    /// A run was stopped from outside; the same command resumes it.
    Stopped,
    /// Something between: what an agent says to the program that started it, or a verb's help says.
    Code(u8),
}
