//! The papers' figures beside ours: what a paper says, whether our rows bear it out, and the page that shows
//! both.
//!
//! `experiments/ID/paper.toml` says what the paper claims of each figure of an experiment, which of its
//! numbers are drawn beside ours, and what must hold of our rows for the claim to be confirmed. A verdict is
//! computed from rows, never written down.

mod chart;
mod expectation;
mod page;
mod points;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Deserialize;
use slackline_trace::{Document, Format};

use crate::context::Artifact;
use crate::error::{ReproError, SpecError};
use crate::spec::{Figure, Spec};

pub use chart::picture;
pub use expectation::{Checked, Expectation, Verdict, verdict};
pub use page::{ExperimentPage, FigurePage, page, verdicts};
pub use points::{Row, fits, rows};

/// What a paper says of the figures of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Version of the format.
    pub slackline: u32,
    /// Authors, title, where it appeared.
    pub cite: String,
    /// What it says of each figure.
    #[serde(default)]
    pub figures: Vec<Claim>,
}

/// What a paper says of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The figure, by its name in the specification.
    pub id: String,
    /// Where the paper says it: a figure, a table, a section.
    pub at: String,
    /// What it says, in our words.
    pub claim: String,
    /// What is drawn: a panel each, one below the other.
    #[serde(default)]
    pub panels: Vec<Panel>,
    /// Numbers of the paper that are drawn beside ours.
    #[serde(default)]
    pub numbers: Vec<Number>,
    /// What must hold of our rows for the claim to be confirmed.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// What holds beyond, if ours is better than the paper's.
    #[serde(default)]
    pub better: Vec<Expectation>,
    /// Why ours differs, where it does.
    pub because: Option<String>,
}

/// What a panel of a picture draws: rows of a measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    pub measure: String,
    /// Only this series; without one and if `x` varies, a panel a series.
    pub series: Option<String>,
    /// Only these policies.
    #[serde(default)]
    pub policies: Vec<String>,
    /// What the axis of values says [default: the measure].
    pub axis: Option<String>,
    /// What varies, for the other axis.
    pub by: Option<String>,
}

/// A number of the paper, or a range of which it says no more.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    pub policy: String,
    pub measure: String,
    /// At which value of what varies; everywhere without one.
    pub x: Option<String>,
    /// Of which series; of all without one.
    pub series: Option<String>,
    pub least: f64,
    /// Largest; the least without one.
    pub most: Option<f64>,
}

impl Paper {
    /// Reads what a paper says of the figures of `spec`; `name` is what messages call it.
    ///
    /// # Errors
    /// What is wrong with it: no TOML of this structure, another version, figures that the specification has
    /// not or that are named twice, expectations that say nothing.
    pub fn parse(name: &str, text: &str, spec: &Spec) -> Result<Self, SpecError> {
        let document = Document::new(name, text, Format::Toml);
        let paper: Self = document.read()?;
        if paper.slackline != 1 {
            let what = format!("found {}, expected version 1", paper.slackline);
            return Err(document.error("slackline", what).into());
        }
        let mut seen = BTreeSet::new();
        for (k, claim) in paper.figures.iter().enumerate() {
            let wrong =
                |field: &str, what: String| Err(document.error(&format!("figures[{k}]{field}"), what).into());
            if !spec.figures.iter().any(|figure| figure.id == claim.id) {
                return wrong(".id", format!("found {:?}, expected a figure of the specification", claim.id));
            }
            if !seen.insert(&claim.id) {
                return wrong(".id", format!("found {:?} a second time, expected each once", claim.id));
            }
            for (list, expectations) in [("expect", &claim.expect), ("better", &claim.better)] {
                for (n, expectation) in expectations.iter().enumerate() {
                    if let Err(what) = expectation.check() {
                        return wrong(&format!(".{list}[{n}]"), what);
                    }
                }
            }
        }
        Ok(paper)
    }

    /// What it says of a figure.
    pub fn claim(&self, figure: &str) -> Option<&Claim> {
        self.figures.iter().find(|claim| claim.id == figure)
    }
}

/// The picture of a figure that was made, if its rows are measures: `ID.svg`, as an artifact.
///
/// # Errors
/// What the drawing library says.
pub fn drawn(
    figure: &Figure,
    claim: Option<&Claim>,
    made: &[Artifact],
) -> Result<Option<Artifact>, ReproError> {
    let text = made.first().map_or("", |csv| &csv.text);
    let picture = picture(&figure.title, claim, &rows(text)).map_err(|problem| figure.problem(problem))?;
    Ok(picture.map(|text| Artifact { name: format!("{}.svg", figure.id), text }))
}
