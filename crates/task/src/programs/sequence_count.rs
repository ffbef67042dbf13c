//! `sequence-count`: the number of times that each sequence of three words occurs.

use crate::base::error::TaskError;
use crate::input::fields::words;
use crate::programs::arguments::Argument;
use crate::programs::contract::{Info, Make};
use crate::programs::counting::{self, Count, Counts};

pub(crate) const INFO: Info = Info {
    name: "sequence-count",
    about: "counts sequences of words within a line: lines `one two three TAB count`, sorted",
    arguments: &[Argument { name: "length", about: "words in a sequence, 1 or more (3)" }],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, resources| {
        let length = arguments.whole("length")?.unwrap_or(3);
        if !(1..=100).contains(&length) {
            return Err(arguments.problem("length", &format!("found {length}, expected 1 to 100")));
        }
        let count = SequenceCount { length: length as usize, line: Vec::new(), starts: Vec::new() };
        Ok(counting::program(count, resources))
    }),
};

struct SequenceCount {
    length: usize,
    /// The words of a line, with one space after each, so that every sequence is a slice of it.
    line: Vec<u8>,
    /// The start of each word, and of the next one.
    starts: Vec<usize>,
}

impl Count for SequenceCount {
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        self.line.clear();
        self.starts.clear();
        for word in words(record) {
            self.starts.push(self.line.len());
            self.line.extend_from_slice(word);
            self.line.push(b' ');
        }
        self.starts.push(self.line.len());
        let mut windows = self.starts.windows(self.length + 1);
        windows.try_for_each(|window| counts.add(&self.line[window[0]..window[self.length] - 1]))
    }
}
