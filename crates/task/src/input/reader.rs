//! Records of splits: lines, or records of a fixed length, from plain and compressed files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};
use crate::base::regular_file;
use crate::base::source::WatchedFile;
use crate::input::encoding::{Encoding, Kind};
use crate::input::refused_formats::Content;
use crate::process::spec::Split;

/// Bytes that are read at once: they stay in the cache between reading and parsing.
const BLOCK: usize = 1 << 18;

/// Bytes that are read beyond the end of a split, if there are any.
const MORE: usize = 1 << 12;
/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The form of records of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of text, without its newline. A carriage return before the newline is part of the line, as in
    /// `sort` and `awk` and unlike in Hadoop, so that sorted or matched lines are unchanged. A byte order
    /// mark at the start of a file is not part of its first line.
    Text,
    /// The same of any bytes.
    Lines,
    /// A fixed number of bytes, at least 1.
    Fixed(usize),
}

impl Format {
    fn content(self) -> Content {
        match self {
            Self::Text => Content::Text,
            Self::Lines => Content::Lines,
            Self::Fixed(_) => Content::Bytes,
        }
    }

    fn is_lines(self) -> bool {
        self.content() != Content::Bytes
    }
}

/// Records from a stream, as slices of one buffer.
pub(crate) struct Blocks<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    limit: usize,
}

impl<R: Read> Blocks<R> {
    /// Records of at most `limit` bytes; the buffer is never larger.
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self::of(source, BLOCK, limit)
    }

    /// Records of at most `limit` bytes from about this number of bytes.
    fn of(source: R, bytes: usize, limit: usize) -> Self {
        // A line of the largest size fits with its newline.
        let buffer = vec![0; BLOCK.min(bytes).min(limit.saturating_add(1))];
        Blocks { source, buffer, start: 0, end: 0, ended: false, limit }
    }

    /// The next line without its newline, which the last line may lack. A line beyond the limit is an error
    /// of the kind `FileTooLarge`.
    pub(crate) fn line(&mut self) -> io::Result<Option<&[u8]>> {
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

    /// The whole lines in the buffer, at least one, with their newlines; the input's last line may lack it. A
    /// line beyond the limit is an error as in [`Self::line`]. Lines that begin after `most` bytes are not
    /// read.
    pub(crate) fn lines(&mut self, most: u64) -> io::Result<Option<&[u8]>> {
        let mut seen = 0;
        loop {
            let held = &self.buffer[self.start..self.end];
            let from = usize::try_from(most).map_or(held.len(), |most| most.clamp(seen, held.len()));
            // The first line that begins after `most` follows the first newline from there on.
            let cut = memchr::memchr(b'\n', &held[from..]).map(|at| from + at + 1);
            let cut = cut.or_else(|| memchr::memrchr(b'\n', &held[seen..]).map(|at| seen + at + 1));
            let bytes = cut.or_else(|| (self.ended && !held.is_empty()).then_some(held.len()));
            if let Some(bytes) = bytes {
                let lines = self.start..self.start + bytes;
                self.start = lines.end;
                return Ok(Some(&self.buffer[lines]));
            }
            if self.ended {
                return Ok(None);
            }
            seen = held.len();
            self.fill()?;
        }
    }

    /// The next record of `length` bytes; a shorter one at the end is an error.
    pub(crate) fn fixed(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
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

    /// Skips these bytes if they come next; returns whether they did.
    fn skip(&mut self, bytes: &[u8]) -> io::Result<bool> {
        while self.end - self.start < bytes.len() && !self.ended {
            self.fill()?;
        }
        let is_next = self.buffer[self.start..self.end].starts_with(bytes);
        self.start += if is_next { bytes.len() } else { 0 };
        Ok(is_next)
    }

    /// Reads more bytes after the unread ones.
    fn fill(&mut self) -> io::Result<()> {
        // A long record comes in many pieces: bytes at the front are not moved again for each.
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end > self.limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("a record is longer than the limit of {} bytes", self.limit),
            ));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end.saturating_mul(2).min(self.limit.saturating_add(1)), 0);
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
pub(crate) struct Records {
    blocks: Blocks<Box<dyn Read + Send>>,
    format: Format,
    path: PathBuf,
    position: u64,
    /// Lines that begin at or before this byte belong to the split; records of a fixed length, before it.
    end: Option<u64>,
    /// The file, which must be unchanged since the run began.
    watched: Option<WatchedFile>,
}

impl Records {
    pub(crate) fn open(split: &Split, format: Format, limit: usize) -> Result<Self, TaskError> {
        let file = open_split(split)?;
        let watched = watch(split, &file)?;
        Self { watched, ..Self::of_file(split, file, format, limit)? }.at_first()
    }

