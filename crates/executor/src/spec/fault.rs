//! What is wrong with a document.

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `flows[0].jobs[2].run`.
    pub path: String,
    /// What was found and what was expected.
    pub problem: String,
    /// Whether it may be different the next time, without anybody doing something about the document: what
    /// has its files does not answer now.
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
    /// Where the document says what it runs, and what prevents it.
    pub fault: Fault,
}
