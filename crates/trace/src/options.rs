//! Import options: what a trace leaves open and an importer must assume.
//!
//! They are also name-value pairs, because a schedule records them and `check` imports the trace
//! again with them.

use std::collections::BTreeMap;

use slackline_model::Seed;
use slackline_model::bytes;

use crate::error::nearest;
use crate::format::Format;

const MIB: f64 = (1u64 << 20) as f64;

/// What importers assume.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// `split`: bytes of input a map task reads; 128 MiB.
    pub split: u64,
    /// `reduce-bytes`: bytes of shuffle and output a reduce task handles; 1 GiB.
    pub reduce_bytes: u64,
    /// `reduces-max`: most reduces of a job, or `none`.
    ///
    /// 1000 by default: it does not depend on the cluster and touches only jobs that shuffle and
    /// write more than a terabyte, which nobody gave a reduce for every gigabyte.
    pub reduces_max: Option<u32>,
    /// `durations`: how long tasks take.
    pub durations: Durations,
    /// `seed`: of the lognormal draws.
    pub seed: Seed,
    /// The rates of [`Durations::Rate`].
    pub rates: Rates,
    /// `missing-inputs`: what becomes of inputs of a WOHA workflow that nobody writes.
    pub missing_inputs: MissingInputs,
    /// `properties`: the text of an Oozie workflow's `job.properties`; none.
    pub properties: String,
    /// `actions`: the text of a side file with task counts and durations of an Oozie workflow's actions,
    /// as TOML or JSON; none.
    pub actions: String,
    /// `cases`: the cases taken at decisions of an Oozie workflow, as `decision=target` after commas;
    /// none, which takes the defaults.
    pub cases: String,
    /// `runtime-scale`: factor on the runtimes of a WfFormat instance; 1.
    pub runtime_scale: f64,
}

/// What becomes of inputs of a WOHA workflow that no job writes and no dataset declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingInputs {
    /// `refuse`: they are an error.
    Refuse,
    /// `assume`: they are taken as there.
    Assume,
}

/// Where durations come from when the trace has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// `lognormal`: one draw a job and phase (job-ordering paper, section 7.2).
    Lognormal,
    /// `rate`: start-up plus bytes over rates; no draws.
    Rate,
}

/// Seconds and bytes a second of the rate model.
///
/// The values are ours, for the commodity nodes of 2009: a disk that several tasks share, a reduce's
/// share of a gigabit link, output written with its replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// `task-startup`: seconds before a task does anything; 2.
    pub startup: f64,
    /// `map-rate`: bytes of its split a map handles a second; 32 MiB.
    pub map: f64,
    /// `shuffle-rate`: bytes a reduce fetches a second; 16 MiB.
    pub shuffle: f64,
    /// `output-rate`: bytes a task writes as output of the job a second; 24 MiB.
    pub output: f64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            split: 128 << 20,
            reduce_bytes: 1 << 30,
            reduces_max: Some(1000),
            durations: Durations::Lognormal,
            seed: Seed(0),
            rates: Rates { startup: 2.0, map: 32.0 * MIB, shuffle: 16.0 * MIB, output: 24.0 * MIB },
            missing_inputs: MissingInputs::Refuse,
            properties: String::new(),
            actions: String::new(),
            cases: String::new(),
            runtime_scale: 1.0,
        }
    }
}

/// An import option that does not exist or cannot have that value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No such option.
    #[error("found import option {name:?}, expected one of {}{}", ImportOptions::NAMES.join(", "), suggestion(.name))]
    Unknown {
        /// What was found.
        name: String,
    },
    /// No such value.
    #[error("found {name} = {value:?}, expected {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was found.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
}

