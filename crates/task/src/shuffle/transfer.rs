//! A partition of a map's output on its way to a reduce that cannot open the map's file: its entry of the
//! index, then its bytes as they are stored.
//!
//! At the destination it is written at its position in the map's file, whose other parts are a hole. So a
//! reduce reads the same as in the file itself, with the checksums that the map wrote.

use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};
use crate::shuffle::index::{self, ENTRY, MAP_OUTPUT, Section};

/// A partition of the output in a map's directory.
///
/// # Errors
///
/// An output that cannot be read, or has no such partition.
pub(crate) fn depart(directory: &Path, partition: u32) -> Result<impl Read, TaskError> {
    let path = directory.join(MAP_OUTPUT);
    let (entry, section) = index::entry(&path, partition)?;
    let mut file = File::open(&path).map_err(at("cannot read", &path))?;
    file.seek(SeekFrom::Start(section.offset)).map_err(at("cannot read", &path))?;
    Ok(Cursor::new(entry).chain(file.take(section.stored)))
}

/// A partition of a map's output that arrives, in pieces of any size.
pub(crate) struct Arrival {
    partition: u32,
    path: PathBuf,
    file: File,
    /// The part of its entry so far.
    entry: Vec<u8>,
    /// The content of the entry, if it is complete and undamaged. Otherwise the reader of the file reports
    /// the damage.
    section: Option<Section>,
    /// Bytes of the section that are there.
    stored: u64,
}

impl Arrival {
    /// An empty arrival. Creates its directory, which then is one of a map for a reduce.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub(crate) fn begin(directory: &Path, partition: u32) -> Result<Self, TaskError> {
        fs::create_dir_all(directory).map_err(at("cannot make directory", directory))?;
        let path = directory.join(MAP_OUTPUT);
        let file = File::create(&path).map_err(at("cannot write", &path))?;
        Ok(Self { partition, path, file, entry: Vec::with_capacity(ENTRY), section: None, stored: 0 })
    }

    /// Adds its next bytes.
    ///
    /// # Errors
    ///
    /// More bytes than its entry has, or an error of the system: a full disk, for example.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), TaskError> {
        let (entry, bytes) = bytes.split_at(bytes.len().min(ENTRY - self.entry.len()));
        if !entry.is_empty() {
            self.entry.extend_from_slice(entry);
            let Ok(entry) = self.entry.as_slice().try_into() else { return Ok(()) };
            self.section = index::section(entry, self.partition);
            self.put(entry, index::bytes(self.partition as usize))?;
        }
        let Some(Section { offset, stored, .. }) = self.section else { return Ok(()) };
        let (at, after) = (offset.checked_add(self.stored), self.stored + bytes.len() as u64);
        let Some(at) = at.filter(|_| after <= stored) else {
            let problem = format!("found {after} bytes of partition {}, expected {stored}", self.partition);
            return Err(TaskError::Damaged { path: self.path.clone(), problem });
        };
        self.stored = after;
        self.put(bytes, at)
    }

    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), TaskError> {
        self.file.write_all_at(bytes, offset).map_err(at("cannot write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shuffle::merge::Merge;
    use crate::shuffle::pairs::Cursor as _;
    use crate::shuffle::segment::{RunWriter, Segment};

    /// The output of a map with three partitions, the middle one empty.
    fn map(directory: &Path) {
        let mut out = RunWriter::create_output(&directory.join(MAP_OUTPUT), 3, false).unwrap();
        for keys in [["a", "b"].as_slice(), &[], &["c"]] {
            out.begin().unwrap();
            for key in keys {
                out.push(key.as_bytes(), b"value").unwrap();
            }
        }
        out.finish(false).unwrap();
    }

    /// The keys of a partition that arrived in pieces of some size.
    fn arrived(bytes: &[u8], partition: u32, piece: usize) -> Result<Vec<u8>, TaskError> {
        let dir = tempfile::tempdir().unwrap();
        let mut arrival = Arrival::begin(dir.path(), partition)?;
        bytes.chunks(piece).try_for_each(|piece| arrival.take(piece))?;
        let path = dir.path().join(MAP_OUTPUT);
        let segment = Segment::of(path.clone(), index::read(&path, partition, None)?);
        let (mut merge, mut keys) = (Merge::open(vec![segment], dir.path(), 64)?, Vec::new());
        while let Some((key, _)) = merge.current() {
            keys.extend_from_slice(key);
            merge.advance()?;
        }
        Ok(keys)
    }

    #[test]
    fn partitions_arrive_unchanged_and_damage_is_found() {
        let dir = tempfile::tempdir().unwrap();
        map(dir.path());
        for (partition, keys) in [(0, "ab"), (1, ""), (2, "c")] {
            let mut bytes = Vec::new();
            depart(dir.path(), partition).unwrap().read_to_end(&mut bytes).unwrap();
            for piece in [1, 7, 52, 1000] {
                assert_eq!(arrived(&bytes, partition, piece).unwrap(), keys.as_bytes());
            }
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(arrived(&changed, partition, 1000).is_err(), "byte {at}");
                assert!(arrived(&bytes[..at], partition, 1000).is_err(), "{at} bytes");
            }
            assert!(arrived(&[bytes, vec![0]].concat(), partition, 1000).is_err());
        }
        assert!(depart(dir.path(), 3).is_err());
    }
}
