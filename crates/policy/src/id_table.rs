//! A table indexed by ids that has a default value for ids that were never written.
//!
//! Flows arrive while a policy runs, with new ids; when they are done their ids never come back. The tables
//! of a policy hold the rows that were written and not forgotten, and every other id has the default value.

use std::ops::{Index, IndexMut};

use slackline_model::Table;

/// A table of `T` by ids `I`; ids without a row have the default value.
///
/// Reading is O(1) and never grows the table; writing is amortised O(1). Memory is that of the rows that were
/// written and not forgotten ([`IdTable::forget`]).
///
/// ```
/// use slackline_model::PhaseId;
/// use slackline_policy::IdTable;
///
/// let mut target: IdTable<PhaseId, f64> = IdTable::default();
/// target[PhaseId(7)] = 2.5;
/// assert_eq!((target[PhaseId(7)], target[PhaseId(3)], target[PhaseId(1000)]), (2.5, 0.0, 0.0));
/// target.forget([PhaseId(7)]);
/// assert_eq!(target[PhaseId(7)], 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct IdTable<I, T> {
    table: Table<I, T>,
    /// The value of ids without a row.
    default: T,
}

impl<I: Copy + From<usize>, T> IdTable<I, T>
where
    usize: From<I>,
{
    /// Forgets the rows of these ids, if they have any: for example, of a flow that is done or failed.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = I>) {
        for id in ids {
            self.table.remove(id);
        }
    }

    /// The row of an id, if it was written.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.table.get_mut(id)
    }

    /// Whether an id has a row.
    pub fn contains(&self, id: I) -> bool {
        self.table.contains(id)
    }

    /// The rows that were written, by id.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + Clone {
        self.table.iter_enumerated()
    }
}

impl<I, T: Default> Default for IdTable<I, T> {
    fn default() -> Self {
        Self { table: Table::new(), default: T::default() }
    }
}

impl<I: Copy + From<usize>, T> Index<I> for IdTable<I, T>
where
    usize: From<I>,
{
    type Output = T;

    fn index(&self, id: I) -> &T {
        self.table.get(id).unwrap_or(&self.default)
    }
}

impl<I: Copy + From<usize>, T: Default> IndexMut<I> for IdTable<I, T>
where
    usize: From<I>,
{
    fn index_mut(&mut self, id: I) -> &mut T {
        self.table.get_or_insert_with(id, T::default)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::JobId;

    use super::*;

    #[test]
    fn writing_grows_and_reading_does_not() {
        let mut table: IdTable<JobId, Option<u32>> = IdTable::default();
        assert_eq!(table[JobId(5)], None);
        assert!(table.table.is_empty());
        *table[JobId(2)].get_or_insert(7) += 1;
        assert_eq!((table[JobId(2)], table[JobId(0)], table[JobId(3)]), (Some(8), None, None));
        table[JobId(0)] = Some(1);
        assert!(table.iter_enumerated().eq([(JobId(0), &Some(1)), (JobId(2), &Some(8))]));
        table.forget([JobId(2), JobId(9)]);
        assert_eq!((table[JobId(2)], table[JobId(0)]), (None, Some(1)));
    }
}
