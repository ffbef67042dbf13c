//! `histogram`: how many numbers fall into each bin.

use std::borrow::Cow;

use super::super::TaskError;
use super::arguments::Argument;
use super::contract::{Info, Make};
use super::counting::{self, Count, Counts};
use super::fields::field;

pub(super) const INFO: Info = Info {
    name: "histogram",
    about: "counts numbers by bin: lines `lower edge TAB count`, sorted by edge within a part; lines without a number are skipped and counted",
    arguments: &[
        Argument {
            name: "field",
            about: "which field of a line (separated by tabs, from 1) is the number; 0 is the line (0)",
        },
        Argument { name: "width", about: "width of a bin (1)" },
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, resources| {
        let field = arguments.whole("field")?.unwrap_or(0) as usize;
        let width = arguments.positive("width")?.unwrap_or(1.0);
        Ok(counting::program(Histogram { field, width }, resources))
    }),
};

struct Histogram {
    field: usize,
    width: f64,
}

impl Count for Histogram {
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        let Some(value) = field(record, self.field).and_then(number) else {
            counts.skip();
            return Ok(());
        };
        // Far values go to the outermost bins: the cast saturates.
        counts.add(&ordered((value / self.width).floor() as i64))
    }

    fn show<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        let bits = key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let bin = (bits ^ SIGN).cast_signed();
        Cow::Owned((bin as f64 * self.width).to_string().into_bytes())
    }
}

const SIGN: u64 = 1 << 63;

/// A number as bytes that compare like it.
fn ordered(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ SIGN).to_be_bytes()
}

/// The finite number that a field holds.
pub(super) fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
