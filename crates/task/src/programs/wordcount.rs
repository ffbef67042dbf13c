//! `wordcount`: the number of times that each word occurs.

use crate::base::error::TaskError;
use crate::input::fields::words;
use crate::programs::contract::{Info, Make};
use crate::programs::counting::{self, Count, Counts};

pub(crate) const INFO: Info = Info {
    name: "wordcount",
    about: "counts words, separated by white space (space, tab, newline, vertical tab, form feed, carriage return): lines `word TAB count`, sorted by word",
    arguments: &[],
    inputs: 1..=usize::MAX,
    make: Make::Program(|_, resources| Ok(counting::program(WordCount, resources))),
};

struct WordCount;

impl Count for WordCount {
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        words(record).try_for_each(|word| counts.add(word))
    }

    fn count_lines(&mut self, lines: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        // A newline separates words like any white space.
        self.count(lines, counts)
    }
}
