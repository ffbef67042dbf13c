//! Pairs of key and value: the format of keys and lengths, and sequences of pairs.

use crate::base::error::TaskError;

/// A sequence of pairs, sorted by key.
pub(crate) trait Cursor {
    /// The current pair; `None` at the end.
    fn current(&self) -> Option<(&[u8], &[u8])>;
    /// Goes to the next pair.
    fn advance(&mut self) -> Result<(), TaskError>;
}

/// The first bytes of a key as a number in the same order; shorter keys are filled with zeros.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    first[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(first)
}

/// Appends a number, seven bits per byte, low ones first.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front; `None` if it is cut short or too long.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}
