//! What a specification says: which figures, of what kind, over how many seeds, with what settings.

use serde::{Deserialize, Serialize};
use slackline_trace::sha256;

use crate::ReproError;
use crate::kinds;

/// The specification of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Version of the format.
    pub slackline: u32,
    /// What the experiment is about, in a line.
    pub title: String,
    /// The paper, by its key in PAPERS.md.
    pub paper: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A figure: a kind, and the settings that the kind has.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name, also of its files.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Its kind; see [`kinds::kinds`].
    pub kind: String,
    /// Seeds 0, 1, … to average over.
    pub seeds: u32,
    /// The settings of its kind.
    pub settings: toml::Table,
}

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

impl Spec {
    /// Reads a specification; `name` is what messages call it.
    ///
    /// # Errors
    /// What is wrong with it; settings are read when their figure is made.
    pub fn parse(name: &str, text: &str) -> Result<Self, SpecError> {
        let spec: Self = toml::from_str(text)
            .map_err(|problem| SpecError::Syntax { name: name.to_owned(), problem: Box::new(problem) })?;
        if spec.slackline != 1 {
            return Err(SpecError::Version { name: name.to_owned(), found: spec.slackline });
        }
        for (k, figure) in spec.figures.iter().enumerate() {
            kinds::kind(figure)?;
            if spec.figures[..k].iter().any(|other| other.id == figure.id) {
                return Err(SpecError::Twice { name: name.to_owned(), figure: figure.id.clone() });
            }
            if figure.seeds == 0 {
                return Err(SpecError::NoSeeds { figure: figure.id.clone() });
            }
        }
        Ok(spec)
    }
}

impl Figure {
    /// The settings, as the struct of the figure's kind.
    ///
    /// # Errors
    /// Settings that the struct does not have, or values that they cannot have.
    pub fn settings<T: serde::de::DeserializeOwned>(&self) -> Result<T, ReproError> {
        let settings = toml::Value::Table(self.settings.clone()).try_into();
        Ok(settings
            .map_err(|problem| SpecError::Settings { figure: self.id.clone(), problem: Box::new(problem) })?)
    }

    /// A hash of all that shapes the figure: rows carry it, so that stale ones are noticed.
    pub fn hash(&self) -> String {
        let text = toml::to_string(self).expect("invariant: a figure was read from TOML");
        sha256(text.as_bytes())[..12].to_owned()
    }

    /// An error about this figure.
    pub fn problem(&self, problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ReproError {
        ReproError::Figure { figure: self.id.clone(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Spec::parse("spec.toml", text).unwrap_err().to_string()
    }

    fn spec(head: &str, figure: &str) -> String {
        format!(
            "{head}\ntitle = 't'\npaper = 'p'\n[[figures]]\nid = 'f'\ntitle = 't'\n{figure}\n[figures.settings]\n"
        )
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(error(&spec("slackline = 2", "kind = 'sweep'\nseeds = 1")).contains("expected 1"));
        assert!(error(&spec("slackline = 1", "kind = 'sweap'\nseeds = 1")).contains("expected one of sweep"));
        assert!(error(&spec("slackline = 1", "kind = 'sweep'\nseeds = 0")).contains("at least 1"));
        assert!(error(&spec("slackline = 1", "kinds = 'sweep'\nseeds = 1")).contains("line 7"));
    }

    #[test]
    fn the_hash_is_of_all_that_shapes_the_figure() {
        let read = |seeds: u32| {
            let text = spec("slackline = 1", &format!("kind = 'sweep'\nseeds = {seeds}"));
            Spec::parse("spec.toml", &text).unwrap().figures[0].hash()
        };
        assert_eq!(read(3), read(3));
        assert_ne!(read(3), read(4));
    }
}
