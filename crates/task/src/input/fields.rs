//! Splits text into words, and reads numbers.

/// Whether a byte is white space: the six of C's `isspace` in the C locale, which are space, tab, newline,
/// vertical tab, form feed and carriage return. Unicode spaces are parts of words.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    const SPACES: u64 = 1 << b' ' | 0b1_1111 << b'\t';
    // One comparison for most bytes of words.
    byte <= b' ' && SPACES >> byte & 1 == 1
}

/// The words of a text, separated by white space, see [`is_space`].
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !is_space(*byte))?;
        let word = &rest[start..];
        let end = word.iter().position(|byte| is_space(*byte)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        Some(word)
    })
}

/// The number in a field: white space around it is ignored; then an optional sign, digits with an optional
/// point, and an optional exponent (`12`, ` +5`, `-.5`, `3.`, `1e3`), within the range of 64-bit floating
/// point. No other text is a number: not `12abc`, `1,000`, `0x10`, `inf`, `nan`, `1e999` or the empty text.
///
/// This differs from `sort -n`, which reads the beginning of a field (`12abc` is 12, `1e3` is 1), and from
/// `sort -g`, which also accepts `inf`, `nan` and hexadecimal numbers.
pub(crate) fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A finite number as bytes in the same order, above eight zeros.
pub(crate) fn ordered(number: f64) -> [u8; 8] {
    // Zero has two bit patterns for one number.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let sign = 1 << 63;
    if bits & sign == 0 { (bits | sign).to_be_bytes() } else { (!bits).to_be_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_between_white_space() {
        assert_eq!(words(b" a\tbc  d\r").collect::<Vec<_>>(), [b"a".as_slice(), b"bc", b"d"]);
    }

    #[test]
    fn the_six_of_isspace_part_words_and_nothing_else() {
        let text: Vec<u8> = (0..=255u8).flat_map(|byte| [b'x', byte]).collect();
        let parted = words(&text).count();
        assert_eq!((0..=255u8).filter(|byte| is_space(*byte)).collect::<Vec<_>>(), b"\t\n\x0b\x0c\r ");
        assert_eq!(parted, 7);
        assert_eq!(words("a\u{a0}b\x0bc".as_bytes()).collect::<Vec<_>>(), ["a\u{a0}b".as_bytes(), b"c"]);
    }

    #[test]
    fn numbers_are_recognised_exactly() {
        for (field, expected) in
            [("12", 12.0), (" 12\t", 12.0), ("+5", 5.0), ("-.5", -0.5), ("3.", 3.0), ("1e3", 1000.0)]
        {
            assert_eq!(number(field.as_bytes()), Some(expected), "{field:?}");
        }
        for field in
            ["", " ", "12abc", "1,000", "0x10", "inf", "-inf", "nan", "1e999", "1 2", "--1", "\u{661}"]
        {
            assert_eq!(number(field.as_bytes()), None, "{field:?}");
        }
        assert_eq!(number(b"1\xff"), None);
    }
}
