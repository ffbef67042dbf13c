//! `teragen`: records of 100 bytes for `terasort`.

use rand_chacha::rand_core::Rng;

use crate::base::error::TaskError;
use crate::programs::arguments::Argument;
use crate::programs::contract::{Generator, Info, Make};
use crate::programs::generator::{maps, rng, share};
use crate::programs::terasort::RECORD;
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "teragen",
    about: "generates records of 100 bytes: a random key of 10 bytes, the number of the record, filler; one part per map",
    arguments: &[
        Argument { name: "records", about: "number of records" },
        Argument {
            name: "format",
            about: "`lines` of 99 printable characters, or `binary` with keys of any bytes (lines)",
        },
        Argument { name: "maps", about: "number of maps (one for every million records)" },
        Argument { name: "seed", about: "the seed of the random numbers (0)" },
    ],
    inputs: 0..=0,
    make: Make::Generator(|arguments| {
        let records = arguments.required("records", arguments.whole("records")?)?;
        Ok(Box::new(TeraGen {
            records,
            maps: maps(arguments, records.div_ceil(1_000_000))?,
            is_binary: arguments.choice("format", &["lines", "binary"])? == "binary",
            seed: arguments.whole("seed")?.unwrap_or(0),
        }))
    }),
};

/// Bytes of a key.
const KEY: usize = 10;

struct TeraGen {
    records: u64,
    maps: u32,
    is_binary: bool,
    seed: u64,
}

impl Generator for TeraGen {
    fn maps(&self) -> u32 {
        self.maps
    }

    fn bytes(&self) -> u64 {
        self.records.saturating_mul(RECORD as u64)
    }

    fn generate(&self, index: u32, maps: u32, part: &mut Part) -> Result<(), TaskError> {
        let mut rng = rng(self.seed, index);
        let mut record = [0; RECORD];
        for number in share(self.records, index, maps) {
            rng.fill_bytes(&mut record[..KEY]);
            fill(&mut record, number);
            if !self.is_binary {
                for byte in &mut record[..KEY] {
                    // The 95 printable characters, space to tilde.
                    *byte = b' ' + ((u16::from(*byte) * 95) >> 8) as u8;
                }
                record[RECORD - 1] = b'\n';
            }
            part.raw(&record, 1)?;
        }
        Ok(())
    }
}

/// The record after the key: the number in 32 hexadecimal digits, and filler that depends on it.
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