fn suggestion(name: &str) -> String {
    let known = nearest(name, ImportOptions::NAMES.iter().copied());
    known.map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

impl ImportOptions {
    /// The names of all options.
    pub const NAMES: &[&'static str] = &[
        "split",
        "reduce-bytes",
        "reduces-max",
        "durations",
        "seed",
        "task-startup",
        "map-rate",
        "shuffle-rate",
        "output-rate",
        "missing-inputs",
        "properties",
        "actions",
        "cases",
        "runtime-scale",
    ];

    /// The defaults changed by name-value pairs.
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

    /// Sets one option by its name.
    ///
    /// # Errors
    /// An unknown name or an impossible value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let Some(&name) = Self::NAMES.iter().find(|known| **known == name) else {
            return Err(OptionError::Unknown { name: name.to_owned() });
        };
        let bad = |expected| OptionError::Value { name, value: value.to_owned(), expected };
        let size = || bytes::parse(value).ok_or_else(|| bad("a size such as 128MiB, at least 1 byte"));
        let rate = || size().map(|bytes| bytes as f64);
        match name {
            "split" => self.split = size()?,
            "reduce-bytes" => self.reduce_bytes = size()?,
            "reduces-max" if value == "none" => self.reduces_max = None,
            "reduces-max" => {
                let most = value.parse().ok().filter(|&n| n > 0);
                self.reduces_max = Some(most.ok_or_else(|| bad("a whole number from 1, or none"))?);
            }
            "durations" => {
                self.durations = match value {
                    "lognormal" => Durations::Lognormal,
                    "rate" => Durations::Rate,
                    _ => return Err(bad("lognormal or rate")),
                }
            }
            "seed" => self.seed = Seed(value.parse().map_err(|_| bad("a whole number"))?),
            "task-startup" => {
                let seconds = value.parse().ok().filter(|s: &f64| (0.0..=1e6).contains(s));
                self.rates.startup = seconds.ok_or_else(|| bad("seconds from 0 to a million"))?;
            }
            "missing-inputs" => {
                self.missing_inputs = match value {
                    "refuse" => MissingInputs::Refuse,
                    "assume" => MissingInputs::Assume,
                    _ => return Err(bad("refuse or assume")),
                }
            }
            // Texts are checked when they are used, where a message can say which line is wrong.
            "properties" => value.clone_into(&mut self.properties),
            "actions" => value.clone_into(&mut self.actions),
            "cases" => value.clone_into(&mut self.cases),
            "runtime-scale" => {
                let factor = value.parse().ok().filter(|&f: &f64| f > 0.0 && f <= 1e9);
                self.runtime_scale =
                    factor.ok_or_else(|| bad("a factor above 0, up to a thousand million"))?;
            }
            "map-rate" => self.rates.map = rate()?,
            "shuffle-rate" => self.rates.shuffle = rate()?,
            _ => self.rates.output = rate()?,
        }
        Ok(())
    }

    /// Every option that shaped what was imported from `format`, defaults included, so that a later
    /// version with other defaults imports the same: [`Self::from_pairs`] of it does.
    pub fn to_pairs(&self, format: Format) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        if format.is_native() {
            return pairs;
        }
        let mut put = |name: &str, value: String| pairs.insert(name.to_owned(), value);
        match format {
            // Refusing shapes nothing, and nothing is what empty texts say.
            Format::Woha => {
                if self.missing_inputs == MissingInputs::Assume {
                    put("missing-inputs", "assume".to_owned());
                }
                return pairs;
            }
            Format::Oozie => {
                for (name, text) in
                    [("properties", &self.properties), ("actions", &self.actions), ("cases", &self.cases)]
                {
                    if !text.is_empty() {
                        put(name, text.clone());
                    }
                }
                return pairs;
            }
            Format::WfFormat => {
                put("runtime-scale", self.runtime_scale.to_string());
                return pairs;
            }
            Format::Toml | Format::Json | Format::Yaml | Format::Swim => {}
        }
        put("split", self.split.to_string());
        put("reduce-bytes", self.reduce_bytes.to_string());
        put("reduces-max", self.reduces_max.map_or_else(|| "none".to_owned(), |n| n.to_string()));
        match self.durations {
            Durations::Lognormal => {
                put("durations", "lognormal".to_owned());
                put("seed", self.seed.0.to_string());
            }
            Durations::Rate => {
                put("durations", "rate".to_owned());
                put("task-startup", self.rates.startup.to_string());
                put("map-rate", self.rates.map.to_string());
                put("shuffle-rate", self.rates.shuffle.to_string());
                put("output-rate", self.rates.output.to_string());
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_as_the_same_options() {
        for extra in [("durations", "lognormal"), ("durations", "rate")] {
            let pairs = [("split", "64MiB"), ("reduce-bytes", "2 GB"), ("reduces-max", "none"), extra];
            let options = ImportOptions::from_pairs(pairs).unwrap();
            assert_eq!(
                (options.split, options.reduce_bytes, options.reduces_max),
                (64 << 20, 2_000_000_000, None)
            );
            let pairs = options.to_pairs(Format::Swim);
            let again = ImportOptions::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())));
            assert_eq!(again.as_ref(), Ok(&options));
        }
        assert!(ImportOptions::default().to_pairs(Format::Toml).is_empty());
        let pairs =
            [("missing-inputs", "assume"), ("properties", "a=b"), ("actions", "{}"), ("cases", "d=e")];
        let options = ImportOptions::from_pairs(pairs).unwrap();
        let mut both = options.to_pairs(Format::Woha);
        both.extend(options.to_pairs(Format::Oozie));
        assert_eq!(
            ImportOptions::from_pairs(both.iter().map(|(n, v)| (n.as_str(), v.as_str()))),
            Ok(options)
        );
    }

    #[test]
    fn unknown_names_and_values_say_what_is_valid() {
        let error = |name, value| ImportOptions::from_pairs([(name, value)]).unwrap_err().to_string();
        assert!(error("splits", "1").ends_with("runtime-scale; did you mean split?"));
        assert_eq!(error("durations", "short"), "found durations = \"short\", expected lognormal or rate");
        for (name, value) in [("split", "0"), ("split", "5 miles"), ("split", "99999999TiB"), ("split", "-1")]
        {
            assert!(error(name, value).contains("expected a size"), "{value}");
        }
        for (name, value) in [("reduces-max", "0"), ("seed", "x"), ("task-startup", "NaN"), ("map-rate", "")]
        {
            assert!(error(name, value).contains("expected"), "{name}");
        }
    }
}
