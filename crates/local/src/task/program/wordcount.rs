//! `wordcount`: how often each word occurs.

use super::super::TaskError;
use super::contract::{Info, Make};
use super::counting::{self, Count, Counts};
use super::fields::words;

pub(super) const INFO: Info = Info {
    name: "wordcount",
    about: "counts words (what stands between white space): lines `word TAB count`, sorted by word",
    arguments: &[],
    inputs: 1..=usize::MAX,
    make: Make::Program(|_, resources| Ok(counting::program(WordCount, resources))),
};

struct WordCount;

impl Count for WordCount {
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        words(record).try_for_each(|word| counts.add(word))
    }
}
