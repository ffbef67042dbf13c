//! Sorted runs of pairs on disk: the spills and the output of a map, read back a partition at a time.
//!
//! A run is one file: its partitions one after the other, each a sequence of pairs: length of the key and
//! length of the value (LEB128), key, value. The positions of partitions are kept beside it; the output of a
//! map has them itself, before the first partition (see [`crate::shuffle::index`]), and may be packed: then
//! the sequence is cut into blocks, each after its length and its stored length, the shorter of LZ4 and
//! plain.
//!
//! The bytes of every partition have a checksum, which is checked when the last of them is read.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use twox_hash::XxHash3_64;

use crate::base::digest::Digest;
use crate::base::error::{TaskError, at};
use crate::shuffle::index::{self, Section};
use crate::shuffle::pairs::{Cursor, prefix, put_varint, take_varint};

/// Longest header of a pair: two LEB128 numbers of 32 bits.
const HEADER: usize = 10;
/// Bytes that are written at once.
const BLOCK: usize = 1 << 18;
/// Bytes that are packed at once.
const PACKED: usize = 1 << 16;
/// The header of a packed block: its length, and that of the stored bytes.
const LENGTHS: usize = 8;

/// A run: its file and the positions of its partitions.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) sections: Vec<Section>,
    /// The digest of map output, which has the positions of its partitions.
    pub(crate) digest: Option<Digest>,
}

impl Run {
    pub(crate) fn segment(&self, partition: usize) -> Segment {
        Segment::of(self.path.clone(), self.sections[partition])
    }
}

/// One partition of a run, or several consecutive ones as one.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    /// The first partition.
    pub(crate) section: Section,
    more: Vec<Section>,
}

impl Segment {
    pub(crate) fn of(path: PathBuf, section: Section) -> Self {
        Segment { path, section, more: Vec::new() }
    }

    /// Consecutive partitions; `None` if there are none.
    pub(crate) fn joined(path: PathBuf, sections: Vec<Section>) -> Result<Option<Self>, TaskError> {
        if sections.windows(2).any(|two| two[0].offset + two[0].stored != two[1].offset) {
            let problem = "its partitions overlap or have gaps between them".to_owned();
            return Err(TaskError::Damaged { path, problem });
        }
        let mut sections = sections.into_iter();
        Ok(sections.next().map(|section| Segment { path, section, more: sections.collect() }))
    }
}

/// Writes a run; pairs must come in order.
pub(crate) struct RunWriter {
    file: File,
    path: PathBuf,
    /// Pairs of the last partition that are not in the file yet.
    buffer: Vec<u8>,
    /// Buffer for a block, if pairs are packed.
    packed: Option<Vec<u8>>,
    sections: Vec<Section>,
    /// The checksum of the last partition, as far as it is in the file.
    sum: Hasher,
    /// The position of the next byte.
    offset: u64,
    /// The checksum of the file's content, if it begins with an index.
    output: Option<XxHash3_64>,
}

impl RunWriter {
    pub(crate) fn create(path: &Path) -> Result<Self, TaskError> {
        let file = File::create(path).map_err(at("cannot write", path))?;
        Ok(RunWriter {
            file,
            path: path.to_owned(),
            buffer: Vec::with_capacity(BLOCK),
            packed: None,
            sections: Vec::new(),
            sum: Hasher::new(),
            offset: 0,
            output: None,
        })
    }

    /// A run of this number of partitions that has their positions itself.
    pub(crate) fn create_output(path: &Path, partitions: usize, is_packed: bool) -> Result<Self, TaskError> {
        let mut run = Self::create(path)?;
        run.offset = index::bytes(partitions);
        run.file.seek(SeekFrom::Start(run.offset)).map_err(at("cannot write", path))?;
        run.packed = is_packed.then(Vec::new);
        run.output = Some(XxHash3_64::new());
        Ok(run)
    }

