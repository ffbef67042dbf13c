//! The traits of a built-in program, and its entry in the table of programs.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::base::error::TaskError;
use crate::input::reader::Format;
use crate::process::spec::Split;
use crate::programs::arguments::{Argument, Arguments};
use crate::programs::emit::Emit;
use crate::shuffle::merge::{Put, Values};
use crate::shuffle::part::Part;

/// A built-in program, as help shows it.
#[derive(Debug)]
pub struct Info {
    pub name: &'static str,
    /// Its description, in a sentence.
    pub about: &'static str,
    pub arguments: &'static [Argument],
    /// Number of inputs.
    pub inputs: RangeInclusive<usize>,
    pub(crate) make: Make,
}

/// Makes an instance from arguments.
#[derive(Debug)]
pub(crate) enum Make {
    /// For a program that reads input.
    Program(fn(&Arguments<'_>, Resources<'_>) -> MakeResult<dyn Program>),
    Generator(fn(&Arguments<'_>) -> MakeResult<dyn Generator>),
}

pub(crate) type MakeResult<T> = Result<Box<T>, TaskError>;

/// The resources of an instance.
#[derive(Clone, Copy)]
pub(crate) struct Resources<'a> {
    /// Bytes for its tables.
    pub(crate) memory_bytes: u64,
    /// A directory for data beyond the memory limit; the creator of the instance clears it.
    pub(crate) directory: &'a Path,
}

impl Resources<'_> {
    /// For an instance that runs no job.
    pub(crate) fn none() -> Self {
        Resources { memory_bytes: 0, directory: Path::new("") }
    }
}

/// The functions of a program. An attempt has one instance, and another one for the combiner.
pub(crate) trait Program: Send {
    /// The form of its input records.
    fn format(&self) -> Format {
        Format::Text
    }

    /// Whether its map output is only of use to its reduce.
    fn needs_reducers(&self) -> bool {
        true
    }

    /// Whether its partitions are ranges of keys, in order.
    fn is_ranged(&self) -> bool {
        false
    }

    /// Whether [`Self::combine`] reduces the number of values.
    fn combines(&self) -> bool {
        false
    }

    /// Called before the records of each split of a map.
    fn open(&mut self, _split: &Split, _emit: &mut Emit) -> Result<(), TaskError> {
        Ok(())
    }

    /// Called with each record of a map.
    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError>;

    /// Called with lines as in the input, if records are lines: each ends with a newline, except perhaps the
    /// last of the input. Must treat each line as [`Self::map`] does.
    fn map_lines(&mut self, lines: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        each_line(lines, |line| self.map(line, emit))
    }

    /// Called at the end of a map.
    fn finish(&mut self, _emit: &mut Emit) -> Result<(), TaskError> {
        Ok(())
    }

    /// Emits values that represent all values of a key; may be called any number of times.
    fn combine(&mut self, values: &mut Values<'_>, put: &mut Put<'_>) -> Result<(), TaskError> {
        while let Some(value) = values.next()? {
            put(value)?;
        }
        Ok(())
    }

    /// Called with each key of a partition, in order. Values come in the order of the maps.
    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError>;
}

/// Calls `take` with each of some lines, without its newline.
#[inline]
pub(crate) fn each_line(
    mut lines: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), TaskError>,
) -> Result<(), TaskError> {
    while let Some(end) = memchr::memchr(b'\n', lines) {
        take(&lines[..end])?;
        lines = &lines[end + 1..];
    }
    if lines.is_empty() { Ok(()) } else { take(lines) }
}

/// The functions of a program that makes its own input: it has only maps, which write part files.
pub(crate) trait Generator: Send {
    /// Number of maps that share the work, at least 1.
    fn maps(&self) -> u32;

    /// Number of bytes of all maps together.
    fn bytes(&self) -> u64;

    /// Runs map `index` of `maps`.
    fn generate(&self, index: u32, maps: u32, part: &mut Part) -> Result<(), TaskError>;
}
