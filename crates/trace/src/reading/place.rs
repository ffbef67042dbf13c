//! A position in a text file: line and column.

use std::fmt;

/// A position in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// The place of byte `offset` of `text` (its end if `offset` is beyond). O(offset).
    pub fn of_offset(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line = before.split(|&b| b == b'\n').count() as u32;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        // Continuation bytes of UTF-8 are not characters.
        let column = before[start..].iter().filter(|&&b| b & 0xc0 != 0x80).count() as u32 + 1;
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "aé\nöb".as_bytes();
        assert_eq!(Place::of_offset(text, 0).to_string(), "1:1");
        assert_eq!(Place::of_offset(text, 3).to_string(), "1:3");
        assert_eq!(Place::of_offset(text, 6).to_string(), "2:2");
        assert_eq!(Place::of_offset(text, 99).to_string(), "2:3");
    }
}