    /// The records of a sample of the input: the file may change without an error.
    pub(crate) fn sample(split: &Split, format: Format, limit: usize) -> Result<Self, TaskError> {
        Self::of_file(split, open_split(split)?, format, limit)?.at_first()
    }

    fn of_file(split: &Split, mut file: File, format: Format, limit: usize) -> Result<Self, TaskError> {
        let (path, begin) = (&split.path, split.file_offset());
        // Only plain files are cut, and the first bytes of an excerpt show nothing about its file.
        let encoding = if split.is_excerpt() { None } else { encoding(path, &file, format.content())? };
        let (source, position) = if let Some(encoding) = encoding {
            (encoding.reader(file, format.content()), 0)
        } else {
            // A file that is compared with its earlier state may report any size.
            if split.source.is_none() {
                let end = split.length.map_or(0, |length| split.offset.saturating_add(length));
                check_size(path, &file, end.saturating_sub(begin))?;
            }
            let position = match format {
                Format::Text | Format::Lines => split.offset,
                Format::Fixed(_) if split.is_excerpt() => {
                    return Err(needs_all(path, "records of a fixed length"));
                }
                Format::Fixed(length) => split.offset.div_ceil(length as u64) * length as u64,
            };
            file.seek(SeekFrom::Start(position - begin)).map_err(at("cannot read", path))?;
            (Box::new(file) as Box<dyn Read + Send>, position)
        };
        // A small split needs little more than its own bytes and the end of its last line.
        let bytes = split.length.map_or(BLOCK, |length| (length as usize).saturating_add(MORE));
        let blocks = Blocks::of(source, bytes, limit);
        Ok(Records { blocks, format, path: path.clone(), position, end: split.end(), watched: None })
    }

    /// Goes to the first line that belongs to the split.
    fn at_first(mut self) -> Result<Self, TaskError> {
        if !self.format.is_lines() {
            return Ok(self);
        }
        if self.position > 0 {
            // The line that crosses the border belongs to the split before.
            let skipped = match self.blocks.line() {
                Ok(line) => line.map_or(0, <[u8]>::len),
                Err(source) => return Err(self.wrong(source)),
            };
            self.position += skipped as u64 + 1;
        } else {
            match self.blocks.skip(MARK) {
                Ok(false) => {}
                Ok(true) => {
                    // The first line belongs to this split even if the border is within the mark.
                    self.position = MARK.len() as u64;
                    self.end = self.end.map(|end| end.max(self.position));
                }
                Err(source) => return Err(self.wrong(source)),
            }
        }
        Ok(self)
    }

    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TaskError> {
        let past = |end: u64| match self.format {
            Format::Text | Format::Lines => self.position > end,
            Format::Fixed(_) => self.position >= end,
        };
        if self.end.is_some_and(past) {
            return Ok(None);
        }
        let found = match self.format {
            Format::Text | Format::Lines => self.blocks.line(),
            Format::Fixed(length) => self.blocks.fixed(length),
        };
        match found {
            Ok(Some(record)) => {
                self.position += record.len() as u64 + u64::from(self.format.is_lines());
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(source) => Err(wrong(&self.path, self.position, self.watched.as_ref(), source)),
        }
    }

    /// The next lines as in the input, with their newlines (the last may lack it).
    pub(crate) fn lines(&mut self) -> Result<Option<&[u8]>, TaskError> {
        let most = match self.end {
            Some(end) if self.position > end => return Ok(None),
            Some(end) => end - self.position,
            None => u64::MAX,
        };
        match self.blocks.lines(most) {
            Ok(Some(lines)) => {
                self.position += lines.len() as u64;
                Ok(Some(lines))
            }
            Ok(None) => Ok(None),
            Err(source) => Err(wrong(&self.path, self.position, self.watched.as_ref(), source)),
        }
    }

    /// Must be called after the last read: checks that the file is unchanged since the run began.
    pub(crate) fn close(&self) -> Result<(), TaskError> {
        match &self.watched {
            Some(watched) if !watched.is_same(&self.path) => Err(TaskError::changed(&self.path)),
            _ => Ok(()),
        }
    }

    fn wrong(&self, source: io::Error) -> TaskError {
        wrong(&self.path, self.position, self.watched.as_ref(), source)
    }
}

/// The error for an excerpt of a file, which ends with a line.
pub(crate) fn needs_all(path: &Path, what: &str) -> TaskError {
    TaskError::Job(format!("{}: found a copy of a part, expected the whole file for {what}", path.display()))
}

/// Refuses a file that has changed since the run began. A file that another job makes has no earlier state.
pub(crate) fn watch(split: &Split, file: &File) -> Result<Option<WatchedFile>, TaskError> {
    let Some(source) = &split.source else { return Ok(None) };
    let path = &split.path;
    let watched = WatchedFile::begin(source, path, file).map_err(at("cannot read", path))?;
    watched.map(Some).ok_or_else(|| TaskError::changed(path))
}

/// The error of a read: a changed file, if the file has changed.
fn wrong(path: &Path, offset: u64, watched: Option<&WatchedFile>, source: io::Error) -> TaskError {
    match watched {
        Some(watched) if !watched.is_same(path) => TaskError::changed(path),
        _ => TaskError::Input { path: path.to_owned(), offset, source },
    }
}

/// Opens the file of a split. A path that named a file when it was listed must not have become a link.
pub(crate) fn open_split(split: &Split) -> Result<File, TaskError> {
    let path = split.file();
    let file = match &split.source {
        Some(source) if split.copy.is_none() => source.open(path),
        _ => regular_file::open(path),
    };
    file.map_err(at("cannot read", path))
}

/// The compression of a file, if any.
fn encoding(path: &Path, file: &File, content: Content) -> Result<Option<Encoding>, TaskError> {
    match Kind::of(path, file, content).map_err(at("cannot read", path))? {
        Kind::Plain => Ok(None),
        Kind::Encoded(encoding) => Ok(Some(encoding)),
        Kind::Refused(found) => Err(TaskError::Format { path: path.to_owned(), found }),
    }
}

/// Refuses an input whose format cannot be read, by name, as its map would.
///
/// # Errors
///
/// The format, or a file that cannot be read.
pub fn check_format(path: &Path, format: Format) -> Result<(), TaskError> {
    let file = regular_file::open(path).map_err(at("cannot read", path))?;
    encoding(path, &file, format.content()).map(|_| ())
}

/// Whether a file can be read from any place in it: whether it is not compressed.
pub(crate) fn can_be_cut(path: &Path) -> Result<bool, TaskError> {
    let file = regular_file::open(path).map_err(at("cannot read", path))?;
    let kind = Kind::of(path, &file, Content::Bytes).map_err(at("cannot read", path))?;
    Ok(kind == Kind::Plain)
}

fn check_size(path: &Path, file: &File, end: u64) -> Result<(), TaskError> {
    let bytes = file.metadata().map_err(at("cannot read", path))?.len();
    if bytes < end {
        return Err(TaskError::Damaged {
            path: path.to_owned(),
            problem: format!(
                "the file has {bytes} bytes, expected {end}: it was cut since the job was planned"
            ),
        });
    }
    Ok(())
}

/// The largest record under a memory limit: a reader needs room for one whole record.
pub(crate) fn record_limit(memory_bytes: u64) -> usize {
    memory_bytes.clamp(1 << 20, 1 << 30) as usize
}

/// The name of a split for a command's environment.
pub(crate) fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::base::source::Source;
    use crate::input::split::of_inputs;

