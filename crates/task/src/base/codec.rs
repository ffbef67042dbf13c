//! Compression of part files.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use lz4_flex::frame::FrameEncoder;
use ruzstd::encoding::{CompressionLevel, compress};
use serde::{Deserialize, Serialize};

use crate::base::digest::DigestWriter;

/// Size of a zstd frame, bytes: its encoder takes a whole frame at once.
const FRAME: usize = 4 << 20;

/// The compression of output. The same content gives the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Codec {
    Gzip,
    Zstd,
    /// Frames of LZ4.
    Lz4,
}

impl Codec {
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Zstd, Self::Lz4];

    /// The codec of a name, such as `gzip`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// The ending of its file names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
            Self::Lz4 => ".lz4",
        }
    }
}

/// A file that is written, plain or compressed.
pub(crate) enum Packer {
    Plain(DigestWriter),
    Gzip(GzEncoder<DigestWriter>),
    Zstd { file: DigestWriter, frame: Vec<u8>, is_written: bool },
    Lz4(Box<FrameEncoder<DigestWriter>>),
}

impl Packer {
    pub(crate) fn new(file: DigestWriter, codec: Option<Codec>) -> Self {
        match codec {
            None => Self::Plain(file),
            Some(Codec::Gzip) => Self::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Some(Codec::Zstd) => Self::Zstd { file, frame: Vec::new(), is_written: false },
            Some(Codec::Lz4) => Self::Lz4(Box::new(FrameEncoder::new(file))),
        }
    }

    /// Writes bytes; they may wait in memory.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Lz4(encoder) => encoder.write_all(bytes),
            Self::Zstd { file, frame, is_written } => {
                while !bytes.is_empty() {
                    let (now, later) = bytes.split_at(bytes.len().min(FRAME - frame.len()));
                    frame.extend_from_slice(now);
                    bytes = later;
                    if frame.len() == FRAME {
                        write_frame(file, frame)?;
                        *is_written = true;
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes the waiting bytes and returns the file.
    pub(crate) fn finish(self) -> io::Result<DigestWriter> {
        match self {
            Self::Plain(file) => Ok(file),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Lz4(encoder) => encoder.finish().map_err(io::Error::from),
            Self::Zstd { mut file, mut frame, is_written } => {
                // Empty content is one empty frame.
                if !frame.is_empty() || !is_written {
                    write_frame(&mut file, &mut frame)?;
                }
                Ok(file)
            }
        }
    }
}

fn write_frame(file: &mut DigestWriter, frame: &mut Vec<u8>) -> io::Result<()> {
    let mut packed = Vec::new();
    compress(frame.as_slice(), &mut packed, CompressionLevel::Fastest);
    frame.clear();
    file.write_all(&packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_endings_belong_together() {
        for codec in Codec::ALL {
            assert_eq!(Codec::named(codec.name()), Some(codec));
            assert_eq!(serde_json::to_value(codec).unwrap(), codec.name());
        }
        assert_eq!(Codec::named("bzip2"), None);
    }
}
