//! Why documents and what is said beside them make no instance.

use slackline_model::Invalid;
use slackline_trace::TraceError;

use super::check::WrongWorkload;
use crate::simulate::WrongOption;
use crate::woha::{PlanFileError, PlanMismatch};

/// Why there is no instance, or no way to simulate it as was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{name}: cannot be read")]
    Read {
        /// The file.
        name: String,
        /// What the file system says.
        source: std::io::Error,
    },
    /// A document that is none, or that does not describe an instance.
    #[error(transparent)]
    Document(#[from] TraceError),
    /// A schedule of another workload.
    #[error(transparent)]
    AnotherWorkload(#[from] WrongWorkload),
    /// An instance that cannot be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No cluster, neither in the document nor in the options.
    #[error("{name}: found no cluster, expected machines with slots, or with map-slots and reduce-slots")]
    NoCluster {
        /// The document.
        name: String,
    },
    /// Options that change a cluster, which lack another one.
    #[error("{name}: found {found}, expected {option} as well")]
    Missing {
        /// The document.
        name: String,
        /// The cluster it has.
        found: String,
        /// What lacks.
        option: MissingOption,
    },
    /// An option, by its name, and what is wrong with it.
    #[error("option {name}: {problem}")]
    Option {
        /// The option.
        name: String,
        /// What was found and what is expected.
        problem: String,
    },
    /// What a schedule records is no option.
    #[error("{file}: workload.options: {problem}")]
    Recorded {
        /// The schedule.
        file: String,
        /// What was found and what is expected.
        problem: String,
    },
    /// A workload beyond what can be simulated.
    #[error("{name}: {problem}")]
    TooLarge {
        /// The document.
        name: String,
        /// What was found and what is expected.
        problem: String,
    },
    /// A file of plans that is none.
    #[error("{name}: {problem}")]
    PlanFile {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: PlanFileError,
    },
    /// Plans of other flows.
    #[error("{name}: {problem}")]
    PlanMismatch {
        /// The file.
        name: String,
        /// What does not go together.
        problem: PlanMismatch,
    },
}

/// An option without which a cluster cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOption {
    /// The number of machines.
    Machines,
    /// The slots of a machine.
    Slots,
}

impl std::fmt::Display for MissingOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Machines => "machines",
            Self::Slots => "slots, or map-slots and reduce-slots,",
        })
    }
}

impl From<WrongOption> for ImportError {
    fn from(WrongOption { option, problem }: WrongOption) -> Self {
        Self::option(option, problem)
    }
}

impl ImportError {
    /// Something is wrong with the option of that name.
    pub(crate) fn option(name: &str, problem: impl Into<String>) -> Self {
        Self::Option { name: name.to_owned(), problem: problem.into() }
    }
}
