//! Where the partitions of a map's output lie, at the beginning of its file: one entry of fixed size for each, so
//! that a reduce reads its own with one call.
//!
//! An entry holds, little-endian: offset, bytes of the pairs, records, bytes as stored (64 bits each); the CRC-32 of
//! what is stored, whether it is packed, and the CRC-32 of the entry and its partition's number (32 bits each).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::TaskError;
use super::error::at;
use super::segment::Section;

/// Bytes of an entry.
pub(super) const ENTRY: usize = 44;
/// Bytes of it that its check sum covers.
const COVERED: usize = ENTRY - 4;

/// Bytes of the index of so many partitions.
pub(super) fn bytes(partitions: usize) -> u64 {
    (partitions * ENTRY) as u64
}

/// The index of sections.
pub(super) fn of(sections: &[Section]) -> Vec<u8> {
    let mut index = Vec::with_capacity(sections.len() * ENTRY);
    for (number, section) in (0u32..).zip(sections) {
        let begin = index.len();
        for long in [section.offset, section.bytes, section.records, section.stored] {
            index.extend_from_slice(&long.to_le_bytes());
        }
        index.extend_from_slice(&section.sum.to_le_bytes());
        index.extend_from_slice(&u32::from(section.is_packed).to_le_bytes());
        let sum = sum(&index[begin..], number);
        index.extend_from_slice(&sum.to_le_bytes());
    }
    index
}

/// What the entry of one partition in a map's output says.
///
/// # Errors
///
/// The file cannot be read, or holds no such entry.
pub(super) fn read(path: &Path, partition: u32) -> Result<Section, TaskError> {
    entry(path, partition).map(|(_, section)| section)
}

/// Whether a file holds the entries of so many partitions, and is as long as they say.
pub(super) fn is_whole(path: &Path, partitions: u32) -> bool {
    let Ok(len) = std::fs::metadata(path).map(|meta| meta.len()) else { return false };
    let reaches = |section: &Section| section.offset.saturating_add(section.stored) <= len;
    (0..partitions).all(|partition| read(path, partition).is_ok_and(|section| reaches(&section)))
}

/// The same as [`read`] with the entry as it is stored.
///
/// # Errors
///
/// The file cannot be read, or holds no such entry.
pub(super) fn entry(path: &Path, partition: u32) -> Result<([u8; ENTRY], Section), TaskError> {
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

/// What an entry says; none if it is not that of this partition.
pub(super) fn section(entry: &[u8; ENTRY], partition: u32) -> Option<Section> {
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
        sum: short(32)?,
        is_packed: short(36)? != 0,
    })
}

/// The check sum of an entry. An entry of zeros, as a file has before its index is written, has another one.
fn sum(entry: &[u8], partition: u32) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(b"slackline map output 2");
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
        let index = of(&sections);
        assert_eq!(index.len() as u64, bytes(5));
        std::fs::write(&path, &index).unwrap();
        for (n, section) in sections.iter().enumerate() {
            assert_eq!(read(&path, n as u32).unwrap(), *section);
        }
        let error = read(&path, 5).unwrap_err().to_string();
        assert!(error.ends_with("found no entry of partition 5, expected one with its check sum"), "{error}");
        for at in 2 * ENTRY..3 * ENTRY {
            let mut changed = index.clone();
            changed[at] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert!(read(&path, 2).is_err() && read(&path, 1).is_ok());
        }
        std::fs::write(&path, vec![0; index.len()]).unwrap();
        assert!(read(&path, 0).is_err());
    }
}
