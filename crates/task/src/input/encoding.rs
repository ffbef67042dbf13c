//! The compression of a file: recognised by its first bytes, not by its name.
//!
//! Formats that cannot be read are refused by name, so that they are never taken for text. Compressed content
//! is inspected in the same way as a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::bufread::GzDecoder;
use slackline_trace::Compression;

use crate::input::decoders::{DataProblem, EndDetector, Lz4Frames, Members, invalid_data};
use crate::input::refused_formats::{Content, HEAD, begins, refused_head};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 18;
/// Largest dictionary of xz, KiB; `xz -9` takes 64 MiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;
/// Skippable frames that a file may begin with.
const SKIPPABLE_MAX: usize = 100;

/// A compression that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
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

/// The kind of a file, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// It is compressed, and can be read.
    Encoded(Encoding),
    /// It cannot be read; its format.
    Refused(&'static str),
}

/// The first bytes of each compression, enough to distinguish it from text; and the endings of its names.
const MAGICS: [(Encoding, &[u8], [&str; 2]); 6] = [
    (Encoding::Gzip, b"\x1f\x8b", ["gz", "tgz"]),
    (Encoding::Zstd, b"\x28\xb5\x2f\xfd", ["zst", "zstd"]),
    (Encoding::Bzip2, b"BZh?1AY&SY", ["bz2", "tbz2"]),
    (Encoding::Bzip2, b"BZh?\x17\x72\x45\x38\x50\x90", ["bz2", "tbz2"]),
    (Encoding::Xz, b"\xfd7zXZ\0", ["xz", "txz"]),
    (Encoding::Lz4, b"\x04\x22\x4d\x18", ["lz4", "lz4"]),
];

/// This number of bytes of a magic number is more than a text begins with: the header of bzip2 and one byte.
const TELLING: usize = 5;

/// Formats that are refused if the last four bytes begin with the same letters as the file.
const TABULAR: [(&[u8], &str); 4] = [
    (b"PAR1", "a Parquet file"),
    (b"PARE", "a Parquet file"),
    (b"ORC", "an ORC file"),
    (b"FEA1", "a Feather file"),
];

/// Endings of compressed files. Some formats have no bytes to recognise: if a file with such a name has no
/// text, the message says that it cannot be read.
const NAMES: [&str; 14] = [
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
    "jar",
];

impl Kind {
    /// The kind of a regular file, for a reader that expects this content. Costs one read of its first bytes,
    /// and of its last ones if the first are not enough.
    pub(crate) fn of(path: &Path, file: &File, content: Content) -> io::Result<Self> {
        let mut at = 0;
        for _ in 0..SKIPPABLE_MAX {
            let head = read_at(file, at)?;
            if let Some(length) = skippable(&head) {
                at += 8 + u64::from(length);
            } else if at > 0 {
                // Both formats have such frames; a file with only such frames is empty zstd.
                let is_lz4 = Encoding::of(&head) == Some(Encoding::Lz4);
                return Ok(Self::Encoded(if is_lz4 { Encoding::Lz4 } else { Encoding::Zstd }));
            } else {
                return Self::of_head(path, file, &head, content);
            }
        }
        Ok(Self::Refused("zstd or lz4 data after too many skippable frames"))
    }

    /// The kind of bytes that have no name and no end to inspect, as lines.
    pub(crate) fn of_magic(head: &[u8]) -> Self {
        let refused = || refused_head(head, Content::Lines).map_or(Self::Plain, Self::Refused);
        Encoding::of(head).map_or_else(refused, Self::Encoded)
    }

    fn of_head(path: &Path, file: &File, head: &[u8], content: Content) -> io::Result<Self> {
        for (magic, name) in TABULAR {
            // Texts may begin with these letters too, but do not also end with them.
            if head.starts_with(magic) {
                let mut end = [0; 4];
                file.read_exact_at(&mut end, file.metadata()?.len().saturating_sub(4)).or_else(at_end)?;
                if end.starts_with(magic) {
                    return Ok(Self::Refused(name));
                }
            }
        }
        if let Some(encoding) = Encoding::of(head) {
            return Ok(Self::Encoded(encoding));
        }
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let is_compressed = MAGICS.iter().any(|(_, _, endings)| endings.contains(&ending.as_str()));
        let refused = if is_compressed && head.is_empty() {
            Some("an empty file whose name says that it is compressed")
        } else if (is_compressed || NAMES.contains(&ending.as_str())) && !is_printable(head) {
            Some("an unknown format in a file whose name says that it is compressed")
        } else {
            None
        };
        Ok(cut(head, &ending)
            .or_else(|| refused_head(head, content))
            .or(refused)
            .map_or(Self::Plain, Self::Refused))
    }
}

