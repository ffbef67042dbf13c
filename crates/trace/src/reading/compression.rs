//! Compressed files: detected by name or content, read, and written.
//!
//! LZ4 has two forms: frames, which are also written, and the blocks of Java's `LZ4BlockOutputStream`, as in
//! Spark.

mod java_lz4;

use std::error::Error;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{FrameDecoder as Lz4Decoder, FrameEncoder as Lz4Encoder};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress};

/// How much is read at once, bytes.
const BLOCK: usize = 1 << 20;

/// How much a frame of zstd holds, bytes: its encoder takes a whole frame at once.
const FRAME: usize = 4 << 20;

/// Bytes that identify the compression of a file.
const MAGIC: usize = 4;

slackline_model::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Compression {
        Gzip = "gzip",
        Zstd = "zstd",
        /// LZ4.
        Lz4 = "lz4",
    }
}

impl Compression {
    /// The compression by the last ending of a file's name (`.gz`, `.zst`, `.zstd`, `.lz4`).
    pub fn of_name(name: &Path) -> Option<Self> {
        match name.extension().and_then(OsStr::to_str)? {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }

    /// The compression by the first bytes of a file.
    pub fn of_content(bytes: &[u8]) -> Option<Self> {
        let begins = |magic: &[u8]| bytes.starts_with(magic);
        if begins(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if begins(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Self::Zstd)
        } else if begins(&[0x04, 0x22, 0x4d, 0x18]) || begins(&java_lz4::MAGIC[..4]) {
            Some(Self::Lz4)
        } else {
            None
        }
    }

    /// The content of a source, decompressed while it is read: all members or frames, with verified
    /// checksums.
    pub fn reader(self, source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        self.decoder(BufReader::with_capacity(BLOCK, source))
    }

    /// The same of a source that has a buffer.
    pub(crate) fn decoder<'a>(self, source: impl BufRead + Send + 'a) -> Box<dyn Read + Send + 'a> {
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(source)),
            Self::Zstd => Box::new(Frames::new(source)),
            Self::Lz4 => Box::new(Lz4::new(source)),
        }
    }

    /// The content of a source, decompressed while it is read if it is compressed, with a buffer of that
    /// number of bytes.
    pub(crate) fn open(
        mut source: impl Read + Send + 'static,
        buffer: usize,
    ) -> io::Result<Box<dyn BufRead>> {
        let mut magic = Vec::with_capacity(MAGIC);
        (&mut source).take(MAGIC as u64).read_to_end(&mut magic)?;
        let compression = Self::of_content(&magic);
        let whole = Cursor::new(magic).chain(source);
        Ok(match compression {
            Some(compression) => Box::new(BufReader::with_capacity(buffer, compression.reader(whole))),
            None => Box::new(BufReader::with_capacity(buffer, whole)),
        })
    }

    /// Writes content compressed. The same content gives the same bytes.
    ///
    /// # Errors
    /// Errors of `out` or `content`.
    pub fn write(
        self,
        out: &mut dyn Write,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(out, flate2::Compression::default());
                content(&mut encoder)?;
                encoder.finish().map(drop)
            }
            Self::Zstd => {
                let mut encoder = FrameWriter { out, frame: Vec::with_capacity(FRAME), written: false };
                content(&mut encoder)?;
                encoder.finish()
            }
            Self::Lz4 => {
                let mut encoder = Lz4Encoder::new(out);
                content(&mut encoder)?;
                encoder.finish().map(drop).map_err(io::Error::from)
            }
        }
    }
}

/// The name without the ending of a compression.
pub fn uncompressed(name: &Path) -> &Path {
    // The stem of a path has no directory, which nothing asks for.
    match (Compression::of_name(name), name.file_stem()) {
        (Some(_), Some(stem)) => Path::new(stem),
        _ => name,
    }
}

/// An error about compressed data.
fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// A decoder error as a message: the file cannot be read, ends too early, or is damaged. The decoders' own
/// messages are for developers of decoders.
fn describe(error: &io::Error) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> =
        error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    let mut kind = error.kind();
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            kind = inner.kind();
        }
        cause = inner.source();
    }
    match kind {
        io::ErrorKind::UnexpectedEof => io::Error::new(kind, "the end within a block"),
        io::ErrorKind::Other | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            damaged("a block that cannot be unpacked")
        }
        kind => kind.into(),
    }
}

/// LZ4 in the form that its first bytes show; an empty source is empty.
enum Lz4<R: Read> {
    Unknown(Option<R>),
    Frames(Lz4Decoder<R>),
    Java(java_lz4::Blocks<R>),
}

