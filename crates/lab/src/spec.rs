//! The content of a specification: figures, their kind, seeds, and settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline::import::Source;
use slackline_model::names::unknown;
use slackline_model::shell;
use slackline_trace::{Document, Format, sha256};

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
    /// Its place, for errors in its settings.
    #[serde(skip)]
    origin: Option<Origin>,
}

/// The specification of a figure, and the number of the figure in it.
#[derive(Clone, Debug)]
struct Origin {
    document: Document,
    number: usize,
    /// The directory of the specification: paths of workloads start there.
    folder: PathBuf,
}

impl Spec {
    /// Reads a specification whose figures are of these kinds. `name` is its path, and its name in messages.
    /// Files that it names are searched beside it, when their figure is made.
    ///
    /// # Errors
    /// An error in it; settings are read when their figure is made.
    pub fn parse(name: &str, text: &str, kinds: &[&str]) -> Result<Self, SpecError> {
        let document = Document::new(name, text, Format::Toml);
        let mut spec: Self = document.read()?;
        if spec.slackline != 1 {
            let found = spec.slackline;
            return Err(document.error("slackline", format!("found {found}, expected version 1")).into());
        }
        let mut ids = BTreeSet::new();
        for (k, figure) in spec.figures.iter_mut().enumerate() {
            let wrong = |field: &str, what: String| document.error(&format!("figures[{k}].{field}"), what);
            if !kinds.contains(&figure.kind.as_str()) {
                return Err(wrong("kind", unknown("kind", &figure.kind, kinds)).into());
            }
            if !ids.insert(figure.id.clone()) {
                return Err(wrong(
                    "id",
                    format!("found {:?} a second time, expected each name once", figure.id),
                )
                .into());
            }
            // The id becomes a file name.
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !figure.id.chars().all(is_name)
                || figure.id.trim_start_matches('.') != figure.id
                || figure.id.is_empty()
            {
                let expected = "letters, digits, - and _, and dots not at the beginning";
                return Err(wrong("id", format!("found {:?}, expected {expected}", figure.id)).into());
            }
            if figure.seeds == 0 {
                return Err(wrong("seeds", "found 0, expected at least 1".to_owned()).into());
            }
            let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
            figure.origin = Some(Origin { document: document.clone(), number: k, folder });
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
        let origin = self.origin.as_ref().expect("invariant: figures come from a specification");
        Ok(origin
            .document
            .read_part(&format!("figures[{}].settings", origin.number))
            .map_err(SpecError::from)?)
    }

    /// A hash of everything that affects the figure, including the content of its workload's file. Rows carry
    /// it, so that stale rows are noticed.
    pub fn hash(&self) -> String {
        let mut text = toml::to_string(self).expect("invariant: a figure was read from TOML");
        let file = self.settings.get("workload").and_then(|workload| workload.get("file"));
        if let Some(source) = file.and_then(toml::Value::as_str).and_then(|file| self.beside(file).ok()) {
            text += &sha256(&source.bytes);
        }
        sha256(text.as_bytes())[..12].to_owned()
    }

    /// Reads a file, or finds the files of a folder; the path starts at the specification.
    ///
    /// # Errors
    /// An unreadable file, as a message.
    pub(crate) fn beside(&self, file: &str) -> Result<Source, String> {
        let origin = self.origin.as_ref().expect("invariant: figures come from a specification");
        shell::check_path(file).map_err(|expected| format!("found {file:?}, expected {expected}"))?;
        let path = origin.folder.join(file);
        if file.is_empty() || !path.exists() {
            return Err(format!(
                "found {file:?}, expected the path of a workload: there is no {}",
                path.display()
            ));
        }
        Source::read(&path).map_err(|error| {
            let why = std::error::Error::source(&error).map_or(String::new(), |why| format!(": {why}"));
            format!("{error}{why}")
        })
    }

    /// An error in the setting at this path.
    pub(crate) fn wrong(&self, setting: &str, what: impl std::fmt::Display) -> ReproError {
        let origin = self.origin.as_ref().expect("invariant: figures come from a specification");
        let path = format!("figures[{}].settings.{setting}", origin.number);
        SpecError::from(origin.document.error(&path, what.to_string())).into()
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
    fn errors_are_reported() {
        let first = "slackline = 1";
        for (text, expected) in [
            (
                spec("slackline = 2", "kind = 'sweep'\nseeds = 1"),
                "spec.toml:1:13: slackline: found 2, expected version 1",
            ),
            (
                spec(first, "kind = 'sweap'\nseeds = 1"),
                "spec.toml:7:8: figures[0].kind: found kind \"sweap\", expected sweep; did you mean \"sweep\"?",
            ),
            (
                spec(first, "kind = 'sweep'\nseeds = 0"),
                "spec.toml:8:9: figures[0].seeds: found 0, expected at least 1",
            ),
            (
                spec(first, "kind = 'sweep'\nseeds = 1").replace("id = 'f'", "id = '../f'"),
                "spec.toml:5:6: figures[0].id: found \"../f\", expected letters, digits",
            ),
            (spec(first, "kinds = 'sweep'\nseeds = 1"), "spec.toml:7:1: figures[0]: unknown field `kinds`"),
            ("slackline = ".to_owned(), "spec.toml:1:"),
        ] {
            let error = error(&text);
            assert!(error.starts_with(expected) && error.lines().count() == 1, "{expected:?} in {error}");
        }
    }

    #[test]
    fn errors_of_settings_have_a_place() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only the error matters")]
        struct Settings {
            policies: Vec<String>,
        }
        let text = spec("slackline = 1", "kind = 'sweep'\nseeds = 1") + "policie = []\n";
        let spec = Spec::parse("spec.toml", &text, &["sweep"]).unwrap();
        let error = spec.figures[0].settings::<Settings>().unwrap_err().to_string();
        let expected = "spec.toml:10:1: figures[0].settings: unknown field `policie`, expected `policies`; did you mean `policies`?";
        assert_eq!(error, expected);
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
