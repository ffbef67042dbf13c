//! `sort`: lines in order, over all parts.

use super::super::TaskError;
use super::super::emit::Emit;
use super::super::merge::Values;
use super::super::part::Part;
use super::arguments::Argument;
use super::contract::{Info, Make, Program};
use super::fields::field;
use super::histogram::number;

pub(super) const INFO: Info = Info {
    name: "sort",
    about: "sorts lines by their bytes or by a number; the parts, one after the other, are in order; equal keys keep the order of the input",
    arguments: &[
        Argument {
            name: "field",
            about: "which field of a line (separated by tabs, from 1) is the key; 0 is the line; lines without it come first (0)",
        },
        Argument { name: "numeric", about: "whether keys are numbers; what is none comes first (false)" },
        Argument { name: "reverse", about: "whether the order is turned around (false)" },
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, _| {
        Ok(Box::new(Sort {
            field: arguments.whole("field")?.unwrap_or(0) as usize,
            numeric: arguments.flag("numeric")?,
            reverse: arguments.flag("reverse")?,
            key: Vec::new(),
        }))
    }),
};

struct Sort {
    field: usize,
    numeric: bool,
    reverse: bool,
    /// Resources for a key.
    key: Vec<u8>,
}

impl Sort {
    /// Whether the key is the line itself, so that it needs no value beside it.
    fn is_plain(&self) -> bool {
        self.field == 0 && !self.numeric && !self.reverse
    }
}

impl Program for Sort {
    fn is_ranged(&self) -> bool {
        true
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        if self.is_plain() {
            return emit.pair(record, b"");
        }
        let field = field(record, self.field);
        self.key.clear();
        if self.numeric {
            self.key.extend_from_slice(&field.and_then(number).map_or([0; 8], ordered));
        } else {
            self.key.extend_from_slice(field.unwrap_or_default());
        }
        if self.reverse {
            self.key = reversed(&self.key);
        }
        emit.pair(&self.key, record)
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        let plain = self.is_plain();
        while let Some(line) = values.next()? {
            part.line(if plain { key } else { line })?;
        }
        Ok(())
    }
}

/// A finite number as bytes that compare like it, and above eight zeros.
fn ordered(number: f64) -> [u8; 8] {
    // Zero has two forms that are one number.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let sign = 1 << 63;
    if bits & sign == 0 { (bits | sign).to_be_bytes() } else { (!bits).to_be_bytes() }
}

/// Bytes that compare the other way around: each byte's complement; the highest is escaped, so that a
/// string comes after those that it begins.
fn reversed(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 2);
    for &byte in key {
        out.push(!byte);
        if byte == 0 {
            out.push(0);
        }
    }
    out.extend_from_slice(&[0xff, 0xff]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_compare_like_what_they_stand_for(
            a in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..5),
            b in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..5),
            x in -1e300f64..1e300, y in -10f64..10.0,
        ) {
            prop_assert_eq!(reversed(&a).cmp(&reversed(&b)), b.cmp(&a));
            prop_assert_eq!(ordered(x).cmp(&ordered(y)), x.total_cmp(&y));
            prop_assert!(ordered(x) > [0; 8]);
        }
    }

    #[test]
    fn zeros_are_equal() {
        assert_eq!(ordered(0.0), ordered(-0.0));
        assert!(ordered(-1e-300) < ordered(0.0) && ordered(0.0) < ordered(1e-300));
    }
}
