//! How a file is compressed: its first bytes say so, whatever its name is.
//!
//! What is known by its bytes and cannot be read is refused by its name, so that it is never taken for text.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use slackline_trace::Compression;

/// How much is read at once, bytes.
const BLOCK: usize = 1 << 18;
/// What is looked at, bytes.
const HEAD: usize = 512;
/// A dictionary of xz may take no more than this, KiB; `xz -9` takes 64 MiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;
/// Skippable frames that a file may begin with.
const SKIPPABLE_MAX: usize = 100;

/// A compression that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// gzip, with all its members.
    Gzip,
    /// Zstandard, with all its frames.
    Zstd,
    /// bzip2, with all its streams.
    Bzip2,
    /// xz, with all its streams.
    Xz,
    /// Frames of LZ4.
    Lz4,
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is not compressed.
    Plain,
    /// It is, and can be read.
    Encoded(Encoding),
    /// It cannot be read; its format.
    Refused(&'static str),
}

/// Formats that are refused: what they begin with, and their names.
const REFUSED: [(&[u8], &str); 15] = [
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"\x89LZO\x00\r\n\x1a\n", "lzo"),
    (b"LZIP\x01", "lzip"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"\x1f\x9d", "compress (.Z)"),
    (b"\x02\x21\x4c\x18", "lz4 of the old format"),
    (b"\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff", "lzma"),
    (b"Obj\x01", "an Avro file"),
    (b"SEQ\x04", "a Hadoop SequenceFile"),
    (b"SEQ\x05", "a Hadoop SequenceFile"),
    (b"SEQ\x06", "a Hadoop SequenceFile"),
    (b"RCF\x01", "a Hadoop RCFile"),
];

/// Where the header of a tar archive has its letters.
const TAR_AT: usize = 257;

/// Formats that are refused if the last four bytes begin with the same letters as the file.
const TABULAR: [(&[u8], &str); 3] =
    [(b"PAR1", "a Parquet file"), (b"PARE", "a Parquet file"), (b"ORC", "an ORC file")];

/// Endings of names that say a file is compressed. Some formats have no bytes to be known by: of a file so named that
/// holds no text it is said that it cannot be read.
const NAMES: [&str; 19] = [
    "gz",
    "zst",
    "zstd",
    "bz2",
    "xz",
    "lz4",
    "zip",
    "7z",
    "rar",
    "lzo",
    "snappy",
    "z",
    "lzma",
    "lz",
    "br",
    "deflate",
    "lzo_deflate",
    "parquet",
    "orc",
];

impl Kind {
    /// What a regular file is. Costs one read of its first bytes, and of its last where the first are not enough.
    pub(super) fn of(path: &Path, file: &File) -> io::Result<Self> {
        let mut at = 0;
        for _ in 0..SKIPPABLE_MAX {
            let head = read_at(file, at)?;
            let Some(length) = skippable(&head) else { return Self::of_head(path, file, &head, at > 0) };
            at += 8 + u64::from(length);
        }
        Ok(Self::Refused("zstd or lz4 behind too many frames that are to be skipped"))
    }

    fn of_head(path: &Path, file: &File, head: &[u8], is_skipped: bool) -> io::Result<Self> {
        if is_skipped {
            // Both formats have such frames; nothing but them is zstd with nothing in it.
            let is_lz4 = Self::of_magic(head) == Self::Encoded(Encoding::Lz4);
            return Ok(Self::Encoded(if is_lz4 { Encoding::Lz4 } else { Encoding::Zstd }));
        }
        for (magic, name) in TABULAR {
            // These letters begin texts too, but do not end them as well.
            if head.starts_with(magic) {
                let mut end = [0; 4];
                file.read_exact_at(&mut end, file.metadata()?.len().saturating_sub(4)).or_else(at_end)?;
                if end.starts_with(magic) {
                    return Ok(Self::Refused(name));
                }
            }
        }
        match Self::of_magic(head) {
            Self::Plain if is_named(path) && !is_text(head) => {
                Ok(Self::Refused("a file whose name says that it is compressed, in no format that is known,"))
            }
            kind => Ok(kind),
        }
    }

