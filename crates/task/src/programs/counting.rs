//! The common part of programs that count records.
//!
//! A map counts in memory; the combiner and the reduce add up; the reduce writes `key TAB count`.

use std::borrow::Cow;

use crate::base::error::TaskError;
use crate::process::spec::Split;
use crate::programs::contract::{Program, Resources, each_line};
use crate::programs::emit::Emit;
use crate::programs::tally::Tally;
use crate::shuffle::merge::{Put, Values};
use crate::shuffle::pairs::{put_varint, take_varint};
use crate::shuffle::part::Part;

pub(crate) trait Count: Send + 'static {
    /// Called before the records of each split of a map.
    fn open(&mut self, _split: &Split) -> Result<(), TaskError> {
        Ok(())
    }

    /// Counts the keys of a record.
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError>;

    /// Counts the keys of many records, see [`Program::map_lines`].
    fn count_lines(&mut self, lines: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        each_line(lines, |line| self.count(line, counts))
    }

    /// A key in the form of the output.
    fn show<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(key)
    }
}

/// Collects the keys of a record.
pub(crate) struct Counts<'a> {
    tally: &'a mut Tally,
    emit: &'a mut Emit,
}

impl Counts<'_> {
    /// Counts a key once.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), TaskError> {
        self.tally.add(key, |key, count| put(self.emit, key, count))
    }

    /// Counts a record that cannot be used.
    pub(crate) fn skip(&mut self) {
        self.emit.skip();
    }
}

/// The program for an implementation of `Count`.
pub(crate) fn program(count: impl Count, resources: Resources<'_>) -> Box<dyn Program> {
    Box::new(Counting { count, tally: Tally::new(resources.memory_bytes) })
}

struct Counting<C> {
    count: C,
    tally: Tally,
}

impl<C: Count> Program for Counting<C> {
    fn combines(&self) -> bool {
        true
    }

    fn open(&mut self, split: &Split, _emit: &mut Emit) -> Result<(), TaskError> {
        self.count.open(split)
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        self.count.count(record, &mut Counts { tally: &mut self.tally, emit })
    }

    fn map_lines(&mut self, lines: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        self.count.count_lines(lines, &mut Counts { tally: &mut self.tally, emit })
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.tally.drain(|key, count| put(emit, key, count))
    }

    fn combine(&mut self, values: &mut Values<'_>, put: &mut Put<'_>) -> Result<(), TaskError> {
        put(&value(sum(values)?))
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        part.pair(&self.count.show(key), sum(values)?.to_string().as_bytes())
    }
}

fn put(emit: &mut Emit, key: &[u8], count: u64) -> Result<(), TaskError> {
    emit.pair(key, &value(count))
}

/// A count as a value of the shuffle.
fn value(count: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(10);
    put_varint(&mut value, count);
    value
}

/// The sum of values that [`value`] made.
fn sum(values: &mut Values<'_>) -> Result<u64, TaskError> {
    let mut sum = 0u64;
    while let Some(mut value) = values.next()? {
        sum = sum.saturating_add(take_varint(&mut value).unwrap_or(0));
    }
    Ok(sum)
}
