//! `sort`: lines in order, over all parts.

use crate::base::error::TaskError;
use crate::input::fields::{number, ordered};
use crate::process::spec::Split;
use crate::programs::arguments::Argument;
use crate::programs::columns::{Column, FORMAT, HEADER, SEPARATOR};
use crate::programs::contract::{Info, Make, Program};
use crate::programs::emit::Emit;
use crate::shuffle::merge::Values;
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "sort",
    about: "sorts lines by their bytes or by a number; the concatenated parts are in order; equal keys keep the order of the input",
    arguments: &[
        Argument {
            name: "field",
            about: "the key field: its number from 1 or its name; 0 is the whole line; lines without the field come first (0)",
        },
        Argument {
            name: "numeric",
            about: "whether keys are numbers such as `12`, `-.5` or `1e3`; other keys (`12abc`, `inf`, empty) come first, in the order of the input (false)",
        },
        Argument {
            name: "reverse",
            about: "whether the order is reversed, so that lines without a key or number come last (false)",
        },
        FORMAT,
        SEPARATOR,
        HEADER,
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, _| {
        Ok(Box::new(Sort {
            field: Column::new(arguments, "field", 0)?,
            numeric: arguments.flag("numeric")?,
            reverse: arguments.flag("reverse")?,
            key: Vec::new(),
        }))
    }),
};

struct Sort {
    field: Column,
    numeric: bool,
    reverse: bool,
    /// Buffer for a key.
    key: Vec<u8>,
}

impl Sort {
    /// Whether the key is the line itself, so that it needs no value.
    fn is_plain(&self) -> bool {
        self.field.is_record() && !self.numeric && !self.reverse
    }
}

impl Program for Sort {
    fn is_ranged(&self) -> bool {
        true
    }

    fn open(&mut self, split: &Split, _emit: &mut Emit) -> Result<(), TaskError> {
        self.field.open(split)
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        if self.field.is_header(record)? {
            return Ok(());
        }
        if self.is_plain() {
            return emit.pair(record, b"");
        }
        let field = self.field.of(record);
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

/// Bytes in the reverse order: each byte's complement; the highest is escaped, so that a string comes after
/// its prefixes.
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