    /// What the first bytes say, of a file that has no end to look at.
    pub(super) fn of_magic(head: &[u8]) -> Self {
        let begins = |magic: &[u8]| head.starts_with(magic);
        let encoding = if begins(&[0x1f, 0x8b]) {
            Encoding::Gzip
        } else if begins(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Encoding::Zstd
        } else if begins(b"BZh") && matches!(head.get(4..10), Some(b"1AY&SY" | b"\x17\x72\x45\x38\x50\x90")) {
            Encoding::Bzip2
        } else if begins(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Encoding::Xz
        } else if begins(&[0x04, 0x22, 0x4d, 0x18]) {
            Encoding::Lz4
        } else {
            return refused(head).map_or(Self::Plain, Self::Refused);
        };
        Self::Encoded(encoding)
    }
}

/// The name of a format that is refused, if the first bytes of a file or of what it holds are of one.
fn refused(head: &[u8]) -> Option<&'static str> {
    let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    // Every space and newline of such a text has a zero in it.
    if is_utf16 && head.contains(&0) {
        return Some("text in UTF-16");
    }
    if head.get(TAR_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) {
        return Some("a tar archive");
    }
    REFUSED.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
}

impl Encoding {
    /// What the source holds, decompressed as it is read, with all check sums verified; what is not text is refused there
    /// too. Whatever is wrong with it is an error that no system call made (it has no `raw_os_error`).
    pub(super) fn reader(self, source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        Box::new(Held { source: Worded { name: self.name(), source: self.decoder(source) }, head: None })
    }

    /// What messages call it.
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }

    fn decoder(self, source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        let buffered = |source| BufReader::with_capacity(BLOCK, source);
        match self {
            Self::Gzip => Box::new(Members { decoder: Some(GzDecoder::new(buffered(source))) }),
            Self::Zstd => Compression::Zstd.reader(source),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(source))),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(buffered(source), true, XZ_MEMORY_KIB)),
            Self::Lz4 => {
                let source = Ended { source: buffered(source), hit_end: false };
                Box::new(Lz4Frames { source: Some(source), frame: None })
            }
        }
    }
}

/// A decoder whose errors are in words of ours.
struct Worded {
    name: &'static str,
    source: Box<dyn Read + Send>,
}

impl Read for Worded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.source.read(out).map_err(|error| {
            let is_system = error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted;
            if is_system || error.get_ref().and_then(|inner| inner.downcast_ref::<Said>()).is_some() {
                return error;
            }
            let name = self.name;
            if error.kind() == io::ErrorKind::UnexpectedEof {
                said(format!("found the end of the file within {name} data, expected more: it was cut short"))
            } else {
                said(format!("found {name} data that is damaged or cut short, expected it as it was written"))
            }
        })
    }
}

/// What a compressed file holds, which is looked at as a file is.
struct Held {
    source: Worded,
    /// Its first bytes, as far as they are not given yet; none before they are read.
    head: Option<Cursor<Vec<u8>>>,
}

impl Read for Held {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = match &mut self.head {
            Some(head) => head,
            none => {
                let mut head = Vec::with_capacity(HEAD);
                self.source.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
                if let Some(name) = refused(&head) {
                    return Err(said(format!("found {name} in it, expected plain text")));
                }
                none.insert(Cursor::new(head))
            }
        };
        match head.read(out)? {
            0 => self.source.read(out),
            read => Ok(read),
        }
    }
}

/// What is wrong with a file, in words for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String);

fn said(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Said(problem))
}

/// The first bytes from a place on, as far as there are any.
fn read_at(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let (mut head, mut filled) = (vec![0; HEAD], 0);
    while filled < HEAD {
        match file.read_at(&mut head[filled..], at + filled as u64) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) => break,
            other => filled += other?,
        }
    }
    head.truncate(filled);
    Ok(head)
}

fn at_end(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::UnexpectedEof { Ok(()) } else { Err(error) }
}

/// The length of a frame of zstd or lz4 that is to be skipped (RFC 8878, 3.1.2), if the bytes begin with one.
fn skippable(head: &[u8]) -> Option<u32> {
    let (magic, rest) = head.split_first_chunk()?;
    let length = u32::from_le_bytes(*rest.first_chunk()?);
    (u32::from_le_bytes(*magic) & !0xf == 0x184d_2a50).then_some(length)
}

fn is_named(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| NAMES.contains(&ending.as_str()))
}

/// Whether bytes may be text: no control characters but those of texts and terminals.
fn is_text(head: &[u8]) -> bool {
    !head.iter().any(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31))
}

