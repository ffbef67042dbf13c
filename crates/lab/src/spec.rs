//! What a specification says: which figures, of what kind, over how many seeds, with what settings.

use serde::{Deserialize, Serialize};
use slackline_trace::sha256;

use crate::error::{ReproError, SpecError};

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
    /// Its kind; see [`crate::kinds`].
    pub kind: String,
    /// Seeds 0, 1, … to average over.
    pub seeds: u32,
    /// The settings of its kind.
    pub settings: toml::Table,
}

impl Spec {
    /// Reads a specification whose figures are of these kinds; `name` is what messages call it.
    ///
    /// # Errors
    /// What is wrong with it; settings are read when their figure is made.
    pub fn parse(name: &str, text: &str, kinds: &[&str]) -> Result<Self, SpecError> {
        let spec: Self = toml::from_str(text)
            .map_err(|problem| SpecError::Syntax { name: name.to_owned(), problem: Box::new(problem) })?;
        if spec.slackline != 1 {
            return Err(SpecError::Version { name: name.to_owned(), found: spec.slackline });
        }
        for (k, figure) in spec.figures.iter().enumerate() {
            figure.known(kinds)?;
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
    /// Refuses a figure of another kind than these.
    ///
    /// # Errors
    /// If its kind is none of them; the error lists those there are.
    pub fn known(&self, kinds: &[&str]) -> Result<(), SpecError> {
        if kinds.contains(&self.kind.as_str()) {
            return Ok(());
        }
        Err(SpecError::Kind { figure: self.id.clone(), found: self.kind.clone(), expected: kinds.join(", ") })
    }

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
        Spec::parse("spec.toml", text, &["sweep"]).unwrap_err().to_string()
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
            Spec::parse("spec.toml", &text, &["sweep"]).unwrap().figures[0].hash()
        };
        assert_eq!(read(3), read(3));
        assert_ne!(read(3), read(4));
    }
}
