//! Decoders of gzip and LZ4 files that consist of several members or frames.

use std::io::{self, BufRead, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;

/// The fault of a file, as text for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DataProblem(String);

pub(super) fn invalid_data(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DataProblem(problem))
}

/// All members of a gzip file; zeros may follow them, as in tapes and padded files.
pub(super) struct Members<R> {
    /// `None` at the end.
    pub(super) decoder: Option<GzDecoder<R>>,
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
                    return Err(invalid_data(format!(
                        "found byte {byte:#04x} after a gzip member, expected another member, zeros or the end"
                    )));
                }
            }
        }
        Ok(0)
    }
}

/// Skips zeros; returns the first other byte, if there is one.
pub(super) fn skip_zeros(source: &mut impl BufRead) -> io::Result<Option<u8>> {
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

/// A source that records whether a reader tried to read beyond its end: the decoder of LZ4 takes a file that
/// lost its end for a whole one.
pub(super) struct EndDetector<R> {
    pub(super) source: R,
    pub(super) hit_end: bool,
}

impl<R: Read> Read for EndDetector<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.hit_end |= read == 0 && !out.is_empty();
        Ok(read)
    }
}

/// A frame whose first bytes are already read.
pub(super) type Lz4Frame<R> = FrameDecoder<Chain<Cursor<[u8; 4]>, EndDetector<R>>>;

/// All frames of an LZ4 file.
pub(super) struct Lz4Frames<R: Read> {
    /// `None` while a frame is read.
    pub(super) source: Option<EndDetector<R>>,
    pub(super) frame: Option<Lz4Frame<R>>,
}

impl<R: BufRead> Lz4Frames<R> {
    /// Goes to the next frame with data; returns false at the end of the file.
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
                _ => {
                    return Err(invalid_data(
                        "found no lz4 frame, expected another one or the end".to_owned(),
                    ));
                }
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
