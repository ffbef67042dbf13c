//! Parameters of generators: names, defaults, ranges, and the errors that list them.
//!
//! Ranges are data, so that a help text, an error message and the check itself cannot disagree.

use std::fmt;
use std::str::FromStr;

use super::{GenerateError, Generator};

/// A parameter of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its default, written as a user would. A parameter with the default `auto` accepts `auto`.
    pub default: &'static str,
    /// What it may be.
    pub values: Values,
    /// One line for people.
    pub help: &'static str,
}

/// What a parameter may be. Bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// A whole number within bounds.
    Count(u32, u32),
    /// A whole number or a range of them within bounds: `7`, `5..20`.
    Counts(u32, u32),
    /// A number within bounds.
    Real(f64, f64),
    /// A number or a range within bounds: `0.5`, `1..5`.
    Reals(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::Counts(low, high) => {
                write!(f, "a whole number or a range such as 5..20, from {low} to {high}")
            }
            Self::Real(low, high) => write!(f, "a number from {low} to {high}"),
            Self::Reals(low, high) => write!(f, "a number or a range such as 1..5, from {low} to {high}"),
            Self::Choice(words) => write!(f, "one of {}", listed(words.iter().copied())),
        }
    }
}

impl Param {
    pub(super) const fn new(
        name: &'static str,
        default: &'static str,
        values: Values,
        help: &'static str,
    ) -> Self {
        Self { name, default, values, help }
    }

    /// What it may be, in words.
    pub fn expected(&self) -> String {
        if self.default == "auto" { format!("auto or {}", self.values) } else { self.values.to_string() }
    }

    fn read(&self, text: &str) -> Option<Value> {
        if text == "auto" && self.default == "auto" {
            return Some(Value::Auto);
        }
        match self.values {
            Values::Count(low, high) => {
                let n = text.parse().ok().filter(|n| (low..=high).contains(n))?;
                Some(Value::Counts(n, n))
            }
            Values::Counts(low, high) => {
                let (a, b): (u32, u32) = ends(text)?;
                (low <= a && a <= b && b <= high).then_some(Value::Counts(a, b))
            }
            // Comparisons with NaN are false, so NaN and infinities are out of range.
            Values::Real(low, high) => {
                let x = text.parse().ok().filter(|x| (low..=high).contains(x))?;
                Some(Value::Reals(x, x))
            }
            Values::Reals(low, high) => {
                let (a, b): (f64, f64) = ends(text)?;
                (low <= a && a <= b && b <= high).then_some(Value::Reals(a, b))
            }
            Values::Choice(words) => words.iter().copied().find(|w| *w == text).map(Value::Choice),
        }
    }
}

/// `a..b`, or `a` for `a..a`.
fn ends<T: FromStr + Copy>(text: &str) -> Option<(T, T)> {
    if let Some((a, b)) = text.split_once("..") {
        Some((a.parse().ok()?, b.parse().ok()?))
    } else {
        let a = text.parse().ok()?;
        Some((a, a))
    }
}

/// Names for a message: `a, b, c`.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Auto,
    Counts(u32, u32),
    Reals(f64, f64),
    Choice(&'static str),
}

/// A valid value for every parameter of a generator.
#[derive(Clone, Debug)]
pub struct Params {
    generator: &'static Generator,
    /// In the order of the generator's parameters.
    values: Vec<Value>,
}

impl Params {
    /// Values from `(name, value)` settings; parameters without one have their default.
    ///
    /// # Errors
    /// An unknown or repeated name, or a value that is not what the parameter may be.
    pub fn parse(generator: &'static Generator, settings: &[(&str, &str)]) -> Result<Self, GenerateError> {
        let mut values: Vec<Option<Value>> = vec![None; generator.params.len()];
        for &(name, text) in settings {
            let at = generator.params.iter().position(|p| p.name == name).ok_or_else(|| {
                GenerateError::UnknownParam {
                    generator: generator.name,
                    found: name.to_owned(),
                    expected: listed(generator.params.iter().map(|p| p.name)),
                }
            })?;
            let param = &generator.params[at];
            let value = param.read(text).ok_or_else(|| GenerateError::BadValue {
                generator: generator.name,
                param: param.name,
                found: text.to_owned(),
                expected: param.expected(),
            })?;
            if values[at].replace(value).is_some() {
                return Err(GenerateError::Repeated { generator: generator.name, param: param.name });
            }
        }
        let filled = values.into_iter().zip(generator.params).map(|(value, param)| {
            value.or_else(|| param.read(param.default)).expect("invariant: defaults are valid (tested)")
        });
        Ok(Self { generator, values: filled.collect() })
    }

    fn value(&self, name: &str) -> Value {
        let at = self.generator.params.iter().position(|p| p.name == name);
        self.values[at.expect("invariant: generators ask for parameters they declare")]
    }

    /// The whole number called `name`.
    pub(super) fn count(&self, name: &str) -> u32 {
        self.counts(name).0
    }

    /// The whole number called `name`, unless it is `auto`.
    pub(super) fn count_given(&self, name: &str) -> Option<u32> {
        if self.value(name) == Value::Auto { None } else { Some(self.count(name)) }
    }

    /// Both ends of the range of whole numbers called `name`.
    pub(super) fn counts(&self, name: &str) -> (u32, u32) {
        let Value::Counts(low, high) = self.value(name) else { panic!("{name} is no whole number") };
        (low, high)
    }

    /// The number called `name`.
    pub(super) fn real(&self, name: &str) -> f64 {
        self.reals(name).0
    }

    /// The number called `name`, unless it is `auto`.
    pub(super) fn real_given(&self, name: &str) -> Option<f64> {
        if self.value(name) == Value::Auto { None } else { Some(self.real(name)) }
    }

    /// Both ends of the range called `name`.
    pub(super) fn reals(&self, name: &str) -> (f64, f64) {
        let Value::Reals(low, high) = self.value(name) else { panic!("{name} is no number") };
        (low, high)
    }

    /// The word called `name`.
    pub(super) fn choice(&self, name: &str) -> &'static str {
        let Value::Choice(word) = self.value(name) else { panic!("{name} is no word") };
        word
    }

    /// The word called `name`, unless it is `auto`.
    pub(super) fn choice_given(&self, name: &str) -> Option<&'static str> {
        if self.value(name) == Value::Auto { None } else { Some(self.choice(name)) }
    }

    /// An error about values that contradict each other.
    pub(super) fn conflict(&self, found: String, expected: &'static str) -> GenerateError {
        GenerateError::Conflict { generator: self.generator.name, found, expected }
    }
}
