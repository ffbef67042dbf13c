//! Assigns keys to partitions, by hash or by ranges that were sampled in advance.

use std::fs;
use std::path::Path;

use twox_hash::XxHash3_64;

use crate::base::error::{TaskError, at};
use crate::shuffle::pairs::{prefix, put_varint, take_varint};

/// The hash of a key: XXH3 of 64 bits with seed 0. It is part of the meaning of a job's output, so it
/// never changes.
pub(crate) fn hash(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

/// The rule that divides keys.
#[derive(Clone, Debug)]
pub(crate) enum Partitioner {
    /// By hash, into this number of partitions.
    Hash(u32),
    /// By ranges of keys.
    Range(Boundaries),
}

impl Partitioner {
    pub(crate) fn partitions(&self) -> u32 {
        match self {
            Partitioner::Hash(count) => *count,
            Partitioner::Range(boundaries) => boundaries.keys.len() as u32 + 1,
        }
    }

    #[inline]
    pub(crate) fn of(&self, key: &[u8]) -> u32 {
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
pub(crate) struct Boundaries {
    keys: Vec<Vec<u8>>,
    prefixes: Vec<u64>,
}

impl Boundaries {
    /// Boundaries that cut a sample into `partitions` (at least 1) ranges of about equal count. Equal keys
    /// stay together. A key with more than a fair share of the records gets its own range, so the other
    /// ranges share the rest, and a range is empty only if there are too few keys.
    pub(crate) fn of_sample(mut sample: Vec<Vec<u8>>, partitions: u32) -> Self {
        sample.sort_unstable();
        let is_heavy = |group: &[Vec<u8>]| group.len() as u64 * u64::from(partitions) > sample.len() as u64;
        let groups: Vec<&[Vec<u8>]> = sample.chunk_by(|a, b| a == b).collect();
        let mut heavy = groups.iter().filter(|group| is_heavy(group)).count();
        // Records of the other groups from the open range on; records in the open range, and whether its key
        // is heavy.
        let mut light: usize = groups.iter().filter(|group| !is_heavy(group)).map(|group| group.len()).sum();
        let (mut keys, mut held, mut holds_heavy) = (Vec::new(), 0, false);
        for (nth, group) in groups.iter().enumerate() {
            let ranges = partitions as usize - keys.len();
            if ranges == 1 {
                break;
            }
            let share = light as f64 / ranges.saturating_sub(heavy).max(1) as f64;
            let is_full = (held + group.len()) as f64 - share > share - held as f64;
            let is_last_chance = groups.len() - nth < ranges;
            if held > 0 && (holds_heavy || is_heavy(group) || is_full || is_last_chance) {
                keys.push(group[0].clone());
                light -= if holds_heavy { 0 } else { held };
                held = 0;
            }
            held += group.len();
            holds_heavy = is_heavy(group);
            heavy -= usize::from(holds_heavy);
        }
        // Fewer keys than ranges.
        keys.resize(partitions as usize - 1, sample.last().cloned().unwrap_or_default());
        Self::new(keys)
    }

    /// The least key of every range but the first.
    pub(crate) fn keys(&self) -> &[Vec<u8>] {
        &self.keys
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

    /// Writes the boundaries to a file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), TaskError> {
        let mut bytes = Vec::new();
        for key in &self.keys {
            put_varint(&mut bytes, key.len() as u64);
            bytes.extend_from_slice(key);
        }
        fs::write(path, bytes).map_err(at("cannot write", path))
    }

    /// Reads what [`Self::write`] wrote for this many partitions.
    pub(crate) fn read(path: &Path, partitions: u32) -> Result<Self, TaskError> {
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
    fn a_hot_key_leaves_no_range_empty_that_need_not_be() {
        let counts = |keys: &[(u32, usize)], partitions: u32| {
            let sample: Vec<Vec<u8>> =
                keys.iter().flat_map(|&(key, n)| vec![key.to_be_bytes().to_vec(); n]).collect();
            let ranges = Partitioner::Range(Boundaries::of_sample(sample.clone(), partitions));
            let mut counts = vec![0; partitions as usize];
            for key in &sample {
                counts[ranges.of(key) as usize] += 1;
            }
            counts
        };
        let rest: Vec<(u32, usize)> = (1..101).map(|key| (key, 1)).collect();
        let hot = |key: u32| {
            let mut keys = [rest.as_slice(), &[(key, 900)]].concat();
            keys.sort_unstable();
            keys
        };
        assert_eq!(counts(&hot(0), 4), [900, 33, 34, 33]);
        assert_eq!(counts(&hot(101), 4), [33, 34, 33, 900]);
        let middle = counts(&hot(50), 4);
        assert!(middle.iter().all(|count| *count > 10) && middle.iter().max() < Some(&960), "{middle:?}");
        assert_eq!(counts(&[(1, 1), (2, 1), (3, 1), (4, 97)], 4), [1, 1, 1, 97]);
        assert_eq!(counts(&[(1, 97), (2, 1), (3, 1), (4, 1)], 4), [97, 1, 1, 1]);
        assert_eq!(counts(&[(1, 5), (2, 5)], 3), [5, 0, 5]);
    }

    #[test]
    fn empty_samples_and_equal_keys_are_divided_somehow() {
        assert_eq!(Boundaries::of_sample(vec![], 3).of(b"x"), 2);
        assert_eq!(Boundaries::of_sample(vec![b"same".to_vec(); 9], 3).of(b"same"), 2);
    }
}
