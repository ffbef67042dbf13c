//! A fault in a document.

/// A fault in a document, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place, such as `flows[0].jobs[2].run`.
    pub path: String,
    /// The value found and the value expected.
    pub problem: String,
    /// Whether the fault may pass without a change of the document: the server of its files does not answer
    /// now.
    pub may_pass: bool,
}

impl Fault {
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into(), may_pass: false }
    }
}

/// A job that cannot be run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrunnableJob {
    pub flow: String,
    /// The place where the document says what the job runs, and the obstacle.
    pub fault: Fault,
}
