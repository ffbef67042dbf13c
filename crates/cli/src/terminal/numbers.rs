//! Columns of numbers of records, in the order of their documents.

use slackline::report::Column;
use slackline::report::number::Unit;
use slackline::report::table::heading;

/// A number of a record: a column of a table, and of CSV.
pub(crate) struct Number<T> {
    pub(crate) name: &'static str,
    unit: Unit,
    /// When the table leaves it out. What 0 means is up to the table.
    pub(crate) rank: u8,
    /// The factor for the table: bytes become MB.
    factor: f64,
    pub(crate) value: fn(&T) -> Option<f64>,
}

pub(crate) const fn number<T>(
    name: &'static str,
    unit: Unit,
    rank: u8,
    value: fn(&T) -> Option<f64>,
) -> Number<T> {
    Number { name, unit, rank, factor: 1.0, value }
}

/// A number of bytes, which a table shows as MB.
pub(crate) const fn megabytes<T>(name: &'static str, rank: u8, value: fn(&T) -> Option<f64>) -> Number<T> {
    Number { name, unit: Unit::Measure, rank, factor: 1e-6, value }
}

impl<T> Number<T> {
    /// The value of each record in the table.
    pub(crate) fn values<'r>(&self, records: impl Iterator<Item = &'r T>) -> Vec<Option<f64>>
    where
        T: 'r,
    {
        records.map(|record| Some((self.value)(record)? * self.factor)).collect()
    }

    pub(crate) fn column(&self, values: &[Option<f64>]) -> Column {
        let unit = if self.factor == 1.0 { "" } else { " [MB]" };
        Column::numbers(self.name, values, self.unit).heading(heading(self.name) + unit)
    }
}
