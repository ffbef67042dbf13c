//! `sequence-count`: how often each sequence of three words occurs.

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::tally::{Tally, count_value, sum};
use super::{Argument, Info, Program, words};

pub(super) const INFO: Info = Info {
    name: "sequence-count",
    about: "counts sequences of words within a line: lines `one two three TAB count`, sorted",
    arguments: &[Argument { name: "length", about: "words in a sequence, 1 or more (3)" }],
    inputs: 1..=usize::MAX,
    make: |arguments, memory_bytes| {
        let length = arguments.whole("length")?.unwrap_or(3);
        if !(1..=100).contains(&length) {
            return Err(arguments.problem("length", &format!("found {length}, expected 1 to 100")));
        }
        Ok(Box::new(SequenceCount {
            length: length as usize,
            line: Vec::new(),
            starts: Vec::new(),
            tally: Tally::new(memory_bytes),
        }))
    },
};

struct SequenceCount {
    length: usize,
    /// The words of a line, with one space after each, so that every sequence is a slice of it.
    line: Vec<u8>,
    /// Where each word begins, and where the next one would.
    starts: Vec<usize>,
    tally: Tally,
}

impl Program for SequenceCount {
    fn combines(&self) -> bool {
        true
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        self.line.clear();
        self.starts.clear();
        for word in words(record) {
            self.starts.push(self.line.len());
            self.line.extend_from_slice(word);
            self.line.push(b' ');
        }
        self.starts.push(self.line.len());
        for window in self.starts.windows(self.length + 1) {
            let sequence = &self.line[window[0]..window[self.length] - 1];
            self.tally.add(sequence, |key, count| emit.pair(key, &count_value(count)))?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.tally.drain(|key, count| emit.pair(key, &count_value(count)))
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
        part.pair(key, sum(values)?.to_string().as_bytes())
    }
}