    /// Begins the next partition.
    pub(crate) fn begin(&mut self) -> Result<(), TaskError> {
        self.flush()?;
        self.sum = Hasher::new();
        let is_packed = self.packed.is_some();
        self.sections.push(Section { offset: self.offset, is_packed, ..Section::default() });
        Ok(())
    }

    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        let before = self.buffer.len();
        put_varint(&mut self.buffer, key.len() as u64);
        put_varint(&mut self.buffer, value.len() as u64);
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value);
        let section = self.sections.last_mut().expect("invariant: begin is called before push");
        section.bytes += (self.buffer.len() - before) as u64;
        section.records += 1;
        if self.buffer.len() >= BLOCK - (BLOCK >> 3) { self.flush() } else { Ok(()) }
    }

    /// The last partition so far, for reading before more pairs come.
    pub(crate) fn so_far(&mut self) -> Result<Segment, TaskError> {
        self.flush()?;
        let section = *self.sections.last().expect("invariant: begin is called before so_far");
        Ok(Segment::of(self.path.clone(), section))
    }

    pub(crate) fn finish(mut self, durable: bool) -> Result<Run, TaskError> {
        self.flush()?;
        let RunWriter { file, path, sections, offset, output, .. } = self;
        let digest = output.map(|mut output| {
            // The borders of partitions count too.
            for section in &sections {
                output.write(&section.stored.to_le_bytes());
            }
            Digest { bytes: offset, sum: output.finish(), stamp: None }
        });
        if let Some(digest) = &digest {
            file.write_all_at(&index::of(&sections, digest.sum), 0).map_err(at("cannot write", &path))?;
        }
        if durable {
            file.sync_all().map_err(at("cannot write", &path))?;
        }
        Ok(Run { path, sections, digest })
    }

    /// Writes the buffer.
    fn flush(&mut self) -> Result<(), TaskError> {
        let Some(section) = self.sections.last_mut().filter(|_| !self.buffer.is_empty()) else {
            return Ok(());
        };
        let stored = match &mut self.packed {
            None => &self.buffer,
            Some(packed) => {
                packed.clear();
                self.buffer.chunks(PACKED).for_each(|block| pack(block, packed));
                packed
            }
        };
        self.file.write_all(stored).map_err(at("cannot write", &self.path))?;
        self.sum.update(stored);
        if let Some(output) = &mut self.output {
            output.write(stored);
        }
        section.sum = self.sum.clone().finalize();
        section.stored += stored.len() as u64;
        self.offset += stored.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Appends a block.
fn pack(block: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + LENGTHS + get_maximum_output_size(block.len()), 0);
    let packed = compress_into(block, &mut out[begin + LENGTHS..]).unwrap_or(usize::MAX);
    let stored = packed.min(block.len());
    if packed >= block.len() {
        out[begin + LENGTHS..][..block.len()].copy_from_slice(block);
    }
    out.truncate(begin + LENGTHS + stored);
    out[begin..][..4].copy_from_slice(&(block.len() as u32).to_le_bytes());
    out[begin + 4..][..4].copy_from_slice(&(stored as u32).to_le_bytes());
}

/// Reads the pairs of a segment.
pub(crate) struct SegmentReader {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of pairs that are not in the buffer yet.
    unread: u64,
    /// Unread bytes of the current section in the file.
    left: u64,
    stored: u64,
    /// The sections after it.
    more: std::vec::IntoIter<Section>,
    /// The checksum of the bytes that were read.
    sum: Hasher,
    expected: u32,
    /// Buffer for a stored block, if pairs are packed.
    packed: Option<Vec<u8>>,
    current: Option<Pair>,
}

/// The position of the current pair in the buffer.
#[derive(Clone)]
struct Pair {
    key: Range<usize>,
    value: Range<usize>,
    prefix: u64,
}

