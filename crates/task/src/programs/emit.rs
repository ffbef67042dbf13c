//! The destination of a program's map output: the shuffle, a part file, or a sample of keys.

use crate::base::error::TaskError;
use crate::shuffle::collect::Collector;
use crate::shuffle::part::Part;

/// Bytes of a key in a sample. Any bytes make a boundary that keeps order, and equal keys together; with a
/// part of a key it is slightly lower.
const SAMPLED: usize = 256;

/// Takes the output of a program's map.
pub(crate) struct Emit {
    sink: Sink,
    /// Counted by the program through [`Emit::skip`].
    pub(crate) skipped: u64,
}

pub(crate) enum Sink {
    /// To the reduces.
    Shuffle(Box<Collector>),
    /// To the part file of a map without reduces.
    Part(Box<Part>),
    /// Only the beginnings of keys, for their distribution.
    Sample(Vec<Vec<u8>>),
}

impl Emit {
    pub(crate) fn new(sink: Sink) -> Self {
        Emit { sink, skipped: 0 }
    }

    pub(crate) fn into_sink(self) -> Sink {
        self.sink
    }

    /// Emits a pair. In a part file it is the line `key TAB value`.
    ///
    /// # Errors
    ///
    /// An error of the writer: a full disk, for example.
    #[inline]
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        match &mut self.sink {
            Sink::Shuffle(collector) => collector.push(key, value),
            Sink::Part(part) => part.pair(key, value),
            Sink::Sample(keys) => {
                keys.push(key[..key.len().min(SAMPLED)].to_vec());
                Ok(())
            }
        }
    }

    /// Emits a line. To a reduce it is a key without a value.
    ///
    /// # Errors
    ///
    /// An error of the writer.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), TaskError> {
        match &mut self.sink {
            Sink::Part(part) => part.line(line),
            _ => self.pair(line, b""),
        }
    }

    /// Counts a record that the program cannot use.
    pub(crate) fn skip(&mut self) {
        self.skipped += 1;
    }
}
