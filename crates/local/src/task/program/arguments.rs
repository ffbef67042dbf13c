//! Arguments of programs, read with messages that say what was expected.

use serde_json::Value;

use super::super::{Args, TaskError};
use super::Info;

/// The arguments of one job, whose names are known to be right.
pub(super) struct Arguments<'a> {
    program: &'static str,
    args: &'a Args,
}

impl<'a> Arguments<'a> {
    /// Refuses names that the program does not know.
    pub(super) fn new(info: &'static Info, args: &'a Args) -> Result<Self, TaskError> {
        let program = info.name;
        let names: Vec<_> = info.arguments.iter().map(|argument| argument.name).collect();
        if let Some(name) = args.keys().find(|name| !names.contains(&name.as_str())) {
            let expected = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(TaskError::Job(format!("{program}: found argument {name:?}, expected {expected}")));
        }
        Ok(Arguments { program, args })
    }

    /// A string.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, TaskError> {
        match self.args.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, other, "a string")),
        }
    }

    /// One of some words; the first where it is not given.
    pub(super) fn choice(&self, name: &str, words: &[&'static str]) -> Result<&'static str, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(words[0]) };
        let known = words.iter().find(|word| found.as_str() == Some(word));
        known.copied().ok_or_else(|| self.wrong(name, found, &format!("one of {}", words.join(", "))))
    }

    /// True or false; false where it is not given.
    pub(super) fn flag(&self, name: &str) -> Result<bool, TaskError> {
        match self.args.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(name, other, "true or false")),
        }
    }

    /// A whole number, not negative.
    pub(super) fn whole(&self, name: &str) -> Result<Option<u64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        found.as_u64().map(Some).ok_or_else(|| self.wrong(name, found, "a whole number"))
    }

    /// A number above 0.
    pub(super) fn positive(&self, name: &str) -> Result<Option<f64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        let number = found.as_f64().filter(|number| *number > 0.0 && number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(name, found, "a number above 0"))
    }

    /// A size in bytes: a whole number, or a string with one of `KiB`, `MiB`, `GiB`, `KB`, `MB`, `GB`.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<u64>, TaskError> {
        let Some(found) = self.args.get(name) else { return Ok(None) };
        let size = found.as_u64().or_else(|| size(found.as_str()?));
        size.map(Some).ok_or_else(|| self.wrong(name, found, "a size such as 64MiB or a whole number"))
    }

    /// The value of an argument that must be given.
    pub(super) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, TaskError> {
        value.ok_or_else(|| {
            TaskError::Job(format!("{}: found no argument {name:?}, expected one", self.program))
        })
    }

    /// An error about an argument that was given.
    pub(super) fn problem(&self, name: &str, problem: &str) -> TaskError {
        TaskError::Job(format!("{}: {name}: {problem}", self.program))
    }

    fn wrong(&self, name: &str, found: &Value, expected: &str) -> TaskError {
        self.problem(name, &format!("found {found}, expected {expected}"))
    }
}

fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
