#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`spec`]: what a specification says;
//! - [`experiments`](mod@experiments): the specifications that come with the program;
//! - [`kinds`](mod@kinds): the table of the kinds of figure;
//! - `sweep`: the kind that most figures are: workloads against policies, objectives, seeds and one
//!   parameter that varies;
//! - `ordering`: the kind of the job-ordering paper's figures;
//! - `packings`: FLEX against the best of all packing orders;
//! - `progress`: intervals between the requirements of progress plans, and sizes of plans;
//! - `slots`: who holds how many slots over time, as pictures;
//! - `values`: values of settings, checked where they are read;
//! - `workload`: from the words of a specification to an instance;
//! - [`adversary`]: small workloads on which a policy is worst;
//! - `schema`: the published schema of specifications, in tests;
//! - [`rows`]: measures over seeds, as rows of CSV;
//! - [`papers`]: what the papers say of their figures, verdicts on ours, and the page that shows both;
//! - [`counterexamples`]: what the papers print that does not hold;
//! - [`provenance`]: which program made which file;
//! - [`context`]: what a figure is made into, and what with;
//! - [`error`]: what can be wrong.
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

/// Makes one figure: its kind's artifacts, the CSV first.
///
/// The same figure and seeds give the same bytes, however many threads work on it.
///
/// # Errors
/// Settings that the figure's kind does not have; workloads and policies that do not exist; a schedule that
/// the judge refuses.
pub fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let kind = kinds::kind(figure)?;
    (kind.make)(figure, context)
}
