//! Pairs in memory for sorting: their bytes in one arena, and an index of 16 bytes per pair for each
//! partition. Without an allocation per pair.

use crate::base::error::TaskError;
use crate::shuffle::pairs::{Cursor, prefix};

/// Bytes of a value's length, before the key.
const LENGTH: usize = 4;
/// The arena is addressed with 32 bits; the limit leaves room for one record of the largest size.
const ARENA_MAX: usize = (1 << 31) - 1;

/// Pairs by partition.
pub(crate) struct Buffer {
    /// For each pair the length of its value, its key and its value.
    arena: Vec<u8>,
    partitions: Vec<Vec<Entry>>,
    entries: usize,
    limit: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The first bytes of the key: most comparisons end here.
    prefix: u64,
    /// The start of its pair in the arena; it grows with emission and so breaks ties.
    start: u32,
    key_bytes: u32,
}

impl Buffer {
    /// For pairs of about `limit` bytes in this number of partitions.
    pub(crate) fn new(partitions: u32, limit: usize) -> Self {
        let limit = limit.min(ARENA_MAX);
        // Untouched pages cost nothing; growth by copies does.
        let arena = Vec::with_capacity(limit);
        Buffer { arena, partitions: vec![Vec::new(); partitions as usize], entries: 0, limit }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether a pair of this many bytes belongs in the next buffer.
    #[inline]
    pub(crate) fn is_full_for(&self, bytes: usize) -> bool {
        let index = (self.entries + 1) * size_of::<Entry>();
        self.entries > 0 && self.arena.len() + LENGTH + bytes + index > self.limit
    }

    #[inline]
    pub(crate) fn push(&mut self, partition: u32, key: &[u8], value: &[u8]) {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        let entry = Entry { prefix: prefix(key), start, key_bytes: key.len() as u32 };
        self.partitions[partition as usize].push(entry);
        self.entries += 1;
    }

    /// Sorts every partition by key; equal keys stay in the order of emission.
    pub(crate) fn sort(&mut self) {
        let arena = &self.arena;
        for partition in &mut self.partitions {
            partition.sort_unstable_by(|a, b| {
                a.prefix
                    .cmp(&b.prefix)
                    .then_with(|| key(arena, a).cmp(key(arena, b)))
                    .then(a.start.cmp(&b.start))
            });
        }
    }

    /// The pairs of a partition, in order.
    pub(crate) fn cursor(&self, partition: usize) -> BufferCursor<'_> {
        BufferCursor { arena: &self.arena, entries: &self.partitions[partition] }
    }

    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.partitions.iter_mut().for_each(Vec::clear);
        self.entries = 0;
    }
}

#[inline]
fn key<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    let start = entry.start as usize + LENGTH;
    &arena[start..start + entry.key_bytes as usize]
}

/// See [`Buffer::cursor`].
pub(crate) struct BufferCursor<'a> {
    arena: &'a [u8],
    entries: &'a [Entry],
}

impl Cursor for BufferCursor<'_> {
    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.first()?;
        let bytes = &self.arena[entry.start as usize..];
        let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let (key, rest) = rest.split_at(entry.key_bytes as usize);
        Some((key, &rest[..u32::from_le_bytes(*length) as usize]))
    }

    #[inline]
    fn advance(&mut self) -> Result<(), TaskError> {
        self.entries = self.entries.split_first().map_or(&[], |(_, rest)| rest);
        Ok(())
    }
}