/// The compression of a file that is only the beginning of a magic number: its name, bytes that are not text,
/// or the length decide.
fn cut(head: &[u8], ending: &str) -> Option<&'static str> {
    if head.is_empty() {
        return None;
    }
    let is_telling = head.len() >= TELLING || !is_printable(head) || std::str::from_utf8(head).is_err();
    let is_cut = |(_, magic, endings): &&(Encoding, &[u8], [&str; 2])| {
        (is_telling || endings.contains(&ending))
            && magic.get(..head.len()).is_some_and(|magic| begins(head, magic))
    };
    if let Some((encoding, _, _)) = MAGICS.iter().find(is_cut) {
        return Some(match encoding {
            Encoding::Gzip => "the first bytes of gzip data, which was cut short",
            Encoding::Zstd => "the first bytes of zstd data, which was cut short",
            Encoding::Bzip2 => "the first bytes of bzip2 data, which was cut short",
            Encoding::Xz => "the first bytes of xz data, which was cut short",
            Encoding::Lz4 => "the first bytes of lz4 data, which was cut short",
        });
    }
    let is_named = ["zst", "zstd", "lz4"].contains(&ending);
    let is_skippable =
        matches!(head[0], 0x50..=0x5f) && b"\x2a\x4d\x18".iter().zip(&head[1..]).all(|(a, b)| a == b);
    (is_skippable && head.len() < 8 && (is_named || is_telling))
        .then_some("the first bytes of zstd or lz4 data, which was cut short")
}

impl Encoding {
    /// The compression that the bytes begin with, if any.
    fn of(head: &[u8]) -> Option<Self> {
        MAGICS.iter().find(|(_, magic, _)| begins(head, magic)).map(|(encoding, _, _)| *encoding)
    }

    /// Decompresses a source while it is read, verifies all checksums, and refuses content that the reader
    /// does not expect. Only errors of system calls have a `raw_os_error`.
    pub(crate) fn reader(self, source: impl Read + Send + 'static, content: Content) -> Box<dyn Read + Send> {
        Box::new(CheckedContent {
            source: NamedDecoder { name: self.name(), source: self.decoder(source) },
            content,
            head: None,
        })
    }

    /// The name in messages.
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
                let source = EndDetector { source: buffered(source), hit_end: false };
                Box::new(Lz4Frames { source: Some(source), frame: None })
            }
        }
    }
}

/// A decoder whose errors have our own texts.
struct NamedDecoder {
    name: &'static str,
    source: Box<dyn Read + Send>,
}

impl Read for NamedDecoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.source.read(out).map_err(|error| {
            let is_system = error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted;
            if is_system || error.get_ref().and_then(|inner| inner.downcast_ref::<DataProblem>()).is_some() {
                return error;
            }
            let name = self.name;
            if error.kind() == io::ErrorKind::UnexpectedEof {
                invalid_data(format!("the {name} data ends too early: the file was cut short"))
            } else {
                invalid_data(format!("the {name} data is damaged or cut short"))
            }
        })
    }
}

/// The content of a compressed file, which is inspected like a file.
struct CheckedContent {
    source: NamedDecoder,
    content: Content,
    /// The rest of its first bytes; `None` before they are read.
    head: Option<Cursor<Vec<u8>>>,
}

