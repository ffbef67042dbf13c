//! Counts of keys in memory, so that most pairs need not be sorted.

use hashbrown::HashTable;

use crate::base::error::TaskError;
use crate::shuffle::partition::hash;

/// Bytes of a key beside its own: its slot in a table that is at least half full.
const OVERHEAD: usize = 2 * size_of::<Slot>() + 2;

/// Numbers of keys. Keys come out in the order of their first occurrence.
///
/// Most words are short, so a lookup reads only the slot.
pub(crate) struct Tally {
    /// The keys, one after the other.
    arena: Vec<u8>,
    table: HashTable<Slot>,
    limit: usize,
}

struct Slot {
    /// See [`digest`].
    digest: u64,
    start: u32,
    length: u32,
    count: u64,
}

impl Slot {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.start as usize..(self.start + self.length) as usize]
    }
}

/// A key of up to eight bytes is identified by its length and this; for longer ones it has their beginning.
#[inline]
fn digest(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    if let Some((first, last)) = key.first_chunk().zip(key.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
    }
    key.iter().fold(0, |digest, &byte| digest << 8 | u64::from(byte))
}

impl Tally {
    /// Holds about `limit` bytes, but at least one key.
    pub(crate) fn new(limit: u64) -> Self {
        Tally { arena: Vec::new(), table: HashTable::new(), limit: limit.min(1 << 31) as usize }
    }

    /// Counts a key once. Without room, all keys first go to `put` and are removed.
    #[expect(clippy::inline_always, reason = "a call for each word took 6 % more instructions")]
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let (hash, digest, arena) = (hash(key), digest(key), &self.arena);
        let found = self.table.find_mut(hash, |slot| {
            slot.digest == digest
                && slot.length as usize == key.len()
                && (key.len() <= 8 || slot.key(arena) == key)
        });
        match found {
            Some(slot) => slot.count += 1,
            None => self.insert(hash, digest, key, put)?,
        }
        Ok(())
    }

    #[cold]
    fn insert(
        &mut self,
        hash_of_key: u64,
        digest: u64,
        key: &[u8],
        put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        if self.arena.len() + key.len() + (self.table.len() + 1) * OVERHEAD > self.limit {
            self.drain(put)?;
        }
        let slot = Slot { digest, start: self.arena.len() as u32, length: key.len() as u32, count: 1 };
        self.arena.extend_from_slice(key);
        let arena = &self.arena;
        self.table.insert_unique(hash_of_key, slot, |slot| hash(slot.key(arena)));
        Ok(())
    }

    /// Emits all keys and their counts, and removes them.
    pub(crate) fn drain(
        &mut self,
        mut put: impl FnMut(&[u8], u64) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut slots: Vec<Slot> = self.table.drain().collect();
        // The table's own order differs between platforms. (An empty key begins where the next one does.)
        slots.sort_unstable_by_key(|slot| (slot.start, slot.length));
        for slot in &slots {
            put(slot.key(&self.arena), slot.count)?;
        }
        self.arena.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_lengths_are_distinguished() {
        let mut keys: Vec<Vec<u8>> = (0..12).map(|length| vec![b'a'; length]).collect();
        for length in 1..12 {
            for at in 0..length {
                let mut key = vec![b'a'; length];
                key[at] = if at % 2 == 0 { 0 } else { b'b' };
                keys.push(key);
            }
        }
        let mut tally = Tally::new(1 << 20);
        for key in keys.iter().chain(&keys) {
            tally.add(key, |_, _| panic!("there is room")).unwrap();
        }
        let mut found = Vec::new();
        tally
            .drain(|key, count| {
                found.push((key.to_vec(), count));
                Ok(())
            })
            .unwrap();
        assert!(found == keys.into_iter().map(|key| (key, 2)).collect::<Vec<_>>(), "{found:?}");
    }

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
