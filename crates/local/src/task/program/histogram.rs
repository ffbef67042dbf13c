//! `histogram`: how many numbers fall into each bin.

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::tally::{Tally, count_value, sum};
use super::{Argument, Info, Program, field};

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
    make: |arguments, memory_bytes| {
        Ok(Box::new(Histogram {
            field: arguments.whole("field")?.unwrap_or(0) as usize,
            width: arguments.positive("width")?.unwrap_or(1.0),
            tally: Tally::new(memory_bytes),
        }))
    },
};

struct Histogram {
    field: usize,
    width: f64,
    tally: Tally,
}

impl Program for Histogram {
    fn combines(&self) -> bool {
        true
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        let Some(value) = field(record, self.field).and_then(number) else {
            emit.skip();
            return Ok(());
        };
        // Far values go to the outermost bins: the cast saturates.
        let bin = (value / self.width).floor() as i64;
        self.tally.add(&ordered(bin), |key, count| emit.pair(key, &count_value(count)))
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.tally.drain(|key, count| emit.pair(key, &count_value(count)))
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
        let bits = key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let bin = (bits ^ SIGN).cast_signed();
        let edge = (bin as f64 * self.width).to_string();
        part.pair(edge.as_bytes(), sum(values)?.to_string().as_bytes())
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
