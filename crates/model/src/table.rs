//! A table of rows by growing ids, whose memory depends on the existing rows.
//!
//! Flows come and go as long as a cluster lives, and an id is never reused. A vector would grow forever. Here
//! ids are grouped to pages, and a page without rows is freed.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Ids on a page.
const PAGE: usize = 64;

/// A table of `T` by ids `I`. Reading, writing and removing are O(1), amortised.
///
/// ```
/// use slackline_model::{FlowId, Table};
///
/// let mut names: Table<FlowId, &str> = Table::new();
/// let (a, b) = (names.push("a"), names.push("b"));
/// names.remove(a);
/// assert_eq!((names.get(a), names[b]), (None, "b"));
/// assert_eq!(names.push("c"), FlowId(2));
/// ```
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    /// The pages from `front` on; `None` for those without a row. A plain vector, because most accesses look
    /// up a row.
    pages: Vec<Option<Box<Page<T>>>>,
    /// The number of the first page.
    front: usize,
    /// The number of freed pages at the front that are still in the vector, at most half of it.
    gone: usize,
    len: usize,
    /// A page without rows, for the next one that is needed.
    spare: Option<Box<Page<T>>>,
    ids: PhantomData<fn(I)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Page<T> {
    /// How many rows there are.
    rows: u32,
    row: [Option<T>; PAGE],
}

impl<T> Page<T> {
    fn new() -> Self {
        Self { rows: 0, row: [const { None }; PAGE] }
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T> Table<I, T> {
    /// No rows; the first id is 0.
    pub fn new() -> Self {
        Self { pages: Vec::new(), front: 0, gone: 0, len: 0, spare: None, ids: PhantomData }
    }

    /// One more than the largest id that ever had a row: the length of a plain vector by the same ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no id ever had a row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<I: Copy + From<usize>, T> Table<I, T>
where
    usize: From<I>,
{
    /// Adds a row under the next id.
    pub fn push(&mut self, row: T) -> I {
        let id = I::from(self.len);
        self.insert(id, row);
        id
    }

    /// Sets the row of an id; returns the one it had.
    pub fn insert(&mut self, id: I, row: T) -> Option<T> {
        let index = usize::from(id);
        self.len = self.len.max(index + 1);
        let page = self.page_to_write(index / PAGE);
        let old = page.row[index % PAGE].replace(row);
        page.rows += u32::from(old.is_none());
        old
    }

    fn page_to_write(&mut self, number: usize) -> &mut Page<T> {
        let at = number.wrapping_sub(self.front);
        if !self.pages.get(at).is_some_and(Option::is_some) {
            self.add_page(number);
        }
        self.pages[number - self.front].as_mut().expect("invariant: the page is there")
    }

    #[cold]
    fn add_page(&mut self, number: usize) {
        if self.pages.is_empty() {
            self.front = number;
        }
        if number < self.front {
            self.pages.splice(..0, (number..self.front).map(|_| None));
            self.front = number;
        }
        let at = number - self.front;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        self.gone = self.gone.min(at);
        self.pages[at] = Some(self.spare.take().unwrap_or_else(|| Box::new(Page::new())));
    }

    /// The row of an id; makes one if there is none.
    pub fn get_or_insert_with(&mut self, id: I, make: impl FnOnce() -> T) -> &mut T {
        let index = usize::from(id);
        self.len = self.len.max(index + 1);
        let page = self.page_to_write(index / PAGE);
        let row = &mut page.row[index % PAGE];
        page.rows += u32::from(row.is_none());
        row.get_or_insert_with(make)
    }

    /// Removes the row of an id, if there is one.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let index = usize::from(id);
        let place = self.pages.get_mut((index / PAGE).wrapping_sub(self.front))?;
        let page = place.as_mut()?;
        let row = page.row[index % PAGE].take()?;
        page.rows -= 1;
        if page.rows == 0 {
            self.spare = place.take();
            self.trim();
        }
        Some(row)
    }

    /// Drops the freed pages at the front, once they are half of all.
    fn trim(&mut self) {
        while self.pages.get(self.gone).is_some_and(Option::is_none) {
            self.gone += 1;
        }
        if 2 * self.gone >= self.pages.len() {
            self.pages.drain(..self.gone);
            self.front += self.gone;
            self.gone = 0;
        }
    }

    /// The row of an id, if there is one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        let index = usize::from(id);
        // A page before the first wraps around to a place that no vector has.
        self.pages.get((index / PAGE).wrapping_sub(self.front))?.as_ref()?.row[index % PAGE].as_ref()
    }

    /// The row of an id, if there is one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let index = usize::from(id);
        self.pages.get_mut((index / PAGE).wrapping_sub(self.front))?.as_mut()?.row[index % PAGE].as_mut()
    }

