//! Compares the papers' figures with ours: the claims of a paper, whether our rows confirm them, and the page
//! that shows both.
//!
//! `experiments/ID/paper.toml` has the claims of a paper on each figure of an experiment, the numbers that
//! are drawn beside ours, and the expectations on our rows that confirm the claim. A verdict is always
//! computed from rows.

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

/// The claims of a paper on the figures of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Version of the format.
    pub slackline: u32,
    /// Authors, title, where it appeared.
    pub cite: String,
    /// The claims on each figure.
    #[serde(default)]
    pub figures: Vec<Claim>,
}

/// The claim of a paper on a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The figure, by its name in the specification.
    pub id: String,
    /// The place in the paper: a figure, a table, a section.
    pub at: String,
    /// The claim, in our words.
    pub claim: String,
    /// The panels of the picture, one below the other.
    #[serde(default)]
    pub panels: Vec<Panel>,
    /// Numbers of the paper that are drawn beside ours.
    #[serde(default)]
    pub numbers: Vec<Number>,
    /// The expectations on our rows that confirm the claim.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Further expectations, if ours is better than the paper's.
    #[serde(default)]
    pub better: Vec<Expectation>,
    /// Why ours differs, if it does.
    pub because: Option<String>,
}

/// A panel of a picture: rows of a measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    pub measure: String,
    /// Only this series; without one and if `x` varies, a panel a series.
    pub series: Option<String>,
    /// Only these policies.
    #[serde(default)]
    pub policies: Vec<String>,
    /// The label of the axis of values [default: the measure].
    pub axis: Option<String>,
    /// The varied parameter, for the other axis.
    pub by: Option<String>,
}

/// A number of the paper, or a range if the paper gives no exact number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    pub policy: String,
    pub measure: String,
    /// The value of the varied parameter; `None` for all values.
    pub x: Option<String>,
    /// The series; `None` for all series.
    pub series: Option<String>,
    pub least: f64,
    /// The largest value; `least` if missing.
    pub most: Option<f64>,
}

impl Paper {
    /// Reads the claims of a paper on the figures of `spec`; `name` is its name in messages.
    ///
    /// # Errors
    /// Invalid TOML or structure, another version, unknown or repeated figures, empty expectations.
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

    /// The claim on a figure.
    pub fn claim(&self, figure: &str) -> Option<&Claim> {
        self.figures.iter().find(|claim| claim.id == figure)
    }
}

/// The picture of a figure, if its rows are measures: `ID.svg`, as an artifact.
///
/// # Errors
/// The error of the drawing library.
pub fn drawn(
    figure: &Figure,
    claim: Option<&Claim>,
    made: &[Artifact],
) -> Result<Option<Artifact>, ReproError> {
    let text = made.first().map_or("", |csv| &csv.text);
    let picture = picture(&figure.title, claim, &rows(text)).map_err(|problem| figure.problem(problem))?;
    Ok(picture.map(|text| Artifact { name: format!("{}.svg", figure.id), text }))
}