/// All members of a gzip file; zeros may follow them, as tapes and padded files have them.
struct Members<R> {
    /// None at the end.
    decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(decoder) = self.decoder.take() else { break };
            let mut source = decoder.into_inner();
            match skip_zeros(&mut source)? {
                None => {}
                Some(0x1f) => self.decoder = Some(GzDecoder::new(source)),
                Some(byte) => {
                    return Err(said(format!(
                        "found byte {byte:#04x} behind a member of gzip, expected another member, zeros or the end"
                    )));
                }
            }
        }
        Ok(0)
    }
}

/// Goes to the first byte that is not zero, if there is one.
fn skip_zeros(source: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let (zeros, byte) =
            (bytes.iter().take_while(|byte| **byte == 0).count(), bytes.iter().find(|b| **b != 0));
        if let Some(&byte) = byte {
            source.consume(zeros);
            return Ok(Some(byte));
        }
        source.consume(zeros);
    }
}

/// A source that remembers whether somebody wanted to read beyond its end: the decoder of LZ4 takes a file that lost
/// its end for a whole one.
struct Ended<R> {
    source: R,
    hit_end: bool,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.hit_end |= read == 0 && !out.is_empty();
        Ok(read)
    }
}

/// A frame, whose first bytes were read already.
type Lz4Frame<R> = FrameDecoder<Chain<Cursor<[u8; 4]>, Ended<R>>>;

/// All frames of an LZ4 file.
struct Lz4Frames<R: Read> {
    /// None while a frame is read.
    source: Option<Ended<R>>,
    frame: Option<Lz4Frame<R>>,
}

