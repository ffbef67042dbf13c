//! The positions of the partitions in a map's output, at the beginning of its file: one entry of fixed size
//! for each, so that a reduce reads its own with one call.
//!
//! An entry has, little-endian: offset, bytes of the pairs, records, bytes as stored, the checksum of the
//! whole output (64 bits each); the CRC-32 of the stored bytes, whether they are packed, and the CRC-32 of
//! the entry and its partition's number (32 bits each). By the checksum of the whole output a reduce
//! recognises the output of another attempt.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::base::error::{TaskError, at};

/// The name of a map's output in its directory. It begins with the positions of the partitions.
pub const MAP_OUTPUT: &str = "map.out";

/// Whether the committed output of a map exists and has the right length, without reading all of it. With
/// ranges of keys the file has entries of pieces and not of partitions: then it only has to exist.
pub fn is_there(directory: &Path, partitions: u32, is_ranged: bool, output: Option<u64>) -> bool {
    let path = directory.join(MAP_OUTPUT);
    if is_ranged { path.is_file() } else { is_whole(&path, partitions, output) }
}

/// The position of a partition in its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    /// Bytes of its pairs.
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// Its bytes in the file: different from `bytes` if it is packed.
    pub(crate) stored: u64,
    /// The CRC-32 of the stored bytes.
    pub(crate) sum: u32,
    pub(crate) is_packed: bool,
}

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 52;
/// Bytes of an entry that its checksum covers.
const COVERED: usize = ENTRY - 4;

/// Bytes of the index of this many partitions.
pub(crate) fn bytes(partitions: usize) -> u64 {
    (partitions * ENTRY) as u64
}

/// The index of the sections of an output with that checksum.
pub(crate) fn of(sections: &[Section], output: u64) -> Vec<u8> {
    let mut index = Vec::with_capacity(sections.len() * ENTRY);
    for (number, section) in (0u32..).zip(sections) {
        let begin = index.len();
        for long in [section.offset, section.bytes, section.records, section.stored, output] {
            index.extend_from_slice(&long.to_le_bytes());
        }
        index.extend_from_slice(&section.sum.to_le_bytes());
        index.extend_from_slice(&u32::from(section.is_packed).to_le_bytes());
        let sum = sum(&index[begin..], number);
        index.extend_from_slice(&sum.to_le_bytes());
    }
    index
}

/// The entry of one partition in a map's output. If the checksum of the output is known, the output of
/// another attempt is refused.
///
/// # Errors
///
/// A file that cannot be read, has no such entry, or is another output.
pub(crate) fn read(path: &Path, partition: u32, output: Option<u64>) -> Result<Section, TaskError> {
    let (entry, section) = entry(path, partition)?;
    if output.is_some_and(|output| output_of(&entry) != output) {
        return Err(another(path));
    }
    Ok(section)
}

/// The error of an output that is not the committed one.
pub(crate) fn another(path: &Path) -> TaskError {
    let problem = "found the output of another attempt, expected the committed one".to_owned();
    TaskError::Damaged { path: path.to_owned(), problem }
}

/// Whether a file has the entries of `partitions` partitions, the length that they imply, and that checksum.
pub(crate) fn is_whole(path: &Path, partitions: u32, output: Option<u64>) -> bool {
    let Ok(len) = std::fs::metadata(path).map(|meta| meta.len()) else { return false };
    let reaches = |section: &Section| section.offset.saturating_add(section.stored) <= len;
    (0..partitions).all(|partition| read(path, partition, output).is_ok_and(|section| reaches(&section)))
}

/// Whether a file is the output of another attempt: its entry is right and has another checksum.
pub(crate) fn is_another(path: &Path, partition: u32, output: u64) -> bool {
    entry(path, partition).is_ok_and(|(entry, _)| output_of(&entry) != output)
}

/// The checksum of the whole output, in an entry.
fn output_of(entry: &[u8; ENTRY]) -> u64 {
    entry[32..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The same as [`read`], with the stored bytes of the entry.
///
/// # Errors
///
/// A file that cannot be read, or has no such entry.
pub(crate) fn entry(path: &Path, partition: u32) -> Result<([u8; ENTRY], Section), TaskError> {
    let file = File::open(path).map_err(at("cannot read", path))?;
    let mut entry = [0; ENTRY];
    let damaged = || {
        let problem = format!("found no entry of partition {partition}, expected one with its check sum");
        TaskError::Damaged { path: path.to_owned(), problem }
    };
    match file.read_exact_at(&mut entry, bytes(partition as usize)) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
        other => other.map_err(at("cannot read", path))?,
    }
    let section = section(&entry, partition).ok_or_else(damaged)?;
    Ok((entry, section))
}

/// The content of an entry; `None` if it is not that of this partition.
pub(crate) fn section(entry: &[u8; ENTRY], partition: u32) -> Option<Section> {
    let long = |at: usize| entry[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let short = |at: usize| entry[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if short(COVERED)? != sum(&entry[..COVERED], partition) {
        return None;
    }
    Some(Section {
        offset: long(0)?,
        bytes: long(8)?,
        records: long(16)?,
        stored: long(24)?,
        sum: short(40)?,
        is_packed: short(44)? != 0,
    })
}

/// The checksum of an entry. An entry of zeros, as in a file without an index yet, has another one.
fn sum(entry: &[u8], partition: u32) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(b"slackline map output 3");
    sum.update(&partition.to_le_bytes());
    sum.update(entry);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_alone_and_its_damage_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let section = |n: u64| Section {
            offset: n,
            bytes: n * 3,
            records: n * 7,
            stored: n + 1,
            sum: n as u32 + 9,
            is_packed: n % 2 == 1,
        };
        let sections: Vec<Section> = (0..5).map(section).collect();
        let index = of(&sections, 77);
        assert_eq!(index.len() as u64, bytes(5));
        std::fs::write(&path, &index).unwrap();
        for (n, section) in sections.iter().enumerate() {
            assert_eq!(read(&path, n as u32, Some(77)).unwrap(), *section);
        }
        let error = read(&path, 0, Some(78)).unwrap_err().to_string();
        assert!(error.contains("the output of another attempt"), "{error}");
        assert!(is_another(&path, 0, 78) && !is_another(&path, 0, 77) && !is_another(&path, 5, 78));
        let error = read(&path, 5, None).unwrap_err().to_string();
        assert!(error.ends_with("found no entry of partition 5, expected one with its check sum"), "{error}");
        for at in 2 * ENTRY..3 * ENTRY {
            let mut changed = index.clone();
            changed[at] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert!(read(&path, 2, None).is_err() && read(&path, 1, None).is_ok());
            assert!(!is_another(&path, 2, 78), "a damaged entry says nothing");
        }
        std::fs::write(&path, vec![0; index.len()]).unwrap();
        assert!(read(&path, 0, None).is_err());
    }
}
