//! Parts of a line.

/// Field `number` of a line, fields being separated by tabs; number 0 is the line. None if there are
/// fewer.
pub(super) fn field(line: &[u8], number: usize) -> Option<&[u8]> {
    match number {
        0 => Some(line),
        _ => line.split(|&byte| byte == b'\t').nth(number - 1),
    }
}

/// The words of a line: what stands between spaces, tabs and their like (ASCII).
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = &rest[start..];
        let end = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_one() {
        let get = |number| field(b"a\t\tc", number);
        assert_eq!(
            [get(0), get(1), get(2), get(3), get(4)],
            [Some(b"a\t\tc".as_slice()), Some(b"a"), Some(b""), Some(b"c"), None]
        );
        assert_eq!(words(b" a\tbc  d\r").collect::<Vec<_>>(), [b"a".as_slice(), b"bc", b"d"]);
    }
}
