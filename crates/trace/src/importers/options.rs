//! Import options: the assumptions of importers for missing values.
//!
//! They are name-value pairs, because a schedule records them and `check` imports the trace again with them;
//! the importers' tables of parameters define the names and values.

use std::collections::BTreeMap;

use slackline_model::names::unknown;
use slackline_model::params::{ParamError, Settings};
use slackline_model::{Seed, Start};

use crate::documents::parameters::Parameters;
use crate::importers::Importers;
use crate::importers::importer::{Importer, SEED};
use crate::reading::diagnostic::Diagnostic;

/// The known formats, and the options of their importers.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    importers: Importers,
    values: BTreeMap<String, String>,
    now: Option<Start>,
    parameters: Parameters,
    trusts_texts: bool,
}

/// An import option that does not exist or cannot have that value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    #[error("{}", unknown("import option", .name, .known))]
    Unknown { name: String, known: Vec<&'static str> },
    #[error(transparent)]
    Value(#[from] ParamError),
}

impl ImportOptions {
    pub fn new(importers: Importers) -> Self {
        Self { importers, ..Self::default() }
    }

    /// The formats of this crate, with the defaults changed by name-value pairs.
    ///
    /// # Errors
    /// Unknown names and impossible values.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, OptionError> {
        let mut options = Self::default();
        for (name, value) in pairs {
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// The same for flows that begin to run at this moment: it is second 0, even if a document has another
    /// start.
    #[must_use]
    pub fn starting(self, now: Start) -> Self {
        Self { now: Some(now), ..self }
    }

    /// The same with these values of the parameters that a document declares.
    #[must_use]
    pub fn with_parameters(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// The same for a document that this program wrote: its paths and commands were checked when a user wrote
    /// them.
    #[must_use]
    pub fn trusting_texts(self) -> Self {
        Self { trusts_texts: true, ..self }
    }

    pub(crate) fn trusts_texts(&self) -> bool {
        self.trusts_texts
    }

    /// Values of the parameters that a document declares.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The moment that flows begin to run, if they do.
    pub fn now(&self) -> Option<&Start> {
        self.now.as_ref()
    }

    /// Sets one option by its name.
    ///
    /// # Errors
    /// An unknown name or an impossible value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let Some((importer, _)) = self.importers.params().find(|(_, param)| param.name == name) else {
            let known = self.importers.params().map(|(_, param)| param.name).collect();
            return Err(OptionError::Unknown { name: name.to_owned(), known });
        };
        Settings::parse(importer.params, [(name, value)])?;
        self.values.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets the seed of importers that draw.
    pub fn set_seed(&mut self, seed: Seed) {
        self.values.insert(SEED.name.to_owned(), seed.0.to_string());
    }

    pub fn importers(&self) -> &Importers {
        &self.importers
    }

    /// The remark on options that the importer does not have.
    pub(crate) fn without_effect(&self, importer: &Importer) -> Option<Diagnostic> {
        let is_other =
            |name: &&String| *name != SEED.name && importer.params.iter().all(|param| param.name != **name);
        let others: Vec<&str> = self.values.keys().filter(is_other).map(String::as_str).collect();
        let what = format!("{}: no option of the format {}, ignored", others.join(", "), importer.name);
        (!others.is_empty()).then(|| Diagnostic::new("option", others.len() as u64, what))
    }

    /// The values of an importer's parameters.
    ///
    /// # Errors
    /// A value that this importer does not take, though another one with a parameter of that name does.
    pub fn settings(&self, importer: &Importer) -> Result<Settings, ParamError> {
        let given = |name: &'static str| self.values.get(name).map(|value| (name, value.as_str()));
        Settings::parse(importer.params, importer.params.iter().filter_map(|param| given(param.name)))
    }

    /// Every option that affects the result of the importer: [`Self::from_pairs`] of it gives the same.
    ///
    /// # Errors
    /// As [`Self::settings`].
    pub fn recorded(&self, importer: &Importer) -> Result<BTreeMap<String, String>, ParamError> {
        let settings = self.settings(importer)?;
        let shaped = settings.pairs().filter(|(name, _)| (importer.shaped)(&settings, name));
        Ok(shaped.map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(importer: &str, pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
        let importer = options.importers().get(importer).unwrap();
        let recorded = options.recorded(importer).unwrap();
        let again =
            ImportOptions::from_pairs(recorded.iter().map(|(n, v)| (n.as_str(), v.as_str()))).unwrap();
        assert_eq!(again.recorded(importer).unwrap(), recorded);
        recorded.into_iter().collect()
    }

    fn text(pairs: &[(String, String)]) -> String {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(" ")
    }

    #[test]
    fn settings_of_an_import_are_recorded_and_read_back() {
        let all = [
            ("split", "64MiB"),
            ("reduce-bytes", "2 GB"),
            ("reduces-max", "none"),
            ("seed", "7"),
            ("missing-inputs", "assume"),
            ("properties", "a=b"),
            ("runtime-scale", "2.5"),
        ];
        let shape = "reduce-bytes=2000000000 reduces-max=none";
        assert_eq!(
            text(&recorded("swim", &all)),
            format!("durations=lognormal {shape} seed=7 split=67108864")
        );
        let rate: Vec<_> = all.into_iter().chain([("durations", "rate"), ("task-startup", "0.5")]).collect();
        let rates = "map-rate=33554432 output-rate=25165824";
        assert_eq!(
            text(&recorded("swim", &rate)),
            format!("durations=rate {rates} {shape} shuffle-rate=16777216 split=67108864 task-startup=0.5")
        );
        assert_eq!(text(&recorded("woha", &all)), "missing-inputs=assume");
        assert_eq!(text(&recorded("oozie", &all)), "properties=a=b");
        assert_eq!(text(&recorded("wfformat", &all)), "runtime-scale=2.5");
        for quiet in ["toml", "woha", "oozie"] {
            assert!(recorded(quiet, &[]).is_empty(), "{quiet}");
        }
        assert_eq!(text(&recorded("wfformat", &[])), "runtime-scale=1");
        assert_eq!(
            text(&recorded("swim", &[])),
            "durations=lognormal reduce-bytes=1073741824 reduces-max=1000 seed=0 split=134217728"
        );
    }

    #[test]
    fn unknown_names_and_values_say_what_is_valid() {
        let error = |name, value| ImportOptions::from_pairs([(name, value)]).unwrap_err().to_string();
        assert!(error("splits", "1").ends_with("; did you mean \"split\"?"));
        assert_eq!(error("durations", "short"), "found durations=short, expected one of lognormal, rate");
        for (name, value) in [("split", "0"), ("split", "5 miles"), ("split", "99999999TiB"), ("split", "-1")]
        {
            assert!(error(name, value).contains("expected a size"), "{value}");
        }
        for (name, value) in [
            ("reduces-max", "0"),
            ("seed", "x"),
            ("task-startup", "NaN"),
            ("map-rate", ""),
            ("runtime-scale", "0"),
        ] {
            assert!(error(name, value).contains("expected"), "{name}");
        }
    }
}