    /// Whether an id has a row.
    pub fn contains(&self, id: I) -> bool {
        self.get(id).is_some()
    }

    /// The rows with their ids, by id. O(pages with rows + rows that are read).
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + Clone {
        let front = self.front;
        let pages = self.pages.iter().enumerate();
        pages.filter_map(|(k, page)| Some((k, page.as_ref()?))).flat_map(move |(k, page)| {
            let base = (front + k) * PAGE;
            let rows = page.row.iter().enumerate();
            rows.filter_map(move |(at, row)| Some((I::from(base + at), row.as_ref()?)))
        })
    }

    /// The rows from an id on, with their ids, by id. O(pages from there on + rows that are read).
    pub fn iter_from(&self, from: I) -> impl Iterator<Item = (I, &T)> {
        let (first, front) = (usize::from(from), self.front);
        let pages = self.pages.iter().enumerate().skip((first / PAGE).saturating_sub(front));
        pages.filter_map(|(k, page)| Some((k, page.as_ref()?))).flat_map(move |(k, page)| {
            let base = (front + k) * PAGE;
            let rows = page.row.iter().enumerate().skip(first.saturating_sub(base));
            rows.filter_map(move |(at, row)| Some((I::from(base + at), row.as_ref()?)))
        })
    }

    /// The rows, by id.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.iter_enumerated().map(|(_, row)| row)
    }

    /// The ids that have a row, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = I> + Clone {
        self.iter_enumerated().map(|(id, _)| id)
    }

    /// The rows, by id, to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let pages = self.pages.iter_mut().flatten();
        pages.flat_map(|page| page.row.iter_mut().flatten())
    }

    /// The first id whose row satisfies `is_it`.
    pub fn position(&self, is_it: impl Fn(&T) -> bool) -> Option<I> {
        self.iter_enumerated().find_map(|(id, row)| is_it(row).then_some(id))
    }
}

impl<I: Copy + From<usize>, T: PartialEq> PartialEq for Table<I, T>
where
    usize: From<I>,
{
    /// Whether both have had the same number of ids and have the same rows. The layout does not matter.
    fn eq(&self, other: &Self) -> bool {
        let rows = |table: &Self| table.iter_enumerated().map(|(id, _)| usize::from(id)).collect::<Vec<_>>();
        self.len == other.len && rows(self) == rows(other) && self.iter().eq(other.iter())
    }
}

impl<I: Copy + From<usize>, T> Index<I> for Table<I, T>
where
    usize: From<I>,
{
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        self.get(id).expect("invariant: an id that is used has a row")
    }
}

impl<I: Copy + From<usize>, T> IndexMut<I> for Table<I, T>
where
    usize: From<I>,
{
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("invariant: an id that is used has a row")
    }
}

