//! Stores lines that are read several times: in memory up to a limit, the rest in a file.

use std::fs;
use std::path::PathBuf;

use crate::base::error::{TaskError, at};
use crate::programs::contract::Resources;
use crate::shuffle::pairs::{Cursor, put_varint, take_varint};
use crate::shuffle::segment::{RunWriter, SegmentReader};

/// Size of the buffer for reading the file, bytes.
const BUFFER: usize = 1 << 16;

/// Lines in the order of arrival.
pub(crate) struct LineStore {
    /// The first lines, each after its length (LEB128).
    memory: Vec<u8>,
    limit: usize,
    path: PathBuf,
    /// The other lines, as values without keys.
    rest: Option<RunWriter>,
}

impl LineStore {
    pub(crate) fn new(resources: Resources<'_>) -> Self {
        LineStore {
            memory: Vec::new(),
            limit: resources.memory_bytes as usize,
            path: resources.directory.join("kept"),
            rest: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.rest.is_none()
    }

    pub(crate) fn push(&mut self, line: &[u8]) -> Result<(), TaskError> {
        if self.rest.is_none() && self.memory.len() + line.len() < self.limit {
            put_varint(&mut self.memory, line.len() as u64);
            self.memory.extend_from_slice(line);
            return Ok(());
        }
        if self.rest.is_none() {
            self.rest.insert(RunWriter::create(&self.path)?).begin()?;
        }
        self.rest.as_mut().map_or(Ok(()), |rest| rest.push(b"", line))
    }

    /// Calls `visit` with every line.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(&[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut memory = self.memory.as_slice();
        while let Some(length) = take_varint(&mut memory) {
            let (line, after) = memory.split_at(length as usize);
            visit(line)?;
            memory = after;
        }
        let Some(rest) = &mut self.rest else { return Ok(()) };
        let mut reader = SegmentReader::open(&rest.so_far()?, BUFFER)?;
        while let Some((_, line)) = reader.current() {
            visit(line)?;
            reader.advance()?;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) -> Result<(), TaskError> {
        self.memory.clear();
        match self.rest.take() {
            Some(_) => fs::remove_file(&self.path).map_err(at("cannot remove", &self.path)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_come_back_for_any_room(
            lots in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..12),
                0..4,
            ),
            memory_bytes in 0u64..40,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut kept = LineStore::new(Resources { memory_bytes, directory: dir.path() });
            for lot in &lots {
                kept.clear().unwrap();
                prop_assert!(kept.is_empty());
                for (i, line) in lot.iter().enumerate() {
                    kept.push(line).unwrap();
                    let mut found = Vec::new();
                    kept.each(|line| { found.push(line.to_vec()); Ok(()) }).unwrap();
                    prop_assert!(found == lot[..=i]);
                }
                prop_assert!(kept.memory.len() <= memory_bytes as usize);
            }
            kept.clear().unwrap();
            prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
