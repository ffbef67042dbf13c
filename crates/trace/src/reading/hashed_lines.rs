//! Reads a file once, line by line, and hashes its bytes.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::compression::Compression;
use super::error::TraceError;
use super::line_reader::LineReader;
use super::text::hexadecimal;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;

/// A file that is read once, decompressed if it is gzip or zstd, with a hash of its original bytes.
pub(crate) struct HashedLines {
    pub(crate) lines: LineReader<'static>,
    hash: Arc<Mutex<Sha256>>,
}

struct HashingReader<R> {
    source: R,
    hash: Arc<Mutex<Sha256>>,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).update(&out[..read]);
        Ok(read)
    }
}

impl HashedLines {
    /// Begins to read; `name` is the file in messages.
    pub(crate) fn open(name: &str, source: impl Read + Send + 'static) -> Result<Self, TraceError> {
        let hash = Arc::new(Mutex::new(Sha256::new()));
        let source = Compression::open(HashingReader { source, hash: Arc::clone(&hash) }, BLOCK);
        let source =
            source.map_err(|error| TraceError::input(name, None, format!("cannot be read: {error}")))?;
        Ok(Self { lines: LineReader::new(name, source), hash })
    }

    /// The hash of all bytes, in lower-case hexadecimal; reads the rest.
    pub(crate) fn sha256(mut self) -> Result<String, TraceError> {
        while self.lines.next()? {}
        let hash = std::mem::take(&mut *self.hash.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(hexadecimal(&hash.finalize()))
    }
}
