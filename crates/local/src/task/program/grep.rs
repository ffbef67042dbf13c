//! `grep`: lines that match a regular expression, or how often each match occurs.

use regex::bytes::Regex;

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::tally::{Tally, count_value, sum};
use super::{Argument, Info, Program};

pub(super) const INFO: Info = Info {
    name: "grep",
    about: "lines that match a regular expression (sorted, or in their order without reducers), or the matching texts with their counts",
    arguments: &[
        Argument { name: "pattern", about: "the regular expression, over bytes" },
        Argument { name: "output", about: "`lines`, or `matches` for lines `text TAB count` (lines)" },
    ],
    inputs: 1..=usize::MAX,
    make: |arguments, memory_bytes| {
        let pattern = arguments.required("pattern", arguments.text("pattern")?)?;
        let counts = arguments.choice("output", &["lines", "matches"])? == "matches";
        let pattern = Regex::new(pattern).map_err(|e| arguments.problem("pattern", &e.to_string()))?;
        Ok(Box::new(Grep { pattern, counts, tally: Tally::new(memory_bytes) }))
    },
};

struct Grep {
    pattern: Regex,
    /// Whether matches are counted, instead of lines given.
    counts: bool,
    tally: Tally,
}

impl Program for Grep {
    fn combines(&self) -> bool {
        self.counts
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        if self.counts {
            for found in self.pattern.find_iter(record) {
                self.tally.add(found.as_bytes(), |text, count| put(emit, text, count))?;
            }
        } else if self.pattern.is_match(record) {
            emit.line(record)?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.tally.drain(|text, count| put(emit, text, count))
    }

    fn combine(
        &mut self,
        _key: &[u8],
        values: &mut Values<'_>,
        put: &mut dyn FnMut(&[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        put(&count_value(sum(values)?))
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        if self.counts {
            return part.pair(key, sum(values)?.to_string().as_bytes());
        }
        while values.next()?.is_some() {
            part.line(key)?;
        }
        Ok(())
    }
}

fn put(emit: &mut Emit, text: &[u8], count: u64) -> Result<(), TaskError> {
    emit.pair(text, &count_value(count))
}
