//! Records of splits: lines, or records of a fixed length, out of plain and compressed files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use slackline_trace::Compression;

use super::error::at;
use super::{Split, TaskError};

/// How much is read at once, bytes.
const BLOCK: usize = 1 << 20;

/// What a record of a program's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A line, without its newline. A carriage return before that is a byte of the line, as for `sort`
    /// and `awk` and unlike in Hadoop, so that what is sorted or matched comes out as it went in.
    Lines,
    /// So many bytes, at least 1.
    Fixed(usize),
}

/// Records out of a stream, as slices of one buffer.
pub(super) struct Blocks<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    limit: usize,
}

impl<R: Read> Blocks<R> {
    /// Records of at most `limit` bytes.
    pub(super) fn new(source: R, limit: usize) -> Self {
        Blocks { source, buffer: vec![0; BLOCK], start: 0, end: 0, ended: false, limit }
    }

    /// The next line without its newline. The last one need not have a newline. One beyond the limit is
    /// an error of the kind `FileTooLarge`.
    pub(super) fn line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut seen = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start + seen..self.end]) {
                let line = self.start..self.start + seen + at;
                self.start = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            seen = self.end - self.start;
            if self.ended {
                let line = self.start..self.end;
                self.start = self.end;
                return Ok((!line.is_empty()).then_some(&self.buffer[line]));
            }
            self.fill()?;
        }
    }

    /// The next record of `length` bytes; a shorter one at the end is an error.
    pub(super) fn fixed(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        while self.end - self.start < length && !self.ended {
            self.fill()?;
        }
        match self.end - self.start {
            0 => Ok(None),
            rest if rest < length => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("a record of {rest} bytes, expected {length}"),
            )),
            _ => {
                self.start += length;
                Ok(Some(&self.buffer[self.start - length..self.start]))
            }
        }
    }

    /// Reads more behind what is unread.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > self.limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("a record of more than {} bytes, expected at most that many", self.limit),
            ));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
        let read = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        self.ended = read == 0;
        Ok(())
    }
}

/// The records of one split.
pub(super) struct Records {
    blocks: Blocks<Box<dyn Read + Send>>,
    format: Format,
    path: PathBuf,
    position: u64,
    /// Lines that begin up to here belong to the split; records of a fixed length, before it.
    end: Option<u64>,
}

impl Records {
    pub(super) fn open(split: &Split, format: Format, limit: usize) -> Result<Self, TaskError> {
        let path = &split.path;
        let mut file = File::open(path).map_err(at("cannot read", path))?;
        let end = split.length.map(|length| split.offset + length);
        let (blocks, position) = if let Some(compression) = Compression::of_name(path) {
            (Blocks::new(compression.reader(file), limit), 0)
        } else {
            let bytes = file.metadata().map_err(at("cannot read", path))?.len();
            if end.is_some_and(|end| bytes < end) {
                return Err(TaskError::Damaged {
                    path: path.clone(),
                    problem: format!(
                        "the file has {bytes} bytes, expected {}: it was cut since the job was planned",
                        end.unwrap_or(0)
                    ),
                });
            }
            let position = match format {
                Format::Lines => split.offset,
                Format::Fixed(length) => split.offset.div_ceil(length as u64) * length as u64,
            };
            file.seek(SeekFrom::Start(position)).map_err(at("cannot read", path))?;
            (Blocks::new(Box::new(file) as Box<dyn Read + Send>, limit), position)
        };
        let mut records = Records { blocks, format, path: path.clone(), position, end };
        if format == Format::Lines && split.offset > 0 {
            // The line that crosses the border is the split's before.
            let skipped = match records.blocks.line() {
                Ok(line) => line.map_or(0, <[u8]>::len),
                Err(source) => return Err(records.wrong(source)),
            };
            records.position += skipped as u64 + 1;
        }
        Ok(records)
    }

    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TaskError> {
        let past = |end: u64| match self.format {
            Format::Lines => self.position > end,
            Format::Fixed(_) => self.position >= end,
        };
        if self.end.is_some_and(past) {
            return Ok(None);
        }
        let found = match self.format {
            Format::Lines => self.blocks.line(),
            Format::Fixed(length) => self.blocks.fixed(length),
        };
        match found {
            Ok(Some(record)) => {
                self.position += record.len() as u64 + u64::from(self.format == Format::Lines);
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(source) => Err(TaskError::Input { path: self.path.clone(), offset: self.position, source }),
        }
    }

    fn wrong(&self, source: io::Error) -> TaskError {
        TaskError::Input { path: self.path.clone(), offset: self.position, source }
    }
}

/// The largest record under a memory limit: a reader needs room for one whole record.
pub(super) fn record_limit(memory_bytes: u64) -> usize {
    memory_bytes.clamp(1 << 20, 1 << 30) as usize
}

/// The name of a split for a command's environment.
pub(super) fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::split::of_inputs;
    use super::*;

