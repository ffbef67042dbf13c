//! `count`: the number of records for each value of a field.

use crate::base::error::TaskError;
use crate::process::spec::Split;
use crate::programs::arguments::Argument;
use crate::programs::columns::{Column, FORMAT, HEADER, SEPARATOR};
use crate::programs::contract::{Info, Make};
use crate::programs::counting::{self, Count, Counts};

pub(crate) const INFO: Info = Info {
    name: "count",
    about: "counts records by a field: lines `value TAB count`, sorted by value; records without the field are skipped and counted",
    arguments: &[
        Argument {
            name: "field",
            about: "the field: its number from 1 or its name; 0 is the whole line; for JSON a name or a path such as `user.id` (1; for JSON no default)",
        },
        FORMAT,
        SEPARATOR,
        HEADER,
    ],
    inputs: 1..=usize::MAX,
    make: Make::Program(|arguments, resources| {
        Ok(counting::program(ByField(Column::new(arguments, "field", 1)?), resources))
    }),
};

struct ByField(Column);

impl Count for ByField {
    fn open(&mut self, split: &Split) -> Result<(), TaskError> {
        self.0.open(split)
    }

    #[inline]
    fn count(&mut self, record: &[u8], counts: &mut Counts<'_>) -> Result<(), TaskError> {
        if self.0.is_header(record)? {
            return Ok(());
        }
        if let Some(field) = self.0.of(record) {
            return counts.add(field);
        }
        counts.skip();
        Ok(())
    }
}
