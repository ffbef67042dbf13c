//! Part files: the output of a job, one for each reduce or map-only task.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::base::codec::{Codec, Packer};
use crate::base::digest::DigestWriter;
use crate::base::error::{TaskError, at};
use crate::input::encoding::Kind;
use crate::process::spec::Outcome;

/// The most parts of a job: with more, their names would not sort like their numbers.
pub const PARTS_MAX: u32 = 100_000;
/// Bytes that are written at once.
const BLOCK: usize = 1 << 18;
/// First bytes of a command's output that show whether it is compressed.
const HEAD: usize = 16;

/// The name of the part file of a reduce's partition or a map-only task: `part-00000`, `part-00000.gz`.
pub fn part_file(number: u32, codec: Option<Codec>) -> String {
    format!("part-{number:05}{}", codec.map_or("", Codec::ending))
}

/// A part file that is being written.
pub(crate) struct Part {
    out: Packer,
    path: PathBuf,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// Records written so far.
    pub(crate) records: u64,
    /// Bytes written so far, before compression.
    pub(crate) bytes: u64,
}

impl Part {
    pub(crate) fn create(directory: &Path, number: u32, codec: Option<Codec>) -> Result<Self, TaskError> {
        let path = directory.join(part_file(number, codec));
        let file = File::create(&path).map_err(at("cannot write", &path))?;
        let buffer = Vec::with_capacity(BLOCK + (BLOCK >> 3));
        Ok(Part { out: Packer::new(DigestWriter::new(file), codec), path, buffer, records: 0, bytes: 0 })
    }

    /// Writes `key TAB value NEWLINE`.
    ///
    /// # Errors
    ///
    /// An error of the system: a full disk, for example.
    #[inline]
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        self.separated(key, b'\t', value)
    }

    /// Writes `key`, the separator, `value NEWLINE`.
    ///
    /// # Errors
    ///
    /// An error of the system.
    #[inline]
    pub(crate) fn separated(&mut self, key: &[u8], separator: u8, value: &[u8]) -> Result<(), TaskError> {
        self.buffer.extend_from_slice(key);
        self.buffer.push(separator);
        self.buffer.extend_from_slice(value);
        self.buffer.push(b'\n');
        self.records += 1;
        self.flush_full()
    }

    /// Writes a line and its newline.
    ///
    /// # Errors
    ///
    /// An error of the system.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), TaskError> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.records += 1;
        self.flush_full()
    }

    /// Writes bytes of this number of records (0 for a piece of a record that is counted elsewhere).
    ///
    /// # Errors
    ///
    /// An error of the system.
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8], records: u64) -> Result<(), TaskError> {
        self.records += records;
        self.buffer.extend_from_slice(bytes);
        self.flush_full()
    }

    #[inline]
    fn flush_full(&mut self) -> Result<(), TaskError> {
        if self.buffer.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TaskError> {
        self.bytes += self.buffer.len() as u64;
        self.out.write(&self.buffer).map_err(at("cannot write", &self.path))?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the output of a mapper or reducer: lines. Adds a missing last newline, so that the next line is
    /// separate. Compressed output has no lines and is unchanged.
    pub(crate) fn copy_lines(&mut self, source: &mut impl Read) -> Result<(), TaskError> {
        let (head, is_open) = self.copied(source)?;
        if is_open && Kind::of_magic(&head) == Kind::Plain { self.raw(b"\n", 0) } else { Ok(()) }
    }

    /// Writes all output of a command unchanged, and counts its lines.
    pub(crate) fn copy(&mut self, source: &mut impl Read) -> Result<(), TaskError> {
        self.copied(source).map(|_| ())
    }

    /// Copies output. Returns its first bytes, and whether its last line lacks a newline.
    fn copied(&mut self, source: &mut impl Read) -> Result<(Vec<u8>, bool), TaskError> {
        let mut block = vec![0; 1 << 16];
        let (mut head, mut open) = (Vec::with_capacity(HEAD), false);
        loop {
            let read = match source.read(&mut block) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(at("cannot read output for", &self.path))?,
            };
            if read == 0 {
                self.records += u64::from(open);
                return Ok((head, open));
            }
            let bytes = &block[..read];
            head.extend_from_slice(&bytes[..read.min(HEAD - head.len())]);
            open = bytes.last() != Some(&b'\n');
            self.raw(bytes, memchr::memchr_iter(b'\n', bytes).count() as u64)?;
        }
    }

    /// Ends the file; `durable` waits until it is on the disk. Adds the counts to the outcome.
    pub(crate) fn finish(mut self, durable: bool, outcome: &mut Outcome) -> Result<(), TaskError> {
        self.flush()?;
        let Part { out, path, records, bytes, .. } = self;
        let digest = out.finish().and_then(|file| file.finish(durable)).map_err(at("cannot write", &path))?;
        (outcome.counts.records_out, outcome.counts.bytes_out) = (records, bytes);
        outcome.output = Some(digest);
        Ok(())
    }
}
