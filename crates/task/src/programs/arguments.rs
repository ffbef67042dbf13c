//! Arguments of programs, with error messages that name the expected value.
//!
//! A flow file and a command line may give numbers and truth values as texts; and a text argument may look
//! like either (`pattern = "404"`).

use std::borrow::Cow;

use serde_json::Value;
use slackline_model::bytes;
use slackline_model::names::{did_you_mean, one_of, unknown};

use crate::base::error::TaskError;
use crate::process::spec::Args;

/// An argument of a program.
#[derive(Debug)]
pub struct Argument {
    pub name: &'static str,
    /// The meaning and the default.
    pub about: &'static str,
}

/// The arguments of one job, with checked names.
pub(crate) struct Arguments<'a> {
    program: &'static str,
    args: &'a Args,
}

impl<'a> Arguments<'a> {
    /// Refuses names that the program does not know.
    pub(crate) fn new(
        program: &'static str,
        known: &'static [Argument],
        args: &'a Args,
    ) -> Result<Self, TaskError> {
        let names: Vec<_> = known.iter().map(|argument| argument.name).collect();
        if let Some(name) = args.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(TaskError::Job(format!("{program}: {}", unknown("argument", name, &names))));
        }
        Ok(Arguments { program, args })
    }

    /// The name of the program.
    pub(crate) fn program(&self) -> &'static str {
        self.program
    }

    /// A string; for a number or a truth value, its text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, TaskError> {
        match self.args.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(Cow::Borrowed(text))),
            Some(plain @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(Cow::Owned(plain.to_string()))),
            Some(other) => Err(self.wrong(name, other, "a string")),
        }
    }

    /// One of some words; by default the first.
    pub(crate) fn choice(&self, name: &str, words: &[&'static str]) -> Result<&'static str, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(words[0]) };
        let known = words.iter().find(|word| found.as_str() == Some(word));
        known.copied().ok_or_else(|| {
            let meant = found.as_str().map(|found| did_you_mean(found, words.iter().copied()));
            self.wrong(name, found, &format!("{}{}", one_of(words), meant.unwrap_or_default()))
        })
    }

    /// True or false; by default false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(false) };
        plain(found).as_bool().ok_or_else(|| self.wrong(name, found, "true or false"))
    }

    /// A whole number, not negative.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<u64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        plain(found).as_u64().map(Some).ok_or_else(|| self.wrong(name, found, "a whole number"))
    }

    /// A number above 0.
    pub(crate) fn positive(&self, name: &str) -> Result<Option<f64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        let number = plain(found).as_f64().filter(|number| *number > 0.0 && number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(name, found, "a number above 0"))
    }

    /// A size in bytes: a whole number, or a string with one of `KiB`, `MiB`, `GiB`, `KB`, `MB`, `GB`.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<u64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        let size = found.as_u64().or_else(|| bytes::parse(found.as_str()?));
        size.map(Some).ok_or_else(|| self.wrong(name, found, "a size such as 64MiB or a whole number"))
    }

    /// The value of a required argument.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, TaskError> {
        value.ok_or_else(|| TaskError::Job(format!("{}: missing argument {name:?}", self.program)))
    }

    /// An error about an argument that was given.
    pub(crate) fn problem(&self, name: &str, problem: &str) -> TaskError {
        TaskError::Job(format!("{}: {name}: {problem}", self.program))
    }

    fn wrong(&self, name: &str, found: &Value, expected: &str) -> TaskError {
        self.problem(name, &format!("found {}, expected {expected}", plain(found)))
    }
}

/// The number or truth value in a string; any other value unchanged.
fn plain(found: &Value) -> Cow<'_, Value> {
    let read = found.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match read.filter(|value| value.is_number() || value.is_boolean()) {
        Some(value) => Cow::Owned(value),
        None => Cow::Borrowed(found),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_and_its_text_are_the_same() {
        for value in [json!({"x": "2048"}), json!({"x": 2048})] {
            let args: Args = serde_json::from_value(value).unwrap();
            let arguments = Arguments { program: "any", args: &args };
            assert_eq!(arguments.text("x").unwrap().as_deref(), Some("2048"));
            assert_eq!(arguments.whole("x").unwrap(), Some(2048));
            assert_eq!(arguments.bytes("x").unwrap(), Some(2048));
            assert_eq!(arguments.positive("x").unwrap(), Some(2048.0));
        }
    }
}
