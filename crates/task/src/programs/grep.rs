//! `grep`: lines that match a regular expression, or the number of times that each match occurs.

use crate::base::error::TaskError;
use crate::programs::arguments::Argument;
use crate::programs::contract::{Info, Make, Program};
use crate::programs::counting::{self, Count, Counts};
use crate::programs::emit::Emit;
use crate::programs::lines::LineRegex;
use crate::shuffle::merge::Values;
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "grep",
    about: "finds lines that match a regular expression (sorted, or in input order without reducers), or counts the matching texts",
    arguments: &[
        Argument { name: "pattern", about: "the regular expression, over bytes" },
        Argument { name: "output", about: "`lines`, or `matches` for lines `text TAB count` (lines)" },
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, resources| {
        let pattern = arguments.required("pattern", arguments.text("pattern")?)?;
        let output = arguments.choice("output", &["lines", "matches"])?;
        let pattern = LineRegex::new(&pattern).map_err(|e| arguments.problem("pattern", &e.to_string()))?;
        Ok(match output {
            "matches" => counting::program(Matches(pattern), resources),
            _ => Box::new(Lines(pattern)),
        })
    }),
};

struct Matches(LineRegex);

impl Count for Matches {
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        self.0.each_match(record, |found| counts.add(found))
    }

    fn count_lines(&mut self, lines: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        self.0.each_match(lines, |found| counts.add(found))
    }
}

/// Emits lines that match.
struct Lines(LineRegex);

impl Program for Lines {
    fn needs_reducers(&self) -> bool {
        false
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        self.map_lines(record, emit)
    }

    fn map_lines(&mut self, lines: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        self.0.each_line(lines, |line| emit.line(line))
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        while values.next()?.is_some() {
            part.line(key)?;
        }
        Ok(())
    }
}
