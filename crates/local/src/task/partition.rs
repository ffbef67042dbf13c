//! Which partition a key belongs to: by its hash, or by ranges that were sampled before.

use std::fs;
use std::path::Path;

use twox_hash::XxHash3_64;

use super::TaskError;
use super::error::at;
use super::pairs::{prefix, put_varint, take_varint};

/// The hash of a key: XXH3 of 64 bits with seed 0. It is part of the meaning of a job's output, so it
/// never changes.
pub(super) fn hash(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

/// How keys are divided.
#[derive(Clone, Debug)]
pub(super) enum Partitioner {
    /// By hash, into so many.
    Hash(u32),
    /// By ranges of keys.
    Range(Boundaries),
}

impl Partitioner {
    pub(super) fn partitions(&self) -> u32 {
        match self {
            Partitioner::Hash(count) => *count,
            Partitioner::Range(boundaries) => boundaries.keys.len() as u32 + 1,
        }
    }

    #[inline]
    pub(super) fn of(&self, key: &[u8]) -> u32 {
        match self {
            Partitioner::Hash(1) => 0,
            // The high bits, without a division (Lemire 2019, "Fast random integer generation").
            Partitioner::Hash(count) => ((u128::from(hash(key)) * u128::from(*count)) >> 64) as u32,
            Partitioner::Range(boundaries) => boundaries.of(key),
        }
    }
}

/// The least key of every partition but the first, ascending.
#[derive(Clone, Debug)]
pub(super) struct Boundaries {
    keys: Vec<Vec<u8>>,
    prefixes: Vec<u64>,
}

impl Boundaries {
    /// Boundaries that cut a sample into `partitions` (at least 1) ranges of about equal count.
    pub(super) fn of_sample(mut sample: Vec<Vec<u8>>, partitions: u32) -> Self {
        sample.sort_unstable();
        let n = sample.len();
        let keys = (1..partitions as usize)
            .map(|i| sample.get(i * n / partitions as usize).cloned().unwrap_or_default())
            .collect();
        Self::new(keys)
    }

    fn new(keys: Vec<Vec<u8>>) -> Self {
        let prefixes = keys.iter().map(|key| prefix(key)).collect();
        Boundaries { keys, prefixes }
    }

    fn of(&self, key: &[u8]) -> u32 {
        let first = prefix(key);
        let mut at = self.prefixes.partition_point(|&boundary| boundary < first);
        while at < self.keys.len() && self.keys[at].as_slice() <= key {
            at += 1;
        }
        at as u32
    }

    /// Writes them to a file.
    pub(super) fn write(&self, path: &Path) -> Result<(), TaskError> {
        let mut bytes = Vec::new();
        for key in &self.keys {
            put_varint(&mut bytes, key.len() as u64);
            bytes.extend_from_slice(key);
        }
        fs::write(path, bytes).map_err(at("cannot write", path))
    }

    /// Reads what [`Self::write`] wrote for so many partitions.
    pub(super) fn read(path: &Path, partitions: u32) -> Result<Self, TaskError> {
        let bytes = fs::read(path).map_err(at("cannot read", path))?;
        let damaged = |problem: String| TaskError::Damaged { path: path.to_owned(), problem };
        let (mut rest, mut keys) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let key = take_varint(&mut rest).and_then(|length| rest.split_off(..length as usize));
            keys.push(key.ok_or_else(|| damaged("a boundary is cut short".to_owned()))?.to_vec());
        }
        if keys.len() + 1 != partitions as usize {
            let found = keys.len() + 1;
            return Err(damaged(format!("boundaries of {found} partitions, expected {partitions}")));
        }
        Ok(Self::new(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_pinned() {
        // The first is the specification's value for empty input.
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        let of = |key: &str| Partitioner::Hash(7).of(key.as_bytes());
        assert_eq!(["", "a", "the", "slackline", "\u{ff}"].map(of), [1, 6, 5, 3, 5]);
    }

    #[test]
    fn ranges_cut_a_sample_evenly_and_survive_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("boundaries");
        let keys: Vec<Vec<u8>> =
            (0..1000u32).map(|i| format!("prefix-{:04}", i * 7 % 1000).into_bytes()).collect();
        Boundaries::of_sample(keys.clone(), 4).write(&path).unwrap();
        let ranges = Partitioner::Range(Boundaries::read(&path, 4).unwrap());
        let mut counts = [0; 4];
        for key in &keys {
            counts[ranges.of(key) as usize] += 1;
        }
        assert_eq!(counts, [250; 4]);
        assert_eq!((ranges.of(b"prefix-0249"), ranges.of(b"prefix-0250"), ranges.of(b"z")), (0, 1, 3));
        assert!(Boundaries::read(&path, 3).unwrap_err().to_string().ends_with("of 4 partitions, expected 3"));
    }

    #[test]
    fn empty_samples_and_equal_keys_are_divided_somehow() {
        assert_eq!(Boundaries::of_sample(vec![], 3).of(b"x"), 2);
        assert_eq!(Boundaries::of_sample(vec![b"same".to_vec(); 9], 3).of(b"same"), 2);
    }
}
