//! Counts of keys in memory, which save most pairs from being sorted at all.

use hashbrown::HashTable;

use super::super::TaskError;
use super::super::merge::Values;
use super::super::partition::hash;
use super::super::segment::{put_varint, take_varint};

/// Bytes that a key takes beside its own: its entry and its slot in the table.
const OVERHEAD: usize = size_of::<Entry>() + 10;

/// How often keys were seen. Keys come out in the order in which they were first seen.
pub(super) struct Tally {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// Indices of entries.
    table: HashTable<u32>,
    limit: usize,
}

struct Entry {
    hash: u64,
    start: u32,
    length: u32,
    count: u64,
}

impl Tally {
    /// Takes about `limit` bytes, but at least one key.
    pub(super) fn new(limit: u64) -> Self {
        let limit = limit.min(1 << 31) as usize;
        Tally { arena: Vec::new(), entries: Vec::new(), table: HashTable::new(), limit }
    }

    /// Counts a key once. If there was no more room, everything before it goes to `put` and is
    /// forgotten.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: &[u8],
        put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let hash = hash(key);
        let (arena, entries) = (&self.arena, &self.entries);
        let found = self.table.find(hash, |&at| {
            let entry = &entries[at as usize];
            entry.hash == hash && &arena[entry.start as usize..(entry.start + entry.length) as usize] == key
        });
        match found {
            Some(&at) => self.entries[at as usize].count += 1,
            None => self.insert(hash, key, put)?,
        }
        Ok(())
    }

    #[cold]
    fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        if self.arena.len() + key.len() + (self.entries.len() + 1) * OVERHEAD > self.limit {
            self.drain(put)?;
        }
        let (start, length) = (self.arena.len() as u32, key.len() as u32);
        self.arena.extend_from_slice(key);
        let at = self.entries.len() as u32;
        self.entries.push(Entry { hash, start, length, count: 1 });
        let entries = &self.entries;
        self.table.insert_unique(hash, at, |&other| entries[other as usize].hash);
        Ok(())
    }

    /// Gives all keys and their counts, and forgets them.
    pub(super) fn drain(
        &mut self,
        mut put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        for entry in self.entries.drain(..) {
            put(&self.arena[entry.start as usize..(entry.start + entry.length) as usize], entry.count)?;
        }
        self.arena.clear();
        self.table.clear();
        Ok(())
    }
}

/// A count as a value of the shuffle.
pub(super) fn count_value(count: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(10);
    put_varint(&mut value, count);
    value
}

/// The sum of values that [`count_value`] made.
pub(super) fn sum(values: &mut Values<'_>) -> Result<u64, TaskError> {
    let mut sum = 0;
    while let Some(mut value) = values.next()? {
        sum += take_varint(&mut value).unwrap_or(0);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tallies_are_emptied_on_the_way() {
        for (limit, expected) in
            [(1 << 20, vec![("a", 3), ("b", 1)]), (1, vec![("a", 2), ("b", 1), ("a", 1)])]
        {
            let mut tally = Tally::new(limit);
            let mut found = Vec::new();
            let mut put = |key: &[u8], count| {
                found.push((String::from_utf8(key.to_vec()).unwrap(), count));
                Ok(())
            };
            for key in ["a", "a", "b", "a"] {
                tally.add(key.as_bytes(), &mut put).unwrap();
            }
            tally.drain(&mut put).unwrap();
            let expected: Vec<_> = expected.into_iter().map(|(key, n)| (key.to_owned(), n)).collect();
            assert_eq!(found, expected);
        }
    }
}
