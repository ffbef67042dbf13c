//! `terasort`: records of 100 bytes in the order of their first 10, over all parts.

use crate::base::error::TaskError;
use crate::input::reader::Format;
use crate::programs::arguments::Argument;
use crate::programs::contract::{Info, Make, Program};
use crate::programs::emit::Emit;
use crate::shuffle::merge::Values;
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "terasort",
    about: "sorts records by their first bytes; the concatenated parts are in order; equal keys keep the order of the input",
    arguments: &[
        Argument {
            name: "format",
            about: "`lines`, or `binary` for records of 100 bytes without newlines (lines)",
        },
        Argument { name: "key", about: "bytes of the key (10)" },
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, _| {
        let format = match arguments.choice("format", &["lines", "binary"])? {
            "binary" => Format::Fixed(RECORD),
            _ => Format::Text,
        };
        Ok(Box::new(TeraSort {
            format,
            key: arguments.whole("key")?.unwrap_or(10) as usize,
            record: Vec::new(),
        }))
    }),
};

/// Bytes of a binary record, of a line with its newline, as in the sort benchmark of Gray and others.
pub(crate) const RECORD: usize = 100;

struct TeraSort {
    format: Format,
    key: usize,
    /// Buffer for a record.
    record: Vec<u8>,
}

impl Program for TeraSort {
    fn format(&self) -> Format {
        self.format
    }

    fn is_ranged(&self) -> bool {
        true
    }

    #[inline]
    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        let (key, rest) = record.split_at(self.key.min(record.len()));
        emit.pair(key, rest)
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        while let Some(rest) = values.next()? {
            self.record.clear();
            self.record.extend_from_slice(key);
            self.record.extend_from_slice(rest);
            if self.format == Format::Text {
                self.record.push(b'\n');
            }
            part.raw(&self.record, 1)?;
        }
        Ok(())
    }
}
