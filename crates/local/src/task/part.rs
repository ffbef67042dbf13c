//! Part files: the output of a job, one for each reduce or map-only task.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::TaskError;
use super::error::at;

/// The most parts a job may have: with more their names would not sort as their numbers do.
pub const PARTS_MAX: u32 = 100_000;

/// The name of the part file of a reduce's partition or a map-only task.
pub fn part_name(number: u32) -> String {
    format!("part-{number:05}")
}

/// A part file that is being written.
pub(super) struct Part {
    out: BufWriter<File>,
    path: PathBuf,
    /// Records written so far.
    pub(super) records: u64,
    /// Bytes written so far.
    pub(super) bytes: u64,
}

impl Part {
    pub(super) fn create(directory: &Path, number: u32) -> Result<Self, TaskError> {
        let path = directory.join(part_name(number));
        let file = File::create(&path).map_err(at("cannot write", &path))?;
        Ok(Part { out: BufWriter::with_capacity(1 << 20, file), path, records: 0, bytes: 0 })
    }

    /// Writes `key TAB value NEWLINE`.
    ///
    /// # Errors
    ///
    /// What the system says: a full disk, for example.
    #[inline]
    pub(super) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        self.write(key)?;
        self.write(b"\t")?;
        self.write(value)?;
        self.write(b"\n")?;
        self.records += 1;
        Ok(())
    }

    /// Writes a line and its newline.
    ///
    /// # Errors
    ///
    /// What the system says.
    #[inline]
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), TaskError> {
        self.write(line)?;
        self.write(b"\n")?;
        self.records += 1;
        Ok(())
    }

    /// Writes bytes that make up so many records (0 for a piece of one that is counted elsewhere).
    ///
    /// # Errors
    ///
    /// What the system says.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8], records: u64) -> Result<(), TaskError> {
        self.records += records;
        self.write(bytes)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), TaskError> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(at("cannot write", &self.path))
    }

    /// Writes all that a command says and counts its lines.
    pub(super) fn copy(&mut self, source: &mut impl Read) -> Result<(), TaskError> {
        let mut block = vec![0; 1 << 16];
        let mut open = false;
        loop {
            let read = match source.read(&mut block) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(at("cannot read output for", &self.path))?,
            };
            if read == 0 {
                self.records += u64::from(open);
                return Ok(());
            }
            let bytes = &block[..read];
            open = bytes.last() != Some(&b'\n');
            self.raw(bytes, memchr::memchr_iter(b'\n', bytes).count() as u64)?;
        }
    }

    /// Ends the file; `durable` waits until it is on the disk.
    pub(super) fn finish(self, durable: bool) -> Result<(u64, u64), TaskError> {
        let Part { out, path, records, bytes } = self;
        let file = out.into_inner().map_err(|e| at("cannot write", &path)(e.into_error()))?;
        if durable {
            file.sync_all().map_err(at("cannot write", &path))?;
        }
        Ok((records, bytes))
    }
}