    fn read(split: &Split, format: Format) -> Vec<Vec<u8>> {
        let mut records = Records::open(split, format, 1 << 20).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            found.push(record.to_vec());
        }
        found
    }

    /// The same lines, in blocks.
    fn read_blocks(split: &Split) -> Vec<Vec<u8>> {
        let mut records = Records::open(split, Format::Lines, 1 << 20).unwrap();
        let mut found = Vec::new();
        while let Some(lines) = records.lines().unwrap() {
            assert!(!lines.is_empty());
            found.extend(
                lines.strip_suffix(b"\n").unwrap_or(lines).split(|&b| b == b'\n').map(<[u8]>::to_vec),
            );
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
            prop_assert_eq!(&found, &expected);
            let found: Vec<_> = maps.iter().flatten().flat_map(read_blocks).collect();
            prop_assert_eq!(&found, &expected);
            let copied = |split: &Split| read_blocks(&excerpt(split, text.as_bytes(), &dir.path().join("copy")));
            let found: Vec<_> = maps.iter().flatten().flat_map(copied).collect();
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

    /// The same split, with its part of the text in its own file.
    fn excerpt(split: &Split, text: &[u8], copy: &Path) -> Split {
        let end = (split.offset + split.length.unwrap()) as usize;
        let line = text[end..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| end + at + 1);
        fs::write(copy, &text[split.offset.saturating_sub(1) as usize..line]).unwrap();
        Split { path: "nowhere/x.gz".into(), source: None, copy: Some(copy.to_owned()), ..split.clone() }
    }

    #[test]
    fn an_excerpt_is_text_with_any_first_bytes_and_of_lines_alone() {
        let dir = tempfile::tempdir().unwrap();
        let split = |offset| {
            let split =
                Split { path: PathBuf::new(), offset, length: Some(9), input: 0, source: None, copy: None };
            excerpt(&split, b"first\n\x1f\x8bsecond\nthird\nfourth\n", &dir.path().join("copy"))
        };
        assert_eq!(read(&split(3), Format::Lines), [b"\x1f\x8bsecond".to_vec()]);
        assert_eq!(read(&split(7), Format::Lines), [b"third"]);
        let Err(error) = Records::open(&split(7), Format::Fixed(3), 9) else { panic!("read") };
        let expected =
            "nowhere/x.gz: found a copy of a part, expected the whole file for records of a fixed length";
        assert_eq!(error.to_string(), expected);
        let short = split(7);
        fs::write(dir.path().join("copy"), "short").unwrap();
        let Err(error) = Records::open(&short, Format::Lines, 9) else { panic!("read") };
        assert!(error.to_string().contains("nowhere/x.gz: the file has 5 bytes, expected 10"), "{error}");
    }

    fn compressed(name: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let split = Split { path, offset: 0, length: None, input: 0, source: None, copy: None };
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
        let error = compressed("a.zst", b"\x28\xb5\x2f\xfdnot zstd at all").unwrap_err().to_string();
        assert!(error.contains("a.zst, at byte 0: "), "{error}");
        assert_eq!(compressed("b.zst", b"not zstd at all").unwrap(), [b"not zstd at all"]);
        let error = compressed("c.gz", b"PK\x03\x04").unwrap_err().to_string();
        assert!(
            error.ends_with("c.gz: found a zip archive, expected plain text, gzip, zstd, bzip2, xz or lz4"),
            "{error}"
        );
        let error = compressed("plain", &vec![b'x'; 5 << 20]).unwrap_err().to_string();
        assert!(error.contains("a record is longer than the limit of 1048576 bytes"), "{error}");
    }

    #[test]
    fn a_file_that_shrank_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        let split = Split { path, offset: 0, length: Some(10), input: 0, source: None, copy: None };
        let Err(error) = Records::open(&split, Format::Lines, 1 << 20) else { panic!("read") };
        assert!(
            error
                .to_string()
                .ends_with("the file has 3 bytes, expected 10: it was cut since the job was planned")
        );
    }

    #[test]
    fn a_record_limit_is_a_limit() {
        // Also with a buffer that could hold more than the limit.
        for limit in [3, 1 << 20, (1 << 20) + 1, 3 << 20] {
            for extra in 0..2 {
                let text = [vec![b'x'; limit + extra], b"\nshort\n".to_vec()].concat();
                let mut blocks = Blocks::new(text.as_slice(), limit);
                let found = blocks.line().map(|line| line.unwrap().len()).map_err(|e| e.kind());
                let expected = if extra == 0 { Ok(limit) } else { Err(io::ErrorKind::FileTooLarge) };
                assert_eq!(found, expected, "limit {limit}");
                let mut blocks = Blocks::new(text.as_slice(), limit);
                let found = blocks.lines(u64::MAX).map(|_| limit).map_err(|e| e.kind());
                assert_eq!(found, expected, "limit {limit}");
                assert!(blocks.buffer.len() <= limit + 1);
                let mut blocks = Blocks::new(&text[..limit + extra], limit);
                assert_eq!(blocks.line().map(|line| line.unwrap().len()).map_err(|e| e.kind()), expected);
            }
        }
    }

    #[test]
    fn a_file_that_changes_since_the_run_began_is_refused_when_it_is_opened_and_when_it_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let renamed = || {
            fs::write(dir.path().join("y"), "one\nTWO\nthree\n").unwrap();
            let file = File::options().append(true).open(dir.path().join("y")).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
            fs::rename(dir.path().join("y"), &path).unwrap();
        };
        let changed = format!("{}: changed since the run began", path.display());
        for hashed in [false, true] {
            fs::write(&path, "one\ntwo\nthree\n").unwrap();
            let source = if hashed { Source::hashed(&path) } else { Source::now(&path) }.unwrap();
            let split = Split {
                path: path.clone(),
                offset: 0,
                length: Some(14),
                input: 0,
                source: Some(source),
                copy: None,
            };
            let mut records = Records::open(&split, Format::Lines, 1 << 20).unwrap();
            while records.next().unwrap().is_some() {}
            records.close().unwrap();
            let mut records = Records::open(&split, Format::Lines, 1 << 20).unwrap();
            records.next().unwrap();
            renamed();
            let error = records.close().unwrap_err();
            assert!(error.to_string() == changed && error.is_final(), "{error}");
            let Err(error) = Records::open(&split, Format::Lines, 1 << 20) else { panic!("read") };
            assert_eq!(error.to_string(), changed);
        }
    }
}
