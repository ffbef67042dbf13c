//! `teragen`: records of 100 bytes for `terasort`.

use rand_chacha::rand_core::Rng;

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::generate_text::{rng, share};
use super::terasort::RECORD;
use super::{Argument, Info, Program, never_reduces};

pub(super) const INFO: Info = Info {
    name: "teragen",
    about: "makes records of 100 bytes: a random key of 10, the record's number, filler; a part a map",
    arguments: &[
        Argument { name: "records", about: "how many records" },
        Argument {
            name: "format",
            about: "`lines` of 99 printable characters, or `binary` with keys of any bytes (lines)",
        },
        Argument { name: "maps", about: "how many maps share the work (one for every million records)" },
        Argument { name: "seed", about: "the seed of the random numbers (0)" },
    ],
    inputs: 0..=0,
    make: |arguments, _| {
        let records = arguments.required("records", arguments.whole("records")?)?;
        let maps = arguments.whole("maps")?.unwrap_or(records.div_ceil(1_000_000));
        Ok(Box::new(TeraGen {
            records,
            maps: maps.clamp(1, 100_000) as u32,
            is_binary: arguments.choice("format", &["lines", "binary"])? == "binary",
            seed: arguments.whole("seed")?.unwrap_or(0),
        }))
    },
};

/// Bytes of a key.
const KEY: usize = 10;

struct TeraGen {
    records: u64,
    maps: u32,
    is_binary: bool,
    seed: u64,
}

impl Program for TeraGen {
    fn maps(&self) -> Option<u32> {
        Some(self.maps)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.records.saturating_mul(RECORD as u64))
    }

    fn is_map_only(&self) -> bool {
        true
    }

    fn map(&mut self, _record: &[u8], _emit: &mut Emit) -> Result<(), TaskError> {
        Ok(())
    }

    fn generate(&mut self, index: u32, maps: u32, emit: &mut Emit) -> Result<(), TaskError> {
        let mut rng = rng(self.seed, index);
        let before: u64 = (0..index).map(|earlier| share(self.records, earlier, maps)).sum();
        let mut record = [0; RECORD];
        for number in before..before + share(self.records, index, maps) {
            rng.fill_bytes(&mut record[..KEY]);
            fill(&mut record, number);
            if !self.is_binary {
                for byte in &mut record[..KEY] {
                    // The 95 printable characters, space to tilde.
                    *byte = b' ' + ((u16::from(*byte) * 95) >> 8) as u8;
                }
                record[RECORD - 1] = b'\n';
            }
            emit.raw(&record, 1)?;
        }
        Ok(())
    }

    fn reduce(&mut self, _: &[u8], _: &mut Values<'_>, _: &mut Part) -> Result<(), TaskError> {
        Err(never_reduces("teragen"))
    }
}

/// Everything behind the key: the number in 32 hexadecimal digits, and filler that depends on it.
fn fill(record: &mut [u8; RECORD], number: u64) {
    let digit = |nibble: u64| b"0123456789ABCDEF"[(nibble & 15) as usize];
    record[KEY..].fill(b' ');
    record[KEY + 2..KEY + 18].fill(b'0');
    for nth in 0..16 {
        record[KEY + 33 - nth] = digit(number >> (4 * nth));
    }
    for (nth, byte) in record[KEY + 36..RECORD - 1].iter_mut().enumerate() {
        *byte = digit(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (4 * (nth as u64 / 4 % 16)));
    }
}
