//! What can be wrong with a specification, and with making a figure.

/// What is wrong with a specification.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// It is not TOML, or not of this structure.
    #[error("{name}: {problem}")]
    Syntax {
        /// The file.
        name: String,
        /// What the reader says, with the line.
        problem: Box<toml::de::Error>,
    },
    /// Another version.
    #[error("{name}: found slackline = {found}, expected 1")]
    Version {
        /// The file.
        name: String,
        /// The version found.
        found: u32,
    },
    /// A figure of no known kind.
    #[error("figure {figure}: found kind {found:?}, expected one of {expected}")]
    Kind {
        /// The figure.
        figure: String,
        /// The kind found.
        found: String,
        /// The kinds there are.
        expected: String,
    },
    /// Settings that the kind does not have, or values that they cannot have.
    #[error("figure {figure}, settings: {problem}")]
    Settings {
        /// The figure.
        figure: String,
        /// What the reader says.
        problem: Box<toml::de::Error>,
    },
    /// Two figures of one name.
    #[error("{name}: found figure {figure} twice, expected each name once")]
    Twice {
        /// The file.
        name: String,
        /// The figure.
        figure: String,
    },
    /// No seeds to average over.
    #[error("figure {figure}: found seeds = 0, expected at least 1")]
    NoSeeds {
        /// The figure.
        figure: String,
    },
}

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
