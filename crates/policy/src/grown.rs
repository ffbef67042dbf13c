//! A table indexed by ids that grows when it is written to.
//!
//! Flows arrive while a policy runs, and with them ids that were not known before. A policy's tables are
//! therefore not sized from an instance: they hold the ids that were written, and every other id has the
//! default value.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A table of `T` by ids `I`; ids beyond its end have the default value.
///
/// Reading is O(1) and never grows the table; writing is amortised O(1) and O(largest id) in memory.
///
/// ```
/// use slackline_model::PhaseId;
/// use slackline_policy::Grown;
///
/// let mut target: Grown<PhaseId, f64> = Grown::default();
/// target[PhaseId(7)] = 2.5;
/// assert_eq!((target[PhaseId(7)], target[PhaseId(3)], target[PhaseId(1000)]), (2.5, 0.0, 0.0));
/// ```
#[derive(Clone, Debug)]
pub struct Grown<I, T> {
    table: Vec<T>,
    /// What ids beyond the end have.
    default: T,
    ids: PhantomData<fn(I)>,
}

impl<I, T: Default> Default for Grown<I, T> {
    fn default() -> Self {
        Self { table: Vec::new(), default: T::default(), ids: PhantomData }
    }
}

impl<I, T> Index<I> for Grown<I, T>
where
    usize: From<I>,
{
    type Output = T;

    fn index(&self, id: I) -> &T {
        self.table.get(usize::from(id)).unwrap_or(&self.default)
    }
}

impl<I, T: Default> IndexMut<I> for Grown<I, T>
where
    usize: From<I>,
{
    fn index_mut(&mut self, id: I) -> &mut T {
        let index = usize::from(id);
        if index >= self.table.len() {
            self.table.resize_with(index + 1, T::default);
        }
        &mut self.table[index]
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::JobId;

    use super::*;

    #[test]
    fn writing_grows_and_reading_does_not() {
        let mut table: Grown<JobId, Option<u32>> = Grown::default();
        assert_eq!(table[JobId(5)], None);
        assert_eq!(table.table.len(), 0);
        *table[JobId(2)].get_or_insert(7) += 1;
        assert_eq!((table[JobId(2)], table[JobId(0)], table[JobId(3)]), (Some(8), None, None));
        assert_eq!(table.table.len(), 3);
        table[JobId(0)] = Some(1);
        assert_eq!((table[JobId(0)], table.table.len()), (Some(1), 3));
    }
}