impl Read for CheckedContent {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = match &mut self.head {
            Some(head) => head,
            none => {
                let mut head = Vec::with_capacity(HEAD);
                self.source.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
                let twice = Encoding::of(&head).map(Encoding::name);
                let twice =
                    twice.or_else(|| skippable(&head).map(|_| "zstd or lz4")).or_else(|| cut(&head, ""));
                if let Some(name) = twice {
                    return Err(invalid_data(format!(
                        "found {name} in it, expected plain text: it is compressed twice"
                    )));
                }
                if let Some(name) = refused_head(&head, self.content) {
                    return Err(invalid_data(format!("found {name} in it, expected plain text")));
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

/// The first bytes from a place on, fewer at the end.
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

/// Whether bytes may be text: no control characters but those of texts and terminals.
fn is_printable(head: &[u8]) -> bool {
    !head.iter().any(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::input::refused_formats::{TAR_AT, TAR_SUM};

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
        kind_for(Content::Text, name, bytes)
    }

    fn kind_for(content: Content, name: &str, bytes: &[u8]) -> Kind {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        Kind::of(&path, &File::open(&path).unwrap(), content).unwrap()
    }

    fn read(encoding: Encoding, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        encoding.reader(Cursor::new(bytes), Content::Text).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn compressed_files_are_recognised_by_their_bytes_under_any_name() {
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
        assert!(error.to_string().starts_with("found byte 0x74 after a gzip member"), "{error}");
    }

    #[test]
    fn truncated_or_changed_files_are_errors_at_any_place() {
        let text: Vec<u8> = (0..3000u32).flat_map(|i| (i * i % 977).to_string().into_bytes()).collect();
        for (name, pack, encoding) in ALL {
            let packed = pack(&text);
            for cut in [12, packed.len() / 3, packed.len() / 2, packed.len() - 5, packed.len() - 1] {
                let error = read(encoding, packed[..cut].to_vec()).expect_err(name);
                assert!(error.raw_os_error().is_none(), "{name}: {error}");
                let said = error.to_string();
                assert!(
                    said.starts_with("the ") && said.contains("cut short") && said.contains(name),
                    "{said}"
                );
            }
            if name != "zstd" && name != "lz4" {
                // These two formats have checksums only on request.
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
        for text in
            ["ORCHID\n", "PAR1,2\n", "SEQUENCE", "BZh9 is a word", "PK", "Object\n", "LZIP it", "P", "("]
        {
            assert_eq!(kind("input", text.as_bytes()), Kind::Plain, "{text}");
            assert_eq!(kind("input.gz", text.as_bytes()), Kind::Plain, "{text}");
        }
        let Kind::Refused(_) = kind("x.snappy", b"\x00\x00\x10\x00data") else { panic!("read as text") };
        assert_eq!(kind_for(Content::Lines, "x.txt", b"\x00\x00\x10\x00data"), Kind::Plain);
        assert_eq!(kind("none", b""), Kind::Plain);
        assert_eq!(
            kind("none.gz", b""),
            Kind::Refused("an empty file whose name says that it is compressed")
        );
    }

    #[test]
    fn a_file_that_is_cut_within_its_magic_number_is_refused() {
        for (name, pack, encoding) in ALL {
            let packed = pack(b"some text\n");
            let endings: Vec<&str> =
                MAGICS.iter().filter(|(of, ..)| *of == encoding).map(|of| of.2[0]).collect();
            for cut in 1..=8 {
                let path = format!("input.{}", endings[0]);
                match kind(&path, &packed[..cut]) {
                    Kind::Refused(found) => {
                        assert_eq!(found, format!("the first bytes of {name} data, which was cut short"));
                    }
                    Kind::Encoded(found) => {
                        assert_eq!(found, encoding);
                        let error = read(encoding, packed[..cut].to_vec()).unwrap_err().to_string();
                        assert!(error.contains("cut short"), "{name} cut to {cut} bytes: {error}");
                    }
                    Kind::Plain => panic!("{name} cut to {cut} bytes is read as text"),
                }
            }
            // Without a name, bytes that are not text decide; those of bzip2 are text.
            let cut = if name == "bzip2" { 5 } else { 2 };
            assert_ne!(kind("input", &packed[..cut]), Kind::Plain, "{name}");
        }
        let frame = [0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0];
        for cut in 1..8 {
            let Kind::Refused(_) = kind("x.zst", &frame[..cut]) else { panic!("{cut} bytes are read") };
        }
        for text in ["B", "BZ", "BZh", "BZh9", "(", "P*M", "7z"] {
            assert_eq!(kind("input", text.as_bytes()), Kind::Plain, "{text}");
        }
    }

    #[test]
    fn data_that_is_compressed_twice_is_refused() {
        for (inner, pack_inner, _) in ALL {
            for (outer, pack, encoding) in ALL {
                for content in [Content::Text, Content::Lines, Content::Bytes] {
                    let twice = Cursor::new(pack(&pack_inner(b"some text\n")));
                    let error = encoding.reader(twice, content).read(&mut [0]).unwrap_err().to_string();
                    let expected =
                        format!("found {inner} in it, expected plain text: it is compressed twice");
                    assert_eq!(error, expected, "{inner} in {outer}");
                }
            }
        }
        let frame = [&[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(b"text")].concat();
        for inner in [&frame[..], b"\x1f", b"\xfd7zX"] {
            let error = read(Encoding::Gzip, gzip(inner)).unwrap_err().to_string();
            assert!(error.ends_with("it is compressed twice"), "{error}");
        }
    }

    fn utf16(text: &str, low_first: bool) -> Vec<u8> {
        let bytes = |unit: u16| if low_first { unit.to_le_bytes() } else { unit.to_be_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn text_of_wide_characters_is_refused_with_and_without_a_mark() {
        for text in ["one line\n", "ab", "Zażółć gęślą jaźń\n", "Привет, мир\nещё\n", "漢字\n仮名\n"]
        {
            for low_first in [true, false] {
                let wide = utf16(text, low_first);
                let marked = utf16(&format!("\u{feff}{text}"), low_first);
                for bytes in [&wide, &marked] {
                    for content in [Content::Text, Content::Lines] {
                        assert_eq!(kind_for(content, "x", bytes), Kind::Refused("text in UTF-16"), "{text}");
                    }
                    assert_eq!(kind_for(Content::Bytes, "x", bytes), Kind::Plain, "{text}");
                }
                let unit = |c: char| {
                    if low_first { u32::from(c).to_le_bytes() } else { u32::from(c).to_be_bytes() }
                };
                let wider: Vec<u8> = text.chars().flat_map(unit).collect();
                assert_eq!(kind_for(Content::Lines, "x", &wider), Kind::Refused("text in UTF-32"), "{text}");
            }
        }
        let Kind::Refused(_) = kind("x", b"\xff\xfe\x2d\x4e\x87\x65") else {
            panic!("a mark and no newline")
        };
    }

    #[test]
    fn programs_refuse_bytes_that_are_no_text_and_mappers_read_them() {
        let random: Vec<u8> = (0..512u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 1).collect();
        for bytes in [b"a\0b\n".as_slice(), b"\0\t1\n", b"key\0value\nkey\0value\n", &random] {
            assert_eq!(kind_for(Content::Text, "x", bytes), Kind::Refused("binary data"), "{bytes:?}");
            assert_eq!(kind_for(Content::Lines, "x", bytes), Kind::Plain, "{bytes:?}");
        }
        // Separators of Hive, colours of terminals, Latin-1, and a character that the block cuts.
        let cut = [vec![b'a'; HEAD - 1], "é\n".into()].concat();
        for bytes in [
            b"a\x01b\x02c\x03d\n".as_slice(),
            b"\x1b[31mred\x0f\n",
            b"caf\xe9 \x0f\x1b[0m and more words in this line, many of them\n",
            &cut,
        ] {
            assert_eq!(kind_for(Content::Text, "x", bytes), Kind::Plain, "{bytes:?}");
        }
        for content in [Content::Text, Content::Lines] {
            assert_eq!(kind_for(content, "x", &[0; 100]), Kind::Refused("binary data"));
        }
        assert_eq!(kind_for(Content::Bytes, "x", &[0; 100]), Kind::Plain);
    }

    #[test]
    fn archives_and_programs_are_refused_by_name() {
        let cpio =
            |magic: &str, length: usize| [magic.as_bytes(), &vec![b'0'; length - 6], b"name\0"].concat();
        // The oldest tar format has only a checksum.
        let mut tar = [0; HEAD];
        tar[..4].copy_from_slice(b"name");
        tar[TAR_SUM].copy_from_slice(b"001241\0 ");
        let cases: [(&[u8], &str); 14] = [
            (&tar, "a tar archive"),
            (&cpio("070701", 110), "a cpio archive"),
            (&cpio("070707", 76), "a cpio archive"),
            (b"!<arch>\ndebian-binary", "an ar archive"),
            (b"%PDF-1.7\n", "a PDF file"),
            (b"\x7fELF\x02\x01\x01\0", "an ELF program"),
            (b"SQLite format 3\0", "an SQLite database"),
            (b"ARROW1\0\0", "an Arrow file"),
            (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
            (b"\x89PNG\r\n\x1a\n", "a PNG image"),
            (b"\xff\xd8\xff\xe0", "a JPEG image"),
            (b"\xca\xfe\xba\xbe\0\0\0\x34", "a Java class file"),
            (b"\x80\x04\x95\x0b\0", "a Python pickle"),
            (b"\0\0\0\x18ftypmp42", "an MP4 file"),
        ];
        for (bytes, name) in cases {
            for content in [Content::Text, Content::Lines] {
                assert_eq!(kind_for(content, "x", bytes), Kind::Refused(name));
                for (_, pack, encoding) in ALL {
                    let mut reader = encoding.reader(Cursor::new(pack(bytes)), content);
                    let error = reader.read(&mut [0]).unwrap_err().to_string();
                    assert_eq!(error, format!("found {name} in it, expected plain text"));
                }
            }
        }
        // Records of bytes may begin with any short magic number.
        assert_eq!(kind_for(Content::Bytes, "x", b"\xff\xd8\xff\xe0"), Kind::Plain);
        for text in ["070701 is a number\n", "070707,070701\n", "FEA1,2\n", "abc,ftyp\n", "xar!\n", "MZ\n"] {
            assert_eq!(kind("x", text.as_bytes()), Kind::Plain, "{text}");
        }
    }
}
