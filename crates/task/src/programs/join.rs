//! `join`: lines of two inputs with equal keys.
//!
//! The values of a key come in the order of the maps, and the maps of the first input come before those of
//! the second; so the lines of the first are stored, in memory or in a file, and those of the second stream.
//! A file is read again for each line of the second input; at most as many bytes are read as are written.

use crate::base::error::TaskError;
use crate::process::spec::Split;
use crate::programs::arguments::Argument;
use crate::programs::columns::{Column, FORMAT, HEADER, SEPARATOR};
use crate::programs::contract::{Info, Make, Program};
use crate::programs::emit::Emit;
use crate::programs::line_store::LineStore;
use crate::shuffle::merge::Values;
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "join",
    about: "joins lines of two inputs with equal keys: lines `key TAB rest of the left line TAB rest of the right line` (for JSON the whole lines), sorted by key within a part; lines without the field are skipped and counted",
    arguments: &[
        Argument {
            name: "left",
            about: "the key field of the first input: its number from 1 or its name (1; for JSON no default)",
        },
        Argument { name: "right", about: "the key field of the second input (1)" },
        Argument {
            name: "kind",
            about: "`inner`, `left`, `right` or `full`: the inputs whose lines are kept without a match, with an empty other side (inner)",
        },
        FORMAT,
        SEPARATOR,
        HEADER,
    ],
    inputs: 2..=2,
    make: Make::Program(|arguments, resources| {
        let column = |name| {
            let column = Column::new(arguments, name, 1)?;
            if column.is_record() {
                return Err(arguments.problem(name, "found 0, expected 1 or more"));
            }
            Ok(column)
        };
        let kind = arguments.choice("kind", &["inner", "left", "right", "full"])?;
        Ok(Box::new(Join {
            fields: [column("left")?, column("right")?],
            keeps_left: matches!(kind, "left" | "full"),
            keeps_right: matches!(kind, "right" | "full"),
            input: 0,
            value: Vec::new(),
            lefts: LineStore::new(resources),
        }))
    }),
};

struct Join {
    fields: [Column; 2],
    keeps_left: bool,
    keeps_right: bool,
    /// The current input: 0 or 1.
    input: u8,
    /// Buffer for a value: the input and the rest of a line.
    value: Vec<u8>,
    /// The rest of the left lines of the current key.
    lefts: LineStore,
}

impl Program for Join {
    fn open(&mut self, split: &Split, _emit: &mut Emit) -> Result<(), TaskError> {
        if split.input > 1 {
            return Err(TaskError::Job(format!("join: found input {}, expected 0 or 1", split.input)));
        }
        self.input = split.input as u8;
        self.fields[split.input as usize].open(split)
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        let column = &mut self.fields[usize::from(self.input)];
        if column.is_header(record)? {
            return Ok(());
        }
        self.value.clear();
        self.value.push(self.input);
        column.put_others(record, &mut self.value);
        let Some(key) = column.of(record) else {
            emit.skip();
            return Ok(());
        };
        emit.pair(key, &self.value)
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        self.lefts.clear()?;
        let mut is_matched = false;
        while let Some(value) = values.next()? {
            match value.split_first() {
                Some((0, left)) => self.lefts.push(left)?,
                Some((_, right)) => {
                    is_matched = true;
                    self.lefts.each(|left| put(part, key, left, right))?;
                    if self.lefts.is_empty() && self.keeps_right {
                        put(part, key, b"", right)?;
                    }
                }
                None => {}
            }
        }
        if !is_matched && self.keeps_left {
            self.lefts.each(|left| put(part, key, left, b""))?;
        }
        Ok(())
    }
}

fn put(part: &mut Part, key: &[u8], left: &[u8], right: &[u8]) -> Result<(), TaskError> {
    part.raw(key, 0)?;
    part.raw(b"\t", 0)?;
    part.pair(left, right)
}
