//! Reads a file line by line.

use std::io::{BufRead, Cursor, Read};

use crate::reading::error::TraceError;
use crate::reading::place::Place;

/// Most bytes of a line; beyond it is garbage, not a document.
const LINE_MAX: u64 = 2 << 30;

/// Bytes of a file that show its format.
const HEAD: u64 = 4096;

/// Reads a file line by line; only the one that was read last is kept.
pub(crate) struct LineReader<'a> {
    /// The file in messages.
    pub(crate) file: String,
    source: Box<dyn BufRead + 'a>,
    /// The line that was read last, without its end.
    pub(crate) text: String,
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Whether it is still to be read.
    is_peeked: bool,
}

impl<'a> LineReader<'a> {
    /// Reads the lines of a source that is decompressed already.
    pub(crate) fn new(file: &str, source: Box<dyn BufRead + 'a>) -> Self {
        Self { file: file.to_owned(), source, text: String::new(), number: 0, is_peeked: false }
    }

    /// How the file begins: its first line, and more lines if that is a short one. Bytes that are no text are
    /// ignored.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn head(&mut self) -> Result<String, TraceError> {
        if !self.peek()? {
            return Ok(String::new());
        }
        let mut more = Vec::new();
        let read =
            (&mut self.source).take(HEAD.saturating_sub(self.text.len() as u64)).read_to_end(&mut more);
        read.map_err(|error| unreadable(&self.file, &error).on_line(self.number))?;
        let head = format!("{}\n{}", self.text, String::from_utf8_lossy(&more));
        let rest = std::mem::replace(&mut self.source, Box::new(std::io::empty()));
        self.source = Box::new(Cursor::new(more).chain(rest));
        Ok(head)
    }

    /// Reads the next line without going to it; false at the end of the file.
    fn peek(&mut self) -> Result<bool, TraceError> {
        self.is_peeked = self.is_peeked || self.next()?;
        Ok(self.is_peeked)
    }

    /// Goes to the next line; false at the end of the file.
    pub(crate) fn next(&mut self) -> Result<bool, TraceError> {
        if std::mem::take(&mut self.is_peeked) {
            return Ok(true);
        }
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let read = (&mut self.source).take(LINE_MAX).read_until(b'\n', &mut bytes);
        if matches!(read, Ok(0)) {
            return Ok(false);
        }
        self.number = self.number.saturating_add(1);
        read.map_err(|error| unreadable(&self.file, &error).on_line(self.number))?;
        if bytes.len() as u64 == LINE_MAX {
            return Err(self.input(format!("found a line of {LINE_MAX} bytes or more")));
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if self.number == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(..3);
        }
        match String::from_utf8(bytes) {
            Ok(text) => self.text = text,
            Err(error) => {
                let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
                let what = format!("found byte {:#04x}, expected UTF-8 text", bytes[at]);
                let place = Place::of_offset(bytes, at);
                return Err(TraceError::input(&self.file, Some(place), what).on_line(self.number));
            }
        }
        Ok(true)
    }

    /// An error about this line.
    pub(crate) fn input(&self, what: impl Into<String>) -> TraceError {
        TraceError::input(&self.file, None, what).on_line(self.number)
    }
}

fn unreadable(file: &str, error: &std::io::Error) -> TraceError {
    let damaged = matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput)
        || error.kind() == std::io::ErrorKind::UnexpectedEof;
    let what = if damaged {
        format!("found damaged compressed data: {error}")
    } else {
        format!("cannot be read: {error}")
    };
    TraceError::input(file, None, what)
}
