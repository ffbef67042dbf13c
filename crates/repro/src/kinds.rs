//! The kinds of figure there are, and what a figure is made into.

use crate::ReproError;
use crate::spec::{Figure, SpecError};
use crate::{ordering, packings, progress, slots, sweep};

/// A file of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name, such as `fig2a.csv`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// How figures are made.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Seeds instead of the figure's own number of them.
    pub seeds: Option<u32>,
    /// Threads that work on a figure.
    pub threads: usize,
    /// Is told how many cells of the figure are done, of how many.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Context<'_> {
    /// The seeds that a figure is averaged over.
    pub fn seeds_of(&self, figure: &Figure) -> u32 {
        self.seeds.unwrap_or(figure.seeds)
    }
}

/// A kind of figure.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name in specifications.
    pub name: &'static str,
    /// What figures of this kind show, in a line.
    pub summary: &'static str,
    pub(crate) make: fn(&Figure, &Context<'_>) -> Result<Vec<Artifact>, ReproError>,
}

/// All kinds.
pub fn kinds() -> &'static [Kind] {
    const ALL: &[Kind] = &[
        Kind {
            name: "sweep",
            summary: "workloads against policies and objectives, over seeds and one parameter that varies",
            make: sweep::make,
        },
        Kind {
            name: "ordering",
            summary: "job orders and slot configurations by the estimator of the job-ordering paper",
            make: ordering::make,
        },
        Kind {
            name: "packings",
            summary: "FIFO, FAIR and FLEX against the best of all packing orders",
            make: packings::make,
        },
        Kind {
            name: "slots",
            summary: "slots that each flow holds over time, a picture a policy",
            make: slots::make,
        },
        Kind {
            name: "progress",
            summary: "how far apart the requirements of progress plans are, and how large the plans",
            make: progress::make,
        },
    ];
    ALL
}

/// The kind of a figure.
///
/// # Errors
/// If there is none of that name; the error lists those there are.
pub fn kind(figure: &Figure) -> Result<&'static Kind, SpecError> {
    kinds().iter().find(|kind| kind.name == figure.kind).ok_or_else(|| SpecError::Kind {
        figure: figure.id.clone(),
        found: figure.kind.clone(),
        expected: kinds().iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "),
    })
}
