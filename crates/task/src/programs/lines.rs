//! A regular expression over lines that searches many of them at once.
//!
//! The expression is changed so that it matches no newline and treats each line as a text: newlines are
//! removed from its classes, and the beginning and end of the text are those of a line. So its matches in
//! many lines are those in each line, and a search for rare words runs at the speed of memory.

use regex::bytes::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
    Repetition,
};

use crate::base::error::TaskError;
use crate::programs::contract::each_line;

/// A regular expression over lines.
pub(crate) enum LineRegex {
    /// It searches many lines.
    Many(Regex),
    /// It gets lines one by one: matches begin with the line, so that most lines are rejected after a few
    /// bytes; or it treats carriage returns as ends of lines, which depends on the next byte.
    Single(Regex),
}

impl LineRegex {
    /// Parses a pattern.
    pub(crate) fn new(pattern: &str) -> Result<Self, regex::Error> {
        let single = Regex::new(pattern)?;
        let parsed = ParserBuilder::new().utf8(false).multi_line(true).build().parse(pattern);
        let is_anchored = |hir: &Hir| hir.properties().look_set_prefix().contains(Look::StartLF);
        let many = parsed.ok().and_then(|parsed| within_lines(&parsed)).filter(|many| !is_anchored(many));
        Ok(match many.and_then(|many| Regex::new(&many.to_string()).ok()) {
            Some(many) => Self::Many(many),
            None => Self::Single(single),
        })
    }

    /// Calls `take` with each of some lines (without its newline) that matches.
    pub(crate) fn each_line(
        &self,
        lines: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let regex = match self {
            Self::Many(regex) => regex,
            Self::Single(regex) => {
                return each_line(lines, |line| if regex.is_match(line) { take(line) } else { Ok(()) });
            }
        };
        let text = lines.strip_suffix(b"\n").unwrap_or(lines);
        let mut at = 0;
        while at <= text.len() {
            // Some match ends there, in the line in which it began.
            let Some(found) = regex.shortest_match_at(text, at) else { break };
            let begin = memchr::memrchr(b'\n', &text[at..found]).map_or(at, |newline| at + newline + 1);
            let end = memchr::memchr(b'\n', &text[found..]).map_or(text.len(), |newline| found + newline);
            take(&text[begin..end])?;
            at = end + 1;
        }
        Ok(())
    }

    /// Calls `take` with each match in each of some lines.
    pub(crate) fn each_match(
        &self,
        lines: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        match self {
            Self::Many(regex) => {
                let text = lines.strip_suffix(b"\n").unwrap_or(lines);
                regex.find_iter(text).try_for_each(|found| take(found.as_bytes()))
            }
            Self::Single(regex) => {
                each_line(lines, |line| regex.find_iter(line).try_for_each(|found| take(found.as_bytes())))
            }
        }
    }
}

/// An expression that finds in one of many lines what the given one finds in the line alone; `None` if there
/// is none.
fn within_lines(hir: &Hir) -> Option<Hir> {
    let each = |parts: &[Hir]| parts.iter().map(within_lines).collect::<Option<Vec<_>>>();
    Some(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(class) => Hir::class(without_newline(class)),
        HirKind::Look(Look::Start | Look::StartLF) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End | Look::EndLF) => Hir::look(Look::EndLF),
        HirKind::Look(Look::StartCRLF | Look::EndCRLF) => return None,
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let sub = Box::new(within_lines(sub)?);
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub })
        }
        HirKind::Capture(Capture { index, name, sub }) => {
            Hir::capture(Capture { index: *index, name: name.clone(), sub: Box::new(within_lines(sub)?) })
        }
        HirKind::Concat(parts) => Hir::concat(each(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)?),
    })
}

fn without_newline(class: &Class) -> Class {
    match class {
        Class::Unicode(class) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Class::Unicode(class)
        }
        Class::Bytes(class) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Class::Bytes(class)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 26] = [
        "ab",
        "a|b\\n",
        "^a",
        "b$",
        "^$",
        "^",
        "$",
        "\\s+",
        "[^a]+",
        "a\\s*b",
        "(?s)a.b",
        "\\Aa",
        "b\\z",
        "\\n",
        "x*",
        "\\ba",
        "\\Bb",
        "(?-u)\\xff",
        "(?-u:[^a])b",
        "(?-m)^a",
        "(?m)^b",
        "(?R)b$",
        "(a)(?:b|\\s){0,2}",
        "[\\n ]",
        "é",
        "(?i)AB?",
    ];

    const PIECES: [&[u8]; 8] = [b"a", b"b", b"\n", b" ", b"\r", "é".as_bytes(), b"\xff", b"ab"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn many_lines_at_once_give_what_each_alone_gives(
            nth in 0..PATTERNS.len(),
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24),
        ) {
            let (pattern, lines) = (PATTERNS[nth], pieces.concat());
            let (regex, alone) = (LineRegex::new(pattern).unwrap(), Regex::new(pattern).unwrap());
            let (mut matching, mut matches) = (Vec::new(), Vec::new());
            each_line(&lines, |line| {
                matching.extend(alone.is_match(line).then(|| line.to_vec()));
                matches.extend(alone.find_iter(line).map(|found| found.as_bytes().to_vec()));
                Ok(())
            }).unwrap();
            let (mut lines_found, mut matches_found) = (Vec::new(), Vec::new());
            if !lines.is_empty() {
                regex.each_line(&lines, |line| { lines_found.push(line.to_vec()); Ok(()) }).unwrap();
                regex.each_match(&lines, |found| { matches_found.push(found.to_vec()); Ok(()) }).unwrap();
            }
            prop_assert_eq!(lines_found, matching, "{}", pattern);
            prop_assert_eq!(matches_found, matches, "{}", pattern);
        }
    }

    #[test]
    fn patterns_are_searched_in_many_lines_unless_they_begin_the_line_or_ask_for_carriage_returns() {
        let single = ["^a", "^$", "^", "\\Aa", "(?-m)^a", "(?m)^b", "(?R)b$"];
        for pattern in PATTERNS {
            let is_many = matches!(LineRegex::new(pattern).unwrap(), LineRegex::Many(_));
            assert_eq!(is_many, !single.contains(&pattern), "{pattern}");
        }
        assert!(LineRegex::new("(").is_err());
    }
}
