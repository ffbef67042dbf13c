//! The kinds of figures.

use crate::context::{Artifact, Context};
use slackline_model::names::unknown;

use crate::error::ReproError;
use crate::spec::Figure;
use crate::{ordering, packings, progress, slots, sweep};

/// A kind of figure.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name in specifications.
    pub name: &'static str,
    /// What figures of this kind show, in a line.
    pub summary: &'static str,
    pub(crate) make: fn(&Figure, &Context<'_>) -> Result<Vec<Artifact>, ReproError>,
}

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
            summary: "slots that each flow holds over time, one picture per policy",
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

pub fn names() -> Vec<&'static str> {
    kinds().iter().map(|kind| kind.name).collect()
}

/// The kind of a figure.
///
/// # Errors
/// If no kind has that name; the error lists all kinds.
pub fn kind(figure: &Figure) -> Result<&'static Kind, ReproError> {
    let found = kinds().iter().find(|kind| kind.name == figure.kind);
    found.ok_or_else(|| figure.problem(unknown("kind", &figure.kind, &names())))
}