    fn read(split: &Split, format: Format) -> Vec<Vec<u8>> {
        let mut records = Records::open(split, format, 1 << 20).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            found.push(record.to_vec());
        }
        found
    }

    proptest! {
        #[test]
        fn every_line_belongs_to_one_split(
            lines in proptest::collection::vec("[a-b\r]{0,6}", 0..30), closed: bool, size in 1u64..40,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let mut text = lines.join("\n");
            if closed && !lines.is_empty() {
                text.push('\n');
            }
            fs::write(&path, &text).unwrap();
            let maps = of_inputs(&[path.to_str().unwrap().to_owned()], size).unwrap();
            let found: Vec<_> = maps.iter().flatten().flat_map(|s| read(s, Format::Lines)).collect();
            let expected: Vec<_> = text.split_terminator('\n').map(|l| l.as_bytes().to_vec()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn every_fixed_record_belongs_to_one_split(count in 0usize..20, size in 1u64..40) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let bytes: Vec<u8> = (0..count * 7).map(|i| i as u8).collect();
            fs::write(&path, &bytes).unwrap();
            let maps = of_inputs(&[path.to_str().unwrap().to_owned()], size).unwrap();
            let found: Vec<_> = maps.iter().flatten().flat_map(|s| read(s, Format::Fixed(7))).collect();
            let expected: Vec<_> = bytes.chunks(7).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(found, expected);
        }
    }

    fn compressed(name: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let split = Split { path, offset: 0, length: None, input: 0 };
        let mut records = Records::open(&split, Format::Lines, 1 << 20)?;
        let mut found = Vec::new();
        while let Some(record) = records.next()? {
            found.push(record.to_vec());
        }
        Ok(found)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn compressed_files_are_read_with_all_their_members() {
        let long = "one two three\n".repeat(200_000);
        let expected: Vec<_> = format!("{long}x\ny").lines().map(|l| l.as_bytes().to_vec()).collect();
        assert!(compressed("a.gz", &[gzip(&long), gzip("x\ny")].concat()).unwrap() == expected);
        // A skippable frame (RFC 8878, 3.1.2) of three bytes stands between.
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3].to_vec();
        assert!(compressed("a.zst", &[zstd(&long), skippable, zstd("x\ny")].concat()).unwrap() == expected);
        assert!(compressed("empty.gz", &gzip("")).unwrap().is_empty());
    }

    #[test]
    fn damaged_input_is_refused_with_its_place() {
        let whole = gzip(&"some text\n".repeat(1000));
        let error = compressed("a.gz", &whole[..whole.len() / 2]).unwrap_err().to_string();
        assert!(error.contains("a.gz, at byte "), "{error}");
        let error = compressed("a.zst", b"not zstd at all").unwrap_err().to_string();
        assert!(error.contains("a.zst, at byte 0: "), "{error}");
        let error = compressed("plain", &vec![b'x'; 5 << 20]).unwrap_err().to_string();
        assert!(error.contains("a record of more than 1048576 bytes"), "{error}");
    }

    #[test]
    fn a_file_that_shrank_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let split = Split { path, offset: 0, length: Some(10), input: 0 };
        let Err(error) = Records::open(&split, Format::Lines, 1 << 20) else { panic!("read") };
        assert!(
            error
                .to_string()
                .ends_with("the file has 3 bytes, expected 10: it was cut since the job was planned")
        );
    }
}