impl<R: BufRead> Lz4<R> {
    fn new(source: R) -> Self {
        Self::Unknown(Some(source))
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unknown(source) => {
                let Some(mut source) = source.take() else { return Ok(0) };
                *self = if source.fill_buf()?.starts_with(&java_lz4::MAGIC[..1]) {
                    Self::Java(java_lz4::Blocks::new(source))
                } else {
                    Self::Frames(Lz4Decoder::new(source))
                };
                self.read(out)
            }
            Self::Frames(decoder) => decoder.read(out).map_err(|error| describe(&error)),
            Self::Java(blocks) => blocks.read(out),
        }
    }
}

/// Cuts the written bytes into frames: frames in sequence are a zstd file.
struct FrameWriter<'a> {
    out: &'a mut dyn Write,
    frame: Vec<u8>,
    written: bool,
}

impl FrameWriter<'_> {
    fn close_frame(&mut self) -> io::Result<()> {
        let mut compressed = Vec::new();
        compress(self.frame.as_slice(), &mut compressed, CompressionLevel::Fastest);
        self.frame.clear();
        self.written = true;
        self.out.write_all(&compressed)
    }

    /// The last frame; empty content is one empty frame.
    fn finish(mut self) -> io::Result<()> {
        if self.written && self.frame.is_empty() { Ok(()) } else { self.close_frame() }
    }
}

impl Write for FrameWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(FRAME - self.frame.len());
        self.frame.extend_from_slice(&bytes[..taken]);
        if self.frame.len() == FRAME {
            self.close_frame()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All frames of a zstd file, with their check sums held against their content.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    started: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), started: false }
    }

    /// Goes to the next frame that holds data; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.started = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(describe(&io::Error::other(error))),
            }
        }
        Ok(false)
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.started = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(written), Some(found)) if written != found => Err(damaged("a frame with a wrong checksum")),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.started && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBytes(out.len()))
                    .map_err(|error| describe(&io::Error::other(error)))?;
            }
            let read = self.decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.end_frame()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(compression: Compression, content: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        compression.write(&mut packed, |out| out.write_all(content)).unwrap();
        packed
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let compression = Compression::of_content(bytes).expect("it is compressed");
        compression.decoder(bytes).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn compressed_files_of_any_length_are_read_back() {
        let long: Vec<u8> = (0..2 * FRAME as u32 + 7).map(|i| (i / 100) as u8).collect();
        for content in [&b""[..], b"one\n", &long[..FRAME], &long] {
            for compression in [Compression::Gzip, Compression::Zstd, Compression::Lz4] {
                let packed = packed(compression, content);
                assert!(unpacked(&packed).unwrap() == content, "{compression:?}, {} bytes", content.len());
                assert!(packed.len() < 1000 + content.len() / 10, "{compression:?}: {}", packed.len());
            }
        }
    }

    #[test]
    fn damage_is_reported() {
        for compression in [Compression::Gzip, Compression::Zstd, Compression::Lz4] {
            let packed = packed(compression, b"some words, and some words again");
            // An LZ4 frame may lack its end mark, as in a log whose writer was killed.
            let cut = if compression == Compression::Lz4 { 10 } else { 3 };
            assert!(unpacked(&packed[..packed.len() - cut]).is_err(), "{compression:?}");
        }
    }

    #[test]
    fn damage_is_reported_in_words() {
        for compression in [Compression::Zstd, Compression::Lz4] {
            let whole = packed(compression, "some words, and others: ".repeat(20).as_bytes());
            for at in 0..whole.len() {
                let mut other = whole.clone();
                other[at] ^= 0x21;
                if Compression::of_content(&other).is_none() {
                    continue;
                }
                let words = unpacked(&other).map_or_else(|error| error.to_string(), |_| String::new());
                let is_for_people = |c: char| c.is_ascii_lowercase() || c == ' ';
                assert!(words.chars().all(is_for_people), "{compression:?}, byte {at}: {words}");
            }
            let cut = unpacked(&whole[..whole.len() - 15]).unwrap_err();
            assert_eq!(cut.to_string(), "the end within a block", "{compression:?}");
        }
    }

    #[test]
    fn names_say_how_they_are_compressed() {
        let of = |name: &str| Compression::of_name(Path::new(name)).map(Compression::name);
        assert_eq!(
            (of("a.json.gz"), of("a/b.zst"), of("a.json"), of("gz")),
            (Some("gzip"), Some("zstd"), None, None)
        );
        assert_eq!(uncompressed(Path::new("a/b.json.gz")), Path::new("b.json"));
        assert_eq!(uncompressed(Path::new("b.json")), Path::new("b.json"));
    }
}