impl<R: BufRead> Lz4Frames<R> {
    /// Goes to the next frame that holds data; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while let Some(mut source) = self.source.take() {
            if source.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut magic = [0; 4];
            source.read_exact(&mut magic)?;
            match u32::from_le_bytes(magic) {
                0x184d_2204 => self.frame = Some(FrameDecoder::new(Cursor::new(magic).chain(source))),
                other if other & !0xf == 0x184d_2a50 => {
                    let mut length = [0; 4];
                    source.read_exact(&mut length)?;
                    let length = u64::from(u32::from_le_bytes(length));
                    io::copy(&mut (&mut source).take(length), &mut io::sink())?;
                    self.source = Some(source);
                }
                _ => return Err(said("found no frame of lz4, expected another one or the end".to_owned())),
            }
        }
        Ok(true)
    }
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(frame) = &mut self.frame else {
                if self.source.is_none() || !self.next_frame()? {
                    return Ok(0);
                }
                continue;
            };
            let read = frame.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(frame) = self.frame.take() else { continue };
            let source = frame.into_inner().into_inner().1;
            if source.hit_end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.source = Some(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn lz4(text: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    type Pack = fn(&[u8]) -> Vec<u8>;
    const ALL: [(&str, Pack, Encoding); 5] = [
        ("gzip", gzip, Encoding::Gzip),
        ("zstd", zstd, Encoding::Zstd),
        ("bzip2", bzip2, Encoding::Bzip2),
        ("xz", xz, Encoding::Xz),
        ("lz4", lz4, Encoding::Lz4),
    ];

    fn kind(name: &str, bytes: &[u8]) -> Kind {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        Kind::of(&path, &File::open(&path).unwrap()).unwrap()
    }

    fn read(encoding: Encoding, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        encoding.reader(Cursor::new(bytes)).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn compressed_files_are_known_by_their_bytes_whatever_their_names() {
        let text = b"one two three\n".repeat(50_000);
        for (name, pack, encoding) in ALL {
            for file in ["plain.txt", "UPPER.GZ", "x.bz2", "none"] {
                assert_eq!(kind(file, &pack(&text)), Kind::Encoded(encoding), "{name} as {file}");
            }
            assert_eq!(kind("empty", &pack(b"")), Kind::Encoded(encoding), "{name} of nothing");
            assert!(read(encoding, pack(&text)).unwrap() == text, "{name}");
            assert!(read(encoding, pack(b"")).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn all_members_streams_and_frames_are_read() {
        let text = b"one two three\n".repeat(50_000);
        for (name, pack, encoding) in ALL {
            let packed = [pack(&text), pack(b""), pack(b"x\ny")].concat();
            assert!(read(encoding, packed).unwrap() == [&text[..], b"x\ny"].concat(), "{name}");
        }
        // A skippable frame of three bytes before, between and behind.
        let skippable = [0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        for (pack, encoding) in [(zstd as Pack, Encoding::Zstd), (lz4, Encoding::Lz4)] {
            let packed = [&skippable[..], &pack(b"a\n"), &skippable, &pack(b"b\n"), &skippable].concat();
            assert_eq!(kind("x", &packed), Kind::Encoded(encoding));
            assert_eq!(read(encoding, packed).unwrap(), b"a\nb\n");
        }
    }

    #[test]
    fn zeros_behind_gzip_are_padding_and_anything_else_is_refused() {
        let padded = [gzip(b"a\n"), vec![0; 300_000]].concat();
        assert_eq!(read(Encoding::Gzip, padded.clone()).unwrap(), b"a\n");
        assert_eq!(read(Encoding::Gzip, [padded.clone(), gzip(b"b\n")].concat()).unwrap(), b"a\nb\n");
        let error = read(Encoding::Gzip, [padded, b"text".to_vec()].concat()).unwrap_err();
        assert!(error.to_string().starts_with("found byte 0x74 behind a member of gzip"), "{error}");
    }

    #[test]
    fn what_is_cut_short_or_changed_is_an_error_wherever_it_is_cut() {
        let text: Vec<u8> = (0..3000u32).flat_map(|i| (i * i % 977).to_string().into_bytes()).collect();
        for (name, pack, encoding) in ALL {
            let packed = pack(&text);
            for cut in [12, packed.len() / 3, packed.len() / 2, packed.len() - 5, packed.len() - 1] {
                let error = read(encoding, packed[..cut].to_vec()).expect_err(name);
                assert!(error.raw_os_error().is_none(), "{name}: {error}");
                let said = error.to_string();
                assert!(
                    said.starts_with("found ") && said.contains("cut short") && said.contains(name),
                    "{said}"
                );
            }
            if name != "zstd" && name != "lz4" {
                // These two had to be asked for check sums.
                let mut changed = packed;
                let at = changed.len() / 2;
                changed[at] ^= 0x10;
                match read(encoding, changed) {
                    Ok(found) => assert!(found != text, "{name}"),
                    Err(error) => assert!(error.to_string().contains(name), "{name}: {error}"),
                }
            }
        }
    }

    #[test]
    fn formats_that_cannot_be_read_are_refused_by_name_and_texts_are_not() {
        let cases: [(&[u8], &str); 8] = [
            (b"PK\x03\x04\x14\0", "a zip archive"),
            (b"\x89LZO\x00\r\n\x1a\n\x10", "lzo"),
            (b"\xff\x06\x00\x00sNaPpY\x01", "snappy"),
            (b"\x1f\x9d\x90", "compress (.Z)"),
            (b"PAR1 and data PAR1", "a Parquet file"),
            (b"ORC and data\x03ORC\x10", "an ORC file"),
            (b"Obj\x01\x04", "an Avro file"),
            (b"SEQ\x06\x19org.apache", "a Hadoop SequenceFile"),
        ];
        for (bytes, name) in cases {
            assert_eq!(kind("input", bytes), Kind::Refused(name));
        }
        let tar = [&[b'a'; TAR_AT][..], b"ustar\x0000"].concat();
        let utf16 = b"\xff\xfea\0\n\0".to_vec();
        for (bytes, name) in [(tar, "a tar archive"), (utf16, "text in UTF-16")] {
            assert_eq!(kind("input", &bytes), Kind::Refused(name));
            for (_, pack, encoding) in ALL {
                let error = read(encoding, pack(&bytes)).unwrap_err().to_string();
                assert_eq!(error, format!("found {name} in it, expected plain text"));
            }
        }
        for text in ["ORCHID\n", "PAR1,2\n", "SEQUENCE", "BZh9 is a word", "PK", "", "Object\n", "LZIP it"] {
            assert_eq!(kind("input", text.as_bytes()), Kind::Plain, "{text}");
            assert_eq!(kind("input.gz", text.as_bytes()), Kind::Plain, "{text}");
        }
        let Kind::Refused(_) = kind("x.snappy", b"\x00\x00\x10\x00data") else { panic!("read as text") };
        assert_eq!(kind("x.txt", b"\x00\x00\x10\x00data"), Kind::Plain);
    }
}