impl<I: Copy + From<usize>, T> FromIterator<T> for Table<I, T>
where
    usize: From<I>,
{
    fn from_iter<R: IntoIterator<Item = T>>(rows: R) -> Self {
        let mut table = Self::new();
        rows.into_iter().for_each(|row| {
            table.push(row);
        });
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    /// Ids of the rows, and how many pages there are.
    fn shape(table: &Table<JobId, u32>) -> (Vec<u32>, usize) {
        (table.keys().map(|id| id.0).collect(), table.pages.len())
    }

    #[test]
    fn rows_from_an_id_on_are_the_last_of_all_rows() {
        let mut table: Table<JobId, u32> = (0..300).collect();
        for id in (0..300).filter(|id| id % 3 == 0 || *id < 130) {
            table.remove(JobId(id));
        }
        for from in [0, 1, 129, 130, 131, 192, 299, 300, 1000] {
            let all = table.iter_enumerated().filter(|(id, _)| id.0 >= from);
            assert!(table.iter_from(JobId(from)).eq(all), "from {from}");
        }
    }

    #[test]
    fn pages_without_rows_are_given_back_at_both_ends_and_between() {
        let mut table: Table<JobId, u32> = (0..200).collect();
        assert_eq!((table.len(), table.pages.len()), (200, 4));
        (64..128).for_each(|k| assert_eq!(table.remove(JobId(k)), Some(k)));
        assert!(table.pages[1].is_none());
        (0..63).for_each(|k| assert!(table.remove(JobId(k)).is_some()));
        assert_eq!(table.pages.len(), 4, "one row holds the first page");
        table.remove(JobId(63));
        assert_eq!((table.front, table.pages.len()), (2, 2));
        (128..200).for_each(|k| assert!(table.remove(JobId(k)).is_some()));
        assert_eq!((table.pages.len(), table.len(), table.push(7)), (0, 200, JobId(200)));
        assert_eq!(shape(&table), (vec![200], 1));
    }

    #[test]
    fn tables_that_lie_differently_are_equal_by_their_rows() {
        let mut table: Table<JobId, u32> = (0..400).collect();
        (0..130).for_each(|k| assert_eq!(table.remove(JobId(k)), Some(k)));
        assert_eq!((table.front, table.gone), (0, 2), "too few to be worth moving the others");
        let mut other: Table<JobId, u32> = Table::new();
        (130..400).for_each(|k| assert_eq!(other.insert(JobId(k), k), None));
        assert_eq!((other.front, table == other), (2, true));
        table.insert(JobId(5), 5);
        assert_eq!((table.gone, table.get(JobId(5)), table == other), (0, Some(&5), false));
        other.insert(JobId(5), 5);
        assert_eq!((other.front, table == other), (0, true));
    }

    #[test]
    fn pages_before_the_first_come_back() {
        let mut table: Table<JobId, u32> = (0..200).collect();
        (0..192).for_each(|k| assert_eq!(table.remove(JobId(k)), Some(k)));
        table.insert(JobId(70), 1);
        assert_eq!(
            (table.get(JobId(70)), table.get(JobId(3)), table.get(JobId(195))),
            (Some(&1), None, Some(&195))
        );
    }

    #[test]
    fn rows_are_found_changed_and_listed_by_id() {
        let mut table: Table<JobId, u32> = Table::new();
        assert_eq!(table.insert(JobId(130), 1), None);
        assert_eq!(table.insert(JobId(130), 2), Some(1));
        table.insert(JobId(3), 9);
        assert_eq!((table.get(JobId(4)), table.get(JobId(64)), table.get(JobId(1_000))), (None, None, None));
        assert_eq!(shape(&table), (vec![3, 130], 3));
        table.iter_mut().for_each(|row| *row += 1);
        table[JobId(3)] += 1;
        assert_eq!(table.iter().rev().copied().collect::<Vec<_>>(), [3, 11]);
        assert_eq!(
            (table.position(|&row| row == 3), table.position(|&row| row == 4)),
            (Some(JobId(130)), None)
        );
        assert_eq!(
            (table.remove(JobId(5)), table.remove(JobId(3)), table.remove(JobId(3))),
            (None, Some(11), None)
        );
    }
}
