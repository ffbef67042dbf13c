//! Frames on standard input and output: a tag and a length, both of 32 bits with the highest byte first, then
//! this many bytes.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::base::error::{TaskError, at};

/// The tag of a part file's bytes. Smaller tags are numbers of partitions and, on the way to a reduce, of
/// maps.
pub const PART: u32 = u32::MAX - 1;
/// The tag of the last frame, which is a [`crate::process::report::Report`] in JSON.
pub const REPORT: u32 = u32::MAX;
/// The most bytes of a frame, 1 MiB.
pub const FRAME_MAX: usize = 1 << 20;
/// Bytes of tag and length.
const HEAD: usize = 8;

/// Writes all bytes of a source, in frames of one tag; no frame for an empty source.
///
/// # Errors
///
/// A source that cannot be read, or a reader that has gone.
pub(crate) fn write(out: &mut impl Write, tag: u32, mut source: impl Read) -> Result<(), TaskError> {
    let mut frame = Vec::new();
    loop {
        frame.clear();
        frame.extend_from_slice(&tag.to_be_bytes());
        frame.extend_from_slice(&[0; HEAD / 2]);
        let read = source.by_ref().take(FRAME_MAX as u64).read_to_end(&mut frame);
        let read = read.map_err(at("cannot read", Path::new("the output of this task")))?;
        if read == 0 {
            return Ok(());
        }
        frame[HEAD / 2..HEAD].copy_from_slice(&(read as u32).to_be_bytes());
        out.write_all(&frame).map_err(unsent())?;
    }
}

/// The message for an error of standard output.
pub(crate) fn unsent() -> impl FnOnce(io::Error) -> TaskError {
    at("cannot write", Path::new("standard output"))
}

/// The message for invalid frames.
pub(crate) fn malformed(problem: String) -> TaskError {
    TaskError::Damaged { path: "standard input".into(), problem }
}

/// The frames of a source.
pub(crate) struct Frames<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, bytes: Vec::new() }
    }

    /// The tag and the bytes of the next frame; `None` at the end.
    ///
    /// # Errors
    ///
    /// A frame that is cut short or too long, or a source that cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, &[u8])>, TaskError> {
        if self.take(HEAD)? == 0 {
            return Ok(None);
        }
        let number = |at: usize| self.bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        let head = [0, HEAD / 2].map(number);
        let [Some(tag), Some(length)] = head else {
            let found = self.bytes.len();
            return Err(malformed(format!("found {found} bytes of a frame's head, expected {HEAD}")));
        };
        if length as usize > FRAME_MAX {
            return Err(malformed(format!("found a frame of {length} bytes, expected at most {FRAME_MAX}")));
        }
        let found = self.take(length as usize)?;
        if found != length as usize {
            return Err(malformed(format!("found {found} bytes of a frame, expected {length}")));
        }
        Ok(Some((tag, &self.bytes)))
    }

    /// Reads this number of bytes, or all that are left; returns their number.
    fn take(&mut self, bytes: usize) -> Result<usize, TaskError> {
        self.bytes.clear();
        let read = self.source.by_ref().take(bytes as u64).read_to_end(&mut self.bytes);
        read.map_err(at("cannot read", Path::new("standard input")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sources_are_cut_into_frames_of_the_largest_size() {
        let (mut out, long) = (Vec::new(), vec![b'x'; FRAME_MAX + 1]);
        for (tag, bytes) in [(3, b"one".as_slice()), (4, b""), (PART, &long)] {
            write(&mut out, tag, bytes).unwrap();
        }
        let (mut frames, mut found) = (Frames::new(out.as_slice()), Vec::new());
        while let Some((tag, bytes)) = frames.next().unwrap() {
            found.push((tag, bytes.len()));
        }
        assert_eq!(found, [(3, 3), (PART, FRAME_MAX), (PART, 1)]);
        assert_eq!(out[..11], *b"\0\0\0\x03\0\0\0\x03one");
    }

    #[test]
    fn frames_that_cannot_be_are_refused() {
        let problem = |bytes: &[u8]| Frames::new(bytes).next().unwrap_err().to_string();
        let cases = [
            (b"\0\0\0".as_slice(), "standard input: found 3 bytes of a frame's head, expected 8"),
            (b"\0\0\0\x01\0\0\0", "standard input: found 7 bytes of a frame's head, expected 8"),
            (b"\0\0\0\x01\0\0\0\x02x", "standard input: found 1 bytes of a frame, expected 2"),
            (
                b"\0\0\0\x01\0\x10\0\x01x",
                "standard input: found a frame of 1048577 bytes, expected at most 1048576",
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(problem(bytes), expected);
        }
        assert!(Frames::new(io::empty()).next().unwrap().is_none());
    }
}
