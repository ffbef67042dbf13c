//! The errors of reading documents and options.

use slackline_model::Invalid;
use slackline_trace::TraceError;

use crate::simulate::WrongOption;
use crate::woha::{PlanFileError, PlanMismatch};

/// The reason why a document and its options give no instance, or cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{name}: cannot be read")]
    Read {
        /// The file.
        name: String,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// An invalid document, or one that does not describe an instance.
    #[error(transparent)]
    Document(#[from] TraceError),
    /// A schedule of another workload.
    #[error(transparent)]
    AnotherWorkload(#[from] WrongWorkload),
    /// An invalid instance.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No cluster in the document or in the options.
    #[error("{name}: found no cluster, expected machines with slots, or with map-slots and reduce-slots")]
    NoCluster {
        /// The document.
        name: String,
    },
    /// Options that change a cluster require a further option.
    #[error("{name}: found {found}, expected {option} as well")]
    Missing {
        /// The document.
        name: String,
        /// The cluster of the document.
        found: String,
        /// The missing option.
        option: MissingOption,
    },
    /// An invalid option.
    #[error("option {name}: {problem}")]
    Option {
        /// The option.
        name: String,
        /// The value that was found, and the expected one.
        problem: String,
    },
    /// A schedule records an invalid option.
    #[error("{file}: workload.options: {problem}")]
    Recorded {
        /// The schedule.
        file: String,
        /// The value that was found, and the expected one.
        problem: String,
    },
    /// A workload that is too large to be simulated.
    #[error("{name}: {problem}")]
    TooLarge {
        /// The document.
        name: String,
        /// The value that was found, and the expected one.
        problem: String,
    },
    /// An invalid plan file.
    #[error("{name}: {problem}")]
    PlanFile {
        /// The file.
        name: String,
        /// The error in the file.
        problem: PlanFileError,
    },
    /// Plans of other flows.
    #[error("{name}: {problem}")]
    PlanMismatch {
        /// The file.
        name: String,
        /// The mismatch.
        problem: PlanMismatch,
    },
}

slackline_model::named_enum! {
    /// An option that is required to change a cluster.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MissingOption {
        /// The number of machines.
        Machines = "machines",
        /// The slots of a machine.
        Slots = "slots, or map-slots and reduce-slots,",
    }
}

impl From<WrongOption> for ImportError {
    fn from(WrongOption { option, problem }: WrongOption) -> Self {
        Self::option(option, problem)
    }
}

impl ImportError {
    /// An error about the option of this name.
    pub(crate) fn option(name: &str, problem: impl Into<String>) -> Self {
        Self::Option { name: name.to_owned(), problem: problem.into() }
    }
}

/// The error that a schedule was made for another workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{schedule}: made for another workload (SHA-256 {made_for}) than {workload} (SHA-256 {found})")]
pub struct WrongWorkload {
    /// The schedule.
    pub schedule: String,
    /// The hash that it records.
    pub made_for: String,
    /// The workload.
    pub workload: String,
    /// Its hash.
    pub found: String,
}
