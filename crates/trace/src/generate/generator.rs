//! A generator: a name, a table of parameters, and a function of their values and a seed.

use std::ops::RangeInclusive;

use slackline_model::names::unknown;
use slackline_model::params::{Param, ParamError, Settings};
use slackline_model::{Draft, Invalid, Seed};

#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for users who choose among generators.
    pub summary: &'static str,
    pub params: &'static [Param],
    pub(super) make: fn(&Params, Seed) -> Result<Draft, GenerateError>,
}

impl Generator {
    /// The workload of these settings (`(name, value)`; the rest have their defaults) and this seed.
    ///
    /// # Errors
    /// An unknown or repeated parameter, a value out of its range, values that contradict each other.
    pub fn generate(&self, settings: &[(&str, &str)], seed: Seed) -> Result<Draft, GenerateError> {
        let settings = Settings::parse(self.params, settings.iter().copied())
            .map_err(|problem| GenerateError::Param { generator: self.name, problem })?;
        (self.make)(&Params { generator: self.name, settings }, seed)
    }
}

/// Why there is no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    #[error("{}", unknown("generator", .found, .known))]
    UnknownGenerator { found: String, known: Vec<&'static str> },
    /// A parameter is unknown, set twice or out of range.
    #[error("{generator}: {problem}")]
    Param { generator: &'static str, problem: ParamError },
    /// Two values, each in its range, contradict each other.
    #[error("{generator}: found {found}, expected {expected}")]
    Conflict { generator: &'static str, found: String, expected: &'static str },
    /// The workload that follows from the values is not valid.
    #[error("these parameters give no valid workload: {0}")]
    Invalid(#[from] Invalid),
}

/// The values of one workload's parameters. Generators declare whole numbers below 2^32, so they are read
/// as such; a parameter that may be `auto` is read by the getters that end in `_given`.
pub(super) struct Params {
    generator: &'static str,
    settings: Settings,
}

impl Params {
    pub(super) fn count(&self, name: &str) -> u32 {
        self.settings.count(name) as u32
    }

    /// The whole number called `name`, unless it is `auto`.
    pub(super) fn count_given(&self, name: &str) -> Option<u32> {
        self.settings.given(name).then(|| self.count(name))
    }

    /// The range of whole numbers called `name`.
    pub(super) fn counts(&self, name: &str) -> RangeInclusive<u32> {
        let (low, high) = self.settings.counts(name);
        low as u32..=high as u32
    }

    pub(super) fn real(&self, name: &str) -> f64 {
        self.settings.real(name)
    }

    /// The number called `name`, unless it is `auto`.
    pub(super) fn real_given(&self, name: &str) -> Option<f64> {
        self.settings.given(name).then(|| self.real(name))
    }

    pub(super) fn reals(&self, name: &str) -> RangeInclusive<f64> {
        let (low, high) = self.settings.reals(name);
        low..=high
    }

    pub(super) fn choice(&self, name: &str) -> &'static str {
        self.settings.choice(name)
    }

    /// The word called `name`, unless it is `auto`.
    pub(super) fn choice_given(&self, name: &str) -> Option<&'static str> {
        self.settings.given(name).then(|| self.choice(name))
    }

    /// An error about values that contradict each other.
    pub(super) fn conflict(&self, found: String, expected: &'static str) -> GenerateError {
        GenerateError::Conflict { generator: self.generator, found, expected }
    }
}