impl SegmentReader {
    /// Opens a segment and reads its first pair, through a buffer of about `buffer_bytes`.
    pub(crate) fn open(segment: &Segment, buffer_bytes: usize) -> Result<Self, TaskError> {
        let path = segment.path.clone();
        let mut file = File::open(&path).map_err(at("cannot read", &path))?;
        let Section { offset, bytes: left, stored, sum, is_packed, .. } = segment.section;
        let bytes = left + segment.more.iter().map(|section| section.bytes).sum::<u64>();
        let size = file.metadata().map_err(at("cannot read", &path))?.len();
        if offset.checked_add(stored).is_none_or(|end| end > size) {
            let problem = format!("{size} bytes, expected {}", offset.saturating_add(stored));
            return Err(TaskError::Damaged { path, problem });
        }
        file.seek(SeekFrom::Start(offset)).map_err(at("cannot read", &path))?;
        let mut reader = SegmentReader {
            file,
            path,
            buffer: vec![0; buffer_bytes.max(HEADER).min(bytes as usize)],
            start: 0,
            end: 0,
            unread: bytes,
            left,
            stored,
            more: segment.more.clone().into_iter(),
            sum: Hasher::new(),
            expected: sum,
            packed: is_packed.then(Vec::new),
            current: None,
        };
        reader.advance()?;
        Ok(reader)
    }

    /// The first bytes of the current key, see [`prefix`].
    #[inline]
    pub(crate) fn prefix(&self) -> u64 {
        self.current.as_ref().map_or(0, |pair| pair.prefix)
    }

    /// Reads the remaining bytes, which checks the checksum of the whole segment.
    pub(crate) fn verify(&mut self) -> Result<(), TaskError> {
        self.current = None;
        while self.unread > 0 {
            (self.start, self.end) = (0, 0);
            self.fill()?;
        }
        Ok(())
    }

    /// Makes `bytes` bytes available from `start`, or all there are.
    #[inline]
    fn ensure(&mut self, bytes: usize) -> Result<(), TaskError> {
        while self.end - self.start < bytes && self.unread > 0 {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.len() < bytes {
                // At most the size of the segment, even if a damaged length is larger.
                self.buffer.resize(bytes.min(self.end + self.unread as usize), 0);
            }
            self.fill()?;
        }
        Ok(())
    }

    /// Reads more after the bytes in the buffer, which has room; at the end checks the checksum.
    fn fill(&mut self) -> Result<(), TaskError> {
        let read = if self.packed.is_some() { self.fill_packed()? } else { self.fill_plain()? };
        self.end += read;
        self.unread -= read as u64;
        self.left -= read as u64;
        if self.left > 0 {
            return Ok(());
        }
        let sum = self.sum.clone().finalize();
        if sum != self.expected || self.stored > 0 {
            let expected = self.expected;
            return Err(self.damaged(&format!("a check sum of {sum:08x}, expected {expected:08x}")));
        }
        if let Some(next) = self.more.next() {
            (self.left, self.stored, self.expected) = (next.bytes, next.stored, next.sum);
            self.sum = Hasher::new();
        }
        Ok(())
    }

    fn fill_plain(&mut self) -> Result<usize, TaskError> {
        let take = (self.buffer.len() - self.end).min(self.left as usize);
        let into = &mut self.buffer[self.end..self.end + take];
        self.file.read_exact(into).map_err(at("cannot read", &self.path))?;
        self.sum.update(into);
        self.stored = self.stored.saturating_sub(take as u64);
        Ok(take)
    }

    fn fill_packed(&mut self) -> Result<usize, TaskError> {
        let mut lengths = [0; LENGTHS];
        self.file.read_exact(&mut lengths).map_err(at("cannot read", &self.path))?;
        let [length, packed] = [0, 4].map(|at| {
            let bytes = lengths[at..].first_chunk().copied().unwrap_or_default();
            u64::from(u32::from_le_bytes(bytes))
        });
        let fits = self.stored.checked_sub(LENGTHS as u64 + packed);
        let is_right = (1..=PACKED as u64).contains(&length) && length <= self.left && packed <= length;
        let Some(stored) = fits.filter(|_| is_right) else {
            return Err(self.damaged("a block of a wrong length, expected one that fits"));
        };
        let mut block = self.packed.take().unwrap_or_default();
        block.resize(packed as usize, 0);
        self.file.read_exact(&mut block).map_err(at("cannot read", &self.path))?;
        self.stored = stored;
        self.sum.update(&lengths);
        self.sum.update(&block);
        if self.buffer.len() < self.end + length as usize {
            self.buffer.resize(self.end + length as usize, 0);
        }
        let into = &mut self.buffer[self.end..self.end + length as usize];
        let is_whole = if packed == length {
            into.copy_from_slice(&block);
            true
        } else {
            decompress_into(&block, into).is_ok_and(|found| found as u64 == length)
        };
        self.packed = Some(block);
        if is_whole { Ok(length as usize) } else { Err(self.damaged("a block that cannot be unpacked")) }
    }

