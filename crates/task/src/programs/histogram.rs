//! `histogram`: the number of values in each bin.

use std::borrow::Cow;

use crate::base::error::TaskError;
use crate::input::fields::number;
use crate::process::spec::Split;
use crate::programs::arguments::Argument;
use crate::programs::columns::{Column, FORMAT, HEADER, SEPARATOR};
use crate::programs::contract::{Info, Make};
use crate::programs::counting::{self, Count, Counts};

pub(crate) const INFO: Info = Info {
    name: "histogram",
    about: "counts numbers by bin: lines `lower edge TAB count`, sorted by edge within a part; lines without a number are skipped and counted",
    arguments: &[
        Argument {
            name: "field",
            about: "the field with the number to count: its position from 1 or its name; 0 is the whole line (0)",
        },
        Argument { name: "width", about: "width of a bin (1)" },
        FORMAT,
        SEPARATOR,
        HEADER,
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, resources| {
        let field = Column::new(arguments, "field", 0)?;
        let width = arguments.positive("width")?.unwrap_or(1.0);
        Ok(counting::program(Histogram { field, width }, resources))
    }),
};

struct Histogram {
    field: Column,
    width: f64,
}

impl Count for Histogram {
    fn open(&mut self, split: &Split) -> Result<(), TaskError> {
        self.field.open(split)
    }

    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        if self.field.is_header(record)? {
            return Ok(());
        }
        let Some(value) = self.field.of(record).and_then(number) else {
            counts.skip();
            return Ok(());
        };
        // Distant values go to the outermost bins: the cast saturates.
        counts.add(&ordered_bin((value / self.width).floor() as i64))
    }

    fn show<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        let bits = key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let bin = (bits ^ SIGN).cast_signed();
        Cow::Owned((bin as f64 * self.width).to_string().into_bytes())
    }
}

const SIGN: u64 = 1 << 63;

/// A number as bytes in the same order.
fn ordered_bin(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ SIGN).to_be_bytes()
}
