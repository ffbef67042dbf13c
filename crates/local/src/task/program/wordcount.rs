//! `wordcount`: how often each word occurs.

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::tally::{Tally, count_value, sum};
use super::{Info, Program, words};

pub(super) const INFO: Info = Info {
    name: "wordcount",
    about: "counts words (what stands between white space): lines `word TAB count`, sorted by word",
    arguments: &[],
    inputs: 1..=usize::MAX,
    make: |_, memory_bytes| Ok(Box::new(WordCount { tally: Tally::new(memory_bytes) })),
};

struct WordCount {
    tally: Tally,
}

impl Program for WordCount {
    fn combines(&self) -> bool {
        true
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        for word in words(record) {
            self.tally.add(word, |word, count| emit.pair(word, &count_value(count)))?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.tally.drain(|word, count| emit.pair(word, &count_value(count)))
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
