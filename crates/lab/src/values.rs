//! Values of settings, checked when they are read, so that errors have a line.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};
use slackline::{PolicySpec, Registry};
use slackline_model::draft::Weights;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric, Objective};

#[derive(Clone, Debug)]
pub(crate) struct Policy(pub(crate) PolicySpec);

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| Registry::standard().parse(text)).map(Self)
    }
}

/// An objective and its text.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) text: String,
    pub(crate) objective: Objective,
}

impl<'de> Deserialize<'de> for Aim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| objective(text).map(|objective| Self { text: text.to_owned(), objective }))
    }
}

/// An objective as specifications write it: `sum response`, `max stretch`.
pub(crate) fn objective(text: &str) -> Result<Objective, String> {
    let read = || {
        let (combine, metric) = text.split_once(' ')?;
        Some(Objective::new(Metric::from_name(metric)?, Combine::from_name(combine)?))
    };
    read().ok_or_else(|| {
        let metrics: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("found objective {text:?}, expected sum or max and one of {}", metrics.join(", "))
    })
}

/// Reads a text with a function that returns the error in it.
pub(crate) fn text<'de, D: Deserializer<'de>, T, E: Display>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a list that is not empty.
pub(crate) fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        Err(D::Error::custom("found an empty list, expected at least one value"))
    } else {
        Ok(list)
    }
}

/// The words of [`weights`], for the schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[expect(dead_code, reason = "only its schema is of use")]
pub(crate) enum WeightsWord {
    Use,
    Ignore,
}

/// Reads whether weights count.
pub(crate) fn weights<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weights, D::Error> {
    text(deserializer, |text| match text {
        "use" => Ok(Weights::Use),
        "ignore" => Ok(Weights::Ignore),
        _ => Err(format!("found {text:?}, expected use or ignore")),
    })
}

fn number<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: RangeInclusive<f64>,
    expected: &str,
) -> Result<f64, D::Error> {
    let found = f64::deserialize(deserializer)?;
    // Comparisons with NaN are false, so it is in no range.
    if range.contains(&found) {
        Ok(found)
    } else {
        Err(D::Error::invalid_value(Unexpected::Float(found), &expected))
    }
}

/// Reads seconds from 0.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer, 0.0..=SECONDS_MAX, "seconds from 0").map(Some)
}

/// Reads seconds, at least a microsecond.
pub(crate) fn seconds_above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    number(deserializer, 1e-6..=SECONDS_MAX, "seconds above 0")
}

/// The same where it may be left out.
pub(crate) fn grain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    seconds_above_zero(deserializer).map(Some)
}

pub(crate) fn fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer, 0.0..=1.0, "a number from 0 to 1").map(Some)
}

/// Reads the standard deviation of a logarithm.
pub(crate) fn deviation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer, 0.0..=3.0, "a number from 0 to 3").map(Some)
}

pub(crate) fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer, 0.0..=1e9, "a number from 0").map(Some)
}

/// Reads a whole number from 1.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::invalid_value(Unexpected::Unsigned(0), &"a whole number from 1")),
        found => Ok(Some(found)),
    }
}
