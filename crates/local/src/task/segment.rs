//! Sorted runs of pairs on disk: the spills and the output of a map, read back a partition at a time.
//!
//! A run is one file: its partitions one after the other, each a sequence of pairs: length of the key
//! and length of the value (LEB128), key, value. Where each partition lies is said beside it.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TaskError;
use super::error::at;
use super::pairs::{Cursor, prefix, put_varint, take_varint};

/// Longest header of a pair: two LEB128 numbers of 32 bits.
const HEADER: usize = 10;

/// Where a partition lies in its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) records: u64,
}

/// A run: its file and where each partition lies.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    pub(super) sections: Vec<Section>,
}

impl Run {
    /// One partition of it.
    pub(super) fn segment(&self, partition: usize) -> Segment {
        Segment { path: self.path.clone(), section: self.sections[partition] }
    }
}

/// One partition of a run.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) section: Section,
}

/// Writes a run; pairs must come in order.
pub(super) struct RunWriter {
    out: BufWriter<File>,
    path: PathBuf,
    header: Vec<u8>,
    sections: Vec<Section>,
    offset: u64,
}

impl RunWriter {
    pub(super) fn create(path: &Path) -> Result<Self, TaskError> {
        let file = File::create(path).map_err(at("cannot write", path))?;
        Ok(RunWriter {
            out: BufWriter::with_capacity(1 << 18, file),
            path: path.to_owned(),
            header: Vec::with_capacity(HEADER),
            sections: Vec::new(),
            offset: 0,
        })
    }

    /// Begins the next partition.
    pub(super) fn begin(&mut self) {
        self.sections.push(Section { offset: self.offset, bytes: 0, records: 0 });
    }

    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        self.header.clear();
        put_varint(&mut self.header, key.len() as u64);
        put_varint(&mut self.header, value.len() as u64);
        let written = self
            .out
            .write_all(&self.header)
            .and_then(|()| self.out.write_all(key))
            .and_then(|()| self.out.write_all(value));
        written.map_err(at("cannot write", &self.path))?;
        let bytes = (self.header.len() + key.len() + value.len()) as u64;
        self.offset += bytes;
        let section = self.sections.last_mut().expect("invariant: begin is called before push");
        section.bytes += bytes;
        section.records += 1;
        Ok(())
    }

    /// What was written of the last partition, to be read before more comes.
    pub(super) fn so_far(&mut self) -> Result<Segment, TaskError> {
        self.out.flush().map_err(at("cannot write", &self.path))?;
        let section = *self.sections.last().expect("invariant: begin is called before so_far");
        Ok(Segment { path: self.path.clone(), section })
    }

    pub(super) fn finish(self, durable: bool) -> Result<Run, TaskError> {
        let RunWriter { out, path, sections, .. } = self;
        let file = out.into_inner().map_err(|e| at("cannot write", &path)(e.into_error()))?;
        if durable {
            file.sync_all().map_err(at("cannot write", &path))?;
        }
        Ok(Run { path, sections })
    }
}

/// Reads the pairs of a segment.
pub(super) struct SegmentReader {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the segment that are still in the file.
    unread: u64,
    current: Option<Pair>,
}

/// Where the current pair lies in the buffer.
#[derive(Clone)]
struct Pair {
    key: Range<usize>,
    value: Range<usize>,
    prefix: u64,
}

impl SegmentReader {
    /// Opens a segment and reads its first pair, through a buffer of about `buffer_bytes`.
    pub(super) fn open(segment: &Segment, buffer_bytes: usize) -> Result<Self, TaskError> {
        let path = segment.path.clone();
        let mut file = File::open(&path).map_err(at("cannot read", &path))?;
        let Section { offset, bytes, .. } = segment.section;
        let size = file.metadata().map_err(at("cannot read", &path))?.len();
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let problem = format!("{size} bytes, expected {}", offset.saturating_add(bytes));
            return Err(TaskError::Damaged { path, problem });
        }
        file.seek(SeekFrom::Start(offset)).map_err(at("cannot read", &path))?;
        let buffer = vec![0; buffer_bytes.max(HEADER).min(bytes as usize)];
        let mut reader = SegmentReader { file, path, buffer, start: 0, end: 0, unread: bytes, current: None };
        reader.advance()?;
        Ok(reader)
    }

    /// The first bytes of the current key, see [`prefix`].
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        self.current.as_ref().map_or(0, |pair| pair.prefix)
    }

    /// Makes `bytes` bytes available from `start`, or all there are.
    fn ensure(&mut self, bytes: usize) -> Result<(), TaskError> {
        if self.end - self.start >= bytes || self.unread == 0 {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < bytes {
            // No more than the segment holds, whatever a damaged length says.
            self.buffer.resize(bytes.min(self.end + self.unread as usize), 0);
        }
        let take = (self.buffer.len() - self.end).min(self.unread as usize);
        let into = &mut self.buffer[self.end..self.end + take];
        self.file.read_exact(into).map_err(at("cannot read", &self.path))?;
        self.end += take;
        self.unread -= take as u64;
        Ok(())
    }

    fn damaged(&self) -> TaskError {
        let problem = "a pair is cut short, expected its whole length".to_owned();
        TaskError::Damaged { path: self.path.clone(), problem }
    }
}

impl Cursor for SegmentReader {
    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        let Pair { key, value, .. } = self.current.as_ref()?;
        Some((&self.buffer[key.clone()], &self.buffer[value.clone()]))
    }

    #[inline]
    fn advance(&mut self) -> Result<(), TaskError> {
        self.ensure(HEADER)?;
        if self.start == self.end {
            self.current = None;
            return Ok(());
        }
        let mut rest = &self.buffer[self.start..self.end];
        let lengths = take_varint(&mut rest).zip(take_varint(&mut rest));
        let header = self.end - self.start - rest.len();
        let Some((key, value)) = lengths else { return Err(self.damaged()) };
        let total = key.checked_add(value).and_then(|sum| sum.checked_add(header as u64));
        let available = (self.end - self.start) as u64 + self.unread;
        let Some(total) = total.filter(|&total| total <= available) else { return Err(self.damaged()) };
        self.ensure(total as usize)?;
        let key = self.start + header..self.start + header + key as usize;
        let value = key.end..key.end + value as usize;
        self.start = value.end;
        self.current = Some(Pair { prefix: prefix(&self.buffer[key.clone()]), key, value });
        Ok(())
    }
}