    fn damaged(&self, problem: &str) -> TaskError {
        TaskError::Damaged { path: self.path.clone(), problem: problem.to_owned() }
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
        const CUT: &str = "a pair is cut short, expected its whole length";
        self.ensure(HEADER)?;
        if self.start == self.end {
            self.current = None;
            return Ok(());
        }
        let mut rest = &self.buffer[self.start..self.end];
        let lengths = take_varint(&mut rest).zip(take_varint(&mut rest));
        let header = self.end - self.start - rest.len();
        let Some((key, value)) = lengths else { return Err(self.damaged(CUT)) };
        let total = key.checked_add(value).and_then(|sum| sum.checked_add(header as u64));
        let available = (self.end - self.start) as u64 + self.unread;
        let Some(total) = total.filter(|&total| total <= available) else { return Err(self.damaged(CUT)) };
        self.ensure(total as usize)?;
        let key = self.start + header..self.start + header + key as usize;
        let value = key.end..key.end + value as usize;
        self.start = value.end;
        self.current = Some(Pair { prefix: prefix(&self.buffer[key.clone()]), key, value });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_runs_are_read_back_and_every_changed_byte_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..4000u32)
            .map(|i| (format!("{i:06}").into_bytes(), vec![b'v'; if i == 17 { 300_000 } else { 60 }]))
            .collect();
        let mut lengths = Vec::new();
        for is_packed in [false, true] {
            let path = dir.path().join("run");
            let mut out = RunWriter::create_output(&path, 2, is_packed).unwrap();
            out.begin().unwrap();
            out.begin().unwrap();
            for (key, value) in &pairs {
                out.push(key, value).unwrap();
            }
            out.finish(false).unwrap();
            let read = || {
                let section = index::read(&path, 1, None)?;
                let mut reader = SegmentReader::open(&Segment::of(path.clone(), section), 1 << 12)?;
                let mut found = Vec::new();
                while let Some((key, value)) = reader.current() {
                    found.push((key.to_vec(), value.to_vec()));
                    reader.advance()?;
                }
                Ok::<_, TaskError>(found)
            };
            assert!(read().unwrap() == pairs);
            assert_eq!(index::read(&path, 0, None).unwrap().records, 0);
            let whole = std::fs::read(&path).unwrap();
            lengths.push(whole.len());
            let begin = index::bytes(1) as usize;
            for at in (begin..whole.len()).step_by(whole.len() / 97).chain([whole.len() - 1]) {
                let mut changed = whole.clone();
                changed[at] ^= 4;
                std::fs::write(&path, &changed).unwrap();
                assert!(read().is_err(), "byte {at} of {}", whole.len());
            }
        }
        assert!(lengths[1] * 2 < lengths[0], "{lengths:?}");
    }

    #[test]
    fn unread_records_are_verified_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut out = RunWriter::create(&path).unwrap();
        out.begin().unwrap();
        for i in 0..1000u32 {
            out.push(&i.to_be_bytes(), b"value").unwrap();
        }
        let segment = out.finish(false).unwrap().segment(0);
        SegmentReader::open(&segment, 64).unwrap().verify().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = SegmentReader::open(&segment, 64).unwrap().verify().unwrap_err().to_string();
        assert!(error.contains("a check sum of "), "{error}");
    }
}
