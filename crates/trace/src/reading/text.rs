//! Decodes the bytes of a file, compressed or not, into text, and hashes bytes.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use sha2::{Digest, Sha256};

use crate::reading::compression::Compression;
use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::{avro, signatures};

/// Most bytes a compressed file may expand to; beyond it is a bomb, not a workload.
const EXPANDED_MAX: u64 = 2 << 30;

/// The text of a file: decompressed if it is gzip or zstd, as JSON if it is a binary job history, checked to
/// be UTF-8, without a byte order mark.
///
/// # Errors
/// Damaged or absurdly large compressed data, bytes that are no UTF-8 (with their place).
pub fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, str>, TraceError> {
    let bytes = match Compression::of_content(bytes) {
        Some(compression) => Cow::Owned(decompress(file, bytes, compression)?),
        None => Cow::Borrowed(bytes),
    };
    if let Some(json) = avro::as_json(file, &bytes) {
        return json.map(Cow::Owned);
    }
    let bad = |bytes: &[u8], error: std::str::Utf8Error| {
        if let Some(name) = signatures::of_bytes(bytes) {
            return TraceError::input(file, None, format!("found {name}, expected text"));
        }
        let at = error.valid_up_to();
        let what = format!("found byte {:#04x} at offset {at}, expected UTF-8 text", bytes[at]);
        TraceError::input(file, Some(Place::of_offset(bytes, at)), what)
    };
    let text = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).map_err(|e| bad(bytes, e))?),
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).map_err(|e| bad(e.as_bytes(), e.utf8_error()))?)
        }
    };
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Cow::Owned(text) if text.starts_with('\u{feff}') => Cow::Owned(text['\u{feff}'.len_utf8()..].into()),
        owned @ Cow::Owned(_) => owned,
    })
}

/// The content of a file as it is read, decompressed if it is gzip or zstd.
pub(crate) fn content(bytes: &[u8]) -> Box<dyn BufRead + '_> {
    match Compression::of_content(bytes) {
        Some(compression) => Box::new(BufReader::with_capacity(1 << 16, compression.decoder(bytes))),
        None => Box::new(bytes),
    }
}

fn decompress(file: &str, bytes: &[u8], compression: Compression) -> Result<Vec<u8>, TraceError> {
    let (mut expanded, name) = (Vec::new(), compression.name());
    compression
        .decoder(bytes)
        .take(EXPANDED_MAX + 1)
        .read_to_end(&mut expanded)
        .map_err(|error| TraceError::input(file, None, format!("found damaged {name} data: {error}")))?;
    if expanded.len() as u64 > EXPANDED_MAX {
        let what = format!("found {name} data that expands to more than {EXPANDED_MAX} bytes");
        return Err(TraceError::input(file, None, what));
    }
    Ok(expanded)
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("invariant: half a byte");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_read_as_it_is_and_damage_is_reported() {
        use std::io::Write;
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all("\u{feff}slackline = 1".as_bytes()).unwrap();
        let packed = writer.finish().unwrap();
        assert_eq!(text("w", &packed).unwrap(), "slackline = 1");
        let error = text("w", &packed[..packed.len() - 9]).unwrap_err().to_string();
        assert!(error.starts_with("w: found damaged gzip data"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_have_a_place() {
        let error = text("w", b"a = 1\nb = \xff").unwrap_err().to_string();
        assert_eq!(error, "w:2:5: found byte 0xff at offset 10, expected UTF-8 text");
    }
}
