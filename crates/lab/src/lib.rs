#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`spec`]: the content of a specification;
//! - [`experiments`](mod@experiments): the specifications that come with the program;
//! - [`kinds`](mod@kinds): the table of the kinds of figures;
//! - `sweep`: the most common kind: workloads against policies, objectives, seeds and one varied parameter;
//! - `ordering`: the kind of the job-ordering paper's figures;
//! - `packings`: FLEX against the best of all packing orders;
//! - `progress`: intervals between the requirements of progress plans, and sizes of plans;
//! - `slots`: the slots of each flow over time, as pictures;
//! - `values`: values of settings, checked when they are read;
//! - `workload`: converts the settings of a specification into an instance;
//! - [`adversary`]: small workloads on which a policy is worst;
//! - `schema`: the published schema of specifications, in tests;
//! - [`rows`]: measures over seeds, as rows of CSV;
//! - [`papers`]: the claims of the papers on their figures, verdicts on ours, and the page that shows both;
//! - [`counterexamples`]: false statements in the papers;
//! - [`provenance`]: which program made which file;
//! - [`context`]: the input and the output of making a figure;
//! - [`error`]: the errors.
//!
//! The benchmarks (`bench`, feature `bench`) and the developer commands (`src/bin/lab`) are beside them.
#![deny(clippy::unwrap_used)]

pub mod adversary;
#[cfg(any(test, feature = "bench"))]
pub mod bench;
pub mod context;
pub mod counterexamples;
pub mod error;
pub mod experiments;
pub mod kinds;
mod ordering;
mod packings;
pub mod papers;
mod progress;
pub mod provenance;
pub mod rows;
#[cfg(test)]
mod schema;
mod slots;
pub mod spec;
mod sweep;
mod values;
mod workload;

pub use adversary::{Adversary, Opponent};
pub use context::{Artifact, Context};
pub use error::{PolicyFailure, ReproError, SpecError};
pub use experiments::{Experiment, experiment, experiments};
pub use spec::{Figure, Spec};

/// Makes one figure: the artifacts of its kind, the CSV first.
///
/// The same figure and seeds give the same bytes, on any number of threads.
///
/// # Errors
/// Settings that the figure's kind does not have; workloads and policies that do not exist; a schedule that
/// the judge refuses.
pub fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let kind = kinds::kind(figure)?;
    (kind.make)(figure, context)
}
