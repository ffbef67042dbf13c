//! Makes text from outside safe to print: escapes characters that control a terminal, are invisible, or
//! reorder a line.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whether a character shows as itself: none of the general categories C* (control, format, surrogate,
/// private use, unassigned), Zl and Zp.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let separates =
        |category| matches!(category, GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator);
    c.general_category_group() != GeneralCategoryGroup::Other && !separates(c.general_category())
}

/// Text with JSON escapes (`\u001b`) in place of characters that are not printable. Line feeds and tabs stay.
/// A JSON document keeps its meaning.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_printable(c) || matches!(c, '\n' | '\t'))
}

/// The same in one line: line feeds and tabs are escaped, too.
pub fn escaped_line(text: &str) -> Cow<'_, str> {
    escape(text, is_printable)
}

/// At most `most` characters of a text, in one line, with `…` where it is cut.
pub fn cut_line(text: &str, most: usize) -> String {
    // A long text is cut first, so that its length does not matter.
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    let line = escaped_line(&text[..end.unwrap_or(text.len())]);
    match (line.char_indices().nth(most), end) {
        (Some((end, _)), _) => format!("{}…", &line[..end]),
        (None, Some(_)) => format!("{line}…"),
        (None, None) => line.into_owned(),
    }
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if stays(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_hide_or_reorder_are_escaped() {
        for (raw, shown) in [
            ("plain, día, 漢字, 🦀", "plain, día, 漢字, 🦀"),
            ("\x1b[31mred\x07", "\\u001b[31mred\\u0007"),
            ("\u{9b}2J\u{7f}\r", "\\u009b2J\\u007f\\u000d"),
            ("a\u{202e}b\u{2066}c\u{200b}", "a\\u202eb\\u2066c\\u200b"),
            ("a\u{2028}b\u{feff}c\u{e000}", "a\\u2028b\\ufeffc\\ue000"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(escaped(raw), shown);
            assert_eq!(escaped_line(raw), shown);
        }
        assert_eq!(escaped("a\tb\nc"), "a\tb\nc");
        assert_eq!(escaped_line("a\tb\nc"), "a\\tb\\nc");
    }

    #[test]
    fn lines_are_cut_after_they_are_escaped() {
        assert_eq!(cut_line("abc", 3), "abc");
        assert_eq!(cut_line("añcd", 2), "añ…");
        assert_eq!(cut_line("\n\n\n", 4), "\\n\\n…");
    }
}
